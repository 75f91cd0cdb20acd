"""Detection of changes of an input file while it is read."""

import os

from f5py.errors import InputFileError


def changed_file_error(path: str) -> InputFileError:
    return InputFileError(f"{path}: has been changed while it was read, so that results may be wrong; run again")


class FileState:
    """Size and modification time of an open or named file, to detect changes."""

    def __init__(self, file: int | str, path: str) -> None:
        self._file = file
        self._path = path
        self._state = self._now()

    def has_changed(self) -> bool:
        """Return whether size or time differ, or the file is gone."""
        try:
            return self._now() != self._state
        except OSError:
            return True

    def check(self) -> None:
        """Raise `InputFileError` if the file has changed."""
        if self.has_changed():
            raise changed_file_error(self._path)

    def _now(self) -> tuple[int, ...]:
        about = os.stat(self._file)
        return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns
