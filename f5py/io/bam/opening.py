"""Opening of alignment files with htslib."""

from __future__ import annotations

import os
import zlib
from functools import partial
from typing import TYPE_CHECKING

from f5py.io.bam.bam_index import find_index
from f5py.io.bytes.bgzf_blocks import GZIP_MAGIC, MAX_BLOCK, is_bgzf
from f5py.io.bytes.watched_pipe import WatchedPipe
from f5py.messages.console import NO_LAST_LINE_END, input_warning

if TYPE_CHECKING:
    import pysam

#: Record types of SAM headers; their "@" looks like FASTQ.
SAM_HEADERS = ("HD", "SQ", "RG", "PG", "CO")
_BAM_MAGIC, _CRAM_MAGIC = b"BAM\1", b"CRAM"


def is_alignment_file(path: str) -> bool:
    """Return whether a file is BAM, CRAM or SAM, by its beginning; False for pipes."""
    if path == "-" or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        start = file.read(MAX_BLOCK)
    try:
        start = _unpacked(start)
    except zlib.error:
        return False
    is_header = start[:1] == b"@" and start[1:3].decode("latin-1") in SAM_HEADERS and start[3:4] == b"\t"
    return is_header or start.startswith((_BAM_MAGIC, _CRAM_MAGIC))


def open_alignments(path: str, reference_path: str | None, pipe: WatchedPipe | None = None) -> pysam.AlignmentFile:
    """Open a file; indexed BAM without its name, because htslib may crash on a damaged index.

    `f5py.io.bam.bam_index` reads the index. Raises `OSError` or `ValueError` if the file cannot be opened.
    """
    import pysam

    pysam.set_verbosity(0)  # errors are reported in one line
    opened = partial(pysam.AlignmentFile, check_sq=False, reference_filename=reference_path)
    if pipe is not None:
        try:
            return opened(pipe.descriptor)
        finally:
            pipe.close_descriptor()
    _check_beginning(path)
    name = os.path.abspath(path)  # htslib takes relative names such as http:/x for URLs
    if find_index(path) is None:
        return opened(name)
    with open(path, "rb") as file:
        alignments = opened(file.fileno())  # a file object has a name
    if alignments.is_bam:
        return alignments
    alignments.close()
    return opened(name)  # CRAM beside a BAM index


def _check_beginning(path: str) -> None:
    """Raise `OSError` for damage that pysam reports badly; warn of SAM without a last line end."""
    if not os.path.isfile(path):
        return
    with open(path, "rb") as file:
        start = file.read(MAX_BLOCK)
    try:
        text = _unpacked(start)
    except zlib.error as problem:
        raise OSError(f"its first block is damaged ({problem})") from None
    if start.startswith(b"@"):
        with open(path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                input_warning("load_bam", f"{path}: {NO_LAST_LINE_END}")
    if text.startswith(_BAM_MAGIC) and not is_bgzf(start):
        how = "by gzip" if start.startswith(GZIP_MAGIC) else "by nothing"
        raise OSError(f"it is compressed {how}, not by bgzip; run: samtools view -b {path} > bgzip.bam")


def _unpacked(start: bytes) -> bytes:
    """Return the first text of a file; raise `zlib.error` if it is damaged."""
    if not start.startswith(GZIP_MAGIC):
        return start
    return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(start, MAX_BLOCK)


def error_reason(problem: Exception) -> str:
    """Return the first line of an error's text."""
    text = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    return text.splitlines()[0]
