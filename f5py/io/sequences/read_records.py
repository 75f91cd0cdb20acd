"""Batches of reads or contigs from FASTA, FASTQ and alignment files such as unaligned BAM."""

import os
import select
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.core.offsets import gather_slices, offsets_of
from f5py.errors import InputFileError
from f5py.io.arrow.text_input import display_name, open_bytes
from f5py.io.bam._bam_numba import FLAGS, N_BASES
from f5py.io.bam.bam_records import change_tag_values, encode_chunks, fixed_numbers, record_chunks, record_names
from f5py.io.bam.headers import KINDS_OF_READS, LONGEST_NAME, TagChanges
from f5py.io.bam.opening import SAM_HEADERS, error_reason, is_alignment_file, open_alignments
from f5py.io.bam.record_reads import copy_read_sequences
from f5py.io.bytes.file_state import FileState
from f5py.io.reads.read_index import ReadIndex, reads_in_memory
from f5py.io.sequences import _read_records_numba as compiled
from f5py.io.sequences._comment_tags_numba import tags_of_comments
from f5py.messages import console
from f5py.messages.console import input_warning
from f5py.text.encoding import undecoded

#: BAM records, their offsets, and their number.
_Chunk = tuple[NDArray[np.uint8], NDArray[np.int64], int]
_WHO = "reads"
_PIECE = 1 << 22
_FEWEST_BYTES = 1 << 16
#: Usual minimum bytes of a record.
_SHORTEST_RECORD = 8
#: Maximum reads per batch.
_MOST_READS = 1 << 20
#: Flags of secondary and supplementary records.
_NOT_PRIMARY = 0x100 | 0x800
#: Tags with base positions, invalid after hard clipping.
BASE_TAGS = ("mv", "MM", "ML", "Mm", "Ml")


class Sequences(NamedTuple):
    """Consecutive reads or contigs."""

    names: Names
    bases: NDArray[np.uint8]  # shape (offsets[-1],): letters of the file
    offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    comments: Names  # text after the names


@dataclass
class ReadRecords:
    """Consecutive reads with qualities and tags."""

    names: Names
    letters: NDArray[np.uint8]  # shape (offsets[-1],): bases of the file
    offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    # shape (offsets[-1],) or (0,): letters of FASTQ; the first is 0 for reads without qualities
    qualities: NDArray[np.uint8]
    tags: NDArray[np.uint8]  # shape (tag_offsets[-1],): encoded BAM tags
    tag_offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    number: int = 0  # of the batch

    def __len__(self) -> int:
        return len(self.names)


class _TextChunk(NamedTuple):
    """Consecutive whole records of a text, parsed."""

    text: NDArray[np.uint8]
    rows: NDArray[np.int64]
    letters: NDArray[np.uint8]
    qualities: NDArray[np.uint8]  # empty if no read has any

    def gathered(self, begin: int, end: int) -> Names:
        """Copy the text between two columns of the rows."""
        begins, ends = self.rows[:, [begin, end]].T.copy()
        return Names(*gather_slices(self.text, begins, ends - begins))


def tag_numbers(names: Sequence[str]) -> NDArray[np.uint16]:
    """Encode tag names as integers."""
    return np.array([int.from_bytes(name.encode(), "little") for name in names], np.uint16)


def check_read_files(paths: Sequence[str]) -> None:
    """Raise `InputFileError` for a missing file or a folder."""
    for path in paths:
        if path == "-":
            continue
        if os.path.isdir(path):
            raise InputFileError(f"{path}: is a folder; give files of reads")
        if not os.path.exists(path):
            raise InputFileError(f"{path}: no such file; give the reads as FASTA, FASTQ or BAM")


def header_lines(path: str, reference: str | None) -> list[str]:
    """Return the read groups, programs and comments of an alignment file's header."""
    try:
        with open_alignments(path, reference) as file:
            text = undecoded(file.header.__str__).decode("utf-8", "surrogateescape")
    except (OSError, ValueError) as problem:
        raise _unreadable(path, problem) from None
    return [line for line in text.splitlines() if line[:3] in KINDS_OF_READS]


