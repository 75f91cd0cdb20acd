"""Files in memory where the system has none."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pysam
import pytest

from f5py.io.bam.alignments import AlignmentFile


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
