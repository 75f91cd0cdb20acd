"""Writes a BLOW5 file."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.errors import OutputFileError, unavailable
from f5py.io.signals.source import Calibration


class Blow5Writer:
    """A new BLOW5 file (zlib, svb-zd), with one read group; a context manager.

    The file appears under its name when all of it is written. The same calls give the same bytes.

    Parameters
    ----------
    path : str or Path
        The file; one that exists is replaced.
    experiment_type : str
        ``genomic_dna`` or ``rna``.
    kit : str
        Product code of the sequencing kit; none if empty.

    Raises
    ------
    MissingDependencyError
        pyslow5 is not installed.
    OutputFileError
        The file cannot be written, also from `write` and on leaving the context.
    """

    def __init__(self, path: str | Path, *, experiment_type: str = "genomic_dna", kit: str = "") -> None:
        self._path = os.fspath(path)
        self._part = f"{self._path}.part.blow5"  # the library goes by the end of the name
        self._header = {"experiment_type": experiment_type, "sequencing_kit": kit, "run_id": "f5py-run"}
        self._file: Any = None

    def __enter__(self) -> Blow5Writer:
        try:
            import pyslow5
        except ImportError as problem:
            raise unavailable(problem, "BLOW5 needs", "pyslow5", "slow5") from problem
        self._file = pyslow5.Open(self._part, "w", rec_press="zlib", sig_press="svb_zd")
        header = {name: value or "" for name, value in self._file.get_empty_header().items()}
        self._check(self._file.write_header(header | self._header))
        return self

    def write(self, read_id: str, samples: NDArray[np.int16], calibration: Calibration, **_: int) -> None:
        """Append a read; arguments as those of `f5py.io.signals.fast5.fast5_writer.Fast5Writer.write`."""
        record, _aux = self._file.get_empty_record(aux=True)
        record |= {
            **{name: float(value) for name, value in calibration._asdict().items()},
            "read_id": read_id, "read_group": 0, "len_raw_signal": len(samples), "signal": samples,
        }  # fmt: skip
        self._check(self._file.write_record(record))

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if kind is None:
            os.replace(self._part, self._path)
        else:
            with suppress(OSError):
                os.unlink(self._part)

    def _check(self, status: int) -> None:
        if status is not None and status < 0:
            raise OutputFileError(f"{self._path}: cannot be written (the library's error {status}); is the disk full?")
