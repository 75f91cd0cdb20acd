from __future__ import annotations

import subprocess
import sys
import uuid
from contextlib import closing
from pathlib import Path

import h5py
import numpy as np
import pytest

from f5py.errors import SignalError
from f5py.io.signals import helper_process, open_signals
from f5py.io.signals.pod5.reader import Pod5Index, Pod5Reader
from f5py.io.signals.processes import ProcessSource
from f5py.io.signals.search import signal_files

from . import odd_readers
from .made_pod5 import large_read, pod5_name, pod5_read, pod5_source, write_pod5
from .made_signals import (
    MadeRead,
    assert_holds,
    assert_same_block,
    assert_unreadable,
    fast5_source,
    make_reads,
)

pod5 = pytest.importorskip("pod5", reason="needs pod5")


NOWHERE = str(uuid.UUID(int=5))


@pytest.fixture
def file(tmp_path, made_reads):
    path = tmp_path / "reads.pod5"
    write_pod5(path, made_reads)
    return path


def names_of(reads) -> list[str]:
    return [pod5_name(read.name) for read in reads]


def damaged(path, where: bytes, by: bytes):
    data = path.read_bytes()
    assert data.count(where) == 1
    path.write_bytes(data.replace(where, by))
    return path


@pytest.mark.parametrize("compressed", [True, False])
def test_a_read_of_several_pieces(tmp_path, compressed):
    reads = [large_read(), MadeRead("small", np.arange(50, dtype=np.int16)), large_read(102_400)]
    reads[2].name = "whole"
    paths = write_pod5(tmp_path / "a.pod5", reads, compressed)
    source = pod5_source(paths)
    block = source.fetch(names_of(reads))
    for i, read in enumerate(reads):
        assert_holds(block, i, read)
    source.close()


@pytest.mark.parametrize("digitisation", [8192, 2048, 3, 5000, 65535])
def test_the_unit_is_the_stored_scale_to_the_bit(tmp_path, digitisation):
    rng = np.random.default_rng(digitisation)
    ranges = rng.uniform(1, 2000, 300)
    reads = [MadeRead(f"{i}", np.ones(4, np.int16), digitisation, 0.0, r) for i, r in enumerate(ranges)]
    path = tmp_path / "a.pod5"
    write_pod5(path, reads)
    with pod5.Reader(path) as reader:
        stored = {str(read.read_id): np.float32(read.calibration.scale) for read in reader}
    source = pod5_source(path)
    names = names_of(reads)
    block = source.fetch(names)
    source.close()
    read_digitisation, _, read_range, *_ = block.calibration
    unit = read_range / read_digitisation
    assert unit.dtype == np.float32
    np.testing.assert_array_equal(unit, [stored[name] for name in names])
    known = read_digitisation == digitisation
    assert known.mean() > 0.5
    np.testing.assert_array_equal(read_digitisation[~known], 1)


def test_names_that_cannot_be_there(file, made_reads):
    name = pod5_name(made_reads[0].name)
    reader = Pod5Reader()
    odd = [name.replace("-", ""), f"{{{name}}}", name[:-1] + "g", "ä" * 36]
    asked = ["read-0", NOWHERE, name, *odd, name.upper(), name]
    block = reader.read(asked, [str(file)] * 8 + [""])
    for i in (0, 3, 4, 5, 6):
        assert_unreadable(block, i, str(file), asked[i], "not a UUID")
    assert_unreadable(block, 1, str(file), NOWHERE, "is not in this file")
    assert_holds(block, 2, made_reads[0])
    assert_holds(block, 7, made_reads[0])  # the same UUID
    assert_unreadable(block, 8, name, "no signal file")
    reader.close()


def test_a_read_without_samples(tmp_path):
    reads = [MadeRead("empty", np.empty(0, np.int16)), MadeRead("full", np.ones(3, np.int16))]
    source = pod5_source(write_pod5(tmp_path / "a.pod5", reads))
    block = source.fetch(names_of(reads))
    assert_unreadable(block, 0, "has no samples")
    assert_holds(block, 1, reads[1])
    source.close()


