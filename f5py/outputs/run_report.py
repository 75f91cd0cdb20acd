"""The report of a run as JSON, for people, scripts and MultiQC."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from f5py import __version__
from f5py.io.complete_file import complete_output

#: Larger files get no checksum.
_MOST_SUMMED = 1 << 28
_LIBRARIES = ("numpy", "numba", "h5py", "pysam", "pyslow5", "pod5", "pyarrow", "cupy")


def write_run_report(
    path: str,
    command: str,
    sample: str,
    options: Any,
    counts: Mapping[str, int],
    rates: Mapping[str, float],
    seconds: Mapping[str, float],
    inputs: Iterable[str | None] = (),
) -> None:
    """Write the report of a run.

    The outer keys are those of MultiQC's custom content, so that a file whose name ends in ``_mqc.json`` becomes a
    table there; ``run`` holds everything.

    Parameters
    ----------
    path : str
    command : str
        The subcommand.
    sample : str
        What the run's row is called.
    options : dataclass
        The run's parameters.
    counts, rates, seconds : mapping
        Reads and results by kind; shares of reads and bases per second; wall time of each stage.
    inputs : iterable of str or None
        Paths of what was read; those that are no files are left out.

    Raises
    ------
    OutputFileError
        The file cannot be written.
    """
    content = {
        "id": f"f5py_{command.replace('-', '_')}",
        "section_name": f"f5py {command}",
        "description": "Reads of each run by what became of them.",
        "plot_type": "table",
        "pconfig": {"id": f"f5py_{command.replace('-', '_')}_table", "title": f"f5py {command}"},
        "data": {sample: {**counts, **{name: round(rate, 6) for name, rate in rates.items()}}},
        "run": {
            "command": command,
            "counts": dict(counts),
            "rates": dict(rates),
            "seconds": {name: round(value, 3) for name, value in seconds.items()},
            "parameters": asdict(options),
            "inputs": [_described(path) for path in dict.fromkeys(inputs) if path and os.path.isfile(path)],
            "versions": _versions(),
        },
    }
    with complete_output(path) as file:
        file.write(json.dumps(content, indent=2).encode() + b"\n")


def sample_name(path: str) -> str:
    """Name of a run's row: that of the alignment file without its ending."""
    return "standard_input" if path == "-" else os.path.splitext(os.path.basename(path))[0]


def _described(path: str) -> dict[str, Any]:
    """What tells later whether a file is still the same; the checksum of large files would take longer than the run."""
    about = os.stat(path)
    md5 = None
    if about.st_size <= _MOST_SUMMED:
        with open(path, "rb") as file:
            md5 = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    modified = datetime.fromtimestamp(about.st_mtime, UTC).isoformat(timespec="seconds")
    return {"path": os.path.abspath(path), "bytes": about.st_size, "modified": modified, "md5": md5}


def _versions() -> dict[str, str]:
    versions = {"f5py": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
