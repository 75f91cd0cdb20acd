"""Summary of calls, and advice on a threshold: ``f5py summary``."""

from collections.abc import Iterator, Sequence
from typing import Any, TypedDict, cast

import numpy as np

from f5py.commands.counted_sites import BEDMETHYL, MODBAM, Inputs, tell_of_tags
from f5py.commands.meth_freq import chosen_motif
from f5py.commands.validate import check_calibration
from f5py.core.motifs import Motif
from f5py.errors import InputFileError, UsageError
from f5py.evaluation.call_table import read_calls, read_modbam
from f5py.evaluation.ratios import THRESHOLDS, RatioCounts
from f5py.evaluation.summary import N_READ_BINS, WANTED, CallSummary
from f5py.evaluation.threshold_advice import ErrorEstimates, advise
from f5py.io.arrow.text_input import check_read_once, display_name, size_of
from f5py.io.bam.modifications.modified_sites import SiteSelection, TagCounts
from f5py.messages import console
from f5py.messages.console import obeys_strict
from f5py.messages.progress import progress
from f5py.options.table_commands import SummaryOptions
from f5py.reports.evaluation_report import check_reports, write_reports
from f5py.reports.summary_report import charts_of, text_of

_EDGES = np.arange(-20, 21, dtype=np.float64)


class SummaryReport(TypedDict):
    """Figures of tables of calls, as the JSON report has them."""

    calls: int
    undefined_ratios: int
    sites: int
    reads: int
    threshold: float
    calls_beyond: int
    methylated: float | None
    thresholds: list[dict[str, float | dict[str, float | None] | None]]
    calibration: float
    methylated_share_by_ratios: float
    components: dict[str, float | str | list[float] | None] | None
    advice: dict[str, float | str | list[str] | None]
    ratios: dict[str, list[float]]
    groups: list[dict[str, int]]
    read_methylation: dict[str, int | list[float]]
    contexts: dict[str, dict[str, float]]


@obeys_strict
def run(options: SummaryOptions) -> SummaryReport:
    """Summarize tables of calls; return the content of the JSON report. Raises `F5pyError`."""
    paths = list(options.tables) or ["-"]
    inputs = [*paths, *options.methylated, *options.unmethylated]
    check_read_once(inputs)
    check_reports(options)
    motif = chosen_motif(options)
    summary = CallSummary(motif, options.threshold)
    for batch in _batches(paths, WANTED, motif, options):
        summary.add(batch)
    summary.finish()
    controls = {}
    for state, tables in (("methylated", options.methylated), ("unmethylated", options.unmethylated)):
        if tables:
            controls[state] = RatioCounts()
            for batch in _batches(tables, ["log_lik_ratio"], motif, options):
                controls[state].add(batch["log_lik_ratio"].to_numpy(zero_copy_only=False))
    if not summary.ratios.n:
        raise InputFileError(f"{display_name(paths[0])}: has no calls; nothing can be said of them")
    data = _data(summary, controls, options)
    title = f"Calls of {', '.join(map(display_name, paths))}"
    write_reports(options, title, text_of(data), data, charts_of(data))
    if options.output != "-":
        console.note("summary", f"{summary.ratios.n:,} calls; written: {options.output}")
    return cast(SummaryReport, data)


def _batches(paths: Sequence[str], wanted: Sequence[str], motif: Motif, options: SummaryOptions) -> Iterator[Any]:
    """Read the calls of tables or of alignments with tags."""
    inputs = Inputs.of(paths, "summary")
    if inputs.kind == BEDMETHYL:
        raise UsageError(f"{display_name(paths[0])}: bedMethyl has counts of sites, not calls of reads; give modBAM")
    with progress("bytes", size_of(paths)) as bar:
        if inputs.kind != MODBAM:
            yield from read_calls(paths, wanted, bar.advance, motif.name, inputs.beginning)
            return
        check_calibration(options, paths)
        for path in paths:
            tags, selection = TagCounts(), SiteSelection(motif, 0.0, options.mod_code)
            yield from read_modbam(path, selection, options.genome, tags, inputs.beginning_of(path))
            tell_of_tags("summary", display_name(path), tags, selection)
            bar.advance(size_of([path]) or 0)


def _data(summary: CallSummary, controls: dict[str, RatioCounts], options: SummaryOptions) -> dict[str, Any]:
    ratios = summary.ratios
    estimates = ErrorEstimates(ratios, controls, options.calibration)

    table = []
    for threshold in THRESHOLDS:
        methylated, passing = ratios.methylated(threshold), ratios.passing(threshold)
        table.append(
            {
                "threshold": threshold,
                "calls": passing,
                "share_of_calls": passing / ratios.n,
                "methylated": methylated / passing if passing else None,
                "errors": estimates.at(threshold),
            }
        )
    passing = ratios.passing(options.threshold)
    return {
        "calls": ratios.n,
        "undefined_ratios": ratios.n_undefined,
        "sites": summary.n_sites,
        "reads": summary.n_reads,
        "threshold": options.threshold,
        "calls_beyond": passing,
        "methylated": ratios.methylated(options.threshold) / passing if passing else None,
        "thresholds": table,
        "calibration": options.calibration,
        "methylated_share_by_ratios": estimates.share,
        "components": _components(estimates),
        "advice": advise(estimates, options.error_rate),
        "ratios": {"from": _EDGES[:-1].tolist(), "calls": ratios.histogram(_EDGES).tolist()},
        "groups": [
            {"sites": i + 1, "calls": int(n), "beyond": int(beyond), "methylated": int(methylated)}
            for i, (n, beyond, methylated) in enumerate(summary.by_sites.tolist())
        ],
        "read_methylation": {
            "reads": summary.n_fractions,
            "from": (np.arange(N_READ_BINS) / N_READ_BINS).tolist(),
            "count": summary.read_fractions.tolist(),
        },
        "contexts": {
            name: {
                "calls": int(n), "beyond": int(beyond), "methylated": int(methylated), "mean_ratio": round(total / n, 3)
            }
            for name, (n, beyond, methylated, total) in sorted(summary.contexts.items())
        },
    }  # fmt: skip


def _components(estimates: ErrorEstimates) -> dict[str, Any] | None:
    if (mixture := estimates.mixture) is None:
        return None
    return {
        "weight": list(mixture.weight), "centre": list(mixture.centres), "separation": mixture.separation,
        "misfit": mixture.misfit, "problem": estimates.problem,
    }  # fmt: skip
