"""Compressed text output: what bgzip's readers make of it."""

from __future__ import annotations

import gzip
import subprocess

import pysam
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from f5py.errors import OutputFileError
from f5py.io.output import open_output

TEXT = b"".join(b"%d\t%d\n" % (i, i * i) for i in range(200_000))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_gzip_and_htslib_read_it(tmp_path, n_threads):
    path = tmp_path / "table.tsv.gz"
    with open_output(str(path), n_threads) as out:
        for start in range(0, len(TEXT), 100_001):
            out.write(TEXT[start : start + 100_001])
    assert gzip.decompress(path.read_bytes()) == TEXT
    with pysam.BGZFile(str(path)) as file:
        assert file.read() == TEXT
    assert path.read_bytes().endswith(pysam_end_block())


def test_bytes_do_not_depend_on_threads_or_portions(tmp_path):
    made = []
    for n_threads, portion in ((1, 7_000), (2, 1_000_003), (4, len(TEXT))):
        path = tmp_path / f"{n_threads}.gz"
        with open_output(str(path), n_threads) as out:
            for start in range(0, len(TEXT), portion):
                out.write(memoryview(TEXT)[start : start + portion])
                out.flush()
        made.append(path.read_bytes())
    assert made[0] == made[1] == made[2]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(parts=st.lists(st.binary(max_size=300), max_size=6))
def test_any_bytes_come_back(tmp_path, parts):
    path = tmp_path / "any.gz"
    with open_output(str(path)) as out:
        for part in parts:
            out.write(part)
    assert gzip.decompress(path.read_bytes()) == b"".join(parts)


def test_what_was_written_before_an_error_is_valid(tmp_path):
    path = tmp_path / "table.tsv.gz"

    def write_and_fail():
        with open_output(str(path)) as out:
            out.write(TEXT)
            raise RuntimeError("elsewhere")

    with pytest.raises(RuntimeError):
        write_and_fail()
    assert gzip.decompress(path.read_bytes()) == TEXT


def test_a_full_disk_is_one_line(tmp_path):
    link = tmp_path / "full.gz"
    link.symlink_to("/dev/full")
    with pytest.raises(OutputFileError, match="No space left"), open_output(str(link)) as out:
        out.write(TEXT)


def test_tabix_takes_it(tmp_path):
    path = tmp_path / "table.bed.gz"
    with open_output(str(path), 2) as out:
        for start in range(0, 50_000, 10):
            out.write(b"chr1\t%d\t%d\n" % (start, start + 1))
    pysam.tabix_index(str(path), preset="bed")
    with pysam.TabixFile(str(path)) as file:
        assert len(list(file.fetch("chr1", 1_000, 2_000))) == 100


def pysam_end_block() -> bytes:
    return bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")


def test_gunzip_does_not_complain(tmp_path):
    path = tmp_path / "table.tsv.gz"
    with open_output(str(path)) as out:
        out.write(TEXT)
    done = subprocess.run(["gzip", "-t", str(path)], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