class TestIndex:
    def test_files_below_a_folder_in_the_order_of_their_names(self, tmp_path, made_reads):
        (tmp_path / "deep").mkdir()
        b, a = tmp_path / "deep" / "b.pod5", tmp_path / "a.pod5"
        write_pod5(b, made_reads[:4])
        write_pod5(a, made_reads[2:])
        (tmp_path / "notes.txt").write_text("no signals")
        index = Pod5Index(signal_files([str(tmp_path)], "pod5"))
        assert len(index) == 7
        assert set(index) == set(names_of(made_reads))
        for i, name in enumerate(names_of(made_reads)):
            assert index[name] == str(b if i < 2 else a)  # the first file by name, where both have it
        assert index.get(NOWHERE, "") == ""
        assert "read-0" not in index
        in_a, in_b = names_of(made_reads[2:]), names_of(made_reads[:2])
        assert dict(index.items()) == {name: str(a) for name in in_a} | {name: str(b) for name in in_b}
        assert len(index.items()) == 7
        assert (in_b[0], str(b)) in index.items()
        assert (in_b[0], str(a)) not in index.items()

    def test_uuids_that_end_or_begin_with_zeros(self, tmp_path):
        read = MadeRead("any", np.ones(5, np.int16))
        numbers = [0, 1, 256, 1 << 8 * 15, 1 << 127, (1 << 128) - 1, 0x61 << 120, 0x6100 << 112 | 1]
        names = [str(uuid.UUID(int=number)) for number in numbers]
        with pod5.Writer(tmp_path / "a.pod5") as out:
            out.add_reads([pod5_read(read, name) for name in names])
        source = pod5_source(tmp_path)
        assert source.fetch(names).problems == {}
        assert sorted(Pod5Index(signal_files([str(tmp_path)], "pod5"))) == sorted(names)
        absent = [str(uuid.UUID(int=number)) for number in (2, 255, 257, 0x61 << 112, (1 << 128) - 2)]
        assert sorted(source.fetch(absent).problems) == [0, 1, 2, 3, 4]
        source.close()

    def test_no_files(self, tmp_path):
        with pytest.raises(SignalError, match=r"no file below this folder is named \*\.pod5"):
            pod5_source(tmp_path)


