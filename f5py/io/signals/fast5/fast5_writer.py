"""Writer of multi-read fast5 files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.io.files.complete_file import complete_output
from f5py.io.signals.source import Calibration

_RUN_ID = "f5py-run"


@contextmanager
def fast5_writer(path: str | Path, *, experiment_type: str = "genomic_dna", kit: str = "") -> Iterator[Fast5Writer]:
    """Write a new multi-read fast5 file (version 2.0), as sequencers do.

    The file gets its name when it is complete; its bytes are deterministic. Raises `OutputFileError` if it cannot be
    written. The product code of the sequencing kit determines the pore.
    """
    import h5py

    with complete_output(os.fspath(path)) as out:
        disk = _CheckedFile(out.fileno(), "w+", closefd=False)
        with h5py.File(disk, "w") as file:
            _set_texts(file, file_version="2.0", file_type="multi-read")
            yield Fast5Writer(file, disk, experiment_type, kit)
        disk.check()


class Fast5Writer:
    """Open file of `fast5_writer`."""

    def __init__(self, file: Any, disk: _CheckedFile, experiment_type: str, kit: str) -> None:
        self._file, self._disk = file, disk
        self._experiment_type, self._kit = experiment_type, kit
        self._shared: dict[str, Any] = {}  # groups of the run

    def write(
        self, read_id: str, samples: NDArray[np.int16], calibration: Calibration, *, channel: int = 1,
        read_number: int = 0, start_time: int = 0,
    ) -> None:  # fmt: skip
        """Append a read of raw DAC values; `start_time` is in samples since the start of the run.

        Raises `ValueError` if the samples are malformed or the read exists.
        """
        if samples.dtype != np.int16 or samples.ndim != 1 or samples.size == 0:
            raise ValueError(f"read {read_id}: samples must be int16 of shape (n,), n >= 1")
        read = self._file.create_group(f"read_{read_id}")
        _set_texts(read, run_id=_RUN_ID)
        raw = read.create_group("Raw")
        raw.create_dataset("Signal", data=samples, chunks=samples.shape, compression="gzip", compression_opts=1)
        _set_texts(raw, read_id=read_id)
        raw.attrs.update(
            start_time=np.uint64(start_time), duration=np.uint32(samples.size), read_number=np.int32(read_number),
            start_mux=np.uint8(1), median_before=np.float64(0),
        )  # fmt: skip
        channel_id = read.create_group("channel_id")
        _set_texts(channel_id, channel_number=str(channel))
        channel_id.attrs.update({name: np.float64(value) for name, value in calibration._asdict().items()})
        for name, group in self._shared.items():
            read[name] = group
        if not self._shared:
            self._add_run(read, calibration.sampling_rate)
        self._disk.check()

    def _add_run(self, read: Any, sampling_rate: float) -> None:
        """Add the groups of the run, which are stored once."""
        run = self._shared["tracking_id"] = read.create_group("tracking_id")
        same = dict.fromkeys(("device_id", "flow_cell_id", "sample_id"), "simulated")
        _set_texts(run, run_id=_RUN_ID, exp_start_time="1970-01-01T00:00:00Z", **same)
        context = self._shared["context_tags"] = read.create_group("context_tags")
        _set_texts(context, experiment_type=self._experiment_type, sample_frequency=f"{sampling_rate:g}")
        if self._kit:
            _set_texts(context, sequencing_kit=self._kit)


def _set_texts(group: Any, **texts: str) -> None:
    for name, text in texts.items():
        group.attrs[name] = np.bytes_(text.encode())


class _CheckedFile(FileIO):
    """File below HDF5 that keeps the first write error for `check` and discards later writes.

    HDF5 writes its cache before it closes a file; on a full disk it would report every object and once more at exit.
    """

    _error: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all data, where a plain file may write a part."""
        rest = memoryview(data).cast("B")
        try:
            while rest.nbytes and self._error is None:
                rest = rest[super().write(rest) :]
        except OSError as error:
            self._error = error
        return memoryview(data).nbytes

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size) if self._error is None else 0
        except OSError as error:
            self._error = error
            return 0

    def check(self) -> None:
        """Raise the first error, if any."""
        if self._error is not None:
            raise self._error
