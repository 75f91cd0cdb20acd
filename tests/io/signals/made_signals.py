"""Made-up reads, written in every fast5 layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np

from f5py.io.signals.fast5.reader import Fast5Reader
from f5py.io.signals.source import FileSource
from f5py.threads.pool import CallingThread

CALIBRATION = ("digitisation", "offset", "range", "sampling_rate")
VBZ = {"compression": 32020, "compression_opts": (0, 2, 1, 1)}
GZIP = {"compression": "gzip"}


@dataclass
class MadeRead:
    """One read: samples and calibration."""

    name: str
    samples: np.ndarray
    digitisation: float = 8192.0
    offset: float = 3.0
    range: float = 1467.6
    sampling_rate: float = 4000.0
    attributes: dict = field(default_factory=dict)

    def calibration(self) -> dict:
        values = {what: np.float64(getattr(self, what)) for what in CALIBRATION}
        values.update(self.attributes)  # None leaves one out
        return {what: value for what, value in values.items() if value is not None}


def make_reads(n: int = 7, longest: int = 4000) -> list[MadeRead]:
    rng = np.random.default_rng(11)
    return [
        MadeRead(
            f"read-{i}",
            rng.integers(-500, 1500, rng.integers(1, longest)).astype(np.int16),
            digitisation=1024.0 * 2**i,
            offset=float(i - 3),
            range=1400 + i / 3,
            sampling_rate=3012.0 if i % 2 else 4000.0,
        )
        for i in range(n)
    ]


def add_multi(file: h5py.File, read: MadeRead, **storage) -> None:
    raw = file.create_group(f"read_{read.name}/Raw")
    raw.attrs["read_id"] = np.bytes_(read.name.encode())
    raw.create_dataset("Signal", data=read.samples, **storage)
    file.create_group(f"read_{read.name}/channel_id").attrs.update(read.calibration())


def write_multi(path: Path, reads: list[MadeRead], **storage) -> dict[str, str]:
    with h5py.File(path, "w") as file:
        file.attrs["file_version"] = "2.0"
        for read in reads:
            add_multi(file, read, **storage)
    return {read.name: str(path) for read in reads}


def write_single(path: Path, read: MadeRead, version: object = 1.0, **storage) -> dict[str, str]:
    with h5py.File(path, "w") as file:
        if version is not None:
            file.attrs["file_version"] = version
        raw = file.create_group("Raw/Reads/Read_17")
        raw.attrs["read_id"] = np.bytes_(read.name.encode())
        raw.create_dataset("Signal", data=read.samples, **storage)
        file.create_group("UniqueGlobalKey/channel_id").attrs.update(read.calibration())
    return {read.name: str(path)}


def assert_same_block(block, other) -> None:
    for what in ("samples", "offsets", "calibration"):
        mine, theirs = getattr(block, what), getattr(other, what)
        assert mine.dtype == theirs.dtype, what
        np.testing.assert_array_equal(mine, theirs, err_msg=what)
    assert block.problems == other.problems
    assert list(block.problems) == list(other.problems)


def assert_holds(block, i: int, read: MadeRead) -> None:
    """Read i of the block is `read`."""
    assert i not in block.problems
    np.testing.assert_array_equal(block.samples[block.offsets[i] : block.offsets[i + 1]], read.samples)
    assert block.calibration[:4, i].tolist() == [np.float32(getattr(read, what)) for what in CALIBRATION]


def assert_expands_anywhere(block, expected, reads: np.ndarray) -> None:
    """Expand the packed samples of some reads in this order into a larger array, then all in place."""
    assert expected.packed is None
    n_samples = np.diff(block.offsets)[reads]
    found = np.full(6 + n_samples.sum(), 4711, np.int16)
    block.packed.expand(reads, 3 + np.cumsum(n_samples) - n_samples, found, CallingThread())
    samples = [expected.samples[expected.offsets[read] : expected.offsets[read + 1]] for read in reads]
    np.testing.assert_array_equal(found, np.concatenate([[4711] * 3, *samples, [4711] * 3]))
    block.expand(CallingThread())
    assert_same_block(block, expected)


def assert_unreadable(block, i: int, *words: str) -> None:
    """Read i has no samples and no calibration, and one line says why."""
    assert block.offsets[i] == block.offsets[i + 1]
    assert np.isnan(block.calibration[:4, i]).all()
    assert "\n" not in block.problems[i]
    for word in words:
        assert word in block.problems[i]


def fast5_source(paths: Mapping[str, str]) -> FileSource:
    return FileSource(paths, Fast5Reader())
