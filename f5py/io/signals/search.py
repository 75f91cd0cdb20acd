"""Search of folders for signal files, the same for all formats.

Links to folders are followed, but never in a circle. A folder that cannot be listed is an error, since its reads would
be missing from the results without a word. Names that begin with ``._`` are what macOS leaves beside the files of other
systems, and never signals.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from f5py.errors import SignalError
from f5py.io.files.signal_format import KIND_NAMES, KIND_OF_ENDING, Kind, file_kind


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


def slow5_files(paths: Sequence[str]) -> list[str]:
    """List the SLOW5 files at some paths, and those below folders.

    Raises `SignalError` if a folder has none, or cannot be listed.
    """
    found: list[str] = []
    for path in paths:
        is_folder = os.path.isdir(path)
        files = files_below(path, lambda file: kind_by_name(file) == "slow5") if is_folder else [path]
        if not files:
            raise SignalError(
                f"{path}: no file below this folder is named *.blow5 or *.slow5; give that of the signals"
            )
        found += files
    return list(dict.fromkeys(found))


def check_kind(path: str, wanted: Kind) -> None:
    """Raise `SignalError` for a file that is of another kind than its option says."""
    if os.path.isdir(path):
        return
    kind = kind_of_file(path)
    if kind != wanted:
        raise SignalError(f"{path}: is a {KIND_NAMES[kind]} file; give it with --{kind}")


def kind_of_file(path: str) -> Kind:
    try:
        kind = file_kind(path)
        if kind is None:
            what = "is not a SLOW5, POD5 or fast5 file" if os.path.getsize(path) else "is empty"
            raise SignalError(f"{path}: {what}; give the signals of the reads")
    except FileNotFoundError:
        raise SignalError(f"{path}: not found; check the name of the signals") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise SignalError(f"{path}: cannot be opened ({reason})") from None
    return kind


def kinds_below(path: str) -> dict[Kind, str]:
    """Return what kinds of signal files are below a folder, by their names, and one file of each."""
    found: dict[Kind, str] = {}
    for file in files_below(path, lambda file: kind_by_name(file) is not None):
        if (kind := kind_by_name(file)) is not None:
            found.setdefault(kind, file)
    return found


def kind_by_name(path: str) -> Kind | None:
    return KIND_OF_ENDING.get(os.path.splitext(path)[1])


def kind_of_folder(path: str) -> Kind:
    """Return which kind of files to read below a folder."""
    found = kinds_below(path)
    if len(found) > 1:
        names = " and ".join(KIND_NAMES[kind] for kind in sorted(found))
        raise SignalError(f"{path}: has both {names} files below it; give a folder with one kind")
    if not found:
        raise SignalError(f"{path}: no fast5, POD5 or SLOW5 file is below this folder")
    return next(iter(found))
