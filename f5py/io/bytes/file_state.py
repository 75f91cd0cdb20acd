"""Size and time of an input, which must stay as they are while it is read."""

from __future__ import annotations

import os

from f5py.errors import InputFileError


def changed_file(path: str) -> InputFileError:
    """Make the error for a file that was changed during the run."""
    return InputFileError(f"{path}: has been changed while it was read, so that results may be wrong; run again")


class FileState:
    """Size and time of a file, by which it is seen whether somebody changes it.

    Parameters
    ----------
    file : int or str
        Descriptor, which stays open as long as it is asked about; or name of a file that is opened several times, whose
        replacement is a change as well.
    path : str
        For messages.
    """

    def __init__(self, file: int | str, path: str) -> None:
        self._file = file
        self._path = path
        self._state = self._now()

    def has_changed(self) -> bool:
        """Return whether the file has another size or time, or cannot be asked."""
        try:
            return self._now() != self._state
        except OSError:
            return True

    def check(self) -> None:
        """Raise `InputFileError` if the file has changed, so that what has been read from it may be wrong."""
        if self.has_changed():
            raise changed_file(self._path)

    def _now(self) -> tuple[int, ...]:
        about = os.stat(self._file)
        return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns
