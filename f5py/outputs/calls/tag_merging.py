"""Merging of base modification tags, of several motifs and with those already in the records.

Calls of one modification, such as those of CpG and GpC, which are both of C+m, become one entry: a base called for
both motifs has the call of the first. Of a record's tags, entries of the run's modifications are removed, also from
entries with several codes, and all others stay unchanged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import gather_slices, offsets_of
from f5py.io.bam.bam_records import RawRecords


class ModificationTags(NamedTuple):
    """Base modification tags of the reads of a batch."""

    text: NDArray[np.uint8]  # offsets `text_offsets`: value of MM; empty for a read without a called base
    text_offsets: NDArray[np.int64]
    # probability: offsets `probability_offsets`: value of ML: N stands for a probability from N/256 up to (N+1)/256
    probability: NDArray[np.uint8]
    probability_offsets: NDArray[np.int64]
    length: NDArray[np.int64]  # shape (n,): value of MN: length of the sequence that the tags refer to


def no_tags() -> ModificationTags:
    """Make the tags of an empty batch."""
    nothing = np.zeros(1, np.int64)
    return ModificationTags(np.empty(0, np.uint8), nothing, np.empty(0, np.uint8), nothing, np.empty(0, np.int64))


def tags_of_motifs(first: ModificationTags, second: ModificationTags) -> ModificationTags:
    """Join the tags of two motifs; the first one's calls precede where both have one."""
    from f5py.outputs.calls._tag_merging_numba import merge_tags

    text = np.empty(len(first.text) + len(second.text), np.uint8)
    probability = np.empty(len(first.probability) + len(second.probability), np.uint8)
    text_offsets, probability_offsets = np.zeros_like(first.text_offsets), np.zeros_like(first.probability_offsets)
    merge_tags(first, second, text, text_offsets, probability, probability_offsets)
    return _trimmed(text, text_offsets, probability, probability_offsets, first.length)


def tags_with_those_of_records(tags: ModificationTags, records: RawRecords) -> ModificationTags:
    """Add the records' tags of other modifications; reads with damaged records get no tags."""
    from f5py.outputs.calls._tag_merging_numba import merge_into_records

    n_reads = len(tags.length)
    mine = np.flatnonzero(records.read >= 0)
    record = np.zeros(n_reads, np.int64)
    record[records.read[mine]] = mine
    # a record's own tags are no longer than the record
    room = int(np.diff(records.starts)[mine].sum())
    text = np.empty(len(tags.text) + room, np.uint8)
    probability = np.empty(len(tags.probability) + room, np.uint8)
    text_offsets, probability_offsets = np.zeros(n_reads + 1, np.int64), np.zeros(n_reads + 1, np.int64)
    merge_into_records(records.data, records.starts, record, tags, text, text_offsets, probability, probability_offsets)
    return _trimmed(text, text_offsets, probability, probability_offsets, tags.length)


def tags_of_records(
    data: NDArray[np.uint8], starts: NDArray[np.int64], chosen: NDArray[np.int64]
) -> tuple[ModificationTags, NDArray[np.bool_]]:
    """Parse the chosen records' tags; return a mask of damaged ones, which are empty."""
    from f5py.outputs.calls._tag_merging_numba import copy_tags, measure_tags

    n = len(chosen)
    size, ml_size, length = np.empty((3, n), np.int64)
    measure_tags(data, starts, chosen, size, ml_size, length)
    is_damaged = size < 0
    size[is_damaged] = 0
    offsets, ml_offsets = offsets_of(size), offsets_of(ml_size)
    text, probability = np.empty(offsets[-1], np.uint8), np.empty(ml_offsets[-1], np.uint8)
    copy_tags(data, starts, chosen, text, offsets, probability, ml_offsets)
    return ModificationTags(text, offsets, probability, ml_offsets, length), is_damaged


def chosen_tags(tags: ModificationTags, chosen: NDArray[np.int64]) -> ModificationTags:
    """Select the tags of some reads; -1 for a read without."""
    is_there = chosen >= 0
    if not is_there.any():
        nothing = np.zeros(len(chosen) + 1, np.int64)
        return ModificationTags(tags.text[:0], nothing, tags.probability[:0], nothing, nothing[1:])
    at = np.where(is_there, chosen, 0)
    columns: list[NDArray] = []
    for values, offsets in ((tags.text, tags.text_offsets), (tags.probability, tags.probability_offsets)):
        sizes = np.where(is_there, np.diff(offsets)[at], 0)
        columns += gather_slices(values, offsets[:-1][at], sizes)
    length = np.where(is_there, tags.length[at], 0)
    return ModificationTags(columns[0], columns[1], columns[2], columns[3], length)


def _trimmed(
    text: NDArray[np.uint8], text_offsets: NDArray[np.int64], probability: NDArray[np.uint8],
    probability_offsets: NDArray[np.int64], length: NDArray[np.int64],
) -> ModificationTags:  # fmt: skip
    text, probability = text[: text_offsets[-1]], probability[: probability_offsets[-1]]
    return ModificationTags(text, text_offsets, probability, probability_offsets, length)
