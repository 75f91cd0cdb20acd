"""Files in memory that somebody changes while they are read."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pysam
import pytest

from f5py.errors import InputFileError
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.files.mapped_file import MappedFile
from f5py.io.reads.read_files import ReadFiles
from f5py.io.reads.reference import Reference

from ...made_data import ReadSet, refused

N_BYTES = 1 << 20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"a" * N_BYTES)
    os.utime(path, ns=(0, 0))
    return path


def rewrite(path: Path) -> None:
    with path.open("r+b") as out:
        out.write(b"b" * 10)


def test_a_file_that_is_rewritten(file: Path):
    mapped = MappedFile(str(file))
    mapped.check()
    rewrite(file)
    assert mapped.text[0] == ord("b")
    with pytest.raises(InputFileError, match="has been changed while it was read"):
        mapped.check()
    mapped.close()
    mapped.close()


def test_a_file_that_is_replaced_stays_as_it_was(file: Path, tmp_path: Path):
    mapped = MappedFile(str(file))
    (tmp_path / "new").write_bytes(b"x")
    (tmp_path / "new").replace(file)
    mapped.check()
    assert np.array_equal(mapped.text, np.full(N_BYTES, ord("a")))


def test_an_empty_file(file: Path):
    file.write_bytes(b"")
    mapped = MappedFile(str(file))
    assert len(mapped.text) == mapped.size == 0
    mapped.check()


@pytest.mark.parametrize("where", ["main", "thread", "kernel"])
def test_a_file_that_becomes_shorter_ends_the_process_with_one_line(file: Path, where: str):
    program = f"""
import os, threading
from f5py.io.files.mapped_file import MappedFile
from f5py.messages import console
mapped = MappedFile({str(file)!r})
def read():
    if {where == "kernel"}:
        import numpy as np
        from f5py.core._name_table_numba import gather
        gather(mapped.text, np.zeros(1, np.int64), np.array([len(mapped.text)]), np.empty(len(mapped.text), np.uint8))
    else:
        mapped.text.sum()
os.truncate({str(file)!r}, 100)
if {where == "main"}:
    read()
else:
    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
print("it goes on")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        f"input: {file}: has become shorter while it was read; run again when it is whole"
    ]


def test_a_large_list_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("f5py.io.reads.read_files._LARGE_BYTES", 1)
    path = tmp_path / "reads.fa.index.readdb"
    path.write_text("a\tx.fast5\nb\ty.fast5\n")
    os.utime(path, ns=(0, 0))
    files = ReadFiles.read(str(path))
    assert files["b"] == "y.fast5"
    rewrite(path)
    with pytest.raises(InputFileError, match="has been changed while it was read"):
        files.paths_of(["b"])


@pytest.mark.parametrize("is_zipped", [False, True])
@pytest.mark.parametrize("command", ["call-methylation", "eventalign"])
def test_a_reference_that_is_rewritten_during_a_run(
    made: ReadSet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    command: str,
    is_zipped: bool,
):
    genome = tmp_path / ("ref.fa.gz" if is_zipped else "ref.fa")
    if is_zipped:
        pysam.tabix_compress(str(made.genome), str(genome))
    else:
        shutil.copy(made.genome, genome)
    os.utime(genome, ns=(0, 0))
    segments, n_calls = Reference.segments, 0

    def segments_of_changed(self: Reference, *arguments):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 3:
            os.utime(genome)
        return segments(self, *arguments)

    monkeypatch.setattr(Reference, "segments", segments_of_changed)
    given = ("-r", made.reads, "-b", made.bam, "-g", genome, "-t", "1", "-K", "2", "-o", tmp_path / "out.tsv")
    assert f"{genome}: has been changed while it was read" in refused(capfd, command, *given)
    assert n_calls >= 3


def _refuse(*_: object) -> int:
    raise OSError(errno.ENOSYS, "Function not implemented")


@pytest.fixture(params=["there", "refused", "absent"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "refused":
        monkeypatch.setattr(os, "memfd_create", _refuse)
    elif request.param == "absent":
        monkeypatch.delattr(os, "memfd_create")


@pytest.mark.usefixtures("system")
def test_sam_is_read(tmp_path: Path):
    path = tmp_path / "x.sam"
    path.write_text("@SQ\tSN:one\tLN:100\nread\t0\tone\t5\t60\t4M\t*\t0\t0\tACGT\t*\n")
    alignments = AlignmentFile(str(path), None, 0, False)
    ((data, starts, n),) = alignments.chunks()
    assert n == 1
    assert b"read\0" in data[: starts[1]].tobytes()
    alignments.close()
    assert pysam.AlignmentFile(str(path)).header.references == ("one",)
