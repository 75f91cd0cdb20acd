"""Simulate a data set: molecules, signals, basecalls, alignments and the truth about their methylation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from f5py import console
from f5py.core.options import SimulateOptions, declarations
from f5py.errors import UsageError
from f5py.progress import Progress, progress
from f5py.simulation.basecalls import basecall
from f5py.simulation.current import simulate_signal
from f5py.simulation.genome import Genome, random_genome, read_genome, write_genome
from f5py.simulation.interrupt import interruptible
from f5py.simulation.outputs import (
    REFERENCE,
    TRUTH,
    ReadWriter,
    check_space,
    complete_folder,
    sort_alignments,
    write_truth,
)
from f5py.simulation.plan import ReadPlan, plan_reads
from f5py.simulation.settings import PORES, SimulationSettings
from f5py.simulation.sites import Sites

_N_CHANNELS = 512
#: Options that settings of the same name stand for.
_SETTINGS = sorted({field.name for field in fields(SimulationSettings)} & set(declarations(SimulateOptions)))
# One stream of random numbers for each thing that is drawn as a whole, and one for each read, so that
# a change of, say, the error rate leaves the genome and the reads' places as they are.
_GENOME_STREAM, _SITE_STREAM, _PLAN_STREAM, _CHANNEL_STREAM, _READ_STREAM = range(5)


@dataclass(frozen=True)
class SimulationSummary:
    """What was written: reads, bases of their molecules, signal samples, and sites that reads cover."""

    n_reads: int
    n_bases: int
    n_samples: int
    n_sites: int
    n_covered_sites: int
    longest: int


def run(options: SimulateOptions) -> SimulationSummary:
    """Simulate as `options` say, and tell what was written.

    Raises
    ------
    F5pyError
        For options that do not go together, and anything wrong with the input or output.
    """
    _refuse_contradictions(options)
    given = {name: getattr(options, name) for name in _SETTINGS}
    settings = SimulationSettings(
        per_read=options.methylation == "per-read",
        bases_per_second=options.speed or PORES[options.pore][2],
        sampling_rate=PORES[options.pore][3],
        **{name: value for name, value in given.items() if value is not None},
    )
    summary = simulate(
        options.output, settings, reference=options.reference, fasta=options.fasta,
        read_truth=not options.no_read_truth, force=options.force,
    )  # fmt: skip
    console.note(
        "simulate",
        f"{options.output}: {summary.n_reads} reads, {summary.n_bases} bases (longest read {summary.longest}), "
        f"{summary.n_samples} samples; {summary.n_covered_sites} of {summary.n_sites} CpG sites covered",
    )
    return summary


def _refuse_contradictions(options: SimulateOptions) -> None:
    """Raise for an option that another one makes meaningless."""

    def refuse(names: list[str], because: str) -> None:
        for name in names:
            if getattr(options, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} has no meaning with {because}")

    if options.n_reads is not None:
        refuse(["coverage"], "--reads")
    if options.reference is not None:
        refuse(["genome_length", "gc"], "--reference")
    if options.fixed_length is not None:
        refuse(["median_length", "length_sigma", "min_length"], "--length")
    if options.methylation == "per-read":
        refuse(["site_rates", "linked_within"], "--methylation per-read")
    else:
        refuse(["methylated_reads"], "--methylation per-site")


def simulate(
    folder: str | Path,
    settings: SimulationSettings,
    *,
    reference: str | Path | None = None,
    fasta: bool = False,
    read_truth: bool = True,
    force: bool = False,
) -> SimulationSummary:
    """Simulate reads of known CpG methylation and write them as a data set.

    A molecule is a piece of one strand in which methylated C's stand before their G as M; its signal follows
    the pore model, its basecalled read has errors, and its alignment is the true one. Both strands of a site
    have the same rate.

    Parameters
    ----------
    folder : path
        Gets ``ref.fa``, ``reads.fastq`` (or ``.fasta``), ``reads.bam`` (each with its index), ``fast5/``,
        ``truth.tsv`` and ``truth_reads.tsv``, all at once when the last is complete.
    settings : SimulationSettings
        What to simulate.
    reference : path, optional
        FASTA file; without it a random genome is made.
    fasta : bool
        Write ``reads.fasta`` without qualities.
    read_truth : bool
        Write ``truth_reads.tsv``, the state of every site in every read.
    force : bool
        Replace an earlier simulation in `folder`.

    Returns
    -------
    SimulationSummary

    Raises
    ------
    InputFileError
        The reference cannot be read.
    OutputFileError
        The folder is in use or cannot be written.
    F5pyError
        The settings contradict each other or the reference.
    """
    if reference is not None:
        genome = read_genome(reference)
    else:
        genome = random_genome(settings.genome_length, settings.gc, _stream(settings, _GENOME_STREAM))
    sites = Sites.find(genome, settings, _stream(settings, _SITE_STREAM))
    plan = plan_reads(genome, settings, _stream(settings, _PLAN_STREAM))
    check_space(Path(folder), _expected_size(genome, plan, settings, read_truth))
    with complete_folder(Path(folder), force) as unfinished, interruptible() as check_interrupt:
        write_genome(genome, unfinished / REFERENCE)
        n_bases = int(plan.lengths.sum())
        files = ReadWriter(unfinished, genome, settings.reads_per_file, fasta, read_truth, PORES[settings.pore][1])
        with progress("bases", n_bases) as bar, files as writer:
            n_samples = _simulate_reads(genome, sites, plan, settings, writer, check_interrupt, bar)
        check_interrupt()
        sort_alignments(unfinished)
        write_truth(sites, genome, unfinished / TRUTH)
    return SimulationSummary(
        n_reads=len(plan.names),
        n_bases=n_bases,
        n_samples=n_samples,
        n_sites=len(sites.positions),
        n_covered_sites=int((sites.n_reads > 0).sum()),
        longest=int(plan.lengths.max(initial=0)),
    )


def _simulate_reads(
    genome: Genome,
    sites: Sites,
    plan: ReadPlan,
    settings: SimulationSettings,
    writer: ReadWriter,
    check_interrupt: Callable[[], None],
    bar: Progress,
) -> int:
    from f5py.pore_model import builtin, read_model

    name, *_ = PORES[settings.pore]
    model = builtin(name) if settings.meth_model is None else read_model(settings.meth_model, "ACGMT")
    channel_offsets = np.rint(_stream(settings, _CHANNEL_STREAM).normal(10, 4, size=_N_CHANNELS))
    n_samples = 0
    for i, name in enumerate(plan.names):
        check_interrupt()
        rng = _stream(settings, _READ_STREAM, i)
        start, reverse = int(plan.starts[i]), bool(plan.reverse[i])
        end = start + int(plan.lengths[i])
        positions, methylated = sites.methylate(start, end, rng)
        molecule = genome.codes[start:end]
        if reverse:
            molecule = 3 - molecule[::-1]
        call = basecall(molecule, settings.error_rate, rng)
        letters = modified_letters(molecule, start, reverse, positions[methylated], model.alphabet)
        channel = int(rng.integers(_N_CHANNELS))
        offset = float(channel_offsets[channel])
        samples = simulate_signal(letters, model, settings, offset, bool(plan.slow[i]), rng)
        n_samples += len(samples)
        calibration = {
            "digitisation": settings.digitisation,
            "offset": offset,
            "range": settings.signal_range,
            "sampling_rate": settings.sampling_rate,
        }
        writer.write(name, start, reverse, call, positions, methylated, samples, calibration, channel + 1)
        bar.advance(end - start)
    return n_samples


def _expected_size(genome: Genome, plan: ReadPlan, settings: SimulationSettings, read_truth: bool) -> int:
    """Bytes of all files, from what compressed signals (1.5 bytes a sample) and other files take at most."""
    slowness = np.where(plan.slow, settings.slow_factor, 1.0)
    n_samples = (plan.lengths * slowness).sum() * settings.sampling_rate / settings.bases_per_second
    # FASTQ 2, uncompressed BAM 1.7 and sorted BAM 1 byte a base; a site's row has 70 bytes, one base in 20
    per_base = 5.0 + (3.5 if read_truth else 0.0)
    return int(1.5 * n_samples + per_base * plan.lengths.sum() + 5 * len(genome.codes)) + 200_000


def modified_letters(
    molecule: NDArray[np.uint8], start: int, reverse: bool, methylated: NDArray[np.int64], alphabet: str
) -> NDArray[np.uint8]:
    """Turn a molecule into indices into the model's `alphabet`, with M at the methylated sites.

    Parameters
    ----------
    molecule : uint8, shape (n,)
        Codes 0 to 3 in the order of sequencing.
    start : int
        Flat position of the molecule's first base on the forward strand.
    reverse : bool
        True if the molecule is of the reverse strand.
    methylated : int64, shape (m,)
        Flat positions of the forward strand's C of the methylated sites.
    alphabet : str
        The model's letters, with M.
    """
    letters = np.array([alphabet.index(base) for base in "ACGT"], dtype=np.uint8)[molecule]
    # the reverse strand's C pairs with the G that follows the forward strand's C
    where = start + len(molecule) - 1 - (methylated + 1) if reverse else methylated - start
    letters[where] = alphabet.index("M")
    return letters


def _stream(settings: SimulationSettings, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(settings.seed, spawn_key=key)))
