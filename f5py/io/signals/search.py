"""Search of folders for signal files, the same for all formats.

Links to folders are followed, but never in a circle. A folder that cannot be listed is an error, since its reads would
be missing from the results without a word. Names that begin with ``._`` are what macOS leaves beside the files of other
systems, and never signals.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from f5py.errors import SignalError


def files_below(folder: str, is_wanted: Callable[[str], bool]) -> list[str]:
    """List the files below a folder, each folder's entries in the bytewise order of their names.

    Raises `SignalError` if a folder cannot be listed.

    Parameters
    ----------
    is_wanted : callable
        Of a path.

    Returns
    -------
    list of str
        `folder` as it was given, ``/``, and the path below it.
    """
    return list(_walk(folder, frozenset(), is_wanted))


def _walk(folder: str, above: frozenset[tuple[int, int]], is_wanted: Callable[[str], bool]) -> Iterator[str]:
    try:
        about = os.stat(folder)
        names = sorted(os.listdir(folder), key=os.fsencode)
    except OSError as problem:
        raise SignalError(f"{folder}: cannot be searched for signals ({problem.strerror})") from None
    identity = (about.st_dev, about.st_ino)
    if identity in above:
        return
    for name in names:
        path = f"{folder}/{name}"
        if os.path.isdir(path):
            yield from _walk(path, above | {identity}, is_wanted)
        elif not name.startswith("._") and is_wanted(path) and os.path.isfile(path):
            yield path


def walked(
    folder: str, on_error: Callable[[OSError], object], above: frozenset[tuple[int, int]] = frozenset()
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield a folder and all below it like `os.walk`: links are followed, but never in a circle; names are sorted.

    Parameters
    ----------
    on_error : callable
        Called where a folder cannot be listed, which then counts as empty unless this raises.
    above : frozenset
        Folders that this one is below of.
    """
    try:
        about = os.stat(folder)
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
        is_folder = [entry.is_dir() for entry in entries]
    except OSError as problem:
        on_error(problem)
        return
    identity = (about.st_dev, about.st_ino)
    if identity in above:
        return
    below = [entry.name for entry, is_one in zip(entries, is_folder, strict=True) if is_one]
    yield folder, below, [entry.name for entry, is_one in zip(entries, is_folder, strict=True) if not is_one]
    for name in below:
        yield from walked(os.path.join(folder, name), on_error, above | {identity})
