"""The report of a run as JSON, for people, scripts and MultiQC."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from importlib import metadata
from typing import Any, NamedTuple, Protocol

from f5py import __version__
from f5py.io.files.complete_file import complete_output
from f5py.io.remote import is_url
from f5py.io.remote.urls import about_url, without_secrets
from f5py.reports.html_report import FATES, html_report

#: How the names of files end that MultiQC looks for.
_MULTIQC = "_mqc.json"
#: Columns that MultiQC shows without being asked.
_COLUMNS: dict[str, dict[str, Any]] = {
    "total_entries": {"title": "Reads", "format": "{:,.0f}"},
    "passed_fraction": {"title": "Used", "format": "{:.1%}", "min": 0, "max": 1, "scale": "RdYlGn"},
    "mapped_fraction": {"title": "Mapped", "format": "{:.1%}", "min": 0, "max": 1, "scale": "RdYlGn"},
    "identity": {
        "title": "Identity", "description": "Share of the columns of alignments with equal bases", "format": "{:.1%}",
        "min": 0.8, "max": 1, "scale": "Greens",
    },
    "total_bases": {"title": "Bases", "format": "{:,.0f}"},
    "results": {"title": "Results", "description": "Calls or rows", "format": "{:,.0f}"},
    "methylated_fraction": {
        "title": "Methylated", "description": "Share of the calls beyond the threshold", "format": "{:.1%}",
        "min": 0, "max": 1, "scale": "Blues",
    },
    "bases_per_second": {"title": "Bases/s", "format": "{:,.0f}"},
}  # fmt: skip
#: Larger files get no checksum.
_MOST_SUMMED = 1 << 28
_PIECE = 1 << 20
_LIBRARIES = ("numpy", "numba", "h5py", "pysam", "pod5", "pyarrow", "cupy")


class Basis(Protocol):
    """Basis of the results of a run."""

    @property
    def command(self) -> str:
        """The command, without ``f5py``."""
        ...

    def as_json(self) -> dict[str, Any]:
        """Return all of it as texts, numbers and objects of these."""
        ...


class Kind(NamedTuple):
    """Parts of a report that a kind of commands has for itself."""

    # page: makes the page of HTML of the sample's name and what JSON has below ``run``
    page: Callable[[str, Mapping[str, Any]], str]
    fates: tuple[str, ...]  # counts of reads that add up to all


#: Runs over signals.
OF_SIGNALS = Kind(html_report, FATES)


class RunFigures(NamedTuple):
    """Figures of a run for its report."""

    # counts, rates, seconds: reads and results by kind; shares of reads and bases per second; wall time of each stage
    counts: Mapping[str, int]
    rates: Mapping[str, float]
    seconds: Mapping[str, float]
    distributions: Mapping[str, Any]  # what the page has figures of
    warnings: list[str]


def write_run_reports(
    paths: Sequence[str],
    facts: Basis,
    sample: str,
    options: Any,
    inputs: Iterable[str | None],
    figures: RunFigures,
    kind: Kind = OF_SIGNALS,
) -> None:
    """Write the reports of a run, all with the same figures.

    A file whose name ends in ``.html`` is a page to look at. Any other is JSON: the outer keys are those of MultiQC's
    custom content, so that a file whose name ends in ``_mqc.json`` becomes a table there; ``run`` holds everything.
    Such a file gets a second one beside it, ``_reads_mqc.json``, which MultiQC draws as bars. Raises `OutputFileError`
    if the file cannot be written.

    Parameters
    ----------
    facts : Basis
        What the results rest on, as `f5py.compute.facts.Facts`.
    sample : str
        What the run's row is called.
    inputs : iterable of str or None
        Paths of what was read; those that are no files are left out.
    """
    run = {
        "command": facts.command,
        "rests_on": facts.as_json(),
        "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "counts": dict(figures.counts),
        "rates": dict(figures.rates),
        "seconds": {name: round(value, 3) for name, value in figures.seconds.items()},
        "distributions": figures.distributions,
        "warnings": figures.warnings,
        "parameters": {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(options).items()
        },
        "inputs": [about for path in dict.fromkeys(inputs) if path and (about := _described(path)) is not None],
        "versions": _versions(),
    }
    for path in paths:
        if path.endswith((".html", ".htm")):
            with complete_output(path) as file:
                file.write(kind.page(sample, run).encode("utf-8", "backslashreplace"))
        else:
            _write_for_multiqc(path, sample, run, kind)


def _write_for_multiqc(path: str, sample: str, run: Mapping[str, Any], kind: Kind) -> None:
    """Write a report as JSON; with what MultiQC draws as bars, if it will find the file."""
    counts, rates, command = run["counts"], run["rates"], run["command"]
    name = f"f5py_{command.replace('-', '_')}"
    data = {**counts, **{rate: round(value, 6) for rate, value in rates.items()}}
    content = {
        "id": name,
        "section_name": f"f5py {command}",
        "description": "Reads of each run, results and speed.",
        "plot_type": "table",
        "pconfig": {"id": f"{name}_table", "title": f"f5py {command}"},
        "headers": {key: _COLUMNS.get(key, {"title": key.replace("_", " "), "hidden": True}) for key in data},
        "data": {sample: data},
        "run": run,
    }
    _write_json(path, content)
    if path.endswith(_MULTIQC):
        bars = {
            "id": f"{name}_reads",
            "section_name": f"f5py {command}: reads",
            "description": "Reads of each run by what became of them.",
            "plot_type": "bargraph",
            "pconfig": {"id": f"{name}_reads_plot", "title": f"f5py {command}: reads", "ylab": "Reads"},
            "data": {sample: {key.replace("_", " "): counts[key] for key in kind.fates}},
        }
        _write_json(path.removesuffix(_MULTIQC) + "_reads" + _MULTIQC, bars)


def _write_json(path: str, content: Any) -> None:
    with complete_output(path) as file:
        file.write(json.dumps(content, indent=2).encode() + b"\n")


def sample_name(path: str) -> str:
    """Name of a run's row: that of the alignment file without its ending."""
    return "standard_input" if path == "-" else os.path.splitext(os.path.basename(path))[0]


def _described(path: str) -> dict[str, Any] | None:
    """Describe a file, to tell later whether it is the same; of large ones a checksum takes longer than the run."""
    if is_url(path):
        found = about_url(path)
        what = None if found is None else {"bytes": found.size, "modified": found.identity, "md5": None}
        return None if what is None else {"path": without_secrets(path), **what}
    if not os.path.isfile(path):
        return None
    about = os.stat(path)
    md5 = None
    if about.st_size <= _MOST_SUMMED:
        digest = hashlib.md5(usedforsecurity=False)
        with open(path, "rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
        md5 = digest.hexdigest()
    modified = datetime.fromtimestamp(about.st_mtime, timezone.utc).isoformat(timespec="seconds")
    return {"path": os.path.abspath(path), "bytes": about.st_size, "modified": modified, "md5": md5}


def _versions() -> dict[str, str]:
    versions = {"f5py": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
