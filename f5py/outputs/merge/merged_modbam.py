"""Merge modBAM files of several windows: each record once, with the calls of all windows."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import concatenate_tuples
from f5py.errors import InputFileError
from f5py.io.bam._bam_numba import keys_of
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_output import RecordOutput
from f5py.io.bam.bam_records import RawRecords, change_tag_values, chosen_records
from f5py.io.bam.headers import KINDS_OF_READS, HeaderLines, TagChanges, header_with_program, parse_header
from f5py.io.bam.record_reads import all_chunks
from f5py.messages import console
from f5py.outputs.calls.modbam import tagged_records
from f5py.outputs.calls.tag_merging import ModificationTags, chosen_tags, no_tags, tags_of_motifs, tags_of_records
from f5py.text.encoding import undecoded

if TYPE_CHECKING:
    import pysam


def merge_modbams(paths: Sequence[str], out: BinaryIO, path: str, n_threads: int, command_line: str) -> int:
    """Write the records of all files in order; return the number of records in several files.

    A record in several files, with different modification tags, is written at its first place with the calls of all: of
    equal bases those of the first file. Files of consecutive windows thus give the output of one run over all of them.
    Memory grows by 24 bytes a record, and with the tags of shared records. `out` must have a file descriptor.
    """
    with ExitStack() as opened:
        files = [opened.enter_context(closing(AlignmentFile(path, None, min_mapq=0, secondary=True))) for path in paths]
        for other, file in zip(paths, files, strict=True):
            if file.contigs != files[0].contigs or file.contig_lengths != files[0].contig_lengths:
                raise InputFileError(f"{other}: has other contigs than {paths[0]}; merge files of one reference")
        keys = [_keys(file) for file in files]
        shared = _shared(keys)
        later = _tags_of_later(paths, files, keys, shared)
        header, changes = _merged_header(files)
        header = header_with_program(header, command_line)
        with RecordOutput(out, path, header, n_threads) as joined:
            is_written = np.zeros(len(shared) + 1, np.bool_)  # the last one is of records in one file
            for source, file, of_file, of_tags in zip(paths, files, keys, changes, strict=True):
                n_damaged = _write(_changed_chunks(file, of_tags), of_file, shared, is_written, later, joined)
                _warn_of_damaged(source, n_damaged)
    return len(shared)


def _merged_header(files: Sequence[AlignmentFile]) -> tuple[pysam.AlignmentHeader, list[TagChanges]]:
    """Append the other lines of all headers to the first; also return each file's tag changes."""
    texts = [undecoded(file.header.__str__).decode("utf-8", "surrogateescape").splitlines() for file in files]
    merged = HeaderLines()
    changes = [merged.add(line for line in text if line[:3] in KINDS_OF_READS) for text in texts]
    lines = [line for line in texts[0] if line[:3] not in KINDS_OF_READS] + merged.lines
    return parse_header("\n".join(lines) + "\n"), changes


def _changed_chunks(
    file: AlignmentFile, changes: TagChanges
) -> Generator[tuple[NDArray[np.uint8], NDArray[np.int64], int], None, None]:
    """Yield all records of a file with changed tag values."""
    with closing(all_chunks(file)) as chunks:
        for data, starts, n in chunks:
            yield *change_tag_values(data, starts, n, changes), n


def _keys(file: AlignmentFile) -> NDArray[np.uint64]:
    """Hash each record without its modification tags; uint64."""
    found = [np.empty(0, np.uint64)]
    with closing(file.chunks()) as chunks:
        for data, starts, n in chunks:
            keys = np.empty(n, np.uint64)
            keys_of(data, starts, n, keys)
            found.append(keys)
    keys = np.concatenate(found)
    # a record that stands in one file twice does so after merging
    order = np.argsort(keys, kind="stable")
    again = np.zeros(len(keys), np.uint64)
    is_same = keys[order][1:] == keys[order][:-1]
    runs = np.arange(1, len(keys)) - np.maximum.accumulate(np.where(is_same, 0, np.arange(1, len(keys))))
    again[order[1:]] = np.where(is_same, runs, 0)
    return keys + again * np.uint64(0x9E3779B97F4A7C15)


def _shared(keys: list[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Return the sorted keys that several files have."""
    every = np.sort(np.concatenate(keys))
    return np.unique(every[1:][every[1:] == every[:-1]])


def _place(keys: NDArray[np.uint64], shared: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Look up each key among the shared ones; -1 for none."""
    if not len(shared):
        return np.full(len(keys), -1)
    at = np.minimum(np.searchsorted(shared, keys), len(shared) - 1)
    return np.where(shared[at] == keys, at, -1)


def _tags_of_later(
    paths: Sequence[str], files: list[AlignmentFile], keys: list[NDArray[np.uint64]], shared: NDArray[np.uint64]
) -> ModificationTags:
    """Collect each shared record's tags from all files but its first."""
    tags = chosen_tags(no_tags(), np.full(len(shared), -1))
    is_seen = np.zeros(len(shared), np.bool_)
    for path, file, of_file in zip(paths, files, keys, strict=True):
        place = _place(of_file, shared)
        known = np.flatnonzero(place >= 0)
        later = known[is_seen[place[known]]]
        is_seen[place[known]] = True
        if len(later):
            row = np.full(len(shared), -1)
            row[place[later]] = np.arange(len(later))
            of_later, n_damaged = _tags_at(file, later)
            _warn_of_damaged(path, n_damaged)
            tags = tags_of_motifs(tags, chosen_tags(of_later, row))
    return tags


def _warn_of_damaged(path: str, n_damaged: int) -> None:
    if n_damaged:
        console.warning(
            "merge",
            f"{path}: {n_damaged} records have base modification tags that are damaged or of another sequence (MM, ML "
            "and MN do not fit each other); their calls are not merged with those of other files",
        )


def _tags_at(file: AlignmentFile, wanted: NDArray[np.int64]) -> tuple[ModificationTags, int]:
    """Parse the tags of the records with these ascending numbers; also count damaged ones."""
    found = []
    n_before = n_damaged = 0
    with closing(all_chunks(file)) as chunks:
        for data, starts, n in chunks:
            first, end = np.searchsorted(wanted, (n_before, n_before + n))
            tags, is_damaged = tags_of_records(data, starts, wanted[first:end] - n_before)
            found.append(tags)
            n_before += n
            n_damaged += int(is_damaged.sum())
    return concatenate_tuples(found), n_damaged


def _write(
    chunks: Generator[tuple[NDArray[np.uint8], NDArray[np.int64], int], None, None],
    keys: NDArray[np.uint64],
    shared: NDArray[np.uint64],
    is_written: NDArray[np.bool_],
    later: ModificationTags,
    out: RecordOutput,
) -> int:
    """Write the records not in earlier files; return the number of shared ones with damaged tags."""
    n_before = n_damaged = 0
    with closing(chunks):
        for data, starts, n in chunks:
            place = _place(keys[n_before : n_before + n], shared)
            n_before += n
            is_new = ~is_written[place]
            here = np.flatnonzero((place >= 0) & is_new)
            is_written[place[here]] = True
            tags, is_damaged = tags_of_records(data, starts, here)
            n_damaged += int(is_damaged.sum())
            tags = tags_of_motifs(tags, chosen_tags(later, place[here]))
            read = np.full(n, -1)
            read[here] = np.arange(len(here))
            kept = np.flatnonzero(is_new)
            records = RawRecords(data, starts[: n + 1], read)
            if len(kept) < n:
                records = RawRecords(*chosen_records(data, starts, kept), read[kept])
            out.write(tagged_records(records, tags, replace=True)[0])
    return n_damaged
