"""Vectorized formatting of columns as tab-separated text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: Characters of a column, shape (n, width), and which of them are printed.
Cells = tuple[NDArray[np.uint8], NDArray[np.bool_]]


def integer_cells(values: NDArray[np.integer], min_digits: int = 1) -> Cells:
    """Decimal digits of non-negative integers, with leading zeros up to `min_digits`."""
    width = max(len(str(int(values.max(initial=0)))), min_digits)
    powers = 10 ** np.arange(width - 1, -1, -1, dtype=np.int64)
    quotients = values.astype(np.int64)[:, None] // powers
    keep = quotients > 0
    keep[:, width - min_digits :] = True
    return (quotients % 10 + ord("0")).astype(np.uint8), keep


def decimal_cells(values: NDArray[np.floating], decimals: int) -> Cells:
    """Non-negative finite numbers with a fixed number of decimals."""
    scaled = np.rint(values * 10.0**decimals).astype(np.int64)
    digits, keep = integer_cells(scaled, decimals + 1)
    point = digits.shape[1] - decimals
    return np.insert(digits, point, ord("."), axis=1), np.insert(keep, point, True, axis=1)


def text_cells(words: Sequence[str], which: NDArray[np.integer]) -> Cells:
    """Put the word ``words[which[i]]`` in row i."""
    encoded = [word.encode() for word in words]
    width = max(map(len, encoded))
    table = np.frombuffer(b"".join(word.ljust(width) for word in encoded), dtype=np.uint8).reshape(-1, width)
    lengths = np.array([len(word) for word in encoded])
    return table[which], np.arange(width) < lengths[which][:, None]


def rows(columns: Sequence[Cells]) -> bytes:
    """Join columns of the same number of rows by tabs; every row ends with a newline."""
    n = len(columns[0][0])
    parts: list[Cells] = []
    for i, column in enumerate(columns):
        separator = "\n" if i == len(columns) - 1 else "\t"
        parts += [column, (np.full((n, 1), ord(separator), dtype=np.uint8), np.ones((n, 1), dtype=bool))]
    characters = np.concatenate([part[0] for part in parts], axis=1)
    return characters[np.concatenate([part[1] for part in parts], axis=1)].tobytes()
