"""Records sorted by their places on the reference: BAM, CRAM or SAM, through samtools' sort."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO

from f5py.errors import OutputFileError
from f5py.io.bam.bam_records import bam_header
from f5py.io.bam.indexed_output import index_suffix
from f5py.io.files.complete_file import complete_output
from f5py.io.files.disk import free_bytes, remove_folder
from f5py.io.files.sort_process import SortEndedError, SortFailedError, SortProcess, sort

if TYPE_CHECKING:
    import pysam
    from typing_extensions import Self

_FORMATS = {".sam": "SAM", ".cram": "CRAM"}
#: Megabytes that the sort holds before it writes some to the disk: for a thread, and altogether.
_THREAD_MEGABYTES, _MEGABYTES = 256, 768
#: From so many bytes of records on a process of its own sorts them. With so few threads it never does: it would need
#: memory while mapping does, and there is nothing to be won.
_MANY_BYTES, _FEW_THREADS = 32 << 20, 2
#: What htslib takes for the end of an output's name, and an index's name behind it.
_INDEX_MARK = "##idx##"


class SortedRecords:
    """Takes records as bytes in any order and writes them sorted, with an index; a context manager.

    They go to an uncompressed file in a folder next to the output first, which this process sorts. When there are many,
    and threads enough, a process of its own gets what is in that file and all that follows, and sorts while this one
    goes on. The files get their names when all is complete; an error leaves nothing.

    Parameters
    ----------
    path : str
        A name that ends in .sam or .cram makes that format, any other one BAM; ``-`` is standard output.
    n_threads : int
        The bytes written do not depend on it.
    reference_path : str, optional
        FASTA file, for CRAM.
    begin : callable of str
        Called with the name of what begins, at the end of the context: sorting, nothing.
    ending : ExitStack, optional
        Its end waits for the process that sorts. By default the end of this context does.

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
        self._is_file = path != "-" and (os.path.isfile(path) or not os.path.exists(path))
        self._suffix = index_suffix(path, max(header.lengths, default=0)) if self._is_file else None
        folder = os.path.dirname(os.path.realpath(path)) if self._is_file else tempfile.gettempdir()
        self._files = ExitStack()  # ends in the reverse order: the process, the output, its index, the folder
        try:
            self._folder = tempfile.mkdtemp(prefix=".unfinished-map-", dir=folder)
            self._files.callback(remove_folder, self._folder)
            self._unsorted = open(os.path.join(self._folder, "unsorted.bam"), "w+b")  # noqa: SIM115 - closed later
            self._files.callback(self._close_unsorted)
            self._unsorted.write(bam_header(header))
        except OSError as problem:
            self._files.close()
            raise OutputFileError(f"{path}: cannot write: {problem.strerror}") from None
        self._n_bytes = 0
        self._process: SortProcess | None = None
        self._may_start, self._is_fed = n_threads > _FEW_THREADS, False
        self._out: BinaryIO | None = None
        self._index: BinaryIO | None = None
        self._index_path = os.path.join(self._folder, f"index{self._suffix}")

    def __enter__(self) -> Self:
        return self

    def start_if_many(self, n_expected: int = 0) -> None:
        """Start the process that sorts, if so much has been written, or so many bytes are expected.

        It ends with the thread that starts it; so this is called now and then by one that waits for the end. A process
        that is ready before there are records need not be given what has been written meanwhile.
        """
        if self._may_start and max(self._n_bytes, n_expected) >= _MANY_BYTES:
            self._may_start = False
            with self._errors():
                arguments, descriptors = self._opened()
            with suppress(OSError):  # no more processes are allowed: this one sorts
                process = SortProcess(self._folder, *arguments, descriptors=descriptors)
                self._files.callback(process.close)
                self._process = process

    def write(self, records: memoryview) -> None:
        """Append whole records."""
        process = self._process
        with self._errors():
            if process is not None and (self._is_fed or process.is_ready):
                self._feed(process)
                process.write(records)
            else:
                self._unsorted.write(records)
        self._n_bytes += records.nbytes

    def stop(self) -> None:
        """Let a thread that is writing come back, as nothing of this is wanted any more; from any thread."""
        if self._process is not None:
            self._process.kill()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None or self._process is None or self._ending is None:
            self._end(kind, problem, traceback)
            return
        self._ending.push(self._end)  # also if the following fails
        with self._errors():
            self._begin_sorting()

    def _begin_sorting(self) -> None:
        """Let the process sort, if there is one."""
        self._begin("sorting")
        free = free_bytes(self._folder)
        if free is not None and free < self._n_bytes // 4:
            raise self._no_space(f"{free / 1e6:.0f} MB are free")
        if self._process is not None:
            self._feed(self._process)
            self._process.end_input()

    def _end(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait until all is sorted, and give the files their names; after an error clean up."""
        try:
            if kind is not None:
                self._files.__exit__(kind, problem, traceback)
                return
            with self._files, self._errors():
                self._complete()
        finally:
            self._begin("")

    def _complete(self) -> None:
        """Sort, or wait for that."""
        if self._process is None or self._ending is None:
            self._begin_sorting()
        if self._process is not None:
            self._process.finish()
        else:
            self._unsorted.flush()
            sort(self._folder, *self._opened()[0], f"/dev/fd/{self._unsorted.fileno()}")
        if not self._is_file:
            assert self._out is not None
            with complete_output(self._path) as out:
                shutil.copyfileobj(self._out, out, 1 << 20)
        if self._index is not None:
            with open(self._index_path, "rb") as file:
                shutil.copyfileobj(file, self._index)

    def _opened(self) -> tuple[list[str], tuple[int, ...]]:
        """Open the outputs, unless they are; return what samtools is told, and the open files that this names."""
        if self._out is None:
            if self._suffix is not None:
                self._index = self._files.enter_context(complete_output(self._path + self._suffix))
            sorted_there = os.path.join(self._folder, "sorted")
            context = complete_output(self._path) if self._is_file else open(sorted_there, "w+b")  # noqa: SIM115
            self._out = self._files.enter_context(context)
        name = self._out.name
        if self._kind != "CRAM" or _INDEX_MARK in name:  # the bytes of CRAM depend on the name
            name = f"/dev/fd/{self._out.fileno()}"
        megabytes = max(min(_THREAD_MEGABYTES, _MEGABYTES // self._n_threads), 1)
        arguments = ["--no-PG", "-@", str(self._n_threads - 1), "-m", f"{megabytes}M", "-O", self._kind]
        if self._kind == "CRAM" and self._reference_path is not None:
            arguments += ["--reference", self._reference_path]
        if self._index is not None:
            arguments.append("--write-index")
            name += f"{_INDEX_MARK}{self._index_path}"
        return [*arguments, "-T", os.path.join(self._folder, "sort"), "-o", name], (self._out.fileno(),)

    def _feed(self, process: SortProcess) -> None:
        """Hand on what has been written before the process was there."""
        if not self._is_fed:
            self._unsorted.seek(0)
            while piece := self._unsorted.read(1 << 20):
                process.write(piece)
            self._unsorted.truncate(0)
            self._is_fed = True

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Tell what goes wrong inside as an error of the output."""
        try:
            yield
        except OSError as problem:
            raise self._no_space(problem.strerror) from None
        except SortEndedError as problem:
            raise OutputFileError(f"{self._path}: cannot be sorted: {problem}; no file was made") from None
        except SortFailedError as problem:
            raise self._no_space(str(problem)) from None

    def _no_space(self, reason: str | None) -> OutputFileError:
        folder = os.path.dirname(self._folder)
        return OutputFileError(
            f"{self._path}: cannot be written and sorted ({reason}); it needs about "
            f"{max(2 * self._n_bytes, 1 << 20) / 1e6:.0f} MB in {folder or '.'}"
        )

    def _close_unsorted(self) -> None:
        with suppress(OSError):  # of no use any more
            self._unsorted.close()
