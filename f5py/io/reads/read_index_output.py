"""Write the files of the index of the basecalled reads; `f5py.io.reads.read_index` reads them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

import numpy as np

from f5py.errors import OutputFileError
from f5py.io.files.unfinished_file import UnfinishedFile
from f5py.io.reads.read_block_writer import ReadBlockWriter
from f5py.io.reads.sequence_chunks import sequence_chunks
from f5py.messages.progress import progress
from f5py.messages.strict import input_warning
from f5py.options.input_names import FAI_SUFFIX, GZI_SUFFIX, SEQUENCE_SUFFIX
from f5py.threads.pool import WorkerPool


def write_sequence_index(reads_path: str, threads: int = 4, sources: Sequence[str] = ()) -> dict[str, str]:
    """Write ``.index``, ``.index.fai`` and ``.index.gzi`` of the reads in a file, or of those in `sources`.

    Returns
    -------
    dict of str to str
        Every read's name, in file order, and the fast5 path in its header's comment ('' without one).

    Raises
    ------
    InputFileError
        If the reads cannot be read to the end.
    OutputFileError
        If the index cannot be written.
    """
    paths: dict[str, str] = {}
    repeated = 0
    exists: dict[str, bool] = {}
    pool = WorkerPool(threads)
    with _replacing(*(reads_path + end for end in (SEQUENCE_SUFFIX, GZI_SUFFIX, FAI_SUFFIX))) as temporary:
        with (
            closing(pool),
            open(temporary[0], "wb") as sequence_file,
            open(temporary[2], "wb") as fai,
            progress("reads") as bar,
        ):
            index = ReadBlockWriter(sequence_file, fai, pool)
            for path in sources or [reads_path]:
                for chunk in sequence_chunks(path, pool):
                    bar.advance(len(chunk))
                    names = chunk.names()
                    known = dict.fromkeys(names, "")
                    if len(known) < len(names) or not paths.keys().isdisjoint(known):
                        chosen, again = _first_of_each(names, paths)
                        if not repeated:
                            input_warning("readdb", f"{path}: read {again[0]} occurs again; the first counts")
                        repeated += len(again)
                        chunk = chunk.chosen(np.array(chosen, np.int64))
                        names = [names[i] for i in chosen]
                        known = dict.fromkeys(names, "")
                    for i in np.flatnonzero(chunk.has_path).tolist():
                        known[names[i]] = _path_in_comment(chunk.comment(i), exists)
                    paths.update(known)
                    index.write(chunk)
            block_index = index.finish()
        if gone := [path for path, is_there in exists.items() if not is_there]:
            input_warning(
                "readdb",
                f"{reads_path}: {len(gone)} fast5 files that its header lines name are not there, such as {gone[0]}; "
                "they are not used",
            )
        if repeated > 1:
            input_warning("readdb", f"{reads_path}: {repeated} reads have the name of an earlier one")
        with open(temporary[1], "wb") as file:
            file.write(block_index)
    return paths


def _first_of_each(names: list[str], known: dict[str, str]) -> tuple[list[int], list[str]]:
    """Find the names that have not occurred before, here or in `known`, and list the others."""
    seen: set[str] = set()
    chosen, again = [], []
    for i, name in enumerate(names):
        if name in seen or name in known:
            again.append(name)
        else:
            seen.add(name)
            chosen.append(i)
    return chosen, again


def write_readdb(path: str, paths: dict[str, str]) -> None:
    """Write the ``.readdb`` file `path`: a line per read, sorted bytewise by name."""
    # the order of letters is that of their bytes, but for those that stand for undecodable bytes
    names = sorted(paths) if all(map(str.isascii, paths)) else sorted(paths, key=os.fsencode)
    with (
        _replacing(path) as temporary,
        open(temporary[0], "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file,
    ):
        file.writelines(f"{name}\t{paths[name]}\n" for name in names)


def _path_in_comment(comment: str, exists: dict[str, bool]) -> str:
    """Return the comment's last word if it is the path of a fast5 file, as basecallers used to write it, else ''.

    Files may have been moved since: `exists` keeps what has been looked for.
    """
    last = comment.rstrip(" ").rpartition(" ")[2]
    if not last.endswith(".fast5"):
        return ""
    if last not in exists:
        exists[sys.intern(last)] = os.path.isfile(last)
    return sys.intern(last) if exists[last] else ""


@contextmanager
def _replacing(*paths: str) -> Iterator[list[str]]:
    """Give temporary names to write to, and put the files in the place of `paths` once all are complete.

    All but the first of the old files go before the first new one comes, so that an interruption between two
    renames leaves a missing file rather than files that do not fit one another.
    """
    with ExitStack() as cleaning:
        files = []
        for path in paths:
            try:
                files.append(UnfinishedFile(path))
            except OutputFileError as problem:
                raise OutputFileError(f"{problem}; the index needs a writable folder, -o names another one") from None
            cleaning.callback(files[-1].discard)
        temporary = [file.path for file in files]
        try:
            yield temporary
            for path in paths[1:]:
                _remove(path)
            for file in files:
                file.put_in_place()
        except OSError as problem:
            if problem.filename not in (None, *temporary, *paths):
                raise
            raise OutputFileError(
                f"{paths[0]}: cannot be written ({problem.strerror or problem}); "
                "the index needs a writable folder with room; -o names another one"
            ) from problem


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except FileNotFoundError:
        return
