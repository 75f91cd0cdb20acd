"""Made-up reads, written as SLOW5 and BLOW5 by the format's description and not by its library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

from .made_signals import MadeRead

_TYPES = "#char*\tuint32_t\tdouble\tdouble\tdouble\tdouble\tuint64_t\tint16_t*\n"
_COLUMNS = "#read_id\tread_group\tdigitisation\toffset\trange\tsampling_rate\tlen_raw_signal\traw_signal\n"
#: One read group, of DNA.
GROUPS = [{"experiment_type": "genomic_dna", "sequencing_kit": "sqk-lsk109", "sample_frequency": "4000"}]


def _attributes(groups: Sequence[dict[str, str]]) -> str:
    keys = sorted({key for group in groups for key in group})
    return "".join(f"@{key}\t" + "\t".join(group.get(key, ".") for group in groups) + "\n" for key in keys)


def _calibration(read: MadeRead) -> list[float]:
    return [read.digitisation, read.offset, read.range, read.sampling_rate]


def write_slow5(
    path: Path, reads: Sequence[MadeRead], groups: Sequence[dict[str, str]] = GROUPS, of_group: int = 0
) -> str:
    """Write a text file and return its path."""
    lines = [f"#slow5_version\t0.2.0\n#num_read_groups\t{len(groups)}\n", _attributes(groups), _TYPES, _COLUMNS]
    for read in reads:
        fields = [read.name, of_group, *map(repr, _calibration(read)), read.samples.size]
        lines.append("\t".join(map(str, [*fields, ",".join(map(str, read.samples))])) + "\n")
    path.write_text("".join(lines))
    return str(path)


def blow5_record(read: MadeRead, zipped: bool = True, group: int = 0) -> bytes:
    name = read.name.encode()
    fixed = struct.pack("<I4dQ", group, *_calibration(read), read.samples.size)
    record = struct.pack("<H", len(name)) + name + fixed + read.samples.astype("<i2").tobytes()
    if zipped:
        record = zlib.compress(record)
    return struct.pack("<Q", len(record)) + record


def write_blow5(
    path: Path,
    reads: Sequence[MadeRead],
    groups: Sequence[dict[str, str]] = GROUPS,
    zipped: bool = True,
    of_group: int = 0,
) -> str:
    """Write a binary file, its records compressed with zlib or not, and return its path."""
    header = (_attributes(groups) + _TYPES + _COLUMNS).encode()
    start = b"BLOW5\x01" + bytes([0, 2, 0, int(zipped)]) + struct.pack("<IB", len(groups), 0)
    records = [blow5_record(read, zipped, of_group) for read in reads]
    length = struct.pack("<I", len(header))
    path.write_bytes(start.ljust(64, b"\0") + length + header + b"".join(records) + b"5WOLB")
    return str(path)
