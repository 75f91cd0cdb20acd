"""Reads in columns, batch by batch: from FASTA, FASTQ, or alignment files such as a basecaller's unaligned BAM."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from f5py.core.mapping_batch import MappingBatch
from f5py.core.names import Names
from f5py.core.offsets import gathered, offsets_of
from f5py.errors import InputFileError
from f5py.io.bytes.byte_input import open_bytes, shown_name
from f5py.io.bytes.decompressed import readable_by_htslib
from f5py.messages.strict import input_warning
from f5py.text.encoding import undecoded

_WHO = "reads"
_PIECE = 1 << 22
_FEWEST_BYTES = 1 << 16
#: Bytes of a record in the text besides bases and qualities, for most files.
_SHORTEST_RECORD = 8
#: Secondary and supplementary records of a read, which has its primary one as well.
_NOT_PRIMARY = 0x100 | 0x800
#: Tags of bases, of which hard clips would cut off the places.
BASE_TAGS = ("mv", "MM", "ML", "Mm", "Ml")


def tag_numbers(names: Sequence[str]) -> NDArray[np.uint16]:
    """Names of tags as numbers."""
    return np.array([int.from_bytes(name.encode(), "little") for name in names], np.uint16)


def check_read_files(paths: Sequence[str]) -> None:
    """Raise `InputFileError` for a file that is not there."""
    for path in paths:
        if path == "-":
            continue
        if os.path.isdir(path):
            raise InputFileError(f"{path}: is a folder; give files of reads")
        if not os.path.exists(path):
            raise InputFileError(f"{path}: no such file; give the reads as FASTA, FASTQ or BAM")


def is_alignment_file(path: str) -> bool:
    """Return whether a file is BAM, CRAM or SAM, by its beginning; a pipe is text."""
    from f5py.io.reads.sequence_files import is_bam

    if path == "-" or not os.path.isfile(path):
        return False
    if is_bam(path):
        return True
    with open(path, "rb") as file:
        first = file.read(4)
    return first[:1] == b"@" and first[1:3] in (b"HD", b"SQ", b"RG", b"PG", b"CO") and first[3:4] == b"\t"


def header_lines(path: str, reference: str | None) -> list[str]:
    """Lines of an alignment file's header that are about its reads: read groups, programs, comments."""
    import pysam

    pysam.set_verbosity(0)
    try:
        with pysam.AlignmentFile(path, check_sq=False, reference_filename=reference) as file:
            text = undecoded(file.header.__str__).decode("utf-8", "surrogateescape")
    except (OSError, ValueError) as problem:
        raise InputFileError(f"{path}: cannot be read ({problem}); is it damaged?") from None
    return [line for line in text.splitlines() if line[:3] in ("@RG", "@PG", "@CO")]


def read_batches(
    paths: Sequence[str],
    max_bases: int,
    dropped_tags: Sequence[str],
    with_comments: bool = False,
    reference: str | None = None,
    advance: Callable[[int], object] = lambda size: None,
) -> Iterator[MappingBatch]:
    """Yield the reads of files in batches of about `max_bases` bases.

    Raises `InputFileError` if a file is missing, damaged or truncated.

    Parameters
    ----------
    paths : sequence of str
        ``-`` is standard input, FASTA or FASTQ.
    dropped_tags : sequence of str
        Tags that are not kept.
    with_comments : bool
        Comments of FASTQ that look like SAM tags become tags.
    reference : str, optional
        To decode CRAM.
    advance : function
        Told of bytes that have been read.
    """
    dropped = tag_numbers(dropped_tags)
    number = 0
    for path in paths:
        n_before = number
        if is_alignment_file(path):
            batches = _record_batches(path, max_bases, dropped, reference, advance)
        else:
            batches = _text_batches(path, max_bases, dropped, with_comments, advance)
        for batch in batches:
            batch.number = number
            number += 1
            yield batch
        if number == n_before:
            input_warning(_WHO, f"{shown_name(path)}: holds no reads")  # as the file of a barcode may


def _text_batches(
    path: str, max_bases: int, dropped: NDArray[np.uint16], with_comments: bool, advance: Callable[[int], object]
) -> Iterator[MappingBatch]:
    """Read a FASTA or FASTQ file in batches."""
    if path == "-":
        select.select([0], [], [])  # can be interrupted, unlike reading
    shown = shown_name(path)
    n_before = 0
    with readable_by_htslib(path) as readable:
        if readable != path:  # not by its name, which nobody has heard of
            shown = path
        with open_bytes("-" if path == "-" else readable, advance) as file:
            text, n = np.empty(_FEWEST_BYTES, np.uint8), 0
            wanted, is_last = _FEWEST_BYTES, False
            while True:
                if wanted > len(text):
                    larger = np.empty(wanted, np.uint8)
                    larger[:n] = text[:n]
                    text = larger
                while n < wanted and not is_last:
                    size = file.readinto(text[n : min(n + _PIECE, wanted)].data)  # type: ignore[attr-defined]
                    is_last = not size
                    n += size
                enough = max(_bytes_for(max_bases, text[:n]), _FEWEST_BYTES)
                if wanted < enough and not is_last:  # before the first batch
                    wanted = enough
                    continue
                batch, used, problem = _parsed(text[:n], is_last, max_bases, with_comments, dropped)
                if len(batch):
                    yield batch
                    n_before += len(batch)
                if problem:
                    raise _wrong_text(shown, text[:n], used, problem, n_before)
                wanted = enough if len(batch) else 2 * n + _PIECE
                del batch
                text[: n - used] = text[used:n]
                n -= used
                if is_last and n == 0:
                    return


