"""Opening alignment files through htslib."""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING

from f5py.io.bam.bam_index import find_index
from f5py.io.bytes.bgzf_blocks import BLOCK_MAGIC, MAX_BLOCK
from f5py.io.bytes.watched_pipe import WatchedPipe

if TYPE_CHECKING:
    import pysam


def opened(path: str, reference_path: str | None, pipe: WatchedPipe | None) -> pysam.AlignmentFile:
    """Open a file, a BAM file with an index without its name: htslib does not look for that then, and may crash.

    The index is read by `f5py.io.bam.bam_index`.
    """
    import pysam

    if pipe is not None:
        try:
            return pysam.AlignmentFile(pipe.descriptor, check_sq=False, reference_filename=reference_path)
        finally:
            pipe.close_descriptor()
    if find_index(path) is None:
        return pysam.AlignmentFile(path, check_sq=False, reference_filename=reference_path)
    with open(path, "rb") as file:
        number = file.fileno()  # it would take the name of a file object
        opened = pysam.AlignmentFile(number, check_sq=False, reference_filename=reference_path)
    if not opened.is_bam:  # a CRAM file beside the index of a BAM file
        opened.close()
        return pysam.AlignmentFile(path, check_sq=False, reference_filename=reference_path)
    return opened


def check_beginning(path: str) -> None:
    """Raise `OSError` for a file whose first compressed block is damaged: pysam would say more than is wanted of it."""
    if not os.path.isfile(path):
        return
    with open(path, "rb") as file:
        start = file.read(MAX_BLOCK)
    if start.startswith(BLOCK_MAGIC):
        try:
            zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(start)
        except zlib.error as problem:
            raise OSError(f"its first block is damaged ({problem})") from None


def reason_of(problem: Exception) -> str:
    """Extract the first line of what the library or the system says."""
    text = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    return text.splitlines()[0]
