"""The files that the writer makes, and what other readers make of them."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from f5py.errors import OutputFileError
from f5py.io.signals.fast5.fast5_writer import Fast5Writer
from f5py.io.signals.source import Calibration

from .made_signals import make_reads


def write(path, reads, **options):
    with Fast5Writer(path, **options) as file:
        for i, read in enumerate(reads):
            file.write(read.name, read.samples, Calibration(**read.calibration()), channel=i + 1, read_number=10 * i)


def test_layout(tmp_path):
    reads = make_reads(3)
    write(tmp_path / "a.fast5", reads, run_id="a run", experiment_type="rna")
    with h5py.File(tmp_path / "a.fast5") as file:
        assert file.attrs["file_version"] == b"2.0"
        assert set(file) == {f"read_{read.name}" for read in reads}
        for i, read in enumerate(reads):
            group = file[f"read_{read.name}"]
            assert group.attrs["run_id"] == b"a run"
            signal = group["Raw/Signal"]
            assert (signal.dtype, signal.compression, signal.chunks) == (np.int16, "gzip", signal.shape)
            np.testing.assert_array_equal(signal[:], read.samples)
            raw = dict(group["Raw"].attrs)
            assert raw["read_id"] == read.name.encode()
            assert raw["duration"] == read.samples.size
            assert raw["read_number"] == 10 * i
            assert {"start_time", "start_mux", "median_before"} <= set(raw)
            channel = dict(group["channel_id"].attrs)
            assert channel.pop("channel_number") == str(i + 1).encode()
            assert channel == read.calibration()
            assert group["tracking_id"].attrs["run_id"] == b"a run"
            assert group["context_tags"].attrs["experiment_type"] == b"rna"


def test_an_error_leaves_nothing_and_the_old_file_alone(tmp_path):
    path = tmp_path / "a.fast5"
    path.write_text("old")
    read = make_reads(1)[0]
    file = Fast5Writer(path).__enter__()
    file.write(read.name, read.samples, Calibration(**read.calibration()))
    file.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert [file.name for file in tmp_path.iterdir()] == ["a.fast5"]
    assert path.read_text() == "old"


def test_folder_that_is_not_there(tmp_path):
    path = tmp_path / "nowhere" / "a.fast5"
    with pytest.raises(OutputFileError, match=rf"^{path}: cannot write: [^\n]*No such file"), Fast5Writer(path):
        pass