def read_batches(
    paths: Sequence[str],
    max_bases: int,
    dropped_tags: Sequence[str],
    with_comments: bool = False,
    reference: str | None = None,
    advance: Callable[[int], object] = lambda size: None,
    tag_changes: Mapping[str, TagChanges] | None = None,
    for_sam: bool = False,
) -> Iterator[ReadRecords]:
    """Yield the reads of files in batches of about `max_bases` bases.

    ``-`` is standard input, FASTA or FASTQ. `with_comments` converts comments of FASTQ in the form of SAM tags, and
    `reference` decodes CRAM. `advance` gets numbers of bytes read. `tag_changes` are by path of alignment files.
    `for_sam` rejects names that begin with @, as SAM header lines do. Raises `InputFileError` if a file is missing,
    damaged or truncated.
    """
    dropped = tag_numbers(dropped_tags)
    number = 0
    for path in paths:
        n_before = number
        if is_alignment_file(path):
            changes = (tag_changes or {}).get(path, {})
            batches = _record_batches(_record_chunks(path, reference, changes), max_bases, dropped, advance)
        else:
            batches = _text_batches(path, max_bases, dropped, with_comments, advance)
        for batch in batches:
            if for_sam:
                _check_names(path, batch.names)
            batch.number = number
            number += 1
            yield batch
        if number == n_before:
            _warn_of_no_reads(path)


def sequence_batches(
    path: str, max_bases: int, max_reads: int = _MOST_READS, comments: bool = False, n_bytes: int | None = None
) -> Iterator[Sequences]:
    """Yield the reads of a FASTA, FASTQ or alignment file, perhaps compressed, in batches.

    A batch ends when it has at least `max_bases` bases or `max_reads` reads. Secondary and supplementary records are
    skipped. `n_bytes` of text are parsed at a time; by default enough for a batch. Raises `InputFileError` if the file
    is missing, damaged, truncated or in another format, and `MissingDependencyError` if a package to read it is
    missing.
    """
    check_read_files([path])
    n_reads = 0
    nothing = np.empty(0, np.uint8)
    if is_alignment_file(path):
        chunks = _record_chunks(path, None, {})
        for batch in _record_batches(chunks, max_bases, tag_numbers(()), max_reads=max_reads):
            n_reads += len(batch)
            no_comments = Names(nothing, np.zeros(len(batch) + 1, np.int64))
            yield Sequences(batch.names, batch.letters, batch.offsets, no_comments)
    else:
        for portion in _text_portions(path, max_bases, max_reads, n_bytes):
            n = len(portion.rows)
            n_reads += n
            yield Sequences(
                portion.gathered(compiled.NAME, compiled.NAME_END), portion.letters,
                offsets_of(portion.rows[:, compiled.BASES]),
                portion.gathered(compiled.COMMENT, compiled.COMMENT_END) if comments
                else Names(nothing, np.zeros(n + 1, np.int64)),
            )  # fmt: skip
    if not n_reads:
        _warn_of_no_reads(path)


def load_reads(path: str) -> ReadIndex:
    """Read all basecalled reads of a file into memory; raise as `sequence_batches`."""
    if os.path.exists(path):
        console.note("load_reads", f"{path} has no index; its reads are held in memory")
    batches = list(sequence_batches(path, 1 << 23))
    bases = np.concatenate([np.empty(0, np.uint8), *(batch.bases for batch in batches)])
    lengths = np.concatenate([np.empty(0, np.int64), *(np.diff(batch.offsets) for batch in batches)])
    names = Names.joined([batch.names for batch in batches])
    reads = reads_in_memory(names, bases, offsets_of(lengths), path)
    is_copy = reads.index.rows_of(names) != np.arange(len(names))
    if is_copy.any():
        console.warning(
            "load_reads",
            f"{path}: {is_copy.sum()} reads have the name of a read before them, such as {names[is_copy.argmax()]}; "
            "of each name the first read counts",
        )
    return reads


def _warn_of_no_reads(path: str) -> None:
    input_warning(_WHO, f"{display_name(path)}: holds no reads")  # e.g. of a barcode


def _check_names(path: str, names: Names) -> None:
    """Raise `InputFileError` for a name that is invalid in SAM."""
    begins = names.offsets[:-1][np.diff(names.offsets) > 0]
    if (wrong := begins[names.text[begins] == ord("@")]).size:
        name = names[int(np.searchsorted(names.offsets, wrong[0], "right")) - 1]
        raise InputFileError(
            f"{display_name(path)}: read {name}: its name begins with @, as only header lines of SAM do; rename it"
        )


