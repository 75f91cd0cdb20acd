"""Words and tables for the reports: statistics of repeated runs, Markdown, and the machine."""

from __future__ import annotations

import datetime
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from measure import Usage

ROOT = Path(__file__).resolve().parents[1]


def wall(usage: Usage) -> float:
    return usage.wall


def cpu(usage: Usage) -> float:
    return usage.cpu


def median(usages: Sequence[Usage], of: Callable[[Usage], float]) -> float:
    return statistics.median(map(of, usages))


def least(usages: Sequence[Usage], of: Callable[[Usage], float]) -> float:
    return min(map(of, usages))


def spread(usages: Sequence[Usage]) -> str:
    """Median and minimum of the wall time, in seconds."""
    return f"{median(usages, wall):.2f} ({least(usages, wall):.2f})"


def megabytes(size: int) -> str:
    return f"{size / 1e6:.0f}"


def one_line(usage: Usage) -> str:
    return f"{usage.wall:.2f} s wall, {usage.cpu:.2f} s CPU, {megabytes(usage.peak_rss)} MB"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table, first column to the left, the others to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return ["| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)]


def first_line(command: Sequence[str], cwd: Path | None = None) -> str:
    """First line that a command prints, such as its version."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=cwd, check=True)
    except (OSError, subprocess.CalledProcessError):
        return f"{Path(command[0]).name} of unknown version"
    return (done.stdout or done.stderr).strip().partition("\n")[0]


def machine() -> list[str]:
    """Lines on the date, the commit and the machine, taken before the work starts."""
    commit = first_line(["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"])
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    return [
        f"* date: {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC; commit {commit}",
        f"* machine: {cpu_model()}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GB, "
        f"{platform.system()} {platform.release()}; load before the start {load}",
    ]


def cpu_model() -> str:
    """Name of the processor as the kernel gives it."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1) if found else platform.machine()


def where_timed(device_name: str, n_threads: int, commit: str, script: str) -> str:
    """Say where and when kernels were timed, and by which script of this folder."""
    return (
        f"{device_name}, {platform.machine()} with {n_threads} worker threads, {datetime.date.today().isoformat()}"
        f"{', commit ' + commit if commit else ''}; `python benchmarks/{Path(script).name} DATA`."
    )


def show(lines: Sequence[str], path: Path | None) -> None:
    """Print a report, and write it if there is a path."""
    text = "\n".join(lines)
    print(text)
    if path:
        path.write_text(text)
