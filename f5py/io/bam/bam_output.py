"""Output of alignment records: BAM compressed in threads, SAM and CRAM through htslib.

A BAM block has as many whole records as fit. A record that does not fit begins the next block, and spans several if
needed. Block boundaries therefore soon depend on the records alone, so joining files recompresses little.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.errors import InputFileError, OutputFileError
from f5py.io.bam._bam_numba import list_records
from f5py.io.bam.bam_blocks import block_places
from f5py.io.bam.bam_records import bam_header, header_size, record_chunks, segments_of
from f5py.io.bam.headers import FIXED_SIZE
from f5py.io.bytes.bgzf_blocks import BLOCK_BYTES, END_BLOCK, MAX_BLOCK, DamagedBlocksError, bgzf_blocks, first_block
from f5py.io.bytes.bgzip_output import BgzipOutput
from f5py.io.files.output import copy_bytes
from f5py.io.reads.reference_errors import check_blocks
from f5py.jit.kernel import exact_kernel
from f5py.options.output_names import format_of_records, packed_ending
from f5py.text.encoding import undecoded
from f5py.threads.ordered import OrderedWork

if TYPE_CHECKING:
    import pysam
    from typing_extensions import Self


@exact_kernel
def cut_records(offsets, block_size, ends):
    """Cut records into blocks that end between them or, within long ones, when full. Return the number of full blocks.

    Parameters
    ----------
    offsets : int64, shape (n + 1,)
        Of adjacent records, in bytes; no block ends before the first one.
    ends : int64
        Filled with the ends of full blocks; needs two entries per block size and two more.
    """
    begin = np.int64(0)
    n_full = 0
    for i in range(offsets.shape[0] - 1):
        if offsets[i] > begin and offsets[i + 1] - begin > block_size:
            ends[n_full] = begin = offsets[i]
            n_full += 1
        while offsets[i + 1] - begin > block_size:
            begin += block_size
            ends[n_full] = begin
            n_full += 1
    return n_full


#: Blocks per compression job.
BLOCKS_PER_JOB = 16
_MODES = {"sam": "w", "cram": "wc"}


class _CompressedSam:
    """SAM compressed as BGZF, which pysam cannot write; `file` stays open."""

    def __init__(self, file: BinaryIO, header: pysam.AlignmentHeader, n_threads: int) -> None:
        copy = open(os.dup(file.fileno()), "wb")  # noqa: SIM115 - closed with the output
        self._out = BgzipOutput(copy, n_threads)
        self._out.write(undecoded(header.__str__))

    def write(self, record: pysam.AlignedSegment) -> None:
        self._out.write(undecoded(record.to_string) + b"\n")

    def close(self) -> None:
        self._out.close()


class RecordOutput:
    """Output of encoded records in the format of the file's name; a context manager.

    The name selects SAM, compressed or not, or CRAM, others BAM; `kind`, ``bam``, ``sam`` or ``cram``, takes
    precedence. The file has a descriptor and stays open. Compression threads do not change the bytes. Raises
    `OutputFileError` if the file cannot be written, also from `write` and at the end; `InputFileError` if the
    reference's compression does not suit CRAM.
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
        self._compressor = OrderedWork(n_threads, lambda make: make(), self._put, "f5py-bgzf")
        self._pending = bytearray()  # of the incomplete block
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
            ends = block_ends(np.frombuffer(self._pending, np.uint8), walked)
            texts = [bytes(self._pending[begin:end]) for begin, end in pairwise([0, *ends])]
            for first in range(0, len(texts), BLOCKS_PER_JOB):
                self._compressor.add(partial(_compress, texts[first : first + BLOCKS_PER_JOB]))
            if ends:
                del self._pending[: ends[-1]]
        except OSError as problem:
            raise self._failure(problem) from problem

    @property
    def is_bam(self) -> bool:
        return self._converted is None

    def put_later(self, make: Callable[[], list[bytes]]) -> None:
        """Write the blocks made by `make` in a compression thread; the pending block must be empty."""
        try:
            self._compressor.add(make)
        except OSError as problem:
            raise self._failure(problem) from problem

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

    def append(self, file: BinaryIO) -> None:
        """Append the records of a BAM file with the same contigs; whole blocks are copied where possible.

        The bytes equal those of the same records written directly, if the file comes from this class. Raises
        `InputFileError` if it cannot be read or is damaged.
        """
        try:
            if self.is_bam:
                self._append_blocks(file)
                return
            with closing(record_chunks(file, self._header.nreferences)) as chunks:
                for data, starts, n in chunks:
                    self.write(data[: starts[n]])
        except DamagedBlocksError as damage:
            raise InputFileError(f"{file.name}: {damage}; make the file again") from None
        except OSError as problem:
            if problem.filename not in (None, file.name):
                raise
            raise InputFileError(f"{file.name}: cannot be read: {problem.strerror or problem}") from None

    def _append_blocks(self, file: BinaryIO) -> None:
        """Append records until blocks of the file and the output coincide, then the other blocks."""
        blocks, texts = block_places(file)
        last = int(np.searchsorted(texts, texts[-1])) - 1  # with text
        file.seek(0)
        n_read = header_size(file)
        file.seek(0)
        with closing(record_chunks(file, self._header.nreferences, n_read, MAX_BLOCK, 1)) as chunks:
            for data, starts, n in chunks:
                self.write(data[: starts[n]])
                n_read += int(starts[n])
                met = int(np.searchsorted(texts, n_read - len(self._pending)))
                if met <= last and texts[met] == n_read - len(self._pending):
                    break
            else:
                return
        # from here on all blocks are equal but the last, which may grow
        file.seek(blocks[met])
        copy_bytes(file.name, file, int(blocks[last] - blocks[met]), self._put_now)
        self._pending[:], _ = first_block(file.read(MAX_BLOCK))

    def _put_now(self, blocks: bytes) -> None:
        """Write blocks after those that are being compressed."""
        try:
            self._compressor.finish()
            self._put([blocks])
        except OSError as problem:
            raise self._failure(problem) from problem

    def _put(self, blocks: list[bytes]) -> None:
        # bypasses the file object's buffer, which would retry failed writes on closing
        write_all(self._file.fileno(), blocks)

    def _failure(self, problem: OSError) -> OSError | OutputFileError:
        if problem.errno == errno.EPIPE:  # the reader has gone
            return problem
        # htslib gives no reason
        why = os.strerror(problem.errno) if problem.errno else "is the disk full?"
        return OutputFileError(f"{self._path}: cannot write: {why}")


def block_ends(text: NDArray[np.uint8], walked: int) -> list[int]:
    """Return the ends of full blocks in text that has whole records from `walked` on."""
    starts = np.empty((len(text) - walked) // FIXED_SIZE + 2, np.int64)
    n, _ = list_records(text[walked:], np.iinfo(np.int32).max, starts)
    ends = np.empty(2 * (len(text) // BLOCK_BYTES) + 2, np.int64)
    return ends[: cut_records(walked + starts[: n + 1], BLOCK_BYTES, ends)].tolist()


def write_all(descriptor: int, pieces: list[bytes]) -> None:
    """Write pieces to a file descriptor."""
    left = memoryview(b"".join(pieces))
    while left:
        left = left[os.write(descriptor, left) :]


def _compress(texts: list[bytes]) -> list[bytes]:
    return [block for text in texts for block in bgzf_blocks(text)]
