"""Processes beside this one that are started before it is known what for.

They import what they will need while this one does, which else takes as long again once the inputs are opened.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from itertools import islice

from f5py.errors import F5pyError
from f5py.io.signals.content import Kind, file_kind
from f5py.io.signals.helper_process import HelperProcess, run_task, spares

#: What reads or lists files of a kind.
_MODULES = {
    "fast5": ("f5py.io.signals._reader_process", "f5py.io.signals.any_file", "f5py.io.signals.fast5._fast5_h5py"),
    "pod5": (
        "f5py.io.signals._reader_process",
        "f5py.io.signals.any_file",
        "f5py.io.signals.pod5._pod5_file",
        "f5py.io.signals.pod5.places",
    ),
}
#: Of a folder so many entries are looked at; there may be millions.
_MOST_ENTRIES = 64
#: The line of an index that tells what its files are is no longer.
_MOST_LINE = 1 << 16


class SpareProcesses(AbstractContextManager["SpareProcesses"]):
    """Processes that `HelperProcess` takes first; those that are left at the end of the block are ended.

    Those that cannot be started are missing.

    Parameters
    ----------
    modules : str
        What they import.
    """

    def __init__(self, n: int, *modules: str) -> None:
        self._started: list[HelperProcess] = []
        with suppress(OSError):
            for _ in range(n):
                self._started.append(_Spare(*modules))
        spares.extend(self._started)

    def __exit__(self, *_: object) -> None:
        left = []
        for one in self._started:
            with suppress(ValueError):  # it is none any more
                spares.remove(one)
                left.append(one)
        for one in left:
            one.kill()
        for one in left:
            one.close()


class _Spare(HelperProcess):
    def __init__(self, *modules: str) -> None:
        self._start(run_task, modules, ())
        self.begin()


def files_to_read(pod5: Sequence[str], fast5: Sequence[str], index: str | None) -> tuple[Kind | None, list[str], int]:
    """Find out what kind of files a run will read, and some of them, without raising anything about them.

    Parameters
    ----------
    pod5, fast5 : sequence of str
        Files, and folders of such.
    index : str, optional
        A ``.readdb``, for runs that name no signals.

    Returns
    -------
    kind
        None if it is not known, or no processes are needed.
    files
    n_to_list : int
        So many of them must be looked through for names of reads by processes that do nothing else.
    """
    try:
        if pod5:
            files = [file for path in pod5 for file in _files(path, ".pod5")]
            return "pod5", files, 0  # by one of those that read
        if fast5:
            files = [file for path in fast5 for file in _files(path, ".fast5")]
            return "fast5", files, len(files)
        if index is not None:
            files = [_first_file(index)]
            kind = file_kind(files[0])
            return (None if kind == "slow5" else kind), files, 0
    except (OSError, ValueError, F5pyError):  # told when they are opened
        return None, [], 0
    return None, [], 0


def modules_for(kind: Kind) -> tuple[str, ...]:
    """Return what a process imports to read files of a kind."""
    return _MODULES[kind]


def _files(path: str, ending: str) -> list[str]:
    """List a file, or some of those in a folder."""
    if not os.path.isdir(path):
        return [path] if os.path.isfile(path) else []
    with os.scandir(path) as entries:
        return [entry.path for entry in islice(entries, _MOST_ENTRIES) if entry.name.endswith(ending)]


def _first_file(index: str) -> str:
    """Return the file of the first read of an index."""
    if not os.path.isfile(index):
        raise ValueError("no file")
    with open(index, "rb") as file:
        line = file.readline(_MOST_LINE)
    return os.fsdecode(line.rstrip(b"\r\n").partition(b"\t")[2])
