"""Diagnosis of references that htslib refuses without a reason."""

import gzip
import os
import zlib

from f5py.errors import InputFileError
from f5py.io.bytes.bgzf_blocks import GZIP_MAGIC, is_bgzf

#: Lines that are looked at.
_MOST_BYTES = 1 << 30


def check_blocks(path: str) -> None:
    """Raise `InputFileError` for a reference compressed with gzip instead of bgzip."""
    with open(path, "rb") as file:
        start = file.read(18)
    if start.startswith(GZIP_MAGIC) and not is_bgzf(start):
        raise InputFileError(f"{path}: cannot read the reference: {_not_bgzip(path)}")


def _not_bgzip(path: str) -> str:
    stem = os.path.splitext(path)[0]
    return f"it is compressed with gzip, not bgzip; run: gunzip -c {path} | bgzip > {stem}.bgz.gz"


def explain_reference_error(path: str, fai: str, gzi: str) -> str:
    """Return the fault of a reference, its ``.fai`` or ``.gzi``, with advice."""
    try:
        with open(path, "rb") as file:
            start = file.read(18)
        if start.startswith(GZIP_MAGIC):
            if not is_bgzf(start):
                return _not_bgzip(path)
            if os.path.exists(fai) and not os.path.exists(gzi):
                return f"its index {gzi} is missing beside {fai}; run: samtools faidx {path}"
            wrong = _first_wrong_line(path, is_zipped=True)
        elif not start:
            return "it is empty; give the FASTA file that the reads were mapped to"
        else:
            wrong = _first_wrong_line(path, is_zipped=False)
    except (OSError, EOFError, zlib.error):
        return "it is truncated or damaged; copy it again"
    if wrong:
        return wrong
    if os.path.exists(fai):
        return f"its index {fai} is damaged or of another file; delete it to have it made again"
    return f"its index {fai} cannot be written; run samtools faidx where it can be, or set XDG_CACHE_HOME"


def _first_wrong_line(path: str, is_zipped: bool) -> str:
    """Describe the first line that violates indexable FASTA: equal line lengths but for a sequence's last."""
    with gzip.open(path) if is_zipped else open(path, "rb") as file:
        width = -1  # unknown line length of this sequence
        ended = False  # after a shorter line
        n_read = 0
        for number, line in enumerate(file, 1):
            n_read += len(line)
            if n_read > _MOST_BYTES:
                break
            if line.startswith(b">"):
                width, ended = -1, False
                continue
            length = len(line.rstrip(b"\r\n"))
            if number == 1:
                return "it is no FASTA file: its first line does not begin with >; give the reference of the alignments"
            if not length:
                ended = ended or width >= 0
                continue
            if ended or length > width >= 0:
                return (
                    f"line {number} has another length than those before it, which an index cannot describe; rewrap "
                    f"the file, for instance: seqtk seq -l 60 {path} > rewrapped.fa"
                )
            ended = length < width
            width = length if width < 0 else width
    return ""
