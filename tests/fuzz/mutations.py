"""Changes of bytes and text, from a random generator."""

from __future__ import annotations

import random
from collections.abc import Callable

#: Numbers at which sizes and signs go wrong.
_EDGES = (
    0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**62, 2**63 - 1, 2**63,
    2**64 - 1,
)  # fmt: skip
#: What is put into the place of a field of text.
_FIELDS = (
    b"", b".", b"-", b"*", b"0", b"-1", b"1", b"1e999", b"nan", b"-inf", b"0x10", b"1_000", b" 7", b"+5", b"1.5", b"NA",
    b"2147483647", b"2147483648", b"4294967296", b"9223372036854775807", b"18446744073709551616", b"9" * 400,
    b"\x00", b"a\x00b", b"\xff\xfe", b"\x1b[31m", b"\xc3\xa9", b"\r", b"%s%n", b"../../etc/passwd", b"/dev/zero",
    b"A" * 70000, b"chr1", b"simulated", b"NNNNNN", b"ACGTN", b"+", b"?", b"[]",
    b"'\"", b"\xe2\x80\xae", b"1,2,3", b"1:2",
)  # fmt: skip

Change = Callable[[random.Random, bytes], bytes]


def flip_bit(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def set_byte(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.choice((0, 1, 9, 10, 13, 32, 0x7F, 0x80, 0xFF))]) + data[at + 1 :]


def set_number(rng: random.Random, data: bytes) -> bytes:
    """Set a number of 2, 4 or 8 bytes to one of the edges, or to a neighbour."""
    size = rng.choice((2, 4, 8))
    at = rng.randrange(max(1, len(data) - size))
    value = rng.choice(_EDGES)
    if rng.random() < 0.3:
        value = int.from_bytes(data[at : at + size], "little") + rng.choice((-1, 1, 8, -8, 255))
    return data[:at] + (value % (1 << 8 * size)).to_bytes(size, "little") + data[at + size :]


def overwrite(rng: random.Random, data: bytes) -> bytes:
    at, size = _stretch(rng, data, 64)
    return data[:at] + rng.randbytes(size) + data[at + size :]


def zero(rng: random.Random, data: bytes) -> bytes:
    at, size = _stretch(rng, data, rng.choice((8, 64, 512, 4096)))
    return data[:at] + bytes(size) + data[at + size :]


def delete(rng: random.Random, data: bytes) -> bytes:
    at, size = _stretch(rng, data, rng.choice((1, 8, 64, 4096)))
    return data[:at] + data[at + size :]


def insert(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    begin, size = _stretch(rng, data, rng.choice((1, 8, 64, 512)))
    piece = data[begin : begin + size] if rng.random() < 0.5 else rng.randbytes(size)
    return data[:at] + piece + data[at:]


def truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def append(rng: random.Random, data: bytes) -> bytes:
    return data + rng.choice((bytes(100), rng.randbytes(50), data[-40:], data))


def nothing_left(rng: random.Random, data: bytes) -> bytes:
    return rng.choice((b"", bytes(len(data)), b"\n", rng.randbytes(300)))


BYTES: tuple[Change, ...] = (
    flip_bit, flip_bit, flip_bit, set_byte, set_byte, set_number, set_number, set_number, overwrite, zero, zero, delete,
    insert, truncate, append, nothing_left,
)  # fmt: skip
#: Those that leave all other bytes in their places.
IN_PLACE: tuple[Change, ...] = (flip_bit, set_byte, set_number, overwrite, zero)


def change_field(rng: random.Random, data: bytes) -> bytes:
    """Change a field of a line to something else."""
    lines = data.split(b"\n")
    i = rng.randrange(len(lines))
    separator = rng.choice((b"\t", b"\t", b" ", b",", b":"))
    fields = lines[i].split(separator)
    fields[rng.randrange(len(fields))] = rng.choice(_FIELDS)
    lines[i] = separator.join(fields)
    return b"\n".join(lines)


def move_field(rng: random.Random, data: bytes) -> bytes:
    """Remove, double or move a field in its line."""
    lines = data.split(b"\n")
    i = rng.randrange(len(lines))
    fields = lines[i].split(b"\t")
    field = fields.pop(rng.randrange(len(fields)))
    for _ in range(rng.randrange(3)):
        fields.insert(rng.randrange(len(fields) + 1), field)
    lines[i] = b"\t".join(fields)
    return b"\n".join(lines)


def move_line(rng: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    for _ in range(rng.randrange(3)):
        lines.insert(rng.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


def other_line_ends(rng: random.Random, data: bytes) -> bytes:
    return rng.choice(
        (data.replace(b"\n", b"\r\n"), data.replace(b"\n", b"\r"), data.rstrip(b"\n"), data.replace(b"\n", b"\n\n"))
    )


def other_encoding(rng: random.Random, data: bytes) -> bytes:
    """Change the encoding: a byte order mark, UTF-16, or gzip."""
    import gzip

    text = data.decode("latin-1")
    return rng.choice((b"\xef\xbb\xbf" + data, text.encode("utf-16"), gzip.compress(data), gzip.compress(data)[:-9]))


TEXT: tuple[Change, ...] = (
    change_field, change_field, change_field, change_field, move_field, move_line, other_line_ends, other_encoding,
    *BYTES,
)  # fmt: skip


def mutated(rng: random.Random, data: bytes, changes: tuple[Change, ...]) -> bytes:
    """One change, sometimes a few."""
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        if data:
            data = rng.choice(changes)(rng, data)
    return data


def _stretch(rng: random.Random, data: bytes, longest: int) -> tuple[int, int]:
    at = rng.randrange(max(1, len(data)))
    return at, min(rng.randint(1, longest), len(data) - at)
