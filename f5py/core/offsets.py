"""Offsets of concatenated arrays."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Tuple = TypeVar("_Tuple", bound=Any)


def concatenate_tuples(parts: Sequence[_Tuple]) -> _Tuple:
    """Concatenate named tuples of arrays by field; fields named ``*_offsets`` are offsets."""
    columns = []
    for name, *pieces in zip(parts[0]._fields, *parts, strict=True):
        if name.endswith("_offsets"):
            columns.append(offsets_of(np.concatenate([np.diff(piece) for piece in pieces])))
        else:
            columns.append(np.concatenate(pieces))
    return type(parts[0])(*columns)


def elements_of(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of the elements of pieces, piece by piece."""
    return np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)


def used_elements(offsets: NDArray[np.int64], n_used: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which elements are among the first `n_used` of their piece; bool, shape (offsets[-1],)."""
    runs = np.column_stack([n_used, np.diff(offsets) - n_used])
    return np.repeat(np.tile([True, False], len(runs)), runs.ravel())


def offsets_of(lengths: ArrayLike) -> NDArray[np.int64]:
    """Return the offsets of concatenated pieces; int64, one element longer than `lengths`."""
    pieces = np.asarray(lengths, np.int64)
    offsets = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum(pieces, out=offsets[1:])
    return offsets


def gather_slices(
    text: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.integer]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Concatenate slices of a text; also return their offsets."""
    from f5py.core._name_table_numba import gather

    offsets = offsets_of(sizes)
    out = np.empty(offsets[-1], np.uint8)
    gather(text, starts, sizes, out)
    return out, offsets


def merge_intervals(
    begins: NDArray[np.int64], ends: NDArray[np.int64], gap: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Merge intervals, sorted by `begins`, that overlap or are at most `gap` apart."""
    reach = np.maximum.accumulate(ends)
    is_apart = np.ones(len(begins), np.bool_)
    is_apart[1:] = begins[1:] > reach[:-1] + gap
    return begins[is_apart], reach[np.roll(is_apart, -1)]


def rounds_of_reads(offsets: NDArray[np.int64], most: int, n_reads: int) -> Iterator[tuple[int, int]]:
    """Divide reads in order into rounds of limited size; (i, i) for a read that is too long."""
    first, n = 0, len(offsets) - 1
    while first < n:
        end = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        end = min(end, first + n_reads, n)
        yield first, end
        first = max(end, first + 1)