class TestDefectiveFiles:
    @pytest.mark.parametrize(
        ("harm", "words"),
        [
            (lambda data: b"", "is empty"),
            (lambda data: b"\x89HDF" + data[4:], "is not POD5"),
            (lambda data: b"words", "is not POD5"),
            (lambda data: data[: len(data) // 2], "is truncated; copy it again"),
            (lambda data: data[:-8], "is truncated; copy it again"),
            (lambda data: data[:300] + data[-300:], "is damaged"),
            (lambda data: data[:16] + bytes(len(data) - 32) + data[-16:], "is damaged"),
        ],
    )
    def test_a_file_that_cannot_be_opened(self, file, made_reads, harm, words):
        file.write_bytes(harm(file.read_bytes()))
        with pytest.raises(SignalError, match=words) as caught:
            pod5_source(file)
        assert str(caught.value).startswith(f"{file}: ")
        assert "\n" not in str(caught.value)
        reader = Pod5Reader()
        name = pod5_name(made_reads[0].name)
        assert_unreadable(reader.read([name], [str(file)]), 0, str(file), name, words)
        assert reader.run_info(name, str(file)) == {}
        reader.close()

    def test_one_of_several_files_is_left_out(self, file, made_reads, capfd):
        good = file.with_name("good.pod5")
        good.write_bytes(file.read_bytes())
        file.write_bytes(b"")
        cut = file.with_name("cut.pod5")
        cut.write_bytes(good.read_bytes()[:-8])
        source = pod5_source(file.parent)
        assert not source.fetch([pod5_name(read.name) for read in made_reads]).problems
        source.close()
        (warning,) = [line for line in capfd.readouterr().err.splitlines() if "WARNING" in line]
        assert "2 of 3 POD5 files cannot be read, their reads are left out: " in warning
        assert f"{file}: is empty" in warning or f"{file}: the file is empty" in warning
        assert f"{cut}: the file is truncated" in warning
        good.write_bytes(b"")
        with pytest.raises(SignalError, match=r"none of 3 POD5 files can be read: .*: the file is "):
            pod5_source(file.parent)

    def test_a_damaged_signal_leaves_the_other_reads_alone(self, tmp_path):
        rng = np.random.default_rng(1)
        reads = [MadeRead(f"{i}", rng.integers(-300, 300, 5000).astype(np.int16)) for i in range(3)]
        paths = write_pod5(tmp_path / "a.pod5", reads)
        with pod5.Reader(tmp_path / "a.pod5") as reader:
            stored = reader.signal_table.get_batch(0).column("signal")[1].as_py()
        damaged(tmp_path / "a.pod5", stored, bytes(len(stored)))
        other = MadeRead("other", np.arange(9, dtype=np.int16))
        source = pod5_source(paths | write_pod5(tmp_path / "b.pod5", [other]))
        block = source.fetch(names_of([reads[1], *reads, other]))
        for i in (0, 2):
            assert_unreadable(block, i, "a.pod5", pod5_name("1"), "has damaged signal data")
        for i, read in ((1, reads[0]), (3, reads[2]), (4, other)):
            assert_holds(block, i, read)
        source.close()


class TestRunInfo:
    def test_tags_and_fields_by_the_names_of_fast5(self, tmp_path, made_reads):
        paths = write_pod5(
            tmp_path / "a.pod5",
            made_reads[1:2],
            context_tags={"Experiment_Type": "rna", "sequencing_kit": "of the tag", "sample_frequency": "1"},
            tracking_id={"flow_cell_product_code": "FLO-PRO004RA", "device_id": "X1", "exp_start_time": ""},
            sequencing_kit="sqk-rna004",
            acquisition_id="abc",
        )
        source = pod5_source(paths)
        assert source.run_info(["unknown", NOWHERE, *names_of(made_reads[1:2])]) == {
            "experiment_type": "rna",
            "sequencing_kit": "sqk-rna004",  # of the run itself
            "sample_frequency": "3012",
            "flow_cell_product_code": "FLO-PRO004RA",
            "device_id": "X1",
            "run_id": "abc",
        }
        assert source.run_info([NOWHERE]) == {}
        source.close()

    def test_each_read_has_its_own_run(self, file, made_reads):
        reader = Pod5Reader()
        for read in made_reads:
            info = reader.run_info(pod5_name(read.name), str(file))
            assert info["sample_frequency"] == f"{read.sampling_rate:.0f}"
        assert reader.run_info(NOWHERE, str(file)) == {}
        assert reader.run_info("read-0", str(file)) == {}
        assert reader.run_info(NOWHERE, "") == {}
        reader.close()


@pytest.mark.parametrize(
    "use", ["Pod5Index([path])", "Pod5Reader().read([name], [path])", "Pod5Reader().run_info(name, path)"]
)
def test_without_the_package(file, made_reads, use):
    script = (
        "import sys\n"
        "sys.modules['pod5'] = sys.modules['lib_pod5'] = None\n"
        "from f5py.errors import MissingDependencyError\n"
        "from f5py.io.signals.pod5.reader import *\n"
        "path, name = sys.argv[1:]\n"
        "assert Pod5Reader().read([name], ['']).problems\n"
        f"try:\n    {use}\n"
        "except MissingDependencyError as problem:\n    print(problem)\n"
    )
    command = [sys.executable, "-c", script, str(file), pod5_name(made_reads[0].name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{file}: reading POD5 files needs the package pod5; install it: pip install pod5\n"


@pytest.mark.shared
def test_the_real_set_is_that_of_fast5_to_the_bit(ecoli):
    formats = ecoli / "formats"
    source = pod5_source(formats / "reads.pod5")
    with h5py.File(formats / "multi_gzip.fast5") as file:
        names = [group.removeprefix("read_") for group in file]
    fast5 = fast5_source(dict.fromkeys(names, str(formats / "multi_gzip.fast5")))
    block, expected = source.fetch(names), fast5.fetch(names)
    assert len(names) == 112
    assert_same_block(block, expected)
    assert block.offsets[-1] > 5_000_000
    assert np.isfinite(block.calibration).all()
    source.close()
    fast5.close()


pytest.importorskip("pod5", reason="needs pod5")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    reads = make_reads(6)
    for i in range(3):
        write_pod5(tmp_path / f"{i}.pod5", reads[2 * i : 2 * i + 2])
    damaged = tmp_path / "1.pod5"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    return [str(tmp_path / f"{i}.pod5") for i in range(3)]


def test_the_same_names_and_words(files, capfd):
    alone = Pod5Index(files)
    words = capfd.readouterr().err
    assert "1.pod5: the file is truncated" in words
    with closing(open_signals(None, pod5=files)) as source:
        assert sorted(source.first_names(9)) == sorted(alone)
        assert not source.fetch(list(alone)).problems
    assert capfd.readouterr().err == words


def test_a_run_that_cannot_begin_leaves_no_process(files):
    with pytest.raises(SignalError, match="is truncated"):
        open_signals(None, pod5=[files[1]], n_processes=2)


def test_the_library_is_not_imported_where_the_run_is_opened(files):
    import subprocess

    program = (
        "import sys\n"
        "from f5py.io.signals import open_signals\n"
        "source = open_signals(None, pod5=[sys.argv[1]], n_processes=1)\n"
        "print(len(source.fetch(source.first_names(9)).offsets), {'pod5', 'pandas', 'pyarrow'} & set(sys.modules))\n"
        "source.close()\n"
    )
    ran = subprocess.run([sys.executable, "-c", program, files[0]], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("3 set()\n", "")


def test_files_that_end_or_stop_the_process(monkeypatch, capfd):
    monkeypatch.setattr(helper_process, "LOOK_EVERY", 0.1)
    monkeypatch.setattr(helper_process, "CPU_SECONDS", 0.5)  # more than starting takes
    index = Pod5Index([])
    with closing(ProcessSource(1, index, odd_readers.OddLister)) as source:
        paths = ["a", "abort", "b", "loop", "c"]
        index.fill(dict(zip(paths, source.list_reads(paths), strict=True)))
    assert list(index.paths_of(list(index))) == ["a", "b", "c"]
    words = " ".join(capfd.readouterr().err.split())
    assert "2 of 5 POD5 files cannot be read" in words
    assert "abort: the file ends the library that reads it (SIGABRT); it is damaged" in words
    assert "loop: the file keeps the library that reads it in an endless loop; it is damaged" in words
