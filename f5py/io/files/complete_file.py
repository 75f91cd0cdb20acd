"""An output file that appears only when it is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from f5py.errors import OutputFileError
from f5py.io.bytes.bgzip_output import BgzipOutput, is_bgzip_name
from f5py.io.files.output import TextOutput, open_output
from f5py.io.files.unfinished_file import UnfinishedFile, is_special


@contextmanager
def complete_output(path: str, is_index: bool = False, is_text: bool = False) -> Iterator[BinaryIO]:
    """Give a binary file that takes the place of `path` when the block ends without an error.

    An earlier file of that name stays as it is until then. Standard output (``-``), devices and pipes are written
    directly.

    Parameters
    ----------
    is_index : bool
        It is an index of an input, which is made again if it does not fit, though it is an input too.
    is_text : bool
        What is written has rows, of which a pipe is to get whole ones.

    Raises
    ------
    UsageError
        It is an input of a command that is running.
    OutputFileError
        The file cannot be written. That its folder is missing or read-only is noticed before the block starts.
    """
    if path == "-" or is_special(path):
        with open_output(path, is_text=is_text) as out:
            yield cast(BinaryIO, out)
        return
    unfinished = UnfinishedFile(path, is_index=is_index)
    try:
        yield unfinished.file
        unfinished.put_in_place()
    except BaseException as problem:
        unfinished.discard()
        # a failing write has a number but no other file's name; other errors from the block concern other files
        if isinstance(problem, OSError) and problem.errno and problem.filename in (None, path, unfinished.path):
            raise OutputFileError(f"{path}: cannot write: {problem.strerror}; no file was made") from problem
        raise


@contextmanager
def complete_text_output(
    path: str, n_threads: int, before_naming: Callable[[str], None] | None = None
) -> Iterator[TextOutput]:
    """Give a `complete_output` for text, which is compressed as bgzip does it if the name asks for that.

    Raises `OutputFileError` as for `complete_output`.

    Parameters
    ----------
    before_naming : function of a file's name, optional
        Called with the complete compressed file before that takes its place, which it does not if this raises.
    """
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
