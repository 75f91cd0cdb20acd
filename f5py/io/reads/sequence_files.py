"""Basecalled reads from FASTA, FASTQ or BAM, one after the other."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from f5py.errors import InputFileError
from f5py.io.bytes.byte_input import shown_name
from f5py.io.bytes.decompressed import name_for_htslib, readable_by_htslib
from f5py.messages.strict import input_warning

_WHO = "reads"

#: Record types that a SAM file may begin with; its "@" looks like the start of a FASTQ record.
_SAM_HEADERS = ("HD", "SQ", "RG", "PG", "CO")


def iterate_sequences(
    path: str, batch_size: int, max_bases: int
) -> Iterator[tuple[list[str], NDArray[np.uint8], NDArray[np.int64]]]:
    """Read the bases of all reads in batches.

    Raises `InputFileError` if the file is missing, damaged, truncated or in another format.

    Parameters
    ----------
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
    """Yield name, comment and bases of every read of a FASTA or FASTQ file, or of a BAM file with bases.

    Parameters
    ----------
    path : str
        Plain, gzip, bzip2, xz or zstd; ``-`` is standard input, plain or gzip. In a BAM or CRAM file secondary and
        supplementary records are passed over.

    Raises
    ------
    InputFileError
        If the file is missing, damaged, truncated or in another format.
    MissingDependencyError
        A package is needed to read the file.
    """
    import pysam  # noqa: F401 - which takes a while, and standard input may have to be waited for

    shown = shown_name(path)
    if path == "-":
        select.select([0], [], [])  # can be interrupted, unlike the library's first read
    elif os.path.isdir(path):
        raise InputFileError(f"{path}: is a folder; give a FASTA or FASTQ file")
    elif not os.path.exists(path):
        raise InputFileError(f"{path}: not found; check the name of the reads")
    if path != "-" and is_bam(path):
        yield from _bam_reads(path)
        return
    with readable_by_htslib(path) as readable:
        yield from _text_reads(readable, shown)


def _text_reads(path: str, shown: str) -> Iterator[tuple[str, str, bytes]]:
    import pysam

    number = 0
    has_quality: bool | None = None  # unknown until the first read with bases
    if path != "-" and _first_letter(path, shown) == b"@":
        has_quality = True
    lacks_quality = False
    loudness = pysam.set_verbosity(0)  # what htslib would print is said in the error below
    handler = pysam.set_encoding_error_handler("surrogateescape")  # comments are bytes
    try:
        with pysam.FastxFile(name_for_htslib(path)) as records:
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
            f"{shown}: truncated or damaged after read {number}{_said(problem)}; give a complete FASTA or FASTQ file"
        ) from problem
    finally:
        pysam.set_encoding_error_handler(handler)
        pysam.set_verbosity(loudness)
    if not number:
        input_warning(_WHO, f"{shown}: holds no reads")  # as the file of a barcode may


def _said(problem: ValueError) -> str:
    """Return what the library says of a record, in brackets; it does not know what is wrong with compressed bytes."""
    words = str(problem).partition(" in ")[0].strip()
    return "" if not words or words.startswith("unknown problem") else f" ({' '.join(words.split())})"


def is_bam(path: str) -> bool:
    """Return whether a file is BAM or CRAM, by its content."""
    import pysam

    if not os.path.isfile(path):
        return False
    loudness = pysam.set_verbosity(0)
    try:
        with pysam.AlignmentFile(name_for_htslib(path), check_sq=False) as file:
            return bool(file.is_bam or file.is_cram)
    except (OSError, ValueError):
        return False
    finally:
        pysam.set_verbosity(loudness)


def _bam_reads(path: str) -> Iterator[tuple[str, str, bytes]]:
    import pysam

    number = 0
    try:
        with pysam.AlignmentFile(name_for_htslib(path), check_sq=False) as records:
            for record in records.fetch(until_eof=True):
                number += 1
                if not (record.is_secondary or record.is_supplementary):
                    yield record.query_name or "", "", (record.get_forward_sequence() or "").encode()
    except (OSError, ValueError) as problem:
        raise InputFileError(f"{path}: truncated or damaged after record {number}; give a complete file") from problem
    if not number:
        input_warning(_WHO, f"{path}: holds no reads")


def _first_letter(path: str, shown: str) -> bytes:
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
        raise InputFileError(f"{shown}: truncated or damaged gzip file") from problem
    if start and start[:1] not in b">@":
        raise InputFileError(
            f"{shown}: is neither FASTA nor FASTQ, nor BAM with the reads' bases; give the basecalled reads"
        )
    return start[:1]
