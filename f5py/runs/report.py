"""Report of a run for ``--report``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.alignment import AlignmentStage
from f5py.compute.diagnosis import CAUSES
from f5py.compute.statistics import LENGTH_EDGES, MOST_RATIO, RATIO_WIDTH, TIME_WIDTH, Depths, RunStatistics
from f5py.options.shared import MappedReadsOptions
from f5py.pipeline.inputs import paths_of_inputs
from f5py.pipeline.loader import Loader
from f5py.reports.run_report import default_sample, write_run_reports
from f5py.runs.outcome import Outcome

_MOST_POINTS = 500
#: Bars of a chart, at most, and how many numbers of calls one of them may have.
_MOST_BARS, _WIDTHS = 48, [digit * 10**power for power in range(18) for digit in (1, 2, 5)]


def write_reports(
    options: MappedReadsOptions,
    stage: AlignmentStage,
    loader: Loader,
    outcome: Outcome,
    warnings: list[str],
    failure: str | None = None,
) -> None:
    """Write the reports of a finished or failed run. Raises `OutputFileError`.

    `failure` is the error that ended the run.
    """
    counts, skipped = outcome.counts, outcome.skipped
    facts, alignments = stage.facts, loader.alignments
    called = facts.command == "call-methylation"
    fraction = counts.methylated_fraction
    assert outcome.statistics is not None
    figures = {
        "counts": {
            "total_entries": counts.total,
            "passed": counts.used,
            "qc_fail": counts.qc_fail,
            "could_not_calibrate": counts.not_calibrated,
            "no_alignment": counts.no_alignment,
            "bad_reads": counts.bad_reads,
            "ultra_long": counts.ultra,
            "skipped_unmapped": skipped.unmapped,
            "skipped_secondary": skipped.secondary,
            "skipped_low_mapq": skipped.low_mapq,
            "skipped_supplementary": skipped.supplementary,
            "skipped_without_bases": skipped.no_bases,
            "skipped_duplicates": skipped.duplicates,
            **{f"cause_{name}": counts.by_cause(cause) for cause, name in CAUSES.items()},
            "total_bases": counts.bases,
            "results": counts.results,
            **({"methylated": counts.methylated, "unmethylated": counts.unmethylated} if called else {}),
            **({"skipped_overlapping_sites": counts.covered_sites} if called else {}),
        },
        "rates": {
            "passed_fraction": counts.used / max(counts.total, 1),
            "bases_per_second": counts.bases / max(outcome.processing, 1e-9),
            **({} if fraction is None else {"methylated_fraction": fraction}),
        },
        "seconds": {
            "loading": sum(outcome.loading.values()),
            **{f"loading_{name}": seconds for name, seconds in outcome.loading.items()},
            "processing": outcome.processing,
            **{name.lower().replace(" ", "_"): seconds for name, seconds in outcome.stages.items()},
            "output": outcome.output,
        },
        "distributions": distributions(outcome.statistics, alignments.contigs, alignments.contig_lengths, called),
        "warnings": warnings if failure is None else [*warnings, f"the run has failed: {failure}"],
    }
    sample = options.sample or alignments.sample or default_sample(options.output)
    write_run_reports(
        options.report, facts.command, facts.as_json(), sample, options, paths_of_inputs(options), figures
    )


def distributions(
    statistics: RunStatistics, contigs: list[str], contig_lengths: list[int], called: bool
) -> dict[str, Any]:
    """Collect the data of the report's charts; contigs without reads are left out, batches thinned."""
    shown: dict[str, Any] = {
        "read_lengths": {
            "from": [round(float(edge)) for edge in LENGTH_EDGES[:-1]],
            "reads": statistics.lengths.tolist(),
            "bases_used": statistics.yields.tolist(),
        },
        "yield_over_time": _yield_over_time(statistics.times),
        "depth": _depth(statistics.depths, contigs),
        "contigs": [
            {
                "name": contigs[i],
                "reads": int(statistics.reads[i]),
                "coverage": round(int(statistics.covered[i]) / max(contig_lengths[i], 1), 3),
                **(
                    {"methylated": int(statistics.methylated[i]), "unmethylated": int(statistics.unmethylated[i])}
                    if called
                    else {}
                ),
            }
            for i in statistics.reads.nonzero()[0].tolist()
        ],
        "scaling": [
            {"reads": reads, "shift": round(shift, 4), "scale": round(scale, 6), "var": round(var, 6)}
            for reads, shift, scale, var in statistics.drift[:: -(-len(statistics.drift) // _MOST_POINTS) or 1]
        ],
    }
    if called:
        shown["calls_of_sites"] = _calls_of_sites(statistics.depths)
        n_bins = len(statistics.ratios)
        shown["ratios"] = {
            "from": [-MOST_RATIO + RATIO_WIDTH * i for i in range(n_bins)],
            "calls": statistics.ratios.tolist(),
        }
        shown["contexts"] = {
            name: {"methylated": int(statistics.contexts[1, i]), "unmethylated": int(statistics.contexts[0, i])}
            for i, name in enumerate(statistics.context_names())
        }
    return shown


def _yield_over_time(times: NDArray[np.int64]) -> dict[str, Any]:
    """Accumulate bases over equal time bins; empty without start times."""
    n = int(times.nonzero()[0][-1]) + 1 if times.any() else 0
    step = -(-n // _MOST_POINTS) or 1
    ends = np.append(np.arange(0, n, step), n) if n else np.empty(0, np.int64)
    sums = np.append(0, np.cumsum(times))[ends]
    return {"hours": np.round(ends * TIME_WIDTH / 3600, 4).tolist(), "bases_used": sums.tolist()}


def _depth(depths: Depths, contigs: list[str]) -> dict[str, Any]:
    """Return the mean depth along the reference."""
    contig, start = depths.starts()
    mean = depths.depth()[: len(contig)]
    return {
        "mean": round(int(depths.covered.sum()) / max(depths.total, 1), 3),
        "bases": depths.stretch,
        "contig": [contigs[i] for i in contig.tolist()],
        "from": (start + 1).tolist(),
        "reads": np.round(mean, 3).tolist(),
    }


def _calls_of_sites(depths: Depths) -> dict[str, Any]:
    """Count sites by their number of valid calls."""
    calls = depths.calls_of_sites()
    width = next(one for one in _WIDTHS if one * _MOST_BARS > calls.max(initial=0))
    sites = np.bincount(calls // width)
    return {
        "from": (np.arange(len(sites)) * width).tolist(),
        "width": width,
        "sites": sites.tolist(),
        "share_of_reference": round(depths.share, 6),
        "median": float(np.median(calls)) if len(calls) else 0.0,
    }
