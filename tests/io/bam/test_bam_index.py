"""BAM indices that are damaged, or of other files."""

from __future__ import annotations

import gzip
import random
import struct
from contextlib import suppress
from pathlib import Path

import pysam
import pytest

from f5py.core.windows import Windows
from f5py.errors import InputFileError
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_index import find_index, read_index


def write_bam(path: Path, positions: list[int], contigs: int = 2, unmapped: int = 3) -> Path:
    """Sorted records on the first contigs, and some unmapped ones at the end; with an index."""
    header = {"HD": {"SO": "coordinate"}, "SQ": [{"SN": f"c{i}", "LN": 1_000_000} for i in range(contigs)]}
    rng = random.Random(1)
    with pysam.AlignmentFile(str(path), "wb", header=header) as file:
        for contig in range(min(contigs, 2)):
            for i, position in enumerate(positions):
                record = pysam.AlignedSegment(file.header)
                record.query_name = f"r{contig}-{i}"
                record.query_sequence = "".join(rng.choices("ACGT", k=400))
                record.reference_id, record.reference_start, record.mapping_quality = contig, position, 60
                record.cigarstring = "400M"
                file.write(record)
        for i in range(unmapped):
            record = pysam.AlignedSegment(file.header)
            record.query_name, record.flag = f"u{i}", 4
            file.write(record)
    pysam.index(str(path))
    return path


@pytest.fixture
def bam(tmp_path: Path) -> Path:
    return write_bam(tmp_path / "a.bam", list(range(0, 900_000, 1500)))


def check(bam: Path) -> None:
    file = AlignmentFile(str(bam), "", 0, False)
    try:
        file.check_index()
    finally:
        file.close()


def test_what_an_index_says(bam: Path) -> None:
    index = read_index(f"{bam}.bai", str(bam))
    assert (index.n_contigs, index.n_mapped) == (2, 1200)
    check(bam)
    file = AlignmentFile(str(bam), "", 0, False)
    assert file.expected_records() == 1200
    window = Windows.parse(["c1:1-10,000"], file.contigs)
    assert sum(n for _, _, n in file.chunks(window)) == 7
    file.close()
    assert find_index(str(bam)) == f"{bam}.bai"
    pysam.index("-c", str(bam))
    assert find_index(str(bam)) == f"{bam}.csi"  # as htslib does


def test_an_index_of_fewer_contigs(bam: Path, tmp_path: Path) -> None:
    """htslib reads past the end of its tables then, also to count records."""
    more = write_bam(tmp_path / "more.bam", [0, 10], contigs=30)
    Path(f"{more}.bai").write_bytes(Path(f"{bam}.bai").read_bytes())
    file = AlignmentFile(str(more), "", 0, False)
    assert file.expected_records() is None
    with pytest.raises(InputFileError, match="index"):
        file.check_index()
    file.close()


def test_an_index_of_an_earlier_file(bam: Path, tmp_path: Path) -> None:
    """With more records now than there were."""
    old = Path(f"{bam}.bai").read_bytes()
    write_bam(bam, list(range(0, 990_000, 1500)))
    Path(f"{bam}.bai").write_bytes(old)
    with pytest.raises(InputFileError, match=rf"index.* of .*; run: samtools index {bam}"):
        check(bam)


def test_any_cut(bam: Path) -> None:
    path = Path(f"{bam}.bai")
    whole = path.read_bytes()
    for size in range(0, len(whole) - 8, 97):
        path.write_bytes(whole[:size])
        with pytest.raises(InputFileError, match="is damaged or not the index of"):
            read_index(str(path), str(bam))


def visited(bam: Path, window: str) -> list[bytes]:
    file = AlignmentFile(str(bam), "", 0, False)
    try:
        chunks = file.chunks(Windows.parse([window], file.contigs))
        return [data[starts[i] : starts[i + 1]].tobytes() for data, starts, n in chunks for i in range(n)]
    finally:
        file.close()


def test_any_bit(bam: Path) -> None:
    """A flipped bit is seen, or changes nothing: no record is lost, whatever the bit means."""
    path = Path(f"{bam}.bai")
    whole = bytearray(path.read_bytes())
    windows = ["c0:1-3,000", "c0:400,000-470,000", "c1:1-20,000", "c1:880,000-900,000"]
    expected = [visited(bam, window) for window in windows]
    assert [len(records) for records in expected] == [2, 47, 14, 13]
    rng = random.Random(2)
    unseen = 0
    for i in range(600):
        damaged = whole.copy()
        at = rng.randrange(len(whole))
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        with suppress(InputFileError):
            assert visited(bam, windows[i % 4]) == expected[i % 4]
            unseen += 1
    assert 50 < unseen < 550


def test_a_csi_is_used_as_a_bai_is(bam: Path) -> None:
    windows = ["c0:1-3,000", "c0:400,000-470,000", "c1:1-20,000", "c1:880,000-900,000", "c1:990,000-1,000,000"]
    expected = [visited(bam, window) for window in windows]
    for shift in ("14", "10"):
        pysam.index("-c", "-m", shift, str(bam))
        Path(f"{bam}.bai").unlink(missing_ok=True)
        index = read_index(f"{bam}.csi", str(bam))
        assert (index.n_contigs, index.n_mapped, index.shift) == (2, 1200, int(shift))
        assert [visited(bam, window) for window in windows] == expected


def test_any_byte_of_a_csi(bam: Path) -> None:
    """Damage that the compression does not tell, as its checksums are right."""
    pysam.index("-c", str(bam))
    path = Path(f"{bam}.csi")
    whole = bytearray(gzip.decompress(path.read_bytes()))
    windows = ["c0:400,000-470,000", "c1:1-20,000"]
    expected = [visited(bam, window) for window in windows]
    rng = random.Random(3)
    for i in range(600):
        damaged = whole.copy()
        damaged[rng.randrange(len(whole))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        path.write_bytes(gzip.compress(bytes(damaged)))
        with suppress(InputFileError):
            assert visited(bam, windows[i % 2]) == expected[i % 2]
    for size in range(0, len(whole) - 8, 131):
        path.write_bytes(gzip.compress(bytes(whole[:size])))
        with pytest.raises(InputFileError, match="is damaged or not the index of"):
            read_index(str(path), str(bam))
    path.write_bytes(gzip.compress(bytes(whole))[:-9])
    with pytest.raises(InputFileError, match="is damaged or not the index of"):
        read_index(str(path), str(bam))


def test_empty_contigs_and_files(tmp_path: Path) -> None:
    empty = write_bam(tmp_path / "empty.bam", [])
    check(empty)
    assert read_index(f"{empty}.bai", str(empty)).last == 0
    Path(f"{empty}.bai").write_bytes(b"BAI\1" + struct.pack("<i", -1))
    with pytest.raises(InputFileError, match="is damaged"):
        read_index(f"{empty}.bai", str(empty))
