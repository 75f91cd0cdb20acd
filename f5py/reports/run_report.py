"""Report of a run as HTML, or as JSON for scripts and MultiQC."""

import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from importlib import metadata
from typing import Any

from f5py import __version__
from f5py.io.files.complete_file import complete_output
from f5py.io.remote import is_url
from f5py.io.remote.urls import redact_url, stat_url
from f5py.options.output_names import packed_ending
from f5py.reports.html_report import FATES, html_report

#: Suffix of files for MultiQC.
_MULTIQC = "_mqc.json"
#: Columns that MultiQC shows by default.
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
#: Largest file with a checksum.
_MOST_SUMMED = 1 << 28
_PIECE = 1 << 20
_LIBRARIES = ("numpy", "numba", "h5py", "pysam", "pod5", "pyarrow", "cupy")


def write_run_reports(
    paths: Sequence[str],
    command: str,
    basis: Mapping[str, Any],
    sample: str,
    options: Any,
    inputs: Iterable[str | None],
    figures: Mapping[str, Any],
    make_page: Callable[[str, Mapping[str, Any]], str] = html_report,
    fates: Sequence[str] = FATES,
) -> None:
    """Write the reports of a run: ``.html`` as a page by `make_page`, others as JSON.

    The outer keys of JSON are those of MultiQC's custom content, with a table for files named ``_mqc.json``; ``run``
    has everything, with the chemistry, models and options of the results as `basis`, and `figures`: ``counts`` of reads
    and results, ``rates``, ``seconds`` by stage, ``distributions`` and ``warnings``. Another file, ``_reads_mqc.json``,
    has the bar chart of `fates`, counts that add up to all reads, for MultiQC. `sample` names the row of the run.
    """
    run = {
        "command": command,
        "rests_on": basis,
        "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **figures,
        "seconds": {name: round(value, 3) for name, value in figures["seconds"].items()},
        "parameters": {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(options).items()
        },
        "inputs": [about for path in dict.fromkeys(inputs) if path and (about := _describe(path)) is not None],
        "versions": _versions(),
    }
    for path in paths:
        if path.endswith((".html", ".htm")):
            with complete_output(path) as file:
                file.write(make_page(sample, run).encode("utf-8", "backslashreplace"))
        else:
            _write_for_multiqc(path, sample, run, fates)


def _write_for_multiqc(path: str, sample: str, run: Mapping[str, Any], fates: Sequence[str]) -> None:
    """Write a report as JSON, and the bar chart for MultiQC."""
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
            "description": "Reads of each run by outcome.",
            "plot_type": "bargraph",
            "pconfig": {"id": f"{name}_reads_plot", "title": f"f5py {command}: reads", "ylab": "Reads"},
            "data": {sample: {key.replace("_", " "): counts[key] for key in fates}},
        }
        _write_json(path.removesuffix(_MULTIQC) + "_reads" + _MULTIQC, bars)


def _write_json(path: str, content: Any) -> None:
    with complete_output(path) as file:
        file.write(json.dumps(content, indent=2).encode() + b"\n")


def default_sample(output: str) -> str:
    """Name a sample by the output and its folder, as outputs of several runs may have one name."""
    path = os.path.abspath("." if output == "-" else output)
    folder, name = (path, "") if output == "-" else os.path.split(path)
    stem = name.removesuffix(packed_ending(name)).rpartition(".")
    return "_".join(part for part in (os.path.basename(folder), stem[0] or stem[2]) if part)


def _describe(path: str) -> dict[str, Any] | None:
    """Describe a file by size, time and (unless it is large) checksum."""
    if is_url(path):
        found = stat_url(path)
        what = None if found is None else {"bytes": found.size, "modified": found.identity, "md5": None}
        return None if what is None else {"path": redact_url(path), **what}
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
