"""Fit of the shifts of methylated k-mers to unlabeled reads: ``f5py train --unlabeled``."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py import __version__
from f5py.compute.chemistry import Chemistry
from f5py.compute.methylation import builtin_methylation, noise_of
from f5py.compute.training import UnlabeledStage
from f5py.core.motifs import Motif, motif_named, parse_motif
from f5py.core.noise import CALIBRATION
from f5py.errors import F5pyError, PoreModelError, UnsupportedDataError, UsageError
from f5py.io.files.atomic_write import named_together
from f5py.io.files.complete_file import complete_output, complete_text_output
from f5py.io.output_checks import check_outputs
from f5py.messages import console
from f5py.options.output_names import MODEL, check_name
from f5py.options.shared import METHYLATION
from f5py.options.signal_commands import CallOptions, TrainOptions
from f5py.pipeline.flow import process
from f5py.pipeline.inputs import open_inputs, with_local_inputs
from f5py.pipeline.loader import Loader
from f5py.pore_model import PoreModel, named_model
from f5py.pore_model.model import NUCLEOTIDES_AND_M, with_methylation
from f5py.pore_model.shift_file import shift_text
from f5py.pore_model.text_file import model_text, read_start
from f5py.reports.training_report import shifts_page
from f5py.threads.pool import WorkerPool
from f5py.training.held_out import names_in_share
from f5py.training.shifts import LEAST_GROUPS, LEAST_READS, ShiftResult, as_shifts, fit_shifts
from f5py.training.site_windows import ShiftScorer, SingleSiteWindows, joined_windows

_WHO = "train"
#: So many times the groups that are wanted are looked for, as some reads drop out, and in so many reads at least.
_MORE_GROUPS, _MANY_READS = 1.3, 40


@dataclass(frozen=True, eq=False)
class ShiftsSummary:
    """Results of a fit."""

    model: PoreModel
    n_groups: int
    n_reads: int
    share: float  # of methylated groups, about
    verdict: str  # "fitted", "nothing to gain", or, with --force, the name of a problem
    report: dict[str, Any]


def run(options: TrainOptions) -> ShiftsSummary:
    """Fit the shifts of methylated k-mers, and write the model.

    Raises `F5pyError` for unusable inputs or outputs, and for untrustworthy shifts, leaving no file.
    """
    if options.bam is not None:
        raise UsageError("-b and --unlabeled exclude each other: -b is for reads with --truth")
    if "-" in options.unlabeled:
        raise UsageError("alignments are read twice, so they cannot come from standard input")
    check_outputs(options)
    check_name("-o", options.output, MODEL)
    motif = motif_named(options.methylation or METHYLATION) if options.motif is None else parse_motif(options.motif)
    with named_together(), complete_text_output(options.output, min(options.threads, 4)) as out, ExitStack() as files:
        reports = [(path, files.enter_context(complete_output(path))) for path in options.report]
        sources = [with_local_inputs(replace(options, bam=path), files) for path in options.unlabeled]
        chemistry, share = _choose_share(sources, motif)
        start = _start_model(options, chemistry, motif)
        windows = _windows(sources, motif, share)
        summary = _fit(options, chemistry, start, windows, motif)
        _write(summary, options, chemistry, out)
        for path, file in reports:
            is_page = path.endswith(".html")
            text = shifts_page(summary.report) if is_page else json.dumps(summary.report, indent=2) + "\n"
            file.write(text.encode())
    return summary


def _start_model(options: TrainOptions, chemistry: Chemistry, motif: Motif) -> PoreModel:
    """Return the model with the initial shifts."""
    if chemistry.rna:
        raise UnsupportedDataError(f"--unlabeled: methylation is called in DNA only, not in {chemistry.name}")
    if options.start is None:
        model = builtin_methylation(chemistry, motif)
    else:
        model = named_model(options.start, NUCLEOTIDES_AND_M) or read_start(options.start, lambda: None)
    if model is None:
        raise PoreModelError(
            f"--unlabeled: there is no built-in model of {motif.name} for {chemistry.name} to start from; give "
            "controls with --methylated and --unmethylated"
        )
    if model.shifts is None:
        raise PoreModelError(
            f"--unlabeled: {model.name}: its methylated levels are measured k-mer by k-mer; give controls with "
            "--methylated and --unmethylated"
        )
    return model


def _choose_share(sources: list[TrainOptions], motif: Motif) -> tuple[Chemistry, float]:
    """Determine the chemistry, and the fraction of reads with enough groups."""
    chemistry, n_reads, n_groups = None, 0, 0
    for options in sources:
        with ExitStack() as inputs:
            loader, found = open_inputs(options, inputs)
            chemistry = chemistry or found
            for reads, groups in _single_sites(loader, motif):
                n_reads, n_groups = n_reads + reads, n_groups + groups
    assert chemistry is not None
    share = max(_MORE_GROUPS * sources[0].groups / max(n_groups, 1), _MANY_READS / max(n_reads, 1))
    return chemistry, min(1.0, share)


def _single_sites(loader: Loader, motif: Motif) -> Iterator[tuple[int, int]]:
    """Yield reads and single-site groups of each batch's reference segments."""
    codes = motif.codes(False)
    for columns, bases, offsets in loader.segments():
        bits = codes.letter_bits[bases]
        is_site = np.ones(max(len(bases) - len(codes.masks) + 1, 0), np.bool_)
        for i, mask in enumerate(codes.masks):
            is_site &= bits[i : i + len(is_site)] & mask != 0
        at = np.flatnonzero(is_site)
        read = np.searchsorted(offsets, at, side="right") - 1
        is_far = np.ones(len(at) + 1, np.bool_)
        is_far[1:-1] = (np.diff(at) > motif.separation) | (np.diff(read) != 0)
        is_single = is_far[1:] & is_far[:-1]
        if loader.windows is not None:
            position = columns.start[read] + at - offsets[read]
            is_single &= loader.windows.contain(columns.contig[read], position, position)
        yield len(columns.contig), int(is_single.sum())


