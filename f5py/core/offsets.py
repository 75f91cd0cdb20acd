"""Offsets of pieces that lie one after the other in an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Tuple = TypeVar("_Tuple", bound=Any)


def joined_tuples(parts: Sequence[_Tuple]) -> _Tuple:
    """The elements of several named tuples of arrays in one; fields whose names end in ``_offsets`` are offsets."""
    columns = []
    for name, *pieces in zip(parts[0]._fields, *parts, strict=True):
        if name.endswith("_offsets"):
            columns.append(offsets_of(np.concatenate([np.diff(piece) for piece in pieces])))
        else:
            columns.append(np.concatenate(pieces))
    return type(parts[0])(*columns)


def offsets_of(lengths: ArrayLike) -> NDArray[np.int64]:
    """Offsets of concatenated pieces of the given lengths; int64, one element longer than `lengths`."""
    pieces = np.asarray(lengths, np.int64)
    offsets = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum(pieces, out=offsets[1:])
    return offsets
