"""Search of folders for signal files.

Links to folders are followed, but not in circles. A folder that cannot be listed is an error, because its reads would
be lost silently. Names beginning with ``._`` are macOS metadata.
"""

import os
from collections.abc import Callable, Iterator, Sequence

from f5py.errors import SignalError
from f5py.io.files.signal_format import KIND_NAMES, KIND_OF_ENDING, Kind, file_kind

#: End of the error for a folder without files of a format.
_NAMED: dict[Kind, str] = {
    "slow5": "*.blow5 or *.slow5; give that of the signals",
    "pod5": "*.pod5; give the folder of the signals",
    "fast5": "*.fast5; give the folder of the signals",
}


def list_files(folder: str, is_wanted: Callable[[str], object]) -> list[str]:
    """List the wanted files below a folder in bytewise order; raise `SignalError` if listing fails."""

    def refuse(problem: OSError) -> None:
        raise SignalError(f"{problem.filename}: cannot be searched for signals ({problem.strerror})") from None

    found = [
        path
        for above, _, names in walk_folder(folder, refuse) for name in names
        if not name.startswith("._") and is_wanted(path := f"{above}/{name}") and os.path.isfile(path)
    ]  # fmt: skip
    return sorted(found, key=lambda path: os.fsencode(path).split(b"/"))


def walk_folder(
    folder: str, on_error: Callable[[OSError], object], above: frozenset[tuple[int, int]] = frozenset()
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk a folder tree like `os.walk`, sorted, following links but not in circles.

    `on_error` is called for a folder that cannot be listed, which counts as empty unless it raises; `above` has the
    ancestors.
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
        yield from walk_folder(f"{folder}/{name}", on_error, above | {identity})


def signal_files(paths: Sequence[str], kind: Kind) -> list[str]:
    """List distinct files, and those of a format below folders; raise `SignalError` if a folder has none."""
    found: list[str] = []
    for path in paths:
        files = list_kind(path, kind) if os.path.isdir(path) else [path]
        if not files:
            raise SignalError(f"{path}: no file below this folder is named {_NAMED[kind]}")
        found += files
    return list(dict.fromkeys(found))


def list_kind(folder: str, kind: Kind) -> list[str]:
    """List the files of a format below a folder by name; those of fast5 as f5c, by their paths."""
    if kind == "fast5":
        return list_files(folder, lambda path: ".fast5" in path and "\n" not in path)
    return list_files(folder, lambda path: kind_by_name(path) == kind)


def check_kind(path: str, wanted: Kind) -> None:
    """Raise `SignalError` for a file of another format than its option's."""
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


def list_formats(path: str) -> dict[Kind, str]:
    """Return the formats of files below a folder, by name, with one file of each."""
    files = list_files(path, kind_by_name)
    return {kind: file for file in reversed(files) if (kind := kind_by_name(file)) is not None}


def kind_by_name(path: str) -> Kind | None:
    return KIND_OF_ENDING.get(os.path.splitext(path)[1])


def kind_of_folder(path: str) -> Kind:
    """Return the format of the files below a folder; raise `SignalError` for none or several."""
    found = list_formats(path)
    if len(found) > 1:
        names = " and ".join(KIND_NAMES[kind] for kind in sorted(found))
        raise SignalError(f"{path}: has both {names} files below it; give a folder with one kind")
    if not found:
        raise SignalError(f"{path}: no fast5, POD5 or SLOW5 file is below this folder")
    return next(iter(found))
