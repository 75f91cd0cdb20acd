"""Portions of a BGZF stream."""

from __future__ import annotations

import io
import os

import pysam

from f5py.io.bam.bam_blocks import READ_BYTES, inflate_portions


def test_portions_of_text_that_is_packed_well_are_small(tmp_path):
    piece = os.urandom(1 << 12)
    text = piece * (1 << 14)
    path = tmp_path / "packed.gz"
    with pysam.BGZFile(str(path), "w") as out:
        out.write(text)
    packed = path.read_bytes()
    assert len(packed) < len(text) / 8
    portions = list(inflate_portions(io.BytesIO(packed), READ_BYTES // 8))
    assert b"".join(portions) == text
    assert max(map(len, portions[1:])) < len(text) / 12