def _windows(sources: list[TrainOptions], motif: Motif, share: float) -> SingleSiteWindows | None:
    """Extract the windows of single-site groups in a fraction of the reads."""
    parts: list[SingleSiteWindows] = []
    numbers: dict[str, int] = {}
    for options in sources:
        with ExitStack() as workers, ExitStack() as inputs:
            chooses = partial(names_in_share, share=share) if share < 1.0 else None
            loader, chemistry = open_inputs(options, inputs, chooses=chooses)
            contigs = np.array([numbers.setdefault(name, len(numbers)) for name in loader.alignments.contigs], np.int64)
            stage = UnlabeledStage(options, chemistry, motif, loader.windows, contigs)
            workers.callback(stage.close)
            process(
                options, stage, loader.batches(), loader.stop, inputs, lambda batch: None, _WHO, "no model was made"
            )
        parts += stage.windows
    return joined_windows(parts, sources[0].groups) if parts else None


def _fit(
    options: TrainOptions, chemistry: Chemistry, start: PoreModel, windows: SingleSiteWindows | None, motif: Motif
) -> ShiftsSummary:
    """Fit, report, and refuse untrustworthy shifts."""
    names = [] if windows is None else windows.reads
    n_reads = len(set(names))
    if windows is None or n_reads < LEAST_READS or len(names) < LEAST_GROUPS:
        problem = (
            f"too few reads: {len(names):,} groups of one site in {n_reads:,} reads, and {LEAST_GROUPS} in "
            f"{LEAST_READS} are needed; give more reads"
        )
        if not options.force or windows is None or n_reads < 2:
            raise F5pyError(_refusal(problem, options.force))
        console.warning(_WHO, problem)
    noise = noise_of(CallOptions(bam="", genome="", accurate=True), chemistry, start)
    scored: list[ShiftScorer] = []

    def likelihoods_of(groups: NDArray[np.int64]) -> ShiftScorer:
        scored.append(ShiftScorer(windows.select(groups), motif, start, noise, pool))
        return scored[-1]

    assert start.shifts is not None
    pool = WorkerPool(options.threads)
    try:
        result = fit_shifts(likelihoods_of, names, start.shifts)
    finally:
        pool.close()
    if result.problem is not None:
        if not options.force:
            raise F5pyError(_refusal(result.problem))
        console.warning(_WHO, result.problem)
    shifts = as_shifts(np.round(result.fit.shifts, 2) + 0.0)
    comment = (
        f"f5py {__version__} train --unlabeled, {chemistry.name}, {len(names)} groups, {n_reads} reads, share "
        f"{result.fit.share:.2f}"
    )
    nucleotide = chemistry.nucleotide_model(None)
    model = replace(
        with_methylation(nucleotide, shifts, comment), calibration=CALIBRATION.get(chemistry.pore), kind=motif.name
    )
    _note_fit(result, len(names), n_reads, start)
    report = _report(result, start, len(names), n_reads, sum(one.n_scorings for one in scored), comment)
    return ShiftsSummary(model, len(names), n_reads, result.fit.share, result.verdict, report)


