"""Read names as bytes with offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of


def numbered(texts: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct texts in order of occurrence, and the index of each text among them."""
    distinct = list(dict.fromkeys(texts))
    number = {text: at for at, text in enumerate(distinct)}
    return distinct, np.fromiter(map(number.__getitem__, texts), np.int64, len(texts))


class Names(Sequence[str]):
    """A sequence of n names, decoded on access; bytes that are not UTF-8 become surrogates.

    Name i is ``text[offsets[i]:offsets[i + 1]]``, uint8 and int64.
    """

    def __init__(self, text: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.text = text
        self.offsets = offsets

    @classmethod
    def of(cls, names: Iterable[str]) -> Names:
        if isinstance(names, Names):
            return names
        names = list(names)
        joined = np.frombuffer("\0".join(names).encode("utf-8", "surrogateescape"), np.uint8)
        between = np.flatnonzero(joined == 0)
        if names and len(between) == len(names) - 1:  # without NUL: nothing runs for each of a million contigs
            ends = np.append(between, len(joined)) - np.arange(len(names))
            return cls(joined[joined != 0], np.concatenate([np.zeros(1, np.int64), ends]))
        pieces = [name.encode("utf-8", "surrogateescape") for name in names]
        return cls(np.frombuffer(bytearray().join(pieces), np.uint8), offsets_of([len(piece) for piece in pieces]))

    @classmethod
    def joined(cls, parts: Sequence[Names]) -> Names:
        text = np.concatenate([np.empty(0, np.uint8), *(part.text for part in parts)])
        sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(part.offsets) for part in parts)])
        return cls(text, offsets_of(sizes))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.encoded(index).decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str]:
        text, offsets = self.text.tobytes(), self.offsets.tolist()
        for i in range(len(offsets) - 1):
            yield text[offsets[i] : offsets[i + 1]].decode("utf-8", "surrogateescape")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Names.of({list(self)!r})"

    def encoded(self, index: int) -> bytes:
        """Return the bytes of a name."""
        return self.text[self.offsets[index] : self.offsets[index + 1]].tobytes()


class NameTable:
    """Hash table of n names in a text; of equal names the first row counts.

    Name i is ``text[begin[i]:end[i]]``, uint8 and int64. `name_table` has the last arguments of
    `f5py.core._name_table_numba.find_name`: text, begins, ends and table.
    """

    def __init__(self, text: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        from f5py.core._name_table_numba import fill_table

        self.name_table = text, begin, end, np.full(1 << (2 * len(begin) + 1).bit_length(), -1, np.int64)
        self.n_distinct = fill_table(*self.name_table)

    @classmethod
    def of(cls, names: Iterable[str]) -> NameTable:
        packed = Names.of(names)
        return cls(packed.text, packed.offsets[:-1].copy(), packed.offsets[1:].copy())

    def __len__(self) -> int:
        return len(self.name_table[1])

    def encoded(self, row: int) -> bytes:
        text, begin, end, _ = self.name_table
        return text[begin[row] : end[row]].tobytes()

    def name(self, row: int) -> str:
        return self.encoded(row).decode("utf-8", "surrogateescape")

    def rows_of(self, names: Names) -> NDArray[np.int64]:
        """Return the row of each name, -1 for a missing one."""
        from f5py.core._name_table_numba import find_names

        rows = np.empty(len(names), np.int64)
        find_names(names.text, names.offsets, *self.name_table, rows)
        return rows
