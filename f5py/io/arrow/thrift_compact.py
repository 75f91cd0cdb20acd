"""Thrift's compact protocol, in which Parquet keeps what it says of a file: structures as Python objects and back.

Nothing here knows what a structure means: a reader of it picks fields by their numbers, and all others are written
again as they were. Source: apache/thrift, doc/specs/thrift-compact-protocol.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

#: Types of values.
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_INTEGERS = (I16, I32, I64)
_LONG_LIST = 15


class Field(NamedTuple):
    """A value with its type: a number of the protocol."""

    kind: int
    value: Any


class Elements(NamedTuple):
    """The value of a list or set: the type of its elements, and these."""

    kind: int
    values: list[Any]


#: Fields by number, in the order of the file.
Struct = dict[int, Field]


def decode(data: bytes) -> Struct:
    """Decode the structure that `data` begins with.

    Raises `ValueError` for a type that Parquet has no use for: a map.
    """
    return _Decoder(data).struct()


def encode(struct: Struct) -> bytes:
    """Encode a structure as bytes."""
    out = bytearray()
    _put_struct(out, struct)
    return bytes(out)


def integers(values: Iterable[int], first: int = 1) -> bytes:
    """Encode fields of I32, whose numbers follow each other from `first` on, and no end: a structure as it begins.

    Parameters
    ----------
    first : int
        Up to 15.
    """
    out = bytearray()
    step = first
    for value in values:
        out.append(step << 4 | I32)
        _put_integer(out, value)
        step = 1
    return bytes(out)


class _Decoder:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while (head := self._byte()) != 0:
            step, kind = head >> 4, head & 15
            number = number + step if step else self._integer()
            fields[number] = Field(kind, self._value(kind))
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE):  # a field's type is its value
            return kind == TRUE
        if kind in _INTEGERS:
            return self._integer()
        if kind == STRUCT:
            return self.struct()
        if kind in (LIST, SET):
            return self._elements()
        if kind == BYTE:
            return self._bytes(1)
        if kind == DOUBLE:
            return self._bytes(8)
        if kind == BINARY:
            return self._bytes(self._varint())
        raise ValueError(f"type {kind} of Thrift's compact protocol")

    def _elements(self) -> Elements:
        head = self._byte()
        n, kind = head >> 4, head & 15
        if n == _LONG_LIST:
            n = self._varint()
        if kind in (TRUE, FALSE):  # of elements each is a byte
            kind = BYTE
        return Elements(kind, [self._value(kind) for _ in range(n)])

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, n: int) -> bytes:
        self._at += n
        return self._data[self._at - n : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def _integer(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)


def _put_struct(out: bytearray, struct: Struct) -> None:
    last = 0
    for number, field in sorted(struct.items()):
        kind = field.kind
        if kind in (TRUE, FALSE):
            kind = TRUE if field.value else FALSE
        if 0 < number - last <= 15:
            out.append(number - last << 4 | kind)
        else:
            out.append(kind)
            _put_integer(out, number)
        _put(out, kind, field.value)
        last = number
    out.append(0)


def _put(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _put_integer(out, value)
    elif kind == STRUCT:
        if isinstance(value, bytes):  # encoded before
            out += value
        else:
            _put_struct(out, value)
    elif kind in (LIST, SET):
        n = len(value.values)
        out.append(min(n, _LONG_LIST) << 4 | value.kind)
        if n >= _LONG_LIST:
            put_varint(out, n)
        for element in value.values:
            _put(out, value.kind, element)
    elif kind == BINARY:
        put_varint(out, len(value))
        out += value
    elif kind in (BYTE, DOUBLE):
        out += value


def put_varint(out: bytearray, value: int) -> None:
    """Append a number without sign in groups of seven bits, the lowest first."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _put_integer(out: bytearray, value: int) -> None:
    put_varint(out, value << 1 ^ value >> 63)
