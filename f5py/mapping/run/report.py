"""Report of ``f5py map``: JSON, and a self-contained HTML page."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.statistics import LENGTH_EDGES
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.options import MapOptions, parse_read_group
from f5py.mapping.run.flow import MapCounts
from f5py.mapping.run.statistics import IDENTITY_WIDTH, MapStatistics
from f5py.mapping.settings import MapSettings
from f5py.reports.axis import COUNT, Axis, ticks_of_bins
from f5py.reports.html_report import amount, bars, length_charts, run_page, section, shown, words
from f5py.reports.run_report import default_sample, write_run_reports
from f5py.reports.svg_charts import bar_chart

#: Counts that add up to all reads.
_FATES = ("mapped", "unmapped")
_MOST_CONTIGS = 24


def _basis(preset: str, settings: MapSettings, index: ReferenceIndex) -> dict[str, Any]:
    """Describe the settings behind the alignments of a run, without threads, batches or GPUs."""
    return {
        "preset": preset,
        "index": {
            "contigs": len(index.names), "reference_bases": index.n_bases, "seeds": index.n_keys,
            "k": index.k, "w": index.w, "hpc": index.hpc,
        },
        "settings": {name: one for name, one in settings._asdict().items() if name != "darwin"},
    }  # fmt: skip


def write_map_reports(
    options: MapOptions,
    of_run: tuple[MapSettings, ReferenceIndex],
    counts: MapCounts,
    statistics: MapStatistics,
    seconds: dict[str, float],
    warnings: list[str],
) -> None:
    """Write the reports of a finished run. Raises `OutputFileError` if a file cannot be written.

    Parameters
    ----------
    seconds : dict of str to float
        Seconds of the stages, and ``total``.
    """
    settings, index = of_run
    rates = {
        "mapped_fraction": counts.mapped / max(counts.reads, 1),
        "bases_per_second": counts.bases / max(seconds["total"], 1e-9),
    }
    if statistics.identity is not None:
        rates["identity"] = statistics.identity
    figures = {
        "counts": {
            "total_entries": counts.reads,
            "mapped": counts.mapped,
            "unmapped": counts.reads - counts.mapped,
            "records": counts.records,
            "total_bases": counts.bases,
            "aligned_bases": statistics.aligned_bases,
        },
        "rates": rates,
        "seconds": {name.replace(" ", "_"): one for name, one in seconds.items()},
        "distributions": _distributions(statistics, index.names, np.diff(index.offsets)),
        "warnings": warnings,
    }
    group = None if options.read_group is None else re.search(r"\tSM:([^\t]+)", parse_read_group(options.read_group))
    sample = options.sample or (default_sample(options.output) if group is None else group[1])
    basis, inputs = _basis(options.preset, settings, index), [options.reference, *options.reads]
    write_run_reports(options.report, "map", basis, sample, options, inputs, figures, map_page, _FATES)


def _distributions(statistics: MapStatistics, names: list[str], lengths: NDArray[np.int64]) -> dict[str, Any]:
    """Return the data of the figures; contigs without a read are left out."""
    return {
        "read_lengths": {
            "from": [round(float(edge)) for edge in LENGTH_EDGES[:-1]],
            "reads": statistics.lengths.tolist(),
            "bases_used": statistics.yields.tolist(),
        },
        "mapping_qualities": {
            "from": list(range(len(statistics.qualities))),
            "reads": statistics.qualities.tolist(),
        },
        "identities": {
            "from": [IDENTITY_WIDTH * i for i in range(len(statistics.identities))],
            "reads": statistics.identities.tolist(),
        },
        "coverage": round(int(statistics.covered.sum()) / max(int(lengths.sum()), 1), 3),
        "contigs": [
            {
                "name": names[i],
                "reads": int(statistics.reads[i]),
                "coverage": round(int(statistics.covered[i]) / max(int(lengths[i]), 1), 3),
            }
            for i in statistics.reads.nonzero()[0].tolist()
        ],
    }


def map_page(sample: str, run: Mapping[str, Any]) -> str:
    """Make the page of a sample from ``run`` of the JSON report."""
    parameters, basis = run["parameters"], run["rests_on"]
    about = f"{escape(parameters['reference'])}, {escape(run['finished'])}; {escape(basis['preset'])}"
    rows = [(words(name), shown(one)) for name, one in _flat(basis)]
    title, line = f"f5py map: {sample}", parameters["command_line"]
    return run_page(title, about, line, run, _figures(run), rows, _charts(run), run["counts"])


def _flat(basis: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Flatten one level of objects."""
    for name, one in basis.items():
        yield from one.items() if isinstance(one, dict) else [(name, one)]


def _figures(run: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    counts, rates = run["counts"], run["rates"]
    yield f"{100 * rates['mapped_fraction']:.1f} %", f"of {counts['total_entries']:,} reads mapped"
    yield amount(counts["total_bases"]), "bases"
    if "identity" in rates:
        yield f"{100 * rates['identity']:.1f} %", "of the columns of alignments equal"
    yield f"{run['distributions']['coverage']:,.1f}", "reads over a base, on average"
    yield amount(rates["bases_per_second"]), "bases per second"


def _charts(run: Mapping[str, Any]) -> Iterable[str]:
    all_shown = run["distributions"]
    reads = replace(COUNT, name="reads")
    qualities = all_shown["mapping_qualities"]
    if any(qualities["reads"]):
        chart = bar_chart(
            [str(one) for one in qualities["from"]], {"reads": qualities["reads"]}, "mapping quality", reads,
            ticks_of_bins(qualities["from"]),
        )  # fmt: skip
        yield section("Mapping qualities", chart)
        identities = all_shown["identities"]
        used = [i for i, count in enumerate(identities["reads"]) if count]
        part = slice(max(min(used) - 1, 0), max(used) + 1)
        first = identities["from"][part]
        if len(first) > 1:
            chart = bar_chart(
                [f"from {low:g} %" for low in first], {"reads": identities["reads"][part]}, "% equal columns", reads,
                ticks_of_bins(first),
            )  # fmt: skip
            yield section("Identities", chart)
    yield from length_charts(all_shown["read_lengths"], "aligned bases")
    covered = [one for one in all_shown["contigs"] if one["coverage"]][:_MOST_CONTIGS]
    if covered:
        means = {"mean": [one["coverage"] for one in covered]}
        up = Axis("reads over a base", least=0)
        yield bars("Coverage", [one["name"] for one in covered], means, "contig", up)
