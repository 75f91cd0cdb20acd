"""Output files that appear under their names only when they are complete."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from f5py.errors import OutputFileError
from f5py.io.bytes.bgzip_output import BgzipOutput, is_bgzip_name
from f5py.io.files.atomic_write import AtomicFile, is_special
from f5py.io.files.output import TextOutput, open_output


@contextmanager
def complete_output(path: str, is_index: bool = False, is_text: bool = False) -> Iterator[BinaryIO]:
    """Open a binary file that replaces `path` when the block ends without an error.

    Standard output (``-``), devices and pipes are written directly; pipes get whole rows of text. `is_index` is as for
    `AtomicFile`. Raises `UsageError` if a running command reads the file, `OutputFileError` if it cannot be written; a
    missing or read-only folder is noticed before the block starts.
    """
    if path == "-" or is_special(path):
        with open_output(path, is_text=is_text) as out:
            yield cast(BinaryIO, out)
        return
    atomic = AtomicFile(path, is_index=is_index)
    try:
        yield atomic.file
        atomic.commit()
    except BaseException as problem:
        atomic.discard()
        # errors from the block may concern other files
        if isinstance(problem, OSError) and problem.errno and problem.filename in (None, path, atomic.path):
            raise OutputFileError(f"{path}: cannot write: {problem.strerror}; no file was made") from problem
        raise


@contextmanager
def complete_text_output(
    path: str, n_threads: int, before_naming: Callable[[str], None] | None = None
) -> Iterator[TextOutput]:
    """Open a `complete_output` for text, compressed if its name says so; `before_naming` gets its path."""
    with complete_output(path, is_text=True) as file:
        if path == "-" or not is_bgzip_name(path):
            yield file
            return
        packed = BgzipOutput(file, n_threads)
        try:
            yield packed
            packed.close()
        except BaseException:
            packed.abandon()
            raise
        if before_naming is not None:
            before_naming(file.name)
