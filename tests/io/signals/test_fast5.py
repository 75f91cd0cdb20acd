"""Fast5 files: layouts, compressions, and everything that can be wrong with them."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest

from f5py.errors import MissingDependencyError, OutputFileError
from f5py.io.signals.fast5.fast5_writer import fast5_writer
from f5py.io.signals.fast5.reader import Fast5Reader
from f5py.io.signals.source import Calibration, FileSource

from ...patience import PATIENCE
from .made_signals import (
    CALIBRATION,
    GZIP,
    VBZ,
    MadeRead,
    assert_holds,
    assert_unreadable,
    fast5_source,
    make_reads,
    write_multi,
    write_single,
)

GOOD = MadeRead("good", np.arange(-50, 950, dtype=np.int16))


def fetch_one(path, name="r"):
    """Fetch the read in question and a good read beside it, which must come to no harm."""
    path = Path(path)
    folder = path.parent if path.parent.is_dir() else Path(path.anchor)
    paths = {name: str(path)} | write_single(folder / "good-neighbour.fast5", GOOD)
    source = fast5_source(paths)
    block = source.fetch([name, "good"])
    source.close()
    assert_holds(block, 1, GOOD)
    return block


def test_single_read_file_does_not_compare_the_name(tmp_path):
    read = make_reads(1)[0]
    write_single(tmp_path / "a.fast5", read)
    block = fast5_source({"another name": str(tmp_path / "a.fast5")}).fetch(["another name"])
    assert_holds(block, 0, read)


@pytest.mark.parametrize(
    "version",
    [None, "1.0", "2", "two", "", np.bytes_(b"2.2"), np.array([b"2.0"]), 1.0, np.float32(2.0), 0.6, np.zeros(0)],
)
def test_either_layout_whatever_the_version(tmp_path, version):
    reads = make_reads(3)
    paths = write_multi(tmp_path / "a.fast5", reads[:2], **GZIP) | write_single(tmp_path / "b.fast5", reads[2], **GZIP)
    for name in ("a", "b"):
        with h5py.File(tmp_path / f"{name}.fast5", "r+") as file:
            del file.attrs["file_version"]
            if version is not None:
                file.attrs["file_version"] = version
    block = fast5_source(paths).fetch([read.name for read in reads])
    for i, read in enumerate(reads):
        assert_holds(block, i, read)


def test_files_beyond_the_limit_are_closed_and_reopened(tmp_path):
    reads = make_reads(6)
    paths = {}
    for i, read in enumerate(reads):
        paths |= write_multi(tmp_path / f"{i}.fast5", [read])
    source = FileSource(paths, Fast5Reader(2))
    for _ in range(2):
        block = source.fetch([read.name for read in reads])
        for i, read in enumerate(reads):
            assert_holds(block, i, read)
        assert open_files(tmp_path) == 2
    source.close()
    assert open_files(tmp_path) == 0


def open_files(folder) -> int:
    links = [link for link in Path("/proc/self/fd").iterdir() if link.exists()]
    return sum(str(link.readlink()).startswith(str(folder)) for link in links)


def test_a_file_that_the_caller_has_open(tmp_path):
    paths = write_multi(tmp_path / "a.fast5", [GOOD])
    with h5py.File(tmp_path / "a.fast5") as file:
        assert_holds(fast5_source(paths).fetch(["good"]), 0, GOOD)
        assert "read_good" in file


def test_a_file_that_cannot_be_locked(tmp_path):
    """As on some network file systems; played by a lock that somebody else holds."""
    paths = write_multi(tmp_path / "a.fast5", [GOOD])
    with open(tmp_path / "a.fast5", "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="lock"):
            h5py.File(tmp_path / "a.fast5")
        assert_holds(fast5_source(paths).fetch(["good"]), 0, GOOD)


# What is wrong with a file or a read, and words that the line about it must hold.


def _hdf5(path, *groups, **datasets):
    with h5py.File(path, "w") as file:
        for group in groups:
            file.create_group(group)
        for name, value in datasets.items():
            file[name] = value


def _without(path, lost):
    write_multi(path, [MadeRead("r", GOOD.samples)])
    with h5py.File(path, "r+") as file:
        del file[f"read_r/{lost}"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "No such file"),
        (Path.mkdir, "directory"),
        (Path.touch, "is empty"),
        (lambda path: path.write_text("@read\nACGT\n" * 400), "not HDF5"),
        (lambda path: _hdf5(path, x=1), "/Raw/Reads"),
        (lambda path: _hdf5(path, "Raw/Reads"), "an empty /Raw/Reads"),
        (lambda path: write_multi(path, [GOOD]), "read r is not in this file"),
        (lambda path: _without(path, "Raw/Signal"), "no Signal dataset"),
        (lambda path: _without(path, "Raw"), "no Signal dataset"),
        (lambda path: _without(path, "channel_id"), "channel_id"),
        (lambda path: _hdf5(path, "read_r/Raw/Signal"), "damaged entry"),
        (lambda path: write_multi(path, [MadeRead("r", np.empty(0, np.int16))]), "read r has no samples"),
        (lambda path: write_multi(path, [MadeRead("r", np.ones(5))]), "whole numbers"),
        (
            lambda path: write_multi(path, [MadeRead("r", GOOD.samples, attributes={"offset": np.ones(2)})]),
            "attribute offset that is not a number",
        ),
    ],
)
def test_what_is_wrong_with_a_file_or_read(tmp_path, make, words):
    make(tmp_path / "a.fast5")
    assert_unreadable(fetch_one(tmp_path / "a.fast5"), 0, "a.fast5", "read r ", words)


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_truncated(tmp_path, kept):
    path = tmp_path / "a.fast5"
    write_multi(path, make_reads(7), **GZIP)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * kept)])
    assert_unreadable(fetch_one(path, "read-2"), 0, "a.fast5", "truncated")


@pytest.mark.parametrize("shape", [(), (2, 5), (1 << 40,)])
def test_impossible_shape(tmp_path, shape):
    with h5py.File(tmp_path / "a.fast5", "w") as file:
        file.attrs["file_version"] = "2.0"
        chunks = (1000,) if shape == (1 << 40,) else None
        file.create_dataset("read_r/Raw/Signal", shape, np.int16, chunks=chunks)
    assert_unreadable(fetch_one(tmp_path / "a.fast5"), 0, "impossible shape")


@pytest.mark.parametrize(("kind", "value"), [("uint16", 40000), ("int32", -40000), ("int64", 1 << 40)])
def test_values_beyond_16_bits(tmp_path, kind, value):
    write_multi(tmp_path / "a.fast5", [MadeRead("r", np.array([1, value], kind))])
    assert_unreadable(fetch_one(tmp_path / "a.fast5"), 0, kind, "16 bits")


@pytest.mark.parametrize("what", CALIBRATION)
@pytest.mark.parametrize("value", [None, np.nan, np.inf, 1e300, "text"])
@pytest.mark.parametrize("layout", [write_single, lambda path, read: write_multi(path, [read])])
def test_calibration_missing_or_senseless(tmp_path, what, value, layout):
    layout(tmp_path / "a.fast5", MadeRead("r", GOOD.samples, attributes={what: value}))
    assert_unreadable(fetch_one(tmp_path / "a.fast5"), 0, "a.fast5", "calibration", what)


@pytest.mark.parametrize("what", ["digitisation", "range", "sampling_rate"])
@pytest.mark.parametrize("value", [0.0, -1.0, 1e-60])
def test_calibration_that_must_be_positive(tmp_path, what, value):
    write_multi(tmp_path / "a.fast5", [MadeRead("r", GOOD.samples, attributes={what: value})])
    assert_unreadable(fetch_one(tmp_path / "a.fast5"), 0, "calibration", what)


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.uint64, lambda value: np.array([value], ">f8")])
def test_calibration_of_other_types(tmp_path, kind):
    values = {what: kind(getattr(GOOD, what)) for what in CALIBRATION if what != "range"}
    write_multi(tmp_path / "a.fast5", [MadeRead("r", GOOD.samples, attributes=values)])
    assert_holds(fetch_one(tmp_path / "a.fast5"), 0, GOOD)


def test_hdf5_prints_nothing(tmp_path, capfd):
    """Not even in another thread, where thread-safe builds of HDF5 have settings of their own."""
    (tmp_path / "text.fast5").write_text("no hdf5")
    paths = write_multi(tmp_path / "a.fast5", [GOOD]) | {"absent": str(tmp_path / "a.fast5")}
    paths |= {"text": str(tmp_path / "text.fast5"), "gone": str(tmp_path / "gone.fast5")}
    blocks = []

    def work():
        blocks.append(fast5_source(paths).fetch(list(paths)))

    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [len(block.problems) for block in blocks] == [3, 3]
    assert capfd.readouterr() == ("", "")


# VBZ, in a fresh interpreter, where the filter has not been registered yet.


def fetch_in_new_process(path, name, before="") -> subprocess.CompletedProcess:
    program = (
        f"{before}\nfrom f5py.io.signals.fast5.reader import Fast5Reader\n"
        f"block = Fast5Reader().read([{name!r}], [{str(path)!r}])\n"
        "print(block.samples.sum(), block.problems)"
    )
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={}, check=False, timeout=PATIENCE
    )


def test_vbz_is_found_without_environment_variables(tmp_path):
    pytest.importorskip("vbz_h5py_plugin", reason="needs vbz-h5py-plugin")
    path = tmp_path / "a.fast5"
    write_multi(path, [GOOD], **VBZ)
    run = fetch_in_new_process(path, "good")
    assert run.stdout.split() == [str(GOOD.samples.sum(dtype=int)), "{}"]
    assert run.stderr == ""


def test_vbz_without_the_plugin_names_the_pip_command(tmp_path):
    pytest.importorskip("vbz_h5py_plugin", reason="writing VBZ needs vbz-h5py-plugin")
    path = tmp_path / "a.fast5"
    write_multi(path, [GOOD], **VBZ)
    run = fetch_in_new_process(path, "good", "import sys; sys.modules['vbz_h5py_plugin'] = None")
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith(f"{MissingDependencyError.__module__}.{MissingDependencyError.__name__}: {path}: ")
    assert "pip install vbz-h5py-plugin" in last
    assert run.stderr.splitlines()[0].startswith("Traceback")  # and nothing of HDF5's before it


def write(path, reads, **options):
    with fast5_writer(path, **options) as file:
        for i, read in enumerate(reads):
            file.write(read.name, read.samples, Calibration(**read.calibration()), channel=i + 1, read_number=10 * i)


def test_layout(tmp_path):
    reads = make_reads(3)
    write(tmp_path / "a.fast5", reads, experiment_type="rna")
    with h5py.File(tmp_path / "a.fast5") as file:
        assert file.attrs["file_version"] == b"2.0"
        assert set(file) == {f"read_{read.name}" for read in reads}
        for i, read in enumerate(reads):
            group = file[f"read_{read.name}"]
            assert group.attrs["run_id"] == b"f5py-run"
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
            assert group["tracking_id"].attrs["run_id"] == b"f5py-run"
            assert group["context_tags"].attrs["experiment_type"] == b"rna"


def test_an_error_leaves_nothing_and_the_old_file_alone(tmp_path):
    path = tmp_path / "a.fast5"
    path.write_text("old")
    read = make_reads(1)[0]
    with suppress(ZeroDivisionError), fast5_writer(path) as file:
        file.write(read.name, read.samples, Calibration(**read.calibration()))
        raise ZeroDivisionError
    assert [file.name for file in tmp_path.iterdir()] == ["a.fast5"]
    assert path.read_text() == "old"


def test_folder_that_is_not_there(tmp_path):
    path = tmp_path / "nowhere" / "a.fast5"
    with pytest.raises(OutputFileError, match=rf"^{path}: cannot write: [^\n]*No such file"), fast5_writer(path):
        pass