def _text_batches(
    path: str, max_bases: int, dropped: NDArray[np.uint16], with_comments: bool, advance: Callable[[int], object]
) -> Iterator[ReadRecords]:
    """Read a FASTA or FASTQ file in batches."""
    n_before = n_left_out = n_no_tags = 0
    first_left_out = ""
    for portion in _text_portions(path, max_bases, advance=advance):
        n = len(portion.rows)
        names = portion.gathered(compiled.NAME, compiled.NAME_END)
        too_long = np.diff(names.offsets) > LONGEST_NAME
        if too_long.any():
            i = int(np.argmax(too_long))
            raise InputFileError(
                f"{display_name(path)}: the name of read {n_before + i + 1}, {names[i][:60]}..., has more than "
                f"{LONGEST_NAME} bytes; shorten it"
            )
        tags, tag_offsets = np.empty(0, np.uint8), np.zeros(n + 1, np.int64)
        if with_comments:
            size = int((portion.rows[:, compiled.COMMENT_END] - portion.rows[:, compiled.COMMENT]).sum())
            tags = np.empty(2 * size + 16, np.uint8)
            left_out = np.zeros(4, np.int64)
            given = (portion.text, portion.rows, n, dropped)
            tags = tags[: tags_of_comments(*given, tags, tag_offsets, left_out)].copy()
            n_left_out += int(left_out[0])
            n_no_tags += int(left_out[3])
            if left_out[0] and not first_left_out:
                field = portion.text[left_out[2] : portion.rows[left_out[1], compiled.COMMENT_END]].tobytes()
                shown = field.split(b"\t")[0][:40].decode("utf-8", "replace")
                first_left_out = f"{shown} of read {names[int(left_out[1])]}"
        n_before += n
        offsets = offsets_of(portion.rows[:, compiled.BASES])
        letters, qualities = portion.letters, portion.qualities
        del portion
        yield ReadRecords(names, letters, offsets, qualities, tags, tag_offsets)
    if n_no_tags:
        console.note(
            _WHO, f"{display_name(path)}: left out {n_no_tags:,} fields of comments that are no tags, as NM:i:3 is one"
        )
    if n_left_out:
        input_warning(
            _WHO,
            f"{display_name(path)}: {n_left_out} tags of comments do not fit their types and are left out; the first "
            f"is {first_left_out}",
        )


def _text_portions(
    path: str,
    max_bases: int,
    max_reads: int = _MOST_READS,
    n_bytes: int | None = None,
    advance: Callable[[int], object] = lambda size: None,
) -> Iterator[_TextChunk]:
    """Parse a FASTA or FASTQ file; the text of a yielded chunk is overwritten afterwards."""
    if path == "-":
        select.select([0], [], [])  # interruptible, unlike reading
    shown = display_name(path)
    n_before = 0
    with open_bytes(path, advance, zeros=True) as file:
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
            about = max_bases if text[:1].tobytes() == b">" else 2 * max_bases  # a quality for every base of FASTQ
            enough = max(about if n_bytes is None else n_bytes, _FEWEST_BYTES)
            if wanted < enough and not is_last:  # before the first batch
                wanted = enough
                continue
            portion, used, problem = _parsed(text[:n], is_last, max_bases, max_reads)
            n_reads = len(portion.rows)
            if n_reads:
                yield portion
                n_before += n_reads
            if problem:
                raise _wrong_text(shown, text[:n], used, problem, n_before)
            wanted = enough if n_reads else 2 * n + _PIECE
            del portion
            text[: n - used] = text[used:n]
            n -= used
            if is_last and n == 0:
                return


