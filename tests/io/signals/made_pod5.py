"""Made-up reads, written as POD5."""

from __future__ import annotations

import dataclasses
import datetime
import uuid
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pod5

from f5py.io.signals import SignalSource, open_signals, open_source
from f5py.io.signals.pod5.reader import Pod5Index, Pod5Reader
from f5py.io.signals.search import signal_files
from f5py.io.signals.source import MAX_OPEN_FILES, FileSource, SignalBlock

from .made_signals import MadeRead, write_multi, write_single

_SPACE = uuid.UUID("5ba7b812-9dad-11d1-80b4-00c04fd430c8")
_DAY = datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc)


def pod5_name(name: str) -> str:
    """Return the UUID under which a made read is stored: POD5 has no other names."""
    return str(uuid.uuid5(_SPACE, name))


def run_info(read: MadeRead, **fields) -> pod5.RunInfo:
    texts = [field.name for field in dataclasses.fields(pod5.RunInfo)]
    values = dict.fromkeys(texts, "") | {
        "acquisition_id": f"run-{read.digitisation}-{read.sampling_rate}",
        "acquisition_start_time": _DAY,
        "protocol_start_time": _DAY,
        "adc_min": -32768,
        "adc_max": int(read.digitisation) - 32769,
        "context_tags": {},
        "tracking_id": {},
        "sample_rate": int(read.sampling_rate),
    }
    return pod5.RunInfo(**(values | fields))


def pod5_read(read: MadeRead, name: str | None = None, **fields) -> pod5.Read:
    """Make a read as the package writes it; `fields` are of its run."""
    return pod5.Read(
        read_id=uuid.UUID(name or pod5_name(read.name)),
        pore=pod5.Pore(1, 1, "not_set"),
        calibration=pod5.Calibration(read.offset, read.range / read.digitisation),
        read_number=1,
        start_sample=0,
        median_before=0.0,
        end_reason=pod5.EndReason(pod5.EndReasonEnum.UNKNOWN, False),
        run_info=run_info(read, **fields),
        signal=read.samples,
    )


def write_pod5(path: Path, reads: list[MadeRead], compressed: bool = True, **fields) -> dict[str, str]:
    kind = pod5.SignalType.VbzSignal if compressed else pod5.SignalType.UncompressedSignal
    with pod5.Writer(path, signal_compression_type=kind) as file:
        file.add_reads([pod5_read(read, **fields) for read in reads])
    return {pod5_name(read.name): str(path) for read in reads}


def pod5_source(paths: Path | Mapping[str, str], max_open: int = MAX_OPEN_FILES) -> FileSource:
    """Open a file, a folder or indexed reads in this process, by the library."""
    paths = paths if isinstance(paths, Mapping) else Pod5Index(signal_files([str(paths)], "pod5"))
    return FileSource(paths, Pod5Reader(max_open), "pod5")


class Renamed:
    """A source of made reads under their own names, for tests that all formats share."""

    def __init__(self, source: SignalSource, in_pod5: list[MadeRead]) -> None:
        self._source = source
        self._stored = {read.name: pod5_name(read.name) for read in in_pod5}
        self.close = source.close
        self.kind = source.kind

    def fetch(self, names) -> SignalBlock:
        return self._source.fetch([self._stored.get(name, name) for name in names])

    def run_info(self, names) -> dict[str, str]:
        return self._source.run_info([self._stored.get(name, name) for name in names])


def pod5_files(folder: Path, reads: list[MadeRead], n_processes: int = 1) -> Renamed:
    """Two files in a folder, the second one not compressed."""
    write_pod5(folder / "a.pod5", reads[:4])
    write_pod5(folder / "b.pod5", reads[4:], compressed=False)
    return Renamed(open_signals("", pod5=[str(folder)], n_processes=n_processes), reads)


def fast5_and_pod5_files(folder: Path, reads: list[MadeRead], n_processes: int = 1) -> Renamed:
    """Write a POD5 file, which the index names first, and fast5 files of both layouts."""
    paths = write_pod5(folder / "a", reads[4:]) | write_multi(folder / "b", reads[:3])
    return Renamed(open_source(paths | write_single(folder / "c", reads[3]), n_processes), reads[4:])


def large_read(n: int = 250_000) -> MadeRead:
    """Make a read of several pieces: the package cuts signals after 102,400 samples."""
    return MadeRead("large", np.random.default_rng(5).integers(-900, 900, n).astype(np.int16))
