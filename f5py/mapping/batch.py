"""Batch of reads on the way from bases to alignments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.io.sequences.read_records import ReadRecords


class Anchors(NamedTuple):
    """Matches of minimizers between reads and reference."""

    x: NDArray[np.uint64]  # shape (offsets[-1],): other strand << 63 | contig << 32 | last base on the contig
    y: NDArray[np.int64]  # shape (offsets[-1],): flags | span << 32 | last base on this strand of the read
    offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    # shape (seed_offsets[-1],): span << 32 | last base on the read of the minimizers that were used
    seeds: NDArray[np.int64]
    seed_offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    # shape (n_reads,): bases of the read that frequent minimizers cover, which were not used
    rep_len: NDArray[np.int64]
    # f, p: shape (offsets[-1],): score of the best chain up to an anchor, and its predecessor's index in the read, -1
    # for none
    f: NDArray[np.int32]
    p: NDArray[np.int32]

    def equals(self, other: Anchors) -> bool:
        """Return whether all arrays are equal."""
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self._fields)

    def without_places(self) -> Anchors:
        """Keep the fields needed once there are chains."""
        nothing, no_scores = np.empty(0, np.int64), np.empty(0, np.int32)
        return self._replace(x=np.empty(0, np.uint64), y=nothing, seeds=nothing, f=no_scores, p=no_scores)


class ChainedHits(NamedTuple):
    """Hits from chains, before base alignment."""

    table: NDArray[np.int64]  # shape (offsets[-1], n_fields): columns: `f5py.mapping.hit_table`
    offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    # x, y: shape (anchor_offsets[-1],): their anchors, see `Anchors`
    x: NDArray[np.uint64]
    y: NDArray[np.int64]
    anchor_offsets: NDArray[np.int64]  # shape (n_reads + 1,)


class Hits(NamedTuple):
    """Hits of reads on the reference."""

    table: NDArray[np.int64]  # shape (offsets[-1], n_fields): columns: `f5py.mapping.hit_table`. Best first.
    offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    ops: NDArray[np.int64]  # operations of all CIGAR strings: length << 4 | operation


class ReadColumns(NamedTuple):
    """Columns of the reads of a `MappingBatch`, for kernels."""

    letters: NDArray[np.uint8]  # shape (offsets[-1],)
    qualities: NDArray[np.uint8]  # shape (offsets[-1],)
    offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    names: NDArray[np.uint8]  # shape (name_offsets[-1],)
    name_offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    tags: NDArray[np.uint8]  # shape (tag_offsets[-1],)
    tag_offsets: NDArray[np.int64]  # shape (n_reads + 1,)
    codes: NDArray[np.uint8]  # shape (offsets[-1],)


class ContigColumns(NamedTuple):
    """Columns of the contigs, for kernels."""

    bases: tuple[NDArray, ...]  # `f5py.mapping.index.packed_bases.PackedBases`
    offsets: NDArray[np.int64]  # shape (n_contigs + 1,)
    names: NDArray[np.uint8]  # shape (name_offsets[-1],)
    name_offsets: NDArray[np.int64]  # shape (n_contigs + 1,)


@dataclass
class MappingBatch(ReadRecords):
    """Reads on the way from bases to alignments."""

    share_of_input: float | None = None  # how much of the reads comes up to its end, if that can be told
    # shape (offsets[-1],): 0 to 3, 4 for unknown bases
    codes: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    # anchors, chained, hits: filled by the stages
    anchors: Anchors | None = None
    chained: ChainedHits | None = None
    hits: Hits | None = None

    @classmethod
    def of_codes(cls, pieces: Sequence[NDArray[np.uint8]]) -> MappingBatch:
        """Make a batch of nameless reads from their codes."""
        offsets = offsets_of([len(piece) for piece in pieces])
        nothing, none = np.empty(0, np.uint8), np.zeros(len(pieces) + 1, np.int64)
        codes = np.concatenate(pieces).astype(np.uint8)
        return cls(Names.of([""] * len(pieces)), nothing, offsets, nothing, nothing, none, -1, codes=codes)

    @property
    def columns(self) -> ReadColumns:
        """Return the reads' columns for kernels."""
        return ReadColumns(
            self.letters, self.qualities, self.offsets, self.names.text, self.names.offsets, self.tags,
            self.tag_offsets, self.codes,
        )  # fmt: skip

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Numbers of bases."""
        return np.diff(self.offsets)
