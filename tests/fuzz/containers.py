"""Files that are containers of compressed records, taken apart and put together again."""

from __future__ import annotations

import gzip
import struct
import zlib
from dataclasses import dataclass, replace

from f5py.io.bytes.bgzf_blocks import END_BLOCK, bgzf_blocks


def bgzf(text: bytes) -> bytes:
    return b"".join([*bgzf_blocks(text), END_BLOCK])


@dataclass(frozen=True)
class Bam:
    """The text of a BAM file: what is before the records, and these, each with its size."""

    header: bytes
    records: tuple[bytes, ...]

    @classmethod
    def of(cls, data: bytes) -> Bam:
        text = gzip.decompress(data)
        at = 8 + int.from_bytes(text[4:8], "little")
        n_contigs = int.from_bytes(text[at : at + 4], "little")
        at += 4
        for _ in range(n_contigs):
            at += 8 + int.from_bytes(text[at : at + 4], "little")
        header, records = text[:at], []
        while at < len(text):
            size = 4 + int.from_bytes(text[at : at + 4], "little")
            records.append(text[at : at + size])
            at += size
        return cls(header, tuple(records))

    def name(self, i: int) -> str:
        record = self.records[i]
        return record[36 : 36 + record[12] - 1].decode()

    def bytes(self) -> bytes:
        return bgzf(self.header + b"".join(self.records))

    def with_record(self, i: int, record: bytes, framed: bool) -> Bam:
        """With another record; its size is made right, or left as it is in it."""
        if framed:
            record = struct.pack("<I", len(record) - 4) + record[4:]
        return replace(self, records=(*self.records[:i], record, *self.records[i + 1 :]))


@dataclass(frozen=True)
class Blow5:
    """A BLOW5 file: what is before the records, and these, expanded."""

    start: bytes
    header: bytes
    records: tuple[bytes, ...]

    @classmethod
    def of(cls, data: bytes) -> Blow5:
        begin = 68 + int.from_bytes(data[64:68], "little")
        at, records = begin, []
        while data[at:] != b"5WOLB":
            size = int.from_bytes(data[at : at + 8], "little")
            record = data[at + 8 : at + 8 + size]
            records.append(_expanded(data[9], record))
            at += 8 + size
        return cls(data[:64], data[68:begin], tuple(records))

    def name(self, i: int) -> str:
        record = self.records[i]
        return record[2 : 2 + int.from_bytes(record[:2], "little")].decode()

    def bytes(self) -> bytes:
        out = self.start + struct.pack("<I", len(self.header)) + self.header
        for record in self.records:
            packed = _packed(self.start[9], record)
            out += struct.pack("<Q", len(packed)) + packed
        return out + b"5WOLB"

    def with_record(self, i: int, record: bytes) -> Blow5:
        return replace(self, records=(*self.records[:i], record, *self.records[i + 1 :]))


def _expanded(method: int, record: bytes) -> bytes:
    if method == 1:
        return zlib.decompress(record)
    if method == 2:
        import pyarrow as pa

        return pa.CompressedInputStream(pa.BufferReader(record), "zstd").read()
    return record


def _packed(method: int, record: bytes) -> bytes:
    if method == 1:
        return zlib.compress(record)
    if method == 2:
        import pyarrow as pa

        return bytes(pa.Codec("zstd").compress(record))
    return record
