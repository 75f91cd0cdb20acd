"""Compressed text output: what bgzip's readers make of it."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import struct
import threading
import time
import zlib

import numpy as np
import pysam
import pytest

from f5py.io.bam.bam_blocks import READ_BYTES, inflate_portions
from f5py.io.bytes.bgzf_blocks import END_BLOCK, MAX_BLOCK, bgzf_blocks
from f5py.io.bytes.bgzip_output import BgzipOutput
from f5py.io.files.output import open_output

from ...patience import PATIENCE

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


def test_blocks_are_as_bgzip_has_them(tmp_path):
    """Blocks of 0xFF00 bytes of text, with sizes and checksums that any reader of BGZF finds."""
    path = tmp_path / "table.tsv.gz"
    with open_output(str(path), 2) as out:
        out.write(TEXT)
    data = path.read_bytes()
    texts, at = [], 0
    while at < len(data):
        assert data[at : at + 16] == bytes.fromhex("1f8b08040000000000ff060042430200")
        end = at + 1 + struct.unpack_from("<H", data, at + 16)[0]
        texts.append(zlib.decompress(data[at + 18 : end - 8], -15))
        assert struct.unpack_from("<II", data, end - 8) == (zlib.crc32(texts[-1]), len(texts[-1]))
        at = end
    assert data.endswith(pysam_end_block())
    assert texts == [*(TEXT[i : i + 0xFF00] for i in range(0, len(TEXT), 0xFF00)), b""]


@pytest.mark.parametrize("n_letters", [1, 2, 100, 256])
def test_blocks_of_what_cannot_be_packed_are_no_longer_than_allowed(n_letters):
    text = np.random.default_rng(n_letters).integers(0, n_letters, 0xFF00 * 3 + 1).astype(np.uint8).tobytes()
    blocks = bgzf_blocks(text, 0xFF00)
    assert max(map(len, blocks)) <= MAX_BLOCK
    assert gzip.decompress(b"".join(blocks)) == text


def test_nothing_can_be_written_after_the_end(tmp_path):
    for end in ("close", "end_early"):
        path = tmp_path / f"{end}.gz"
        out = BgzipOutput(path.open("wb"), 1)
        out.write(b"row\n")
        getattr(out, end)()
        size = path.stat().st_size
        with pytest.raises(ValueError, match="closed"):
            out.write(b"more\n")
        with pytest.raises(ValueError, match="closed"):
            out.flush()
        out.close()
        out.end_early()
        assert path.stat().st_size == size
        assert path.read_bytes().endswith(END_BLOCK) == (end == "close")


@pytest.mark.parametrize("end", ["close", "end_early"])
def test_the_end_while_another_thread_writes(tmp_path, end):
    """What has been written until then is whole, and the rest is refused."""
    for attempt in range(10):
        path = tmp_path / f"{attempt}.gz"
        out = BgzipOutput(path.open("wb"), 3)
        written = []
        started = threading.Event()

        refused = []

        def write(out=out, written=written, started=started, refused=refused):
            try:
                for number in itertools.count():
                    out.write(b"%d\n" % number * 50_000)
                    written.append(number)
                    started.set()
            except ValueError as problem:
                refused.append(problem)

        writer = threading.Thread(target=write)
        writer.start()
        started.wait()
        time.sleep(0.002 * attempt)
        getattr(out, end)()
        size = path.stat().st_size
        writer.join(timeout=PATIENCE)
        assert not writer.is_alive()
        assert len(refused) == 1
        expected = b"".join(b"%d\n" % number * 50_000 for number in written)
        text = gzip.decompress(path.read_bytes())
        assert text == expected if end == "close" else expected.startswith(text)
        assert path.stat().st_size == size


def test_the_file_holds_whole_blocks_at_any_time(tmp_path):
    """So that it can be read if the process ends before it is closed."""
    path = tmp_path / "table.tsv.gz"
    noise = np.random.default_rng(1).bytes(9_000_000)
    with path.open("wb") as file:
        out = BgzipOutput(file, 2)
        for start in range(0, len(noise), 700_000):
            out.write(noise[start : start + 700_000])
            assert noise.startswith(gzip.decompress(path.read_bytes()))
        assert path.stat().st_size > 1_000_000
        out.end_early()


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
