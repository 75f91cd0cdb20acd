"""Records sorted by their places on the reference: BAM, CRAM or SAM, through samtools' sort."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from contextvars import copy_context
from typing import TYPE_CHECKING

from f5py.errors import OutputFileError
from f5py.io.bam.bam_records import bam_header
from f5py.io.bam.indexed_output import index_suffix, write_index
from f5py.io.files.complete_file import complete_output
from f5py.io.files.disk import free_bytes, remove_folder
from f5py.io.files.samtools import run_samtools

if TYPE_CHECKING:
    import pysam
    from typing_extensions import Self

_FORMATS = {".sam": "SAM", ".cram": "CRAM"}
#: Memory of a thread that sorts.
_SORT_MEMORY = "256M"


class SortedRecords:
    """Takes records as bytes in any order and writes them sorted, with an index; a context manager.

    The records go to an uncompressed file in a folder next to the output first. The file gets its name when all is
    complete; an error leaves nothing.

    Parameters
    ----------
    path : str
        A name that ends in .sam or .cram makes that format, any other one BAM; ``-`` is standard output.
    n_threads : int
        The bytes written do not depend on it.
    reference_path : str, optional
        FASTA file, for CRAM.
    begin : callable of str
        Called with the name of what begins, at the end of the context: sorting, indexing, nothing.
    ending : ExitStack, optional
        Its end waits until the folder is gone, which takes a while after much has been sorted. By default the end of
        this context does.

    Raises
    ------
    OutputFileError
        The file cannot be written, or there is no space.
    """

    def __init__(
        self,
        path: str,
        header: pysam.AlignmentHeader,
        n_threads: int = 1,
        reference_path: str | None = None,
        begin: Callable[[str], object] = lambda what: None,
        ending: ExitStack | None = None,
    ) -> None:
        self._path = path
        self._begin = begin
        self._ending = ending
        self._kind = _FORMATS.get(os.path.splitext(path)[1].lower(), "BAM")
        self._n_threads = n_threads
        self._reference_path = reference_path
        self._longest = max(header.lengths, default=0)
        beside = None if path == "-" or (not os.path.isfile(path) and os.path.exists(path)) else os.path.realpath(path)
        folder = tempfile.gettempdir() if beside is None else os.path.dirname(beside)
        try:
            self._folder = tempfile.mkdtemp(prefix=".unfinished-map-", dir=folder)
            self._unsorted = open(os.path.join(self._folder, "unsorted.bam"), "wb")  # noqa: SIM115 - closed later
            self._unsorted.write(bam_header(header))
        except OSError as problem:
            raise OutputFileError(f"{path}: cannot write: {problem.strerror}") from None
        self._n_bytes = 0

    def __enter__(self) -> Self:
        return self

    def write(self, records: memoryview) -> None:
        """Append whole records."""
        try:
            self._unsorted.write(records)
        except OSError as problem:
            raise self._no_space(problem.strerror) from None
        self._n_bytes += records.nbytes

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            with suppress(*([OSError] if kind is not None else [])):
                self._unsorted.close()
            if kind is None:
                self._begin("sorting")
                self._finish()
        except OSError as problem:
            raise self._no_space(problem.strerror) from None
        finally:
            self._begin("")
            if self._ending is None or kind is not None:
                remove_folder(self._folder)
            else:
                removing = threading.Thread(target=copy_context().run, args=(remove_folder, self._folder))
                removing.start()
                self._ending.callback(removing.join)

    def _finish(self) -> None:
        free = free_bytes(self._folder)
        if free is not None and free < self._n_bytes // 4:
            raise self._no_space(f"{free / 1e6:.0f} MB are free")
        if self._path == "-" or not (os.path.isfile(self._path) or not os.path.exists(self._path)):
            target = os.path.join(self._folder, "sorted")
            self._sort(target)
            with complete_output(self._path) as out, open(target, "rb") as file:
                shutil.copyfileobj(file, out, 1 << 20)
            return
        with complete_output(self._path) as out:
            self._sort(out.name)
        suffix = index_suffix(self._path, self._longest)
        if suffix is not None:
            self._begin("indexing")
            self._index(suffix)

    def _sort(self, target: str) -> None:
        import pysam

        options = ["--no-PG", "-@", str(self._n_threads - 1), "-m", _SORT_MEMORY, "-O", self._kind]
        if self._kind == "CRAM" and self._reference_path is not None:
            options += ["--reference", self._reference_path]
        temporary = os.path.join(self._folder, "sort")
        loudness = pysam.set_verbosity(0)  # it misses the marker that compressed files end with
        try:
            run_samtools(pysam.sort, *options, "-T", temporary, "-o", target, self._unsorted.name, target=target)
        except pysam.SamtoolsError as problem:
            raise self._no_space(" ".join(str(problem).split())) from None
        finally:
            pysam.set_verbosity(loudness)

    def _index(self, suffix: str) -> None:
        import pysam

        with complete_output(self._path + suffix) as out:
            try:
                write_index(self._path, out.name, suffix, self._n_threads)
            except pysam.SamtoolsError as problem:
                raise OutputFileError(f"{self._path}: cannot be indexed ({' '.join(str(problem).split())})") from None

    def _no_space(self, reason: str | None) -> OutputFileError:
        folder = os.path.dirname(self._folder)
        return OutputFileError(
            f"{self._path}: cannot be written and sorted ({reason}); it needs about "
            f"{max(2 * self._n_bytes, 1 << 20) / 1e6:.0f} MB in {folder or '.'}"
        )
