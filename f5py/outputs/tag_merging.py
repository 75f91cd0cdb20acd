"""Base modification tags of several motifs in one, and of a run together with those that records have.

Calls of one modification, such as those of CpG and GpC, which are both of C+m, become one entry: a base that both have
called keeps the call of the motif that was named first. Of the tags that a record has, entries of the run's own
modifications go, also out of entries with several codes, and all others stay as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.io.bam_records import RawRecords


class ModificationTags(NamedTuple):
    """Base modification tags of the reads of a batch.

    Attributes
    ----------
    text : uint8, offsets `text_offsets`
        Value of MM; empty for a read without a called base.
    probability : uint8, offsets `probability_offsets`
        Value of ML: N stands for a probability from N/256 up to (N+1)/256.
    length : int64, shape (n,)
        Value of MN: length of the sequence that the tags refer to.
    """

    text: NDArray[np.uint8]
    text_offsets: NDArray[np.int64]
    probability: NDArray[np.uint8]
    probability_offsets: NDArray[np.int64]
    length: NDArray[np.int64]


def no_tags() -> ModificationTags:
    """The tags of a batch without reads."""
    nothing = np.zeros(1, np.int64)
    return ModificationTags(np.empty(0, np.uint8), nothing, np.empty(0, np.uint8), nothing, np.empty(0, np.int64))


def tags_of_motifs(first: ModificationTags, second: ModificationTags) -> ModificationTags:
    """Join the tags of two motifs; the first one's calls count where both have one."""
    from f5py.outputs._tag_merging_numba import merge_tags

    text = np.empty(len(first.text) + len(second.text), np.uint8)
    probability = np.empty(len(first.probability) + len(second.probability), np.uint8)
    text_offsets, probability_offsets = np.zeros_like(first.text_offsets), np.zeros_like(first.probability_offsets)
    merge_tags(first, second, text, text_offsets, probability, probability_offsets)
    return _trimmed(text, text_offsets, probability, probability_offsets, first.length)


def tags_with_those_of_records(tags: ModificationTags, records: RawRecords) -> ModificationTags:
    """Add what the records have of other modifications; reads whose records cannot be read so get no tags."""
    from f5py.outputs._tag_merging_numba import merge_into_records

    n_reads = len(tags.length)
    mine = np.flatnonzero(records.read >= 0)
    record = np.zeros(n_reads, np.int64)
    record[records.read[mine]] = mine
    # a record's own tags are no longer than the record
    room = int(np.diff(records.starts)[mine].sum())
    text = np.empty(len(tags.text) + room, np.uint8)
    probability = np.empty(len(tags.probability) + room, np.uint8)
    text_offsets, probability_offsets = np.zeros(n_reads + 1, np.int64), np.zeros(n_reads + 1, np.int64)
    merge_into_records(
        records.data, records.starts, record, tags, text, text_offsets, probability, probability_offsets
    )
    return _trimmed(text, text_offsets, probability, probability_offsets, tags.length)


def _trimmed(
    text: NDArray[np.uint8], text_offsets: NDArray[np.int64], probability: NDArray[np.uint8],
    probability_offsets: NDArray[np.int64], length: NDArray[np.int64],
) -> ModificationTags:  # fmt: skip
    text, probability = text[: text_offsets[-1]], probability[: probability_offsets[-1]]
    return ModificationTags(text, text_offsets, probability, probability_offsets, length)
