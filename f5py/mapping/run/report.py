"""The report of ``f5py map``: what ``--report`` writes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.statistics import LENGTH_EDGES
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.options import MapOptions, parse_read_group
from f5py.mapping.run.flow import MapCounts
from f5py.mapping.run.report_page import FATES, map_page
from f5py.mapping.run.statistics import IDENTITY_WIDTH, MapStatistics
from f5py.mapping.settings import MapSettings
from f5py.reports.run_report import ReportKind, RunFigures, default_sample, write_run_reports

_KIND = ReportKind(map_page, FATES)


@dataclass(frozen=True)
class _Basis:
    """Basis of the alignments of a run; nothing in it depends on threads, batches or GPUs."""

    preset: str
    settings: MapSettings
    index: ReferenceIndex

    @property
    def command(self) -> str:
        """See `f5py.reports.run_report.Basis`."""
        return "map"

    def as_json(self) -> dict[str, Any]:
        """See `f5py.reports.run_report.Basis`."""
        index = self.index
        settings = {name: one for name, one in self.settings._asdict().items() if name != "darwin"}
        return {
            "preset": self.preset,
            "index": {
                "contigs": len(index.names), "reference_bases": index.n_bases, "seeds": index.n_keys,
                "k": index.k, "w": index.w, "hpc": index.hpc,
            },
            "settings": settings,
        }  # fmt: skip


def write_map_reports(
    options: MapOptions,
    of_run: tuple[MapSettings, ReferenceIndex],
    counts: MapCounts,
    statistics: MapStatistics,
    seconds: dict[str, float],
    warnings: list[str],
) -> None:
    """Write the reports of a run that has come to its end.

    Parameters
    ----------
    of_run : (MapSettings, ReferenceIndex)
    seconds : dict of str to float
        What the stages have taken, and ``total``.

    Raises
    ------
    OutputFileError
        The file cannot be written.
    """
    settings, index = of_run
    rates = {
        "mapped_fraction": counts.mapped / max(counts.reads, 1),
        "bases_per_second": counts.bases / max(seconds["total"], 1e-9),
    }
    if statistics.identity is not None:
        rates["identity"] = statistics.identity
    figures = RunFigures(
        counts={
            "total_entries": counts.reads,
            "mapped": counts.mapped,
            "unmapped": counts.reads - counts.mapped,
            "records": counts.records,
            "total_bases": counts.bases,
            "aligned_bases": statistics.aligned_bases,
        },
        rates=rates,
        seconds={name.replace(" ", "_"): one for name, one in seconds.items()},
        distributions=_distributions(statistics, index.names, np.diff(index.offsets)),
        warnings=warnings,
    )
    group = None if options.read_group is None else re.search(r"\tSM:([^\t]+)", parse_read_group(options.read_group))
    sample = options.sample or (default_sample(options.output) if group is None else group[1])
    basis = _Basis(options.preset, settings, index)
    write_run_reports(options.report, basis, sample, options, [options.reference, *options.reads], figures, _KIND)


def _distributions(statistics: MapStatistics, names: list[str], lengths: NDArray[np.int64]) -> dict[str, Any]:
    """Return what the report shows as figures; contigs without a read are left out."""
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
