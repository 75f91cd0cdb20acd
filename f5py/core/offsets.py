"""Offsets of pieces that lie one after the other in an array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Tuple = TypeVar("_Tuple", bound=Any)


def joined_tuples(parts: Sequence[_Tuple]) -> _Tuple:
    """Join the arrays of several named tuples, field by field; fields whose names end in ``_offsets`` are offsets."""
    columns = []
    for name, *pieces in zip(parts[0]._fields, *parts, strict=True):
        if name.endswith("_offsets"):
            columns.append(offsets_of(np.concatenate([np.diff(piece) for piece in pieces])))
        else:
            columns.append(np.concatenate(pieces))
    return type(parts[0])(*columns)


def elements_of(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """List the indices of the elements of pieces that begin at `starts`, piece by piece."""
    return np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)


def used_elements(offsets: NDArray[np.int64], n_used: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the elements that are among the first `n_used` of their piece; bool, shape (offsets[-1],)."""
    room = np.diff(offsets)
    return np.arange(room.sum()) - np.repeat(offsets[:-1], room) < np.repeat(n_used, room)


def offsets_of(lengths: ArrayLike) -> NDArray[np.int64]:
    """Offsets of concatenated pieces of the given lengths; int64, one element longer than `lengths`."""
    pieces = np.asarray(lengths, np.int64)
    offsets = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum(pieces, out=offsets[1:])
    return offsets


def gathered(
    text: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.integer]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Copy the pieces of a text, `sizes` bytes from `starts` on, one after the other; also return their offsets."""
    from f5py.core._name_table_numba import gather

    offsets = offsets_of(sizes)
    out = np.empty(offsets[-1], np.uint8)
    gather(text, starts, sizes, out)
    return out, offsets


def rounds_of_reads(offsets: NDArray[np.int64], most: int, n_reads: int) -> Iterator[tuple[int, int]]:
    """Divide reads in their order into rounds that there is room for; (i, i) for a read that is too long.

    Parameters
    ----------
    offsets : int64, shape (n + 1,)
        Of what reads have many of.
    most, n_reads : int
        Elements and reads of a round, at most.
    """
    first, n = 0, len(offsets) - 1
    while first < n:
        end = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        end = min(end, first + n_reads, n)
        yield first, end
        first = max(end, first + 1)
