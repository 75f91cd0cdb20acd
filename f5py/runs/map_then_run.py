"""Reads without alignments are mapped before the run that needs them."""

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from f5py.compute.chemistry import chemistry_of
from f5py.compute.diagnosis import RunCounts
from f5py.errors import UsageError
from f5py.io.files.disk import temporary_folder
from f5py.mapping import MapOptions, is_index, map_reads
from f5py.messages import console
from f5py.options.shared import MappingOptions
from f5py.pipeline.inputs import READS_FOR_RUN_INFO, open_signals_of, with_local_inputs
from f5py.runs.recipe import MappedOptions, MappedReadsRecipe, TableCallback, options_of_workers, run_whole

_WHO = "map"


def run_of_alignments(recipe: MappedReadsRecipe, options: Any, on_table: TableCallback | None) -> RunCounts:
    """Run a command on alignments: in one run, in parts, or after mapping the reads."""
    if not options.bam:
        return run_mapped(recipe, options, on_table)
    if options.plan is not None or options.resume:
        if on_table is not None:
            raise UsageError(
                f"--plan and --resume: go on with a file, and the {recipe.words} are returned; name the file with -o, "
                "or leave these options out"
            )
        from f5py.runs.in_parts import run_in_parts

        return run_in_parts(recipe, options)
    return _run(recipe, recipe.resolved(options, on_table is not None), on_table)


def _run(recipe: MappedReadsRecipe, options: Any, on_table: TableCallback | None) -> RunCounts:
    """Run a command on alignments, with a process for each GPU if that pays."""
    of_workers = [options] if on_table is not None else options_of_workers(recipe, options)
    if len(of_workers) == 1:
        return run_whole(recipe, of_workers[0], on_table)
    from f5py.runs.in_parts import run_on_gpus

    return run_on_gpus(recipe, options, of_workers)


def run_mapped(recipe: MappedReadsRecipe, options: MappedOptions, on_table: TableCallback | None) -> RunCounts:
    """Map the reads of ``-r``, and run the command on these alignments."""
    assert isinstance(options, MappingOptions)
    if options.plan is not None or options.resume:
        raise UsageError("--plan and --resume: need alignments that stay; map the reads with f5py map, and give -b")
    if not options.reads:
        raise UsageError("-b: name the alignments, or name the reads with -r to have them mapped")
    if options.reads == "-":
        raise UsageError("-r -: reads that are mapped in the same run are read twice; name a file, or map them first")
    resolved = recipe.resolved(options, on_table is not None)  # mistakes come first
    is_index(options.genome)  # raises for an index of another version or program
    with ExitStack() as inputs:
        folder = inputs.enter_context(temporary_folder("f5py-mapped-"))
        bam = options.keep_bam or os.path.join(folder, f"{Path(options.reads).stem}.bam")
        local = with_local_inputs(options, inputs)
        preset = options.map_preset or ("rna" if _is_rna(local) else "map-ont")
        console.info(
            _WHO, f"no alignments are given: {options.reads} is mapped to {options.genome} first (-x {preset})"
        )
        command = f"f5py map -x {preset} {options.genome} {options.reads}"
        counts = map_reads(
            MapOptions(
                reference=local.genome, reads=(str(local.reads),), output=bam, preset=preset,
                threads=options.threads, command_line=command, indexes_reference=True, **options.gpu_choices(),
            )
        )  # fmt: skip
        console.note(_WHO, f"{counts}" if options.keep_bam is None else f"{counts}; written: {bam}")
        return _run(recipe, replace(resolved, bam=bam, keep_bam=None, map_preset=None, mapped_by=command), on_table)


def _is_rna(options: MappedOptions) -> bool:
    """Return whether signals are of direct RNA. Also opens them, so that a mistake is told before the mapping."""
    with ExitStack() as inputs:
        signals = open_signals_of(options, inputs)
        run_info = signals.run_info(signals.first_names(READS_FOR_RUN_INFO))
        return chemistry_of(options.pore, options.is_rna, run_info, options.kmer_model is not None).rna
