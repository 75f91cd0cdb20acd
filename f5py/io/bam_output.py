"""Alignment records written as bytes: BAM by threads of this project, SAM and CRAM through htslib."""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.errors import OutputFileError
from f5py.io.bam_records import bam_header, segments_of
from f5py.io.bgzf_blocks import END_BLOCK, OrderedCompressor, bgzf_blocks

if TYPE_CHECKING:
    import pysam

#: Bytes in a block, as htslib has it.
_BLOCK_BYTES = 0xFF00
_BYTES_PER_JOB = 16 * _BLOCK_BYTES
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
    header : pysam.AlignmentHeader
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
        self._compressor = OrderedCompressor(n_threads, _compress, self._put)
        self._pending = bytearray(bam_header(header))

    def __enter__(self) -> RecordOutput:
        return self

    def write(self, records: NDArray[np.uint8]) -> None:
        """Append whole records."""
        try:
            if self._converted is not None:
                for record in segments_of(records, self._header):
                    self._converted.write(record)
                return
            self._pending += records.data
            while len(self._pending) >= _BYTES_PER_JOB:
                self._compressor.add(self._first_pending())
        except OSError as problem:
            raise self._failure(problem) from None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self._converted is not None:
                self._converted.close()
            elif kind is None:
                self._compressor.add(self._first_pending())
                self._compressor.finish()
                self._put([END_BLOCK])
        except OSError as problem:
            if kind is None:
                raise self._failure(problem) from None
        finally:
            self._compressor.close()

    def _first_pending(self) -> bytes:
        portion = bytes(self._pending[:_BYTES_PER_JOB])
        del self._pending[:_BYTES_PER_JOB]
        return portion

    def _put(self, blocks: list[bytes]) -> None:
        # Past the file object's buffer, which would try again at closing what has failed.
        left = memoryview(b"".join(blocks))
        while left:
            left = left[os.write(self._file.fileno(), left) :]

    def _failure(self, problem: OSError) -> OutputFileError:
        # htslib does not tell why
        why = os.strerror(problem.errno) if problem.errno else "is the disk full?"
        return OutputFileError(f"{self._path}: cannot write: {why}")


def _compress(text: bytes) -> list[bytes]:
    return bgzf_blocks(text, _BLOCK_BYTES, _LEVEL)
