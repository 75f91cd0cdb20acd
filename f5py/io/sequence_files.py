"""Basecalled reads from FASTA or FASTQ, one after the other."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from f5py.errors import InputFileError

#: Record types that a SAM file may begin with; its "@" looks like the start of a FASTQ record.
_SAM_HEADERS = ("HD", "SQ", "RG", "PG", "CO")


def iterate_sequences(
    path: str, batch_size: int, max_bases: int
) -> Iterator[tuple[list[str], NDArray[np.uint8], NDArray[np.int64]]]:
    """Read the bases of all reads in batches.

    Parameters
    ----------
    path : str
        FASTA or FASTQ, plain or gzip; ``-`` is standard input.
    batch_size, max_bases : int
        A batch is closed when it has that many reads or at least that many bases.

    Yields
    ------
    names : list of str
        Of the n reads of the batch, at least one.
    bases : uint8, shape (offsets[-1],)
        ASCII letters as they are in the file, read after read.
    offsets : int64, shape (n + 1,)
        Read i has ``bases[offsets[i]:offsets[i + 1]]``.

    Raises
    ------
    InputFileError
        If the file is missing, damaged, truncated, without reads or in another format.
    """
    names: list[str] = []
    pieces: list[bytes] = []
    offsets = [0]
    for name, _, bases in sequence_records(path):
        names.append(name)
        pieces.append(bases)
        offsets.append(offsets[-1] + len(bases))
        if len(names) >= batch_size or offsets[-1] >= max_bases:
            yield names, _joined(pieces), np.array(offsets, np.int64)
            names, pieces, offsets = [], [], [0]
    if names:
        yield names, _joined(pieces), np.array(offsets, np.int64)


def _joined(pieces: list[bytes]) -> NDArray[np.uint8]:
    """All pieces in one array that may be written to."""
    return np.frombuffer(bytearray().join(pieces), np.uint8)


def sequence_records(path: str) -> Iterator[tuple[str, str, bytes]]:
    """Yield name, comment and bases of every read of a FASTA or FASTQ file, plain or gzip; ``-`` is standard input.

    Raises
    ------
    InputFileError
        If the file is missing, damaged, truncated, without reads or in another format.
    """
    import pysam

    shown = "standard input" if path == "-" else path
    if path == "-":
        select.select([0], [], [])  # can be interrupted, unlike the library's first read
    elif os.path.isdir(path):
        raise InputFileError(f"{path}: is a folder; give a FASTA or FASTQ file")
    elif not os.path.exists(path):
        raise InputFileError(f"{path}: not found")
    number = 0
    has_quality: bool | None = None  # unknown until the first read with bases
    if path != "-" and _first_letter(path) == b"@":
        has_quality = True
    lacks_quality = False
    loudness = pysam.set_verbosity(0)  # what htslib would print is said in the error below
    try:
        with pysam.FastxFile(path) as records:
            for number, record in enumerate(records, 1):
                name, bases = record.name, record.sequence or ""
                if not name:
                    raise InputFileError(f"{shown}: read {number} has no name")
                if number == 1 and name in _SAM_HEADERS and record.quality is None and ":" in (record.comment or ""):
                    raise InputFileError(f"{shown}: a SAM file; give the base-called reads in FASTA or FASTQ format")
                lacks_quality = record.quality is None  # as every read without bases
                if has_quality is None and bases:
                    has_quality = not lacks_quality
                if has_quality and lacks_quality and bases:
                    raise InputFileError(
                        f"{shown}: truncated; read {number}, {name}, has no qualities; give a complete file"
                    )
                yield name, record.comment or "", "".join(bases.split()).encode()
            # a file that was cut after a name ends like this
            if has_quality and lacks_quality:
                raise InputFileError(f"{shown}: truncated; read {number}, {name}, has no bases; give a complete file")
    except ValueError as problem:  # pysam's word for whatever went wrong, undecodable text included
        raise InputFileError(
            f"{shown}: truncated or damaged after read {number}; give a complete FASTA or FASTQ file"
        ) from problem
    finally:
        pysam.set_verbosity(loudness)
    if not number:
        raise InputFileError(f"{shown}: holds no reads; a FASTA or FASTQ file is needed")


def _first_letter(path: str) -> bytes:
    """Return ``>`` or ``@``, or nothing for a pipe or an empty file; refuse other files, such as BAM."""
    import gzip
    import zlib

    if not os.path.isfile(path):
        return b""  # a pipe can be read only once
    try:
        with open(path, "rb") as plain:
            zipped = plain.read(2) == b"\x1f\x8b"
        with gzip.open(path) if zipped else open(path, "rb") as file:
            start = file.read(4096).lstrip()
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise InputFileError(f"{path}: truncated or damaged gzip file") from problem
    if start and start[:1] not in b">@":
        raise InputFileError(f"{path}: is neither FASTA nor FASTQ; if it is BAM, run samtools fastq first")
    return start[:1]
