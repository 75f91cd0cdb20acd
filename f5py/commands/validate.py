"""Comparison of calls or frequencies with the truth: ``f5py validate``."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from f5py.commands.meth_freq import chosen_motif
from f5py.core.motifs import Motif
from f5py.errors import InputFileError, UsageError
from f5py.evaluation.agreement import LabelledRatios, compare_frequencies, shared_sites
from f5py.evaluation.bootstrap import ReadBootstrap
from f5py.evaluation.call_table import is_call_header, read_calls, read_modbam
from f5py.evaluation.known_sites import KnownSites, columns_of, read_sites
from f5py.evaluation.ratios import THRESHOLDS
from f5py.evaluation.truth import MIXED, READ_TRUTH_HEADER, UNKNOWN, KnownStates, read_truth_of_reads, truth_of_sites
from f5py.io.arrow.text_input import open_bytes
from f5py.io.bam.modifications.modified_sites import SiteSelection, TagCounts
from f5py.messages import console
from f5py.messages.console import obeys_strict
from f5py.messages.progress import progress
from f5py.options.output_names import is_alignments
from f5py.options.table_commands import EvaluationOptions, ValidateOptions
from f5py.reports.evaluation_report import check_reports, write_reports
from f5py.reports.validation_report import charts_of, text_of

_COLUMNS = ("chromosome", "read_name", "start", "end", "log_lik_ratio")


class Agreement(TypedDict):
    """Agreement of the frequencies of sites with the true ones."""

    min_coverage: int
    sites: int
    true: float | None
    called: float | None
    correlation: float | None
    rms: float | None
    difference: float | None
    by_coverage: list[dict[str, float | None]]
    by_frequency: list[dict[str, float | None]]


class ValidationReport(TypedDict, total=False):
    """Figures of a comparison with the truth, as the JSON report has them. Calls and sites have some of them each."""

    calls: int
    methylated_calls: int
    undefined_ratios: int
    auc: float | None
    at_threshold: dict[str, float | None]
    intervals: dict[str, float | list[float] | None]
    roc: dict[str, list[float]]
    thresholds: list[dict[str, float | None]]
    reliability: dict[str, float | list[float]]
    reliability_balanced: dict[str, float | list[float]] | None
    mixed_groups: int
    unknown: int
    tags: dict[str, int]
    frequencies: Agreement


@obeys_strict
def run(options: ValidateOptions) -> ValidationReport:
    """Compare with the truth; return the content of the JSON report. Raises `F5pyError`."""
    _check(options)
    motif = chosen_motif(options)
    with progress("bytes", None) as bar:
        if options.calls is None or options.truth is None:
            data = _compare_controls(options, motif, bar.advance)
        elif _kind(options.calls) == "sites":
            data = _compare_frequencies(options, motif)
        else:
            data = _compare_calls(options, motif, bar.advance)
    title = f"{options.calls} against {options.truth}" if options.calls else "Calls of controls"
    write_reports(options, title, text_of(data), data, charts_of(data))
    if options.output != "-":
        console.note("validate", f"written: {options.output}")
    return cast(ValidationReport, data)


def _check(options: ValidateOptions) -> None:
    controls = [*options.methylated, *options.unmethylated]
    if options.calls is None and not (options.methylated and options.unmethylated):
        raise UsageError("give CALLS and TRUTH, or both --methylated and --unmethylated")
    inputs = [options.calls, options.truth, *controls]
    if "-" in inputs:
        raise UsageError("the input's kind is told by its beginning, so it cannot come from standard input")
    check_calibration(options, [path for path in inputs if path and is_alignments(path)])
    check_reports(options)


def check_calibration(options: EvaluationOptions, modbam: Sequence[str]) -> None:
    """Refuse a factor of ratios for alignments with tags."""
    if options.calibration != 1.0 and modbam:
        raise UsageError(
            f"--calibration {options.calibration:g}: is a factor of ratios, and {modbam[0]} has probabilities, which "
            "call-methylation has calibrated; leave it out"
        )


def _kind(path: str) -> str:
    """Return the kind of a file: ``calls``, ``sites``, or ``reads`` for the truth of every read."""
    if is_alignments(path):
        return "calls"
    with open_bytes(path) as file:
        first = file.readline(1 << 16)
    if first.startswith(READ_TRUTH_HEADER):
        return "reads"
    if is_call_header(first):
        return "calls"
    if columns_of(first) is not None:
        return "sites"
    raise InputFileError(
        f"{path}: is no table of calls or sites; give a table of call-methylation, BAM with MM and ML tags, bedMethyl, "
        "a table of meth-freq, or a simulation's truth.tsv or truth_reads.tsv"
    )


def _batches(
    path: str, motif: Motif, genome: str | None, advance: Callable[[int], object], tags: TagCounts
) -> Iterator[Any]:
    if is_alignments(path):
        return read_modbam(path, SiteSelection(motif, 0.0), genome, tags)
    return read_calls([path], _COLUMNS, advance, motif.name)


def _compare_controls(options: ValidateOptions, motif: Motif, advance: Callable[[int], object]) -> dict[str, Any]:
    labelled, samples, tags = LabelledRatios(), ReadBootstrap(), TagCounts()
    for state, paths in ((1, options.methylated), (0, options.unmethylated)):
        for path in paths:
            for batch in _batches(path, motif, options.genome, advance, tags):
                ratios = batch["log_lik_ratio"].to_numpy(zero_copy_only=False)
                states = np.full(len(ratios), state, np.int8)
                labelled.add(ratios, states)
                samples.add(batch["read_name"], ratios, states)
    return _measures(labelled, samples, options) | _tags(tags)


def _compare_frequencies(options: ValidateOptions, motif: Motif) -> dict[str, Any]:
    called = read_sites(str(options.calls), motif)
    true = _truth(str(options.truth), motif)[1]
    of_called, of_true = shared_sites(called, true)
    data = _frequencies(options, called.frequency[of_called], true.frequency[of_true], called.n_reads[of_called])
    if not data["frequencies"]["sites"]:
        raise InputFileError(f"{options.calls}: no site of {options.truth} has {options.min_coverage} or more calls")
    return data


def _truth(path: str, motif: Motif) -> tuple[KnownStates | None, KnownSites]:
    kind = _kind(path)
    if kind == "reads":
        return read_truth_of_reads(path)
    if kind == "sites":
        return None, read_sites(path, motif)
    raise UsageError(f"{path}: has calls, not the truth; the truth comes second, controls have options of their own")


def _compare_calls(options: ValidateOptions, motif: Motif, advance: Callable[[int], object]) -> dict[str, Any]:
    truth, sites = _truth(str(options.truth), motif)
    truth = truth_of_sites(sites) if truth is None else truth
    labelled, samples, tags = LabelledRatios(), ReadBootstrap(), TagCounts()
    n_mixed = n_unknown = 0
    # calls beyond the threshold begin and end at entries of the truth; their sums are what each entry is called
    called, methylated = (np.zeros(len(truth.key) + 1, np.int64) for _ in range(2))
    for batch in _batches(str(options.calls), motif, options.genome, advance, tags):
        start, end, ratios = (batch[name].to_numpy(zero_copy_only=False) for name in _COLUMNS[2:])
        state, first, stop = truth.look_up(batch, start, end)
        labelled.add(ratios, state)
        samples.add(batch["read_name"], ratios, state)
        n_mixed += int((state == MIXED).sum())
        n_unknown += int((state == UNKNOWN).sum())
        beyond = np.abs(ratios) >= options.threshold
        for sums, chosen in ((called, beyond), (methylated, beyond & (ratios > 0))):
            np.add.at(sums, first[chosen], 1)
            np.subtract.at(sums, stop[chosen], 1)
    if not len(truth.key) or (not labelled.n and not n_mixed):
        raise InputFileError(f"{options.calls}: no call is at a site of {options.truth}")
    data = _measures(labelled, samples, options) if labelled.n else {}
    data |= {"mixed_groups": n_mixed, "unknown": n_unknown, **_tags(tags)}
    of_site = [np.bincount(truth.site, np.cumsum(sums)[:-1], len(sites.place)) for sums in (called, methylated)]
    return data | _frequencies(
        options, of_site[1] / np.maximum(of_site[0], 1), sites.frequency, of_site[0].astype(np.float64)
    )


def _tags(tags: TagCounts) -> dict[str, Any]:
    """Summarize the tags of modBAM, if it was read."""
    return {"tags": asdict(tags)} if tags.n else {}


def _measures(labelled: LabelledRatios, samples: ReadBootstrap, options: ValidateOptions) -> dict[str, Any]:
    return {
        "calls": labelled.n,
        "methylated_calls": labelled.methylated.n,
        "undefined_ratios": labelled.methylated.n_undefined + labelled.unmethylated.n_undefined,
        "auc": labelled.area(),
        "at_threshold": labelled.at(options.threshold),
        "intervals": samples.intervals(options.prior, options.threshold, options.calibration),
        "roc": labelled.roc(),
        "thresholds": [labelled.at(threshold) for threshold in THRESHOLDS],
        "reliability": labelled.reliability(options.prior, calibration=options.calibration),
        "reliability_balanced": labelled.reliability(options.prior, True, options.calibration),
    }


def _frequencies(
    options: ValidateOptions, called: NDArray[np.float64], true: NDArray[np.float64], coverage: NDArray[np.float64]
) -> dict[str, Any]:
    """Make the part of the data about sites; coverage is that of the calls."""
    enough = coverage >= options.min_coverage
    found = compare_frequencies(called[enough], true[enough], coverage[enough])
    return {"frequencies": {"min_coverage": options.min_coverage, **found}}
