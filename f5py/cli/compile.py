"""``f5py compile``: compile ahead of the first run."""

import os
from collections.abc import Callable

from f5py.io.files.disk import temporary_folder
from f5py.messages import console
from f5py.options.table_commands import CompileOptions

_SIZE = "--genome-length 3K -n 6 --median-length 1K --haplotypes"


def run(chosen: CompileOptions, step: Callable[..., None]) -> None:
    """Compile the kernels of most runs, for this processor and for GPUs that need not be there.

    Raises `GpuUnavailableError` if kernels for GPUs are requested without CuPy or its compiler, `F5pyError` if a run on
    a few reads fails.
    """
    from f5py.jit.warm_up import warm_up
    from f5py.mapping import compiled_stages
    from f5py.runs.compiled_stages import STAGES

    capabilities = chosen.capabilities()
    if capabilities:
        from f5py.compute.gpu.sources import compile_for

        for capability in capabilities:
            compile_for(capability)
            console.note("compile", f"kernels for compute capability {capability[:-1]}.{capability[-1]} compiled")
    with warm_up(STAGES | compiled_stages(), lambda stage: console.note("compile", f"compiled: {stage}")):
        pass
    with temporary_folder("f5py-compile-") as folder:
        for signal_format in ("fast5", "blow5"):
            _small_runs(os.path.join(folder, signal_format), signal_format, step)
    console.note("compile", "compiled for this processor; the code is kept for the runs that follow")


def _small_runs(folder: str, signal_format: str, step: Callable[..., None]) -> None:
    """Run commands on a few reads, which compiles their readers and writers, too."""
    names = "reads.fastq", "reads.bam", "ref.fa", "ref.fidx", "calls.tsv.gz", "out"
    at = {name: os.path.join(folder, name) for name in names}
    kind, signals = (
        ("--slow5", os.path.join(folder, "reads.blow5"))
        if signal_format == "blow5"
        else ("--fast5", os.path.join(folder, "fast5"))
    )
    gpu, out = ["--gpu", "off"], at["out"]
    without_reads = ["-b", at["reads.bam"], "-g", at["ref.fa"], kind, signals, *gpu]
    inputs = ["-r", at["reads.fastq"], *without_reads]
    steps: list[tuple[str, list[str]]] = [
        ("simulate", ["-o", folder, "--format", signal_format, *_SIZE.split()]),
        ("map", [at["ref.fa"], at["reads.fastq"], "-o", f"{out}.bam", *gpu]),
        (
            "call-methylation",
            [*inputs, "-o", at["calls.tsv.gz"], "--modbam", f"{out}.mod.bam", "--bedmethyl", f"{out}.bed.gz"],
        ),
        ("meth-freq", ["-s", "-i", at["calls.tsv.gz"], "-o", f"{out}.freq.tsv"]),
        ("eventalign", [*inputs, "-o", f"{out}.events.tsv"]),
        ("resquiggle", [at["reads.fastq"], signals, "-o", f"{out}.moves.tsv", *gpu]),
        ("index", ["--slow5" if signal_format == "blow5" else "-d", signals, at["reads.fastq"]]),
    ]
    if signal_format == "blow5":  # what does not depend on it
        steps += [
            (
                "call-methylation",
                [*without_reads, "-o", at["calls.tsv.gz"], "--plan", f"{out}.plan", "--partitions", "2"],
            ),
            ("run-part", [f"{out}.plan"]),
            ("meth-freq", ["-i", f"{out}.mod.bam", "-g", at["ref.fa"], "-o", f"{out}.freq.tsv"]),
            ("freq-merge", [f"{out}.freq.tsv", f"{out}.freq.tsv", "-o", f"{out}.all.tsv"]),
            ("call-methylation", [*inputs, "-o", at["calls.tsv.gz"], "--skip-overlaps"]),
            ("eventalign", [*inputs, "-o", f"{out}.events.tsv", "--samples"]),
            ("eventalign", [*inputs, "-o", f"{out}.events.tsv", "--m6anet"]),
            ("eventalign", [*inputs, "-o", f"{out}.events.tsv", "--mark-deletions", "--mark-kmers"]),
            ("eventalign", [*inputs, "-o", f"{out}.events.tsv", "--summary", f"{out}.summary.tsv"]),
            ("eventalign", [*inputs, "-o", f"{out}.events.paf", "-c"]),
            ("resquiggle", [at["reads.fastq"], signals, "-o", f"{out}.moves.paf", "-c", *gpu]),
            ("map", [at["ref.fa"], at["reads.bam"], "-o", f"{out}.bam", "--seeds", "mem", *gpu]),
            ("map", [at["ref.fa"], at["reads.fastq"], "-o", f"{out}.bam", "-x", "darwin", *gpu]),
            ("map", [at["ref.fa"], "-d", at["ref.fidx"]]),
            ("map", [at["ref.fidx"], at["reads.fastq"], "-o", f"{out}.bam", "-y", *gpu]),
        ]
    for i, (name, arguments) in enumerate(steps, 1):
        console.note("compile", f"{name}, {signal_format}: step {i} of {len(steps)}")
        with console.hushed():
            step(name, arguments, who="compile")
