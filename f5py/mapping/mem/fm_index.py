r"""The FM-index of a reference: in which suffixes of its text a word is at the beginning.

The text is the stretches of known bases, each followed by a separator that matches nothing; only the forward strand.
Rows are its suffixes in order; the bases before them are the Burrows-Wheeler transform. Those that begin with a word P
are neighbours, and those that begin with bP are found from them (Ferragina and Manzini, FOCS 2000):

.. math:: l' = C(b) + \mathit{Occ}(b, l), \qquad u' = C(b) + \mathit{Occ}(b, u)

with half-open intervals of rows, C(b) the first row that begins with b and Occ(b, y) how often b is among the bases
before the first y suffixes. Suffixes are sorted by their first symbols into buckets, the buckets by 27 symbols more,
and what is still equal by the ranks of what follows, doubling the depth (Larsson and Sadakane, Theor. Comput. Sci.
387:258, 2007).

Memory: half a byte a base for the transform, four for the places, and 8 bytes for each of the 4^k words of the table:
at most 512 MiB, and less than 32 bytes a base. Twice the places and one byte a base more while it is built.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.errors import InputFileError
from f5py.threads.pool import WorkerPool

#: Longest words of the table.
MOST_TABLE_BASES = 13
_MOST_ROWS = 2**31 - 64
#: Symbols that the buckets have in common, for texts up to so many bases, and for longer ones.
_FEW_SYMBOLS, _SMALL_TEXT, _MANY_SYMBOLS = 5, 1 << 24, 7
_N_CHUNKS = 32
#: Of an index whose table is not made yet.
_NO_TABLE: NDArray[np.uint32] = np.empty((0, 2), np.uint32)


class FmIndex(NamedTuple):
    """An FM-index."""

    # shape (n_blocks, 4): of 64 rows each: how often A, C, G and T come before the suffixes of earlier blocks, 32 bits
    # each; low and high bits of the bases before its own suffixes. A suffix that begins a stretch counts as none, but
    # its bits are those of A; bit 31 of the first count says that there is one.
    blocks: NDArray[np.uint64]
    ends: NDArray[np.int64]  # rows of those suffixes, ascending
    first_rows: NDArray[np.int64]  # shape (4,): the first row of the suffixes that begin with each base
    places: NDArray[np.int32]  # shape (n_rows,): where suffixes begin in the reference's bases
    # shape (4 ** k, 2): first row and end of the suffixes that begin with each word of k bases, the first base the
    # highest two bits
    table: NDArray[np.uint32]
    k: int


def build_fm_index(
    bases: NDArray[np.uint8], offsets: NDArray[np.int64], pool: WorkerPool, min_length: int = MOST_TABLE_BASES
) -> FmIndex:
    """Index contigs. Raises `InputFileError` if the reference has too many bases.

    Parameters
    ----------
    bases : uint8, shape (offsets[-1],)
        Codes.
    offsets : int64, shape (n + 1,)
    min_length : int
        Of the words that will be looked for.
    """
    from f5py.mapping.mem._fm_index_numba import (
        BLOCKS_AT_A_TIME,
        fill_blocks,
        sum_blocks,
    )
    from f5py.mapping.mem._suffix_order_numba import count_segments, write_text

    n_segments, n_bases = count_segments(bases, offsets)
    n_rows = int(n_bases) + int(n_segments)
    if offsets[-1] >= _MOST_ROWS or n_rows >= _MOST_ROWS:
        raise InputFileError(
            f"--seeds mem: the reference has {int(offsets[-1])} bases, and at most {_MOST_ROWS} can be indexed; "
            "leave --seeds out, or map to parts of it"
        )
    text = np.empty(n_rows, np.uint8)
    text_starts, reference_starts = np.zeros(max(n_segments, 1), np.int64), np.zeros(max(n_segments, 1), np.int64)
    write_text(bases, offsets, text, text_starts, reference_starts)
    suffixes = sorted_suffixes(text, pool)
    blocks = np.zeros((n_rows // 64 + 1, 4), np.uint64)
    found = _collected(pool, fill_blocks, -(-len(blocks) // BLOCKS_AT_A_TIME), text, text_starts, reference_starts,
                       suffixes, blocks)  # fmt: skip
    ends = np.sort(found)
    totals = np.empty(4, np.int64)
    sum_blocks(blocks, ends, totals)
    first_rows = n_segments + offsets_of(totals)[:4]
    return with_table(FmIndex(blocks, ends, first_rows, suffixes, _NO_TABLE, 0), pool, min_length)


def with_table(index: FmIndex, pool: WorkerPool, min_length: int) -> FmIndex:
    """Make the table of an index.

    Parameters
    ----------
    index : FmIndex
        All but the table.
    min_length : int
        Of the words that will be looked for.
    """
    from f5py.mapping.mem._fm_index_numba import ENTRIES_AT_A_TIME, extend_table

    n_rows = len(index.places)
    k = 1
    while k < min(min_length, MOST_TABLE_BASES) and 4**k < n_rows:
        k += 1
    table = np.empty((4**k, 2), np.uint32)
    table[0] = 0, n_rows
    for length in range(k):
        tasks = np.arange(-(-(4**length) // ENTRIES_AT_A_TIME))
        pool.run(extend_table, tasks, 4**length, index.blocks, index.ends, index.first_rows, table)
    return index._replace(table=table, k=k)


def sorted_suffixes(text: NDArray[np.uint8], pool: WorkerPool) -> NDArray[np.int32]:
    """Sort the suffixes of a text; return where they begin.

    Parameters
    ----------
    text : uint8
        0 for a separator, 1 to 4 for bases; the last one a separator.
    """
    from f5py.mapping.mem._suffix_order_numba import (
        BUCKETS_AT_A_TIME,
        GROUPS_AT_A_TIME,
        KEY_SYMBOLS,
        count_buckets,
        place_in_buckets,
        rank_groups,
        sort_buckets,
        sort_groups,
    )

    n_symbols = _FEW_SYMBOLS if len(text) <= _SMALL_TEXT else _MANY_SYMBOLS
    chunks, chunk_size = np.arange(_N_CHUNKS), -(-len(text) // _N_CHUNKS)
    counts = np.zeros((_N_CHUNKS, 5**n_symbols), np.int64)
    pool.run(count_buckets, chunks, text, chunk_size, n_symbols, counts)
    ends = offsets_of(counts.T.ravel())
    places = np.ascontiguousarray(ends[:-1].reshape(-1, _N_CHUNKS).T)
    starts = ends[::_N_CHUNKS].copy()
    suffixes, ranks = np.empty(len(text), np.int32), np.empty(len(text), np.int32)
    pool.run(place_in_buckets, chunks, text, chunk_size, n_symbols, places, suffixes)
    n_tasks = -(-(5**n_symbols) // BUCKETS_AT_A_TIME)
    groups = _collected(pool, sort_buckets, n_tasks, text, starts, n_symbols, suffixes, ranks)
    depth = n_symbols + KEY_SYMBOLS
    while len(groups):
        tasks = np.arange(-(-len(groups) // (2 * GROUPS_AT_A_TIME)))
        pool.run(sort_groups, tasks, groups, depth, suffixes, ranks)
        groups = _collected(pool, rank_groups, len(tasks), groups, suffixes, ranks)
        depth *= 2
    return suffixes


def _collected(pool: WorkerPool, kernel: Any, n_tasks: int, *arguments: Any) -> NDArray[np.int64]:
    """Join what the threads return, one after the other."""
    results: list[NDArray[np.int64]] = []

    def call(*these: Any) -> None:
        results.append(kernel(*these))

    pool.run(call, np.arange(n_tasks), *arguments)
    return np.concatenate(results) if results else np.empty(0, np.int64)
