"""Sort alignment records by position, and write them as BAM, CRAM or SAM.

Records stay in memory, or, if too many, in a file beside the output (`f5py.mapping.sorting.record_runs`). At the end
their sizes determine where each block of a BAM file begins: threads gather and compress some blocks each, and one
writes them. htslib writes SAM and CRAM, and the indexes.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from f5py.errors import OutputFileError
from f5py.io.bam.bam_output import BLOCKS_PER_JOB, RecordOutput
from f5py.io.bam.indexed_output import index_suffix, write_index
from f5py.io.bytes.bgzf_blocks import BLOCK_BYTES, bgzf_block
from f5py.io.files.atomic_write import finish_pending
from f5py.io.files.complete_file import complete_output
from f5py.io.files.disk import free_bytes
from f5py.mapping.sorting.record_runs import RecordRuns, Records, copy_records
from f5py.threads.interrupts import wait_for_event

if TYPE_CHECKING:
    import pysam
    from typing_extensions import Self

#: Most megabytes of records in memory: for a thread, and altogether.
_THREAD_MEGABYTES, _MEGABYTES = 128, 768
#: Jobs for each thread, and most blocks of a job: with few jobs threads wait less for the interpreter.
_JOBS_OF_THREAD, _MOST_BLOCKS_PER_JOB = 8, 64
#: Bytes of records for htslib at a time.
_CONVERTED_BYTES = 4 << 20
#: Wait for the sorting thread after an interrupt, when htslib may be at work.
_PATIENCE_SECONDS = 0.8
#: Files still in use by threads; the process should end soon.
_left_open: list[ExitStack] = []
#: Name of the sorting thread, with the prefix of a pipeline's threads: after an interrupt the program ends without it.
_THREAD = "f5py-stage-sort"


class SortedRecords:
    """Writer of records in any order as a sorted file with an index; a context manager.

    The order is that of samtools' sort. An error leaves no file.

    Parameters
    ----------
    path : str
        Names ending in .sam or .cram choose that format, others BAM; ``-`` is standard output.
    reference_path : str, optional
        FASTA file, for CRAM.
    begin : callable of str
        Called with the name of each stage at the end of the context.
    ending : ExitStack, optional
        Waits until all is written. By default the end of this context does.
    kind : str, optional
        Format, ``bam``, ``sam`` or ``cram``, if the name does not say it.

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
        kind: str = "",
    ) -> None:
        self._path = path
        self._kind = kind
        self._header = header
        self._n_threads = n_threads
        self._reference_path = reference_path
        self._begin = begin
        self._ending = ending
        self._is_file = path != "-" and (os.path.isfile(path) or not os.path.exists(path))
        self._suffix = index_suffix(path, max(header.lengths, default=0)) if self._is_file else None
        self._folder = os.path.dirname(os.path.realpath(path)) if self._is_file else tempfile.gettempdir()
        self._n_bytes = 0
        self._files = ExitStack()
        if self._is_file:  # that nothing can be written there should be told at once
            try:
                self._open_runs().close()
            except OSError as problem:
                raise OutputFileError(f"{path}: cannot write: {problem.strerror}") from None
        most_bytes = min(_THREAD_MEGABYTES * n_threads, _MEGABYTES) << 20
        self._runs = self._files.enter_context(RecordRuns(most_bytes, self._open_runs, n_threads))
        #: Set when the thread that sorts has done that; it is not joined, as Python 3.11 takes it for dead after an
        #: interrupt of that.
        self._is_complete: threading.Event | None = None
        self._problem: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def write(self, records: memoryview | bytes) -> None:
        """Append whole records without a copy."""
        self._n_bytes += len(records)
        with self._errors():
            self._runs.add(np.frombuffer(records, np.uint8))

    def stop(self) -> None:
        """Cancel a write; from any thread."""
        self._runs.stop()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # A thread that waits for who reads a pipe could not be interrupted.
        if kind is not None or self._ending is None or not self._is_file:
            self._end(kind, problem, traceback)
            return
        self._ending.push(self._end)
        self._begin("sorting")
        is_complete = threading.Event()
        threading.Thread(target=self._complete_in_thread, args=(is_complete,), name=_THREAD, daemon=True).start()
        self._is_complete = is_complete

    def _end(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for the sort and the files; after an error clean up."""
        try:
            with self._files:
                try:
                    if kind is None and self._is_complete is not None:
                        wait_for_event(self._is_complete)
                    elif kind is None:
                        self._begin("sorting")
                        self._complete()
                except BaseException:  # an interrupt, among others
                    self._abandon()
                    raise
                if kind is not None:
                    self._abandon()
                elif self._problem is not None:
                    raise self._problem
        finally:
            self._begin("")

    def _abandon(self) -> None:
        """Stop the sorting thread; one that does not stop in time keeps its files."""
        self.stop()
        if self._is_complete is not None and not self._is_complete.wait(_PATIENCE_SECONDS):
            finish_pending()
            _left_open.append(self._files.pop_all())

    def _complete_in_thread(self, is_complete: threading.Event) -> None:
        try:
            self._complete()
        except BaseException as problem:
            self._problem = problem
        finally:
            is_complete.set()

    def _complete(self) -> None:
        """Sort, and write all files."""
        free = free_bytes(self._folder) if self._is_file else None
        if free is not None and free < self._n_bytes // 4:
            raise self._no_space(f"{free / 1e6:.0f} MB are free")
        self._runs.sort()
        with ExitStack() as outputs:
            index: BinaryIO | None = None
            if self._suffix is not None:
                index = outputs.enter_context(complete_output(self._path + self._suffix))
            file = outputs.enter_context(complete_output(self._path))
            with self._errors():
                with RecordOutput(
                    file, self._path, self._header, self._n_threads, self._reference_path, self._kind
                ) as out:
                    if out.is_bam:
                        self._write_blocks(out)
                    else:
                        self._convert(out)
                if index is not None:
                    self._index(file, index)
            self._runs.check()  # what is not wanted any more gets no name

    def _convert(self, out: RecordOutput) -> None:
        """Write the records with htslib."""
        offsets = self._runs.offsets
        first = 0
        while first < len(offsets) - 1:
            end = max(int(np.searchsorted(offsets, offsets[first] + _CONVERTED_BYTES, "right")) - 1, first + 1)
            records = self._runs.load(first, end)
            out.write(copy_records(records, offsets[first : end + 1], int(offsets[first]), int(offsets[end])))
            first = end

    def _write_blocks(self, out: RecordOutput) -> None:
        """Write the records as blocks of a BAM file."""
        offsets = self._runs.offsets
        blocks = block_offsets(offsets)
        n = len(blocks) - 1
        of_job = min(max(n // (_JOBS_OF_THREAD * self._n_threads), BLOCKS_PER_JOB), _MOST_BLOCKS_PER_JOB)
        most_blocks = max(self._runs.window_bytes // (BLOCK_BYTES * of_job), 1) * of_job
        for begin in range(0, n, most_blocks):
            end = min(begin + most_blocks, n)
            first, last = _records_in(offsets, blocks[begin], blocks[end])
            records = self._runs.load(first, last)
            for block in range(begin, end, of_job):
                self._runs.check()
                cuts = blocks[block : min(block + of_job, end) + 1]
                i, j = _records_in(offsets, cuts[0], cuts[-1])
                these = Records(records.addresses[i - first : j - first], records.memory)
                out.put_later(partial(_made, these, offsets[i : j + 1], cuts))

    def _index(self, file: BinaryIO, index: BinaryIO) -> None:
        """Index a BAM or CRAM file."""
        import pysam

        assert self._suffix is not None
        loudness = pysam.set_verbosity(0)
        try:
            write_index(file.name, index.name, self._suffix, self._n_threads)
        except pysam.SamtoolsError as problem:
            raise self._no_space(" ".join(str(problem).split())) from None
        finally:
            pysam.set_verbosity(loudness)

    def _open_runs(self) -> BinaryIO:
        """Open an unnamed temporary file for records."""
        return cast(BinaryIO, tempfile.TemporaryFile(dir=self._folder))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors inside into `OutputFileError`."""
        try:
            yield
        except BrokenPipeError:  # who reads it has seen enough
            raise
        except OSError as problem:
            raise self._no_space(problem.strerror or str(problem)) from None
        except OutputFileError as problem:
            if isinstance(problem.__cause__, OSError):
                raise self._no_space(problem.__cause__.strerror or "is the disk full?") from None
            raise

    def _no_space(self, reason: str) -> OutputFileError:
        return OutputFileError(
            f"{self._path}: cannot be written and sorted ({reason}); it needs about "
            f"{max(2 * self._n_bytes, 1 << 20) / 1e6:.0f} MB in {self._folder}"
        )


def block_offsets(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the offsets of the blocks, and of the end, in the concatenated records."""
    from f5py.io.bam.bam_output import cut_records

    n_bytes = int(offsets[-1])
    blocks = np.zeros(2 * (n_bytes // BLOCK_BYTES) + 4, np.int64)
    n = int(cut_records(offsets, BLOCK_BYTES, blocks[1:])) + 1
    if n_bytes:
        blocks[n] = n_bytes
        n += 1
    return blocks[:n]


def _records_in(offsets: NDArray[np.int64], begin: int, end: int) -> tuple[int, int]:
    """Return the range of the records that overlap a stretch."""
    return int(np.searchsorted(offsets, begin, "right")) - 1, int(np.searchsorted(offsets, end, "left"))


def _made(records: Records, offsets: NDArray[np.int64], cuts: NDArray[np.int64]) -> list[bytes]:
    """Compress the blocks between cuts."""
    begin = int(cuts[0])
    text = copy_records(records, offsets, begin, int(cuts[-1]))
    return [bgzf_block(text[i:j]) for i, j in pairwise((cuts - begin).tolist())]
