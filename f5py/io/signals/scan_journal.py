"""Journal of a fast5 scan, to resume an interrupted one."""

import json
import os
import time
import zlib
from contextlib import AbstractContextManager, suppress

from f5py.errors import DamagedValueError, OutputFileError
from f5py.io.files.disk import sync_to_disk
from f5py.io.files.json_values import JsonObject, is_text
from f5py.messages import console

#: Result of a scan: read names, or why the file was skipped.
Found = list[str] | str

#: Seconds between syncs.
_SECONDS_BETWEEN_SYNCS = 5.0
_LONGEST_LINE = 1 << 28


class ScanJournal(AbstractContextManager["ScanJournal"]):
    """Journal file with a line per scanned fast5 file: its path, size, time and result.

    Each line begins with the CRC-32 of the rest; damaged lines of an existing file are ignored. Raises
    `OutputFileError` if the file cannot be read or written.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._known: dict[str, tuple[tuple[int, int], Found]] = {}
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            with open(self._descriptor, "rb", closefd=False) as file:
                last = b"\n"
                while text := file.readline(_LONGEST_LINE):
                    last = text[-1:]
                    with suppress(DamagedValueError):
                        name, known = _parsed(text)
                        self._known[name] = known
            if last != b"\n":
                os.write(self._descriptor, b"\n")
        except OSError as problem:
            raise self._failure(problem) from None
        self._synced = time.monotonic()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        os.close(self._descriptor)

    def found(self, path: str) -> Found | None:
        """Return a file's result, None if it was not scanned or has changed."""
        state, found = self._known.get(path, (None, None))
        return found if _state(path) == state else None

    def add(self, path: str, found: Found) -> None:
        """Append a file's result; raise `OutputFileError` if that fails."""
        state = _state(path)
        if state is None:
            return
        try:
            text = json.dumps({"path": path, "size": state[0], "time": state[1], "found": found}).encode()
            # one call per line, so that at most the last one is incomplete
            os.write(self._descriptor, b"%08x %b\n" % (zlib.crc32(text), text))
            if time.monotonic() - self._synced > _SECONDS_BETWEEN_SYNCS:
                sync_to_disk(self._descriptor)
                self._synced = time.monotonic()
        except OSError as problem:
            raise self._failure(problem) from None

    def remove(self) -> None:
        """Remove the journal after the index is complete."""
        try:
            os.unlink(self._path)
        except OSError as problem:
            why = f"cannot be removed ({problem.strerror}), and is of no use any more; remove it"
            console.warning("index", f"{self._path}: {why}")

    def _failure(self, problem: OSError) -> OutputFileError:
        return OutputFileError(f"{self._path}: cannot be written ({problem.strerror})")


def _parsed(line: bytes) -> tuple[str, tuple[tuple[int, int], Found]]:
    """Parse a line as a path with size, time and result; raise `DamagedValueError` if it is malformed."""
    checksum, _, text = line.rstrip(b"\n").partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        raise DamagedValueError("the line has been changed")
    values = JsonObject.of_text(text)
    values.check_names(("path", "size", "time", "found"))
    found: Found = values.text("found") if is_text(values.members["found"]) else values.texts("found")
    return values.text("path"), ((values.integer("size"), values.integer("time", -(2**63))), found)


def _state(path: str) -> tuple[int, int] | None:
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_size, about.st_mtime_ns
