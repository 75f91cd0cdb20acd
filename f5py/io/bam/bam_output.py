"""Alignment records written as bytes: BAM by threads of this project, SAM and CRAM through htslib.

A block of a BAM file has as many whole records as fit. A record that does not fit into what is left of a block begins
the next one, and goes on over several if it is longer. So where blocks begin follows from the records alone a few
blocks after any place, and files that are joined (`f5py.io.bam.joined_bam`) hardly have to be compressed again.
"""

from __future__ import annotations

import errno
import os
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.errors import OutputFileError
from f5py.io.bam.bam_records import bam_header, segments_of
from f5py.io.bytes.bgzf_blocks import END_BLOCK, bgzf_blocks
from f5py.threads.ordered import OrderedWork

if TYPE_CHECKING:
    import pysam
    from typing_extensions import Self

#: Bytes in a block, as htslib has it.
BLOCK_BYTES = 0xFF00
_BLOCKS_PER_JOB = 16
#: Compression as strong as htslib's default.
_LEVEL = zlib.Z_DEFAULT_COMPRESSION
_MODES = {".sam": "w", ".cram": "wc"}


class RecordOutput:
    """Takes records as bytes and writes them in the format that the file's name says; a context manager.

    Parameters
    ----------
    file : binary file
        Must have a file descriptor. It is not closed.
    path : str
        Its name; one that ends in .sam or .cram makes that format, any other one BAM.
    n_threads : int
        Compression threads. The bytes written do not depend on it.
    reference_path : str, optional
        FASTA file, needed for CRAM.

    Raises
    ------
    OutputFileError
        The file cannot be written, also from `write` and on leaving the context.
    """

    def __init__(
        self,
        file: BinaryIO,
        path: str,
        header: pysam.AlignmentHeader,
        n_threads: int = 1,
        reference_path: str | None = None,
    ) -> None:
        self._path = path
        self._header = header
        self._converted: pysam.AlignmentFile | None = None
        mode = _MODES.get(os.path.splitext(path)[1].lower())
        if mode == "wc" and reference_path is None:
            raise OutputFileError(f"{path}: CRAM needs the reference; give it, or a name that ends in .bam")
        if mode is not None:
            import pysam

            self._converted = pysam.AlignmentFile(
                file, mode, header=header, threads=n_threads, reference_filename=reference_path
            )
        self._file = file
        self._compressor = OrderedWork(n_threads, _compress, self._put, "f5py-bgzf")
        self._pending = bytearray()  # of the block that is not full
        if self._converted is None:
            self._compressor.add([bam_header(header)])

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
            raise self._failure(problem) from None

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
            raise self._failure(problem) from None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self._converted is not None:
                self._converted.close()
            elif kind is None:
                if self._pending:
                    self._compressor.add([bytes(self._pending)])
                self._compressor.finish()
                self._put([END_BLOCK])
        except OSError as problem:
            if kind is None:
                raise self._failure(problem) from None
        finally:
            self._compressor.close()

    def _compress_until(self, ends: list[int]) -> None:
        """Compress the blocks of what is pending that have these ends."""
        texts = [bytes(self._pending[begin:end]) for begin, end in pairwise([0, *ends])]
        for first in range(0, len(texts), _BLOCKS_PER_JOB):
            self._compressor.add(texts[first : first + _BLOCKS_PER_JOB])
        if ends:
            del self._pending[: ends[-1]]

    def _put(self, blocks: list[bytes]) -> None:
        # Past the file object's buffer, which would try again at closing what has failed.
        left = memoryview(b"".join(blocks))
        while left:
            left = left[os.write(self._file.fileno(), left) :]

    def _failure(self, problem: OSError) -> OSError | OutputFileError:
        if problem.errno == errno.EPIPE:  # who reads it has seen enough, which is no failure
            return problem
        # htslib does not tell why
        why = os.strerror(problem.errno) if problem.errno else "is the disk full?"
        return OutputFileError(f"{self._path}: cannot write: {why}")


def block_ends(text: NDArray[np.uint8], walked: int) -> list[int]:
    """Find the ends of full blocks in text that a block begins with, and that has whole records from `walked` on."""
    from f5py.io.bam._bam_numba import cut_blocks

    ends = np.empty(2 * (len(text) // BLOCK_BYTES) + 2, np.int64)
    return ends[: cut_blocks(text, walked, BLOCK_BYTES, ends)].tolist()


def _compress(texts: list[bytes]) -> list[bytes]:
    return [block for text in texts for block in bgzf_blocks(text, BLOCK_BYTES, _LEVEL)]