def _bytes_for(max_bases: int, text: NDArray[np.uint8]) -> int:
    """Bytes of text for a batch, about: FASTQ has a quality for every base."""
    return max_bases if text[:1].tobytes() == b">" else 2 * max_bases


def _parsed(
    data: NDArray[np.uint8], is_last: bool, max_bases: int, with_comments: bool, dropped: NDArray[np.uint16]
) -> tuple[MappingBatch, int, int]:
    """Parse the whole reads that text begins with; also return their bytes, and what is wrong behind them."""
    from f5py.io.reads import _read_records_numba as compiled

    letters, qualities = np.empty(len(data), np.uint8), np.empty(len(data), np.uint8)
    rows = np.empty((len(data) // _SHORTEST_RECORD + 2, compiled.N_COLUMNS), np.int64)
    n, n_bases, used, problem = compiled.parse_reads(data, len(data), is_last, max_bases, letters, qualities, rows)
    rows = rows[:n]
    name_begins, name_ends = rows[:, [compiled.NAME, compiled.NAME_END]].T.copy()
    tags, tag_offsets = np.empty(0, np.uint8), np.zeros(n + 1, np.int64)
    if with_comments:
        size = int((rows[:, compiled.COMMENT_END] - rows[:, compiled.COMMENT]).sum())
        tags = np.empty(2 * size + 16, np.uint8)
        tags = tags[: compiled.tags_of_comments(data, rows, n, dropped, tags, tag_offsets)].copy()
    n_qualities = n_bases if rows[:, compiled.QUALITIES].any() else 0
    names = Names(*gathered(data, name_begins, name_ends - name_begins))
    batch = MappingBatch(
        names, letters[:n_bases].copy(), offsets_of(rows[:, compiled.BASES]),
        qualities[:n_qualities].copy(), tags, tag_offsets,
    )  # fmt: skip
    return batch, int(used), int(problem)


def _wrong_text(shown: str, text: NDArray[np.uint8], used: int, problem: int, n_before: int) -> InputFileError:
    """Make the error for a damaged file."""
    from f5py.io.reads import _read_records_numba as compiled

    words = text[used : used + 300].tobytes().lstrip()[1:].split(maxsplit=1)
    name = words[0][:60].decode("utf-8", "replace") if words else ""
    read = f"read {n_before + 1}"
    if problem == compiled.NOT_A_RECORD and n_before == 0 and used == 0:
        return InputFileError(f"{shown}: is neither FASTA nor FASTQ, nor BAM; give the basecalled reads")
    if problem == compiled.NOT_A_RECORD:
        return InputFileError(f"{shown}: damaged behind read {n_before}; give a complete FASTA or FASTQ file")
    if problem == compiled.NO_NAME:
        return InputFileError(f"{shown}: {read} has no name; give a complete FASTA or FASTQ file")
    if problem == compiled.BAD_NAME:
        return InputFileError(f"{shown}: the name of {read}, {name}..., has more than 254 bytes; shorten it")
    return InputFileError(
        f"{shown}: truncated; {read}, {name}, has not as many qualities as bases; give a complete file"
    )


def _record_batches(
    path: str, max_bases: int, dropped: NDArray[np.uint16], reference: str | None, advance: Callable[[int], object]
) -> Iterator[MappingBatch]:
    """Read the primary records of an alignment file, put back to the orientation of the read."""
    from f5py.io.bam._bam_numba import FLAGS, N_BASES
    from f5py.io.bam.bam_records import fixed_numbers, record_names
    from f5py.io.bam.record_reads import copied_sequences
    from f5py.io.reads import _read_records_numba as compiled

    n_read = 0
    for data, starts, n in _record_chunks(path, reference):
        advance(int(starts[n] - starts[0]))
        chosen = np.flatnonzero(fixed_numbers(data, starts[:n], FLAGS, np.uint16) & _NOT_PRIMARY == 0)
        n_read += n
        sizes = fixed_numbers(data, starts[chosen], N_BASES, np.int32).astype(np.int64)
        ends = np.cumsum(sizes)
        first = 0
        while first < len(chosen):
            done = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, done + max_bases, "right")))
            part = chosen[first:last]
            letters, offsets, _ = copied_sequences(data, starts, part, sizes[first:last])
            qualities = np.empty(offsets[-1], np.uint8)
            compiled.copy_qualities(data, starts, part, offsets, qualities)
            tags = np.empty(int((starts[part + 1] - starts[part]).sum()), np.uint8)
            tag_offsets = np.empty(len(part) + 1, np.int64)
            size = compiled.copy_tags(data, starts, part, dropped, tags, tag_offsets)
            names = record_names(data, starts, part)
            yield MappingBatch(names, letters, offsets, qualities, tags[:size].copy(), tag_offsets)
            first = last


def _record_chunks(path: str, reference: str | None) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], int]]:
    """Read the records of an alignment file, many at a time."""
    import pysam

    from f5py.io.bam.bam_records import converted_chunks, record_chunks

    n_read = 0
    try:
        with pysam.AlignmentFile(path, check_sq=False, reference_filename=reference) as file:
            if file.is_bam:
                with open(path, "rb") as stream:
                    for data, starts, n in record_chunks(stream, file.nreferences):
                        n_read += n
                        yield data, starts, n
                return
            for data, starts, n in converted_chunks(file.fetch(until_eof=True), file.header):
                n_read += n
                yield data, starts, n
    except (OSError, ValueError) as problem:
        raise InputFileError(
            f"{path}: truncated or damaged behind record {n_read} ({problem}); give a complete file"
        ) from None
