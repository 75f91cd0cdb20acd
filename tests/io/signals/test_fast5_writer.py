"""The files that the writer makes, and what other readers make of them."""

from __future__ import annotations

import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest

from f5py.errors import OutputFileError
from f5py.io.signals.fast5.fast5_writer import Fast5Writer
from f5py.io.signals.source import Calibration

from ...patience import PATIENCE
from .made_signals import assert_holds, fast5_source, make_reads


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


def test_same_calls_same_bytes(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / name, make_reads(4))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_an_error_leaves_nothing_and_the_old_file_alone(tmp_path):
    path = tmp_path / "a.fast5"
    path.write_text("old")
    read = make_reads(1)[0]
    file = Fast5Writer(path).__enter__()
    file.write(read.name, read.samples, Calibration(**read.calibration()))
    file.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert [file.name for file in tmp_path.iterdir()] == ["a.fast5"]
    assert path.read_text() == "old"


@pytest.mark.parametrize("samples", [np.empty(0, np.int16), np.ones(3), np.ones((2, 2), np.int16)])
def test_samples_of_another_kind(tmp_path, samples):
    with Fast5Writer(tmp_path / "a.fast5") as file, pytest.raises(ValueError, match="read r: samples"):
        file.write("r", samples, Calibration(1, 1, 1, 1))


def test_read_written_twice(tmp_path):
    read = make_reads(1)[0]
    with Fast5Writer(tmp_path / "a.fast5") as file:
        file.write(read.name, read.samples, Calibration(**read.calibration()))
        with pytest.raises(ValueError, match="already"):
            file.write(read.name, read.samples, Calibration(**read.calibration()))
    block = fast5_source({read.name: str(tmp_path / "a.fast5")}).fetch([read.name])
    assert_holds(block, 0, read)


def test_folder_that_is_not_there(tmp_path):
    path = tmp_path / "nowhere" / "a.fast5"
    with pytest.raises(OutputFileError, match=rf"^{path}: cannot write: [^\n]*No such file"), Fast5Writer(path):
        pass


def test_full_disk(tmp_path):
    """Said by a limit on the size of files, which gives the same kind of error at the same places."""
    program = (
        "import resource, signal, sys, numpy as np\n"
        "from f5py.errors import OutputFileError\n"
        "from f5py.io.signals.fast5.fast5_writer import Fast5Writer\n"
        "from f5py.io.signals.source import Calibration\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
        "rng = np.random.default_rng(1)\n"
        "try:\n"
        "    with Fast5Writer(sys.argv[1]) as file:\n"
        "        for i in range(9):\n"
        "            noise = rng.integers(-32768, 32767, 30_000).astype(np.int16)\n"
        "            file.write(str(i), noise, Calibration(1, 1, 1, 1))\n"
        "except OutputFileError as error:\n"
        "    print(error)\n"
    )
    path = tmp_path / "a.fast5"
    run = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert run.stdout == f"{path}: cannot write: File too large\n"
    assert run.stderr == ""
    assert run.returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("nanopolish") is None, reason="needs nanopolish")
def test_nanopolish_indexes_and_calls(tmp_path, ecoli):
    """Its calls from a written file are those from the original files."""
    import pysam

    with pysam.AlignmentFile(ecoli / "reads8.bam") as alignments:
        names = sorted({record.query_name for record in alignments})
    (tmp_path / "fast5").mkdir()
    with h5py.File(ecoli / "formats" / "multi_gzip.fast5") as file, Fast5Writer(tmp_path / "fast5" / "a.fast5") as new:
        for name in names:
            channel = file[f"read_{name}/channel_id"].attrs
            calibration = Calibration(*(channel[what] for what in Calibration._fields))
            new.write(name, file[f"read_{name}/Raw/Signal"][:], calibration)
    shutil.copy(ecoli / "reads.fasta", tmp_path)
    reads, reference, bam = tmp_path / "reads.fasta", ecoli / "ref.fa", ecoli / "reads8.bam"
    subprocess.run(["nanopolish", "index", "-d", tmp_path / "fast5", reads], check=True, capture_output=True)
    command = ["nanopolish", "call-methylation", "-r", reads, "-b", bam, "-g", reference]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "bad fast5: 0" in run.stderr
    header, *rows = run.stdout.splitlines()
    expected = (ecoli / "expected" / "nanopolish" / "cpg.tsv").read_text().splitlines()
    in_bam = [row for row in expected[1:] if row.split("\t")[4] in names]
    assert header == expected[0]
    assert len(rows) > 1000
    assert set(rows) <= set(in_bam)
