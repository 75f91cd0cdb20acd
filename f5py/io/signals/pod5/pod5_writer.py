"""Writer of POD5 files."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.errors import OutputFileError, unavailable
from f5py.io.files.complete_file import complete_output
from f5py.io.signals.source import Calibration

_START = datetime(2024, 1, 1, tzinfo=timezone.utc)


@contextmanager
def pod5_writer(path: str | Path, *, experiment_type: str = "genomic_dna", kit: str = "") -> Iterator[Pod5Writer]:
    """Write a new POD5 file.

    The file gets its name when it is complete. Files have random identifiers, so bytes differ between runs. Raises
    `MissingDependencyError` without pod5, `OutputFileError` if it cannot be written.
    """
    try:
        import pod5
    except ImportError as problem:
        raise unavailable(problem, "POD5 needs", "pod5", "pod5") from problem
    with complete_output(os.fspath(path)) as out:
        os.unlink(out.name)  # the library makes it
        with _wrap_errors(path):
            file = pod5.Writer(out.name, software_name="f5py")
        try:
            yield Pod5Writer(path, pod5, file, experiment_type, kit)
        finally:
            with _wrap_errors(path):
                file.close()


class Pod5Writer:
    """Open file of `pod5_writer`."""

    def __init__(self, path: str | Path, library: Any, file: Any, experiment_type: str, kit: str) -> None:
        self._path, self._library, self._file = path, library, file
        self._tags = {"experiment_type": experiment_type, "sequencing_kit": kit}
        self._run: Any = None

    def write(
        self, read_id: str, samples: NDArray[np.int16], calibration: Calibration, *, channel: int = 1,
        read_number: int = 0, start_time: int = 0,
    ) -> None:  # fmt: skip
        """Append a read; see `f5py.io.signals.fast5.fast5_writer.Fast5Writer.write`."""
        pod5 = self._library
        if self._run is None:
            self._run = pod5.RunInfo(
                acquisition_id="f5py-run", acquisition_start_time=_START,
                adc_max=int(calibration.digitisation) - 1, adc_min=0, context_tags=self._tags, experiment_name="",
                flow_cell_id="", flow_cell_product_code="",
                protocol_name="", protocol_run_id="", protocol_start_time=_START, sample_id="",
                sample_rate=int(calibration.sampling_rate), sequencing_kit=self._tags["sequencing_kit"],
                sequencer_position="", sequencer_position_type="", software="f5py", system_name="", system_type="",
                tracking_id={},
            )  # fmt: skip
        picoamperes = calibration.range / calibration.digitisation
        read = pod5.Read(
            read_id=uuid.UUID(read_id),
            pore=pod5.Pore(channel, 1, "not_set"),
            calibration=pod5.Calibration(calibration.offset, picoamperes),
            read_number=read_number,
            start_sample=start_time,
            median_before=0.0,
            end_reason=pod5.EndReason(pod5.EndReasonEnum.UNKNOWN, False),
            run_info=self._run,
            signal=samples,
        )
        with _wrap_errors(self._path):
            self._file.add_read(read)


@contextmanager
def _wrap_errors(path: str | Path) -> Iterator[None]:
    try:
        yield
    except RuntimeError as problem:
        reason = " ".join(str(problem).split())
        raise OutputFileError(f"{path}: cannot be written ({reason})") from problem
