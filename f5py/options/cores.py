"""Number of cores that this process may use."""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

_CGROUPS = "/sys/fs/cgroup"
_OF_PROCESS = "/proc/self/cgroup"


@cache
def usable_cores() -> int:
    """Return the number of cores that the process may use, by its affinity and control group.

    Batch systems set the one, container engines the other.
    """
    allowed = os.cpu_count() or 1
    with suppress(AttributeError, OSError):  # other systems have no affinity, and sandboxes may not tell it
        allowed = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):
        for path, controllers in _groups(Path(_OF_PROCESS).read_text()):
            allowed = min(allowed, _quota(path, controllers, allowed))
    return max(allowed, 1)


def _groups(text: str) -> list[tuple[str, str]]:
    """List the control groups of the process: where each is, and its controllers, "" for version 2."""
    lines = [line.split(":", 2) for line in text.splitlines()]
    return [(path, controllers) for _, controllers, path in lines if controllers in ("", "cpu,cpuacct", "cpu")]


def _quota(path: str, controllers: str, allowed: int) -> int:
    """Find the smallest quota of a group and its parents, in whole cores, rounded up."""
    root = Path(_CGROUPS, controllers)
    group = root / path.lstrip("/")
    for folder in (group, *group.parents):
        with suppress(OSError, ValueError):
            if controllers:
                quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
            else:
                quota, period = (folder / "cpu.max").read_text().split()
            if int(quota) > 0 and int(period) > 0:  # "max" is no number
                allowed = min(allowed, -(-int(quota) // int(period)))
        if folder == root:
            break
    return allowed