def _refusal(problem: str, force: bool = False) -> str:
    return f"{problem}; no model was made" + ("" if force else " (--force writes it all the same)")


def _note_fit(result: ShiftResult, n_groups: int, n_reads: int, start: PoreModel) -> None:
    fit, gain = result.fit, result.gain
    assert start.shifts is not None
    settled = "settled" if fit.settled else "not settled"
    console.note(
        _WHO,
        f"{n_groups:,} groups of {n_reads:,} reads; share methylated about {fit.share:.2f}; shifts "
        f"{_pa(fit.shifts[0])} pA (start: {_pa(np.array(start.shifts.by_place))}); a group's log-likelihood "
        f"gains {gain.per_group:.2f} +- {gain.se / n_groups:.2f} in reads not fitted; {settled} after {fit.rounds} "
        "rounds",
    )
    if result.verdict == "nothing to gain":
        console.note(_WHO, "the start model explains the reads as well: nothing to gain; its shifts are written")
    elif result.has_second_stage:
        console.note(
            _WHO, f"a pyrimidine before the methylated base adds {_pa(fit.shifts[1, 4:8])} pA at places 4 to 7, a "
            "purine subtracts it",
        )  # fmt: skip
    else:
        console.note(_WHO, "the base before the methylated one makes no clear difference")


def _pa(values: NDArray[np.float64]) -> str:
    return " ".join(f"{value + 0.0:.2f}" for value in np.round(values, 2).tolist())


def _report(
    result: ShiftResult, start: PoreModel, n_groups: int, n_reads: int, n_scorings: int, comment: str
) -> dict[str, Any]:
    fit = result.fit
    assert start.shifts is not None
    return {
        "tool": comment,
        "start": {"name": start.name, "shifts": list(start.shifts.by_place)},
        "shifts": fit.shifts[0].tolist(),
        "standard_errors": fit.errors[0].tolist(),
        "pyrimidine_before": fit.shifts[1].tolist(),
        "standard_errors_of_pyrimidine_before": fit.errors[1].tolist(),
        "share": fit.share,
        "share_with_start": result.share_with_start,
        "groups": n_groups,
        "reads": n_reads,
        "likelihood": fit.likelihood,
        "likelihood_of_start": result.likelihood_of_start,
        "held_out_gain": result.gain._asdict(),
        "second_stage": {"taken": result.has_second_stage, "held_out_gain": result.second_gain._asdict()},
        "halves": [half.shifts[0].tolist() for half in result.halves],
        "rounds": fit.rounds,
        "settled": fit.settled,
        "scorings": n_scorings,
        "verdict": result.verdict,
        "warnings": [] if result.problem is None else [result.problem],
    }


def _write(summary: ShiftsSummary, options: TrainOptions, chemistry: Chemistry, out: Any) -> None:
    model, comment = summary.model, summary.report["tool"]
    assert model.shifts is not None
    if options.full:
        for piece in model_text(model, np.zeros(len(model.level_mean)), str(model.kind), comment):
            out.write(piece)
        return
    errors = summary.report["standard_errors"], summary.report["standard_errors_of_pyrimidine_before"]
    out.write(shift_text(str(chemistry.model), model.shifts, errors, model.calibration, comment).encode())