def _parsed(data: NDArray[np.uint8], is_last: bool, max_bases: int, max_reads: int) -> tuple[_TextChunk, int, int]:
    """Parse the whole reads at the start of a text; return their bytes and the problem after them too."""
    letters, qualities = np.empty(len(data), np.uint8), np.empty(len(data), np.uint8)
    rows = np.empty((min(len(data) // _SHORTEST_RECORD + 2, max_reads), compiled.N_COLUMNS), np.int64)
    n, n_bases, used, problem = compiled.parse_reads(data, len(data), is_last, max_bases, letters, qualities, rows)
    rows = rows[:n]
    n_qualities = n_bases if rows[:, compiled.QUALITIES].any() else 0
    portion = _TextChunk(data, rows, letters[:n_bases].copy(), qualities[:n_qualities].copy())
    return portion, int(used), int(problem)


def _wrong_text(shown: str, text: NDArray[np.uint8], used: int, problem: int, n_before: int) -> InputFileError:
    """Make the error for a damaged file."""
    words = text[used : used + 300].tobytes().lstrip()[1:].split(maxsplit=1)
    name = words[0][:60].decode("utf-8", "replace") if words else ""
    read = f"read {n_before + 1}"
    if problem == compiled.NOT_A_RECORD and n_before == 0 and used == 0:
        return InputFileError(f"{shown}: is neither FASTA nor FASTQ, nor BAM; give the basecalled reads")
    if problem == compiled.NOT_A_RECORD:
        return InputFileError(f"{shown}: damaged behind read {n_before}; give a complete FASTA or FASTQ file")
    if problem == compiled.NO_NAME:
        return InputFileError(f"{shown}: {read} has no name; give a complete FASTA or FASTQ file")
    if problem == compiled.NO_TEXT:
        return InputFileError(
            f"{shown}: {read}, {name}, has a byte that is no text, such as zero; the file is damaged, copy or make it "
            "again"
        )
    if n_before == 0 and name in SAM_HEADERS:
        return InputFileError(f"{shown}: is SAM, which is not read from a pipe; name a file, or give FASTA or FASTQ")
    return InputFileError(
        f"{shown}: truncated; {read}, {name}, has not as many qualities as bases; give a complete file"
    )


def _record_batches(
    chunks: Iterator[_Chunk],
    max_bases: int,
    dropped: NDArray[np.uint16],
    advance: Callable[[int], object] = lambda size: None,
    max_reads: int = _MOST_READS,
) -> Iterator[ReadRecords]:
    """Convert the primary records of an alignment file, in read orientation."""
    for data, starts, n in chunks:
        advance(int(starts[n] - starts[0]))
        chosen = np.flatnonzero(fixed_numbers(data, starts[:n], FLAGS, np.uint16) & _NOT_PRIMARY == 0)
        sizes = fixed_numbers(data, starts[chosen], N_BASES, np.int32).astype(np.int64)
        ends = np.cumsum(sizes)
        first = 0
        while first < len(chosen):
            done = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, done + max_bases, "right")))
            last = min(last, first + max_reads)
            part = chosen[first:last]
            letters, offsets = copy_read_sequences(data, starts, part, sizes[first:last])
            qualities = np.empty(offsets[-1], np.uint8)
            compiled.copy_qualities(data, starts, part, offsets, qualities)
            tags = np.empty(int((starts[part + 1] - starts[part]).sum()), np.uint8)
            tag_offsets = np.empty(len(part) + 1, np.int64)
            size = compiled.copy_tags(data, starts, part, dropped, tags, tag_offsets)
            names = record_names(data, starts, part)
            yield ReadRecords(names, letters, offsets, qualities, tags[:size].copy(), tag_offsets)
            first = last


def _record_chunks(path: str, reference: str | None, changes: TagChanges) -> Iterator[_Chunk]:
    """Read chunks of records of an alignment file, and change values of their tags."""
    n_read = 0
    state = FileState(path, path)
    try:
        file = open_alignments(path, reference)
        try:
            with open(path, "rb") as stream:
                chunks: Iterator[_Chunk]
                if file.is_bam:
                    chunks = record_chunks(stream, file.nreferences)
                else:
                    chunks = encode_chunks(file.fetch(until_eof=True), file.header)
                for data, starts, n in chunks:
                    n_read += n
                    yield *change_tag_values(data, starts, n, changes), n
        finally:
            with suppress(OSError):  # if damaged
                file.close()
    except (OSError, ValueError) as problem:
        state.check()
        raise _unreadable(path, problem, n_read) from None
    state.check()


def _unreadable(path: str, problem: Exception, n_read: int = 0) -> InputFileError:
    """Make the error for an unreadable alignment file, perhaps after `n_read` records."""
    reason = error_reason(problem)
    if "run: " in reason:
        return InputFileError(f"{path}: cannot be read: {reason}")
    return InputFileError(f"{path}: truncated or damaged behind record {n_read} ({reason}); give a complete file")
