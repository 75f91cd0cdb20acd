"""Simulated molecules, signals, basecalls, alignments and their methylation: ``f5py simulate``."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.motifs import Motif, motif_named, parse_motif
from f5py.io.signals.source import Calibration
from f5py.messages import console
from f5py.messages.progress import Progress, progress
from f5py.options import declarations
from f5py.options.table_commands import SimulateOptions
from f5py.pore_model.model import PoreModel
from f5py.simulation.current import basecall, simulate_signal
from f5py.simulation.genome import Genome, random_genome, random_transcripts, read_genome, write_genome
from f5py.simulation.levels import simulated_model
from f5py.simulation.outputs import REFERENCE, ReadWriter, check_space, complete_folder, sort_alignments, write_truth
from f5py.simulation.plan import ReadPlan, plan_reads
from f5py.simulation.settings import CHEMISTRIES, REALISTIC, SimulationSettings
from f5py.simulation.sites import SimulatedSites
from f5py.threads.interrupts import Interrupt, remembered_interrupt

_N_CHANNELS = 512
#: Options that settings of the same name stand for.
_SETTINGS = sorted({field.name for field in fields(SimulationSettings)} & set(declarations(SimulateOptions)))
# One stream of random numbers for each thing that is drawn as a whole, and one for each read, so that
# a change of, say, the error rate leaves the genome and the reads' places as they are.
_GENOME_STREAM, _SITE_STREAM, _PLAN_STREAM, _CHANNEL_STREAM, _READ_STREAM, _SHIFT_STREAM, _LEVEL_STREAM = range(7)


@dataclass(frozen=True)
class SimulationSummary:
    """Totals of a simulation: reads, bases of their molecules, signal samples, sites, and covered sites."""

    n_reads: int
    n_bases: int
    n_samples: int
    n_sites: int
    n_covered_sites: int
    longest: int


def run(options: SimulateOptions) -> SimulationSummary:
    """Simulate a data set; return its totals. Raises `F5pyError`."""
    given = {name: getattr(options, name) for name in _SETTINGS}
    values: dict[str, Any] = {**CHEMISTRIES[options.pore].statistics, **(REALISTIC if options.realistic else {})}
    values |= {name: value for name, value in given.items() if value is not None}
    if options.speed is not None:
        values["bases_per_second"] = options.speed
    settings = SimulationSettings(per_read=options.methylation == "per-read", **values)
    summary = simulate(
        options.output, settings, reference=options.genome, fasta=options.fasta,
        read_truth=not options.no_read_truth, force=options.force,
    )  # fmt: skip
    console.note(
        "simulate",
        f"{options.output}: {summary.n_reads} reads, {summary.n_bases} bases (longest read {summary.longest}), "
        f"{summary.n_samples} samples; {summary.n_covered_sites} of {summary.n_sites} sites covered",
    )
    return summary


def simulate(
    folder: str | Path, settings: SimulationSettings, *, reference: str | Path | None = None, fasta: bool = False,
    read_truth: bool = True, force: bool = False,
) -> SimulationSummary:  # fmt: skip
    """Simulate reads of known methylation and write them as a data set.

    A molecule is a piece of one strand with M for every methylated base, or the 3' part of a transcript; its signal
    follows the pore model, its basecalled read has errors, and its alignment is the true one. Both strands of a
    palindromic site have the same rate.

    Parameters
    ----------
    folder : path
        Gets ``ref.fa``, ``reads.fastq`` (or ``.fasta``), ``reads.bam`` (each with its index), ``fast5/``, ``pod5/`` or
        ``reads.blow5``, ``truth.tsv`` and ``truth_reads.tsv``, all at once when the last is complete.
    reference : path, optional
        FASTA file, instead of a random genome.
    """
    if reference is not None:
        genome = read_genome(reference)
    else:
        make = random_transcripts if settings.chemistry.rna else random_genome
        genome = make(settings.genome_length, settings.gc, _stream(settings, _GENOME_STREAM))
    motif = motif_named(settings.motif) if ":" not in settings.motif else parse_motif(settings.motif)
    model = simulated_model(settings, motif, _stream(settings, _SHIFT_STREAM), _stream(settings, _LEVEL_STREAM))
    sites = SimulatedSites.none(motif)
    if "M" in model.alphabet:
        sites = SimulatedSites.find(genome, settings, _stream(settings, _SITE_STREAM), motif)
    plan = plan_reads(genome, settings, _stream(settings, _PLAN_STREAM))
    check_space(Path(folder), _expected_size(genome, plan, settings, read_truth))
    with complete_folder(Path(folder), force) as unfinished, remembered_interrupt() as interrupt:
        write_genome(genome, unfinished / REFERENCE)
        n_bases = int(plan.lengths.sum())
        files = ReadWriter(unfinished, genome, settings, fasta, read_truth)
        with progress("bases", n_bases) as bar, files as writer:
            n_samples = _simulate_reads(genome, sites, plan, settings, model, writer, interrupt, bar)
        interrupt.check()
        sort_alignments(unfinished)
        write_truth(sites, genome, unfinished)
        interrupt.check()
    return SimulationSummary(
        n_reads=len(plan.names), n_bases=n_bases, n_samples=n_samples, n_sites=len(sites.positions),
        n_covered_sites=int((sites.n_reads.sum(axis=0) > 0).sum()), longest=int(plan.lengths.max(initial=0)),
    )  # fmt: skip


def _simulate_reads(
    genome: Genome, sites: SimulatedSites, plan: ReadPlan, settings: SimulationSettings, model: PoreModel,
    writer: ReadWriter, interrupt: Interrupt, bar: Progress,
) -> int:  # fmt: skip
    channel_offsets = np.rint(_stream(settings, _CHANNEL_STREAM).normal(10, 4, size=_N_CHANNELS))
    n_samples = 0
    for i, name in enumerate(plan.names):
        interrupt.check()
        rng = _stream(settings, _READ_STREAM, i)
        start, reverse = int(plan.starts[i]), bool(plan.reverse[i])
        end = start + int(plan.lengths[i])
        haplotype = int(plan.haplotype[i])
        positions, methylated = sites.methylate(start, end, rng, reverse, haplotype)
        molecule = genome.codes[start:end]
        if reverse:
            molecule = 3 - molecule[::-1]
        call = basecall(molecule, settings.error_rate, rng)
        letters = modified_letters(molecule, start, reverse, positions[methylated], sites.motif, model.alphabet)
        channel = int(rng.integers(_N_CHANNELS))
        offset = float(channel_offsets[channel])
        samples = simulate_signal(letters, model, settings, offset, bool(plan.slow[i]), rng)
        n_samples += len(samples)
        calibration = Calibration(settings.digitisation, offset, settings.signal_range, settings.sampling_rate)
        of_signal = samples, calibration, channel + 1
        writer.write(name, start, reverse, call, haplotype, positions, methylated, *of_signal)
        bar.advance(end - start)
    return n_samples


def _expected_size(genome: Genome, plan: ReadPlan, settings: SimulationSettings, read_truth: bool) -> int:
    """Estimate the bytes of all files, with compressed signals of 1.5 bytes a sample."""
    slowness = np.where(plan.slow, settings.slow_factor, 1.0)
    n_samples = (plan.lengths * slowness).sum() * settings.sampling_rate / settings.bases_per_second
    # FASTQ 2, uncompressed BAM 1.7 and sorted BAM 1 byte a base; a site's row has 70 bytes, one base in 20
    per_base = 5.0 + (3.5 if read_truth else 0.0)
    return int(1.5 * n_samples + per_base * plan.lengths.sum() + 5 * len(genome.codes)) + 200_000


def modified_letters(
    molecule: NDArray[np.uint8], start: int, reverse: bool, methylated: NDArray[np.int64], motif: Motif, alphabet: str
) -> NDArray[np.uint8]:
    """Turn a molecule into indices into the model's `alphabet`, with M at the methylated sites.

    Codes 0 to 3 of `molecule` are from the 5' end; `start` and `methylated`, the sites' first bases, are flat positions
    on the forward strand.
    """
    letters = np.array([alphabet.index(base) for base in "ACGT"], dtype=np.uint8)[molecule]
    if len(methylated):
        offset = motif.offset_reverse if reverse else motif.offset_forward
        where = methylated + offset - start
        letters[len(molecule) - 1 - where if reverse else where] = alphabet.index("M")
    return letters


def _stream(settings: SimulationSettings, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(settings.seed, spawn_key=key)))
