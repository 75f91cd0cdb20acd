"""Report of `f5py compare`: levels of two samples against each other, and the most different places."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from f5py.reports.axis import Axis
from f5py.reports.charts import Scatter
from f5py.reports.evaluation_report import aligned, write_report_files

#: Largest q-value of a significant difference.
_SIGNIFICANT = 0.01
#: Most places that are marked, and their least distance in k-mers, as neighbors share bases.
_MOST_MARKED = 10
_Q = "KS_intensity_qvalue"
_MEANS = ("c1_mean_intensity", "c2_mean_intensity")
_SHOWN = ("c1_reads", "c2_reads", *_MEANS, "KS_intensity_statistic", _Q)


def write_comparison(paths: Sequence[str], samples: tuple[str, str], columns: dict[str, Any]) -> None:
    """Write reports on the table of `compare_samples`, each in the format of its name."""
    names = _names(columns)
    significant = columns[_Q] < _SIGNIFICANT
    means = np.stack([columns[name] for name in _MEANS], axis=1)
    top = _most_different(columns)
    series = {f"q \u2265 {_SIGNIFICANT:g}": means[~significant], f"q < {_SIGNIFICANT:g}": means[significant]}
    chart = Scatter(
        "Mean levels", {name: [(x, y) for x, y in points.tolist()] for name, points in series.items()},
        [(*means[i].tolist(), f"{names[i]}, q {columns[_Q][i]:.2g}") for i in top],
        Axis(f"{samples[0]} (pA)"), Axis(f"{samples[1]} (pA)"),
    )  # fmt: skip
    n, n_significant = len(names), int(significant.sum())
    data = {
        "samples": list(samples), "compared": n, "significant": n_significant,
        "top": [{"name": names[i], **{name: columns[name][i].item() for name in _SHOWN}} for i in top],
    }  # fmt: skip
    rows = [
        [
            f"{rank + 1}", names[i], *(f"{columns[name][i]:,}" for name in _SHOWN[:2]),
            *(f"{columns[name][i]:.4g}" for name in _SHOWN[2:]),
        ]
        for rank, i in enumerate(top)
    ]  # fmt: skip
    lines = [
        f"{n_significant:,} of {n:,} differ with a q-value below {_SIGNIFICANT:g} (Kolmogorov and Smirnov's test of "
        "the levels). The most different:",
        "",
        *aligned(["", "place", "reads of A", "of B", "pA of A", "of B", "statistic", "q-value"], rows),
    ]
    write_report_files(paths, f"{samples[0]} and {samples[1]}", lines, data, [chart])


def _names(columns: dict[str, Any]) -> list[str]:
    """Name the rows by place, counted from 1, and k-mer."""
    if "contig" not in columns:
        return list(columns["kmer"])
    fields = zip(*(columns[name].tolist() for name in ("contig", "position", "strand", "kmer")), strict=True)
    return [f"{contig}:{position + 1:,} {strand} {kmer}" for contig, position, strand, kmer in fields]


def _most_different(columns: dict[str, Any]) -> list[int]:
    """Select the rows with the least p-values, then the largest statistics, one in the length of a k-mer."""
    order = np.lexsort((-columns["KS_intensity_statistic"], columns["KS_intensity_pvalue"])).tolist()
    if "contig" not in columns:
        return order[:_MOST_MARKED]
    chosen: list[int] = []
    contig, strand, position = (columns[name] for name in ("contig", "strand", "position"))
    distance = len(columns["kmer"][0])
    for i in order:
        near = [k for k in chosen if abs(int(position[i] - position[k])) < distance]
        if (contig[i], strand[i]) not in [(contig[k], strand[k]) for k in near]:
            chosen.append(i)
        if len(chosen) == _MOST_MARKED:
            break
    return chosen
