"""Writer of BLOW5 files."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.io.files.complete_file import complete_output
from f5py.io.files.signal_format import BINARY_HEADER_AT, BLOW5_MAGIC
from f5py.io.signals.source import Calibration

_VERSION = bytes([0, 2, 0])
_ZLIB, _SVB_ZD = 1, 1
_COLUMNS = (
    "#char*\tuint32_t\tdouble\tdouble\tdouble\tdouble\tuint64_t\tint16_t*\n"
    "#read_id\tread_group\tdigitisation\toffset\trange\tsampling_rate\tlen_raw_signal\traw_signal\n"
)
_END = b"5WOLB"


@contextmanager
def blow5_writer(path: str | Path, *, experiment_type: str = "genomic_dna", kit: str = "") -> Iterator[Blow5Writer]:
    """Write a new BLOW5 file (zlib, svb-zd) with one read group.

    The file gets its name when it is complete; its bytes are deterministic. Raises `OutputFileError` if it cannot be
    written.
    """
    attributes = {"experiment_type": experiment_type, "run_id": "f5py-run", "sequencing_kit": kit or "."}
    header = ("".join(f"@{name}\t{value}\n" for name, value in attributes.items()) + _COLUMNS).encode()
    start = BLOW5_MAGIC + _VERSION + bytes([_ZLIB]) + struct.pack("<IB", 1, _SVB_ZD)
    with complete_output(os.fspath(path)) as file:
        file.write(start.ljust(BINARY_HEADER_AT, b"\0") + struct.pack("<I", len(header)) + header)
        yield Blow5Writer(file)
        file.write(_END)


class Blow5Writer(NamedTuple):
    """Open file of `blow5_writer`."""

    file: BinaryIO

    def write(self, read_id: str, samples: NDArray[np.int16], calibration: Calibration, **_: int) -> None:
        """Append a read; see `f5py.io.signals.fast5.fast5_writer.Fast5Writer.write`."""
        name, signal = read_id.encode(), _packed(samples)
        fields = struct.pack("<I4dQ", 0, *calibration, len(signal))
        record = zlib.compress(struct.pack("<H", len(name)) + name + fields + signal)
        self.file.write(struct.pack("<Q", len(record)) + record)


def _packed(samples: NDArray[np.int16]) -> bytes:
    """Compress samples as svb-zd: their number (4 bytes), two-bit sizes, zigzag-coded differences."""
    if not len(samples):
        return b""
    levels = samples.astype(np.int32)
    differences = levels - np.append(np.int32(0), levels[:-1])
    codes = ((differences << 1) ^ (differences >> 31)).astype("<u4")
    more = (codes > 0xFF).astype(np.uint8) + (codes > 0xFFFF)
    quarters = np.zeros(-len(codes) % 4 + len(codes), np.uint8)
    quarters[: len(codes)] = more
    controls = (quarters.reshape(-1, 4) << np.array([0, 2, 4, 6], np.uint8)).sum(axis=1, dtype=np.uint8)
    data = codes.view(np.uint8).reshape(-1, 4)[np.arange(4) <= more[:, None]]
    return struct.pack("<I", len(codes)) + controls.tobytes() + data.tobytes()
