"""Output files that appear under their names only when they are complete."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from f5py.io.files.atomic_write import AtomicFile, is_direct
from f5py.io.files.output import TextOutput, packed_by_name, written


@contextmanager
def complete_output(path: str, is_index: bool = False, is_text: bool = False) -> Iterator[BinaryIO]:
    """Open a binary file that replaces `path` when the block ends without an error.

    Standard output (``-``), devices and pipes are written directly; pipes get whole rows of text. `is_index` is as for
    `AtomicFile`. Raises `UsageError` if a running command reads the file, `OutputFileError` if it cannot be written; a
    missing or read-only folder is noticed before the block starts.
    """
    with written(path, None if is_direct(path) else AtomicFile(path, is_index=is_index), is_text) as file:
        yield file


@contextmanager
def complete_text_output(
    path: str, n_threads: int, before_naming: Callable[[str], None] | None = None
) -> Iterator[TextOutput]:
    """Open a `complete_output` for text, compressed if its name says so; `before_naming` gets its path."""
    with complete_output(path, is_text=True) as file:
        with packed_by_name(file, path, n_threads) as out:
            yield out
        if before_naming is not None and out is not file:
            before_naming(file.name)
