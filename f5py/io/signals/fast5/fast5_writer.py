"""Writer of multi-read fast5 files."""

from __future__ import annotations

import os
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.io.files.complete_file import complete_output
from f5py.io.signals.source import Calibration


class Fast5Writer:
    """A new multi-read fast5 file (version 2.0) as sequencers write it; a context manager.

    The file gets its name when it is complete; its bytes are deterministic. The context raises `OutputFileError` if it
    cannot be written. The product code of the sequencing kit determines the pore.
    """

    def __init__(
        self, path: str | Path, *, run_id: str = "f5py-run", experiment_type: str = "genomic_dna", kit: str = ""
    ) -> None:
        self._path = os.fspath(path)
        self._run_id = run_id
        self._experiment_type = experiment_type
        self._kit = kit
        self._stack = ExitStack()
        self._file: Any = None
        self._disk: Any = None
        self._shared: dict[str, Any] = {}

    def __enter__(self) -> Fast5Writer:
        import h5py

        with ExitStack() as stack:
            out = stack.enter_context(complete_output(self._path))
            self._disk = _CheckedFile(out.fileno(), "w+", closefd=False)
            self._file = h5py.File(self._disk, "w")
            stack.callback(self._finish)
            self._file.attrs["file_version"] = np.bytes_(b"2.0")
            self._file.attrs["file_type"] = np.bytes_(b"multi-read")
            self._stack = stack.pop_all()
        return self

    def write(
        self,
        read_id: str,
        samples: NDArray[np.int16],
        calibration: Calibration,
        *,
        channel: int = 1,
        read_number: int = 0,
        start_time: int = 0,
    ) -> None:
        """Append a read of raw DAC values; `start_time` is in samples since the start of the run.

        Raises `ValueError` if the samples are malformed or the read exists.
        """
        if samples.dtype != np.int16 or samples.ndim != 1 or samples.size == 0:
            raise ValueError(f"read {read_id}: samples must be int16 of shape (n,), n >= 1")
        name = f"read_{read_id}"
        if name in self._file:
            raise ValueError(f"read {read_id} is in {self._path} already")
        read = self._file.create_group(name)
        read.attrs["run_id"] = np.bytes_(self._run_id.encode())
        raw = read.create_group("Raw")
        raw.create_dataset("Signal", data=samples, chunks=samples.shape, compression="gzip", compression_opts=1)
        _set(
            raw, read_id=np.bytes_(read_id.encode()), start_time=np.uint64(start_time),
            duration=np.uint32(samples.size), read_number=np.int32(read_number), start_mux=np.uint8(1),
            median_before=np.float64(0),
        )  # fmt: skip
        _set(
            read.create_group("channel_id"), channel_number=np.bytes_(str(channel).encode()),
            **{name: np.float64(value) for name, value in calibration._asdict().items()},
        )  # fmt: skip
        self._link_run(read, calibration.sampling_rate)
        self._disk.check()

    def __exit__(self, kind: type[BaseException] | None, *problem: Any) -> None:
        self._stack.__exit__(kind, *problem)

    def _finish(self) -> None:
        self._file.close()
        self._disk.check()

    def _link_run(self, read: Any, sampling_rate: float) -> None:
        """Link the read to the groups of the run, which are stored once."""
        if not self._shared:
            run = read.create_group("tracking_id")
            _set(
                run, run_id=np.bytes_(self._run_id.encode()), exp_start_time=np.bytes_(b"1970-01-01T00:00:00Z"),
                device_id=np.bytes_(b"simulated"), flow_cell_id=np.bytes_(b"simulated"),
                sample_id=np.bytes_(b"simulated"),
            )  # fmt: skip
            context = read.create_group("context_tags")
            _set(
                context, experiment_type=np.bytes_(self._experiment_type.encode()),
                sample_frequency=np.bytes_(f"{sampling_rate:g}".encode()),
            )  # fmt: skip
            if self._kit:
                _set(context, sequencing_kit=np.bytes_(self._kit.encode()))
            self._shared = {"tracking_id": run, "context_tags": context}
        else:
            for name, group in self._shared.items():
                read[name] = group


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


def _set(group: Any, **attributes: Any) -> None:
    for name, value in attributes.items():
        group.attrs.create(name, value)
