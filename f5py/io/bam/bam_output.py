"""Alignment records written as bytes: BAM by threads of this project, SAM and CRAM through htslib.

A block of a BAM file has as many whole records as fit. A record that does not fit into what is left of a block begins
the next one, and goes on over several if it is longer. So where blocks begin follows from the records alone a few
blocks after any place, and files that are joined (`f5py.io.bam.joined_bam`) hardly have to be compressed again.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.errors import OutputFileError
from f5py.io.bam.bam_records import bam_header, segments_of
from f5py.io.bytes.bgzf_blocks import BLOCK_BYTES, END_BLOCK, bgzf_blocks
from f5py.io.bytes.bgzip_output import BgzipOutput
from f5py.io.reads.why_no_reference import check_blocks
from f5py.options.output_names import format_of_records, packed_ending
from f5py.text.encoding import undecoded
from f5py.threads.ordered import OrderedWork

if TYPE_CHECKING:
    import pysam
    from typing_extensions import Self

#: Blocks that are compressed one after the other in a thread, and written together.
BLOCKS_PER_JOB = 16
#: The system takes no more in one call.
_MOST_PIECES = 512
_MODES = {"sam": "w", "cram": "wc"}


class _CompressedSam:
    """Writes SAM compressed as bgzip does it, which pysam cannot; `file` is not closed."""

    def __init__(self, file: BinaryIO, header: pysam.AlignmentHeader, n_threads: int) -> None:
        copy = open(os.dup(file.fileno()), "wb")  # noqa: SIM115 - closed with the output
        self._out = BgzipOutput(copy, n_threads)
        self._out.write(undecoded(header.__str__))

    def write(self, record: pysam.AlignedSegment) -> None:
        self._out.write(undecoded(record.to_string) + b"\n")

    def close(self) -> None:
        self._out.close()


class RecordOutput:
    """Takes records as bytes and writes them in the format that the file's name says; a context manager.

    Parameters
    ----------
    file : binary file
        Must have a file descriptor. It is not closed.
    path : str
        Its name; one that ends in .sam, .sam.gz or .cram makes that format, any other one BAM.
    n_threads : int
        Compression threads. The bytes written do not depend on it.
    reference_path : str, optional
        FASTA file, needed for CRAM.
    kind : str, optional
        Format, ``bam``, ``sam`` or ``cram``, if the name does not say it.

    Raises
    ------
    OutputFileError
        The file cannot be written, also from `write` and on leaving the context.
    InputFileError
        The reference is compressed in a way that CRAM cannot be written with.
    """

    def __init__(
        self,
        file: BinaryIO,
        path: str,
        header: pysam.AlignmentHeader,
        n_threads: int = 1,
        reference_path: str | None = None,
        kind: str = "",
    ) -> None:
        self._path = path
        self._header = header
        self._converted: pysam.AlignmentFile | _CompressedSam | None = None
        mode = _MODES.get(kind or format_of_records(path))
        if mode == "wc" and reference_path is None:
            raise OutputFileError(f"{path}: CRAM needs the reference; give it, or a name that ends in .bam")
        if mode == "wc" and reference_path is not None:
            check_blocks(reference_path)
        if mode == "w" and packed_ending(path):
            self._converted = _CompressedSam(file, header, n_threads)
        elif mode is not None:
            import pysam

            self._converted = pysam.AlignmentFile(
                file, mode, header=header, threads=n_threads, reference_filename=reference_path
            )
        self._file = file
        self._compressor = OrderedWork(n_threads, _made, self._put, "f5py-bgzf")
        self._pending = bytearray()  # of the block that is not full
        self._n_written = 0
        if self._converted is None:
            self._compressor.add(partial(_compress, [bam_header(header)]))

    def __enter__(self) -> Self:
        return self

    def write(self, records: NDArray[np.uint8]) -> None:
        """Append whole records."""
        try:
            if self._converted is not None:
                for record in segments_of(records, self._header):
                    self._converted.write(record)
                return
            walked = len(self._pending)
            self._pending += records.data
            cuts = block_ends(np.frombuffer(self._pending, np.uint8), walked)
            self._compress_until(cuts)
        except OSError as problem:
            raise self._failure(problem) from problem

    @property
    def is_bam(self) -> bool:
        """Whether BAM is written."""
        return self._converted is None

    @property
    def n_contigs(self) -> int:
        """Contigs in the header."""
        return self._header.nreferences

    @property
    def n_pending(self) -> int:
        """Bytes of text of the last block, which is not full."""
        return len(self._pending)

    def set_pending(self, text: bytes) -> None:
        """Let the last block have this text so far."""
        self._pending[:] = text

    def put_blocks(self, blocks: list[bytes]) -> None:
        """Write blocks as they are; the last block before them must be empty."""
        try:
            self._compressor.finish()
            self._put(blocks)
        except OSError as problem:
            raise self._failure(problem) from problem

    def put_later(self, make: Callable[[], list[bytes]]) -> None:
        """Write the blocks that a compression thread gets by calling `make`; otherwise as `put_blocks`."""
        try:
            self._compressor.add(make)
        except OSError as problem:
            raise self._failure(problem) from problem

    def finish_blocks(self) -> int:
        """Write all blocks that have been asked for; return the number of bytes written so far."""
        try:
            self._compressor.finish()
        except OSError as problem:
            raise self._failure(problem) from problem
        return self._n_written

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self._converted is not None:
                self._converted.close()
            elif kind is None:
                if self._pending:
                    self._compressor.add(partial(_compress, [bytes(self._pending)]))
                self._compressor.finish()
                self._put([END_BLOCK])
        except OSError as problem:
            if kind is None:
                raise self._failure(problem) from problem
        finally:
            self._compressor.close()

    def _compress_until(self, ends: list[int]) -> None:
        """Compress the blocks of what is pending that have these ends."""
        texts = [bytes(self._pending[begin:end]) for begin, end in pairwise([0, *ends])]
        for first in range(0, len(texts), BLOCKS_PER_JOB):
            self._compressor.add(partial(_compress, texts[first : first + BLOCKS_PER_JOB]))
        if ends:
            del self._pending[: ends[-1]]

    def _put(self, blocks: list[bytes]) -> None:
        # Past the file object's buffer, which would try again at closing what has failed.
        write_all(self._file.fileno(), blocks)
        self._n_written += sum(map(len, blocks))

    def _failure(self, problem: OSError) -> OSError | OutputFileError:
        if problem.errno == errno.EPIPE:  # who reads it has seen enough, which is no failure
            return problem
        # htslib does not tell why
        why = os.strerror(problem.errno) if problem.errno else "is the disk full?"
        return OutputFileError(f"{self._path}: cannot write: {why}")


def block_ends(text: NDArray[np.uint8], walked: int) -> list[int]:
    """Find the ends of full blocks in text that a block begins with, and that has whole records from `walked` on."""
    from f5py.io.bam._block_cuts_numba import cut_blocks

    ends = np.empty(2 * (len(text) // BLOCK_BYTES) + 2, np.int64)
    return ends[: cut_blocks(text, walked, BLOCK_BYTES, ends)].tolist()


def write_all(descriptor: int, pieces: list[bytes]) -> None:
    """Write pieces one after the other to an open file, without joining them, which would hold up other threads."""
    left = [memoryview(piece) for piece in pieces if piece]
    while left:
        n_written = os.writev(descriptor, left[:_MOST_PIECES])
        n_whole = 0
        while n_whole < len(left) and n_written >= len(left[n_whole]):
            n_written -= len(left[n_whole])
            n_whole += 1
        del left[:n_whole]
        if n_written:
            left[0] = left[0][n_written:]


def _made(make: Callable[[], list[bytes]]) -> list[bytes]:
    return make()


def _compress(texts: list[bytes]) -> list[bytes]:
    return [block for text in texts for block in bgzf_blocks(text)]
