"""Sorted records: in samtools' order, with htslib's index, however many there are; and never half of a file."""

from __future__ import annotations

import gzip
import itertools
import os
import random
import struct
import subprocess
import threading
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pysam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from f5py.errors import OutputFileError
from f5py.io.bam.bam_records import bam_header
from f5py.mapping._sorting_numba import SORT_SCRATCH, sort_pairs
from f5py.mapping.sorting import record_runs, sorted_bam
from f5py.mapping.sorting.sorted_bam import SortedRecords

from ..compiled import compiled

N_RECORDS = 3000
FLAGS = (0, 16, 0x100, 0x110, 0x800, 0x810)


class Unsorted:
    """Records in the order of their reads, many of them at the same place."""

    def __init__(self, folder: Path, lengths: list[int], n_records: int = N_RECORDS, span: int = 400) -> None:
        rng = random.Random(7)
        contigs = [{"SN": f"c{i}", "LN": length} for i, length in enumerate(lengths)]
        self.header = pysam.AlignmentHeader.from_dict({"HD": {"VN": "1.6", "SO": "coordinate"}, "SQ": contigs})
        self.path = folder / "unsorted.bam"
        with pysam.AlignmentFile(str(self.path), "wb", header=self.header) as file:
            for i in range(n_records):
                record = pysam.AlignedSegment(self.header)
                record.query_name = f"read{i}"
                record.query_sequence = "ACGTTGCA" * rng.randint(1, 400 if i % 100 else 12_000)
                record.reference_id = rng.choice((*range(len(lengths)), -1))
                record.flag = rng.choice((4, 20)) if record.reference_id < 0 else rng.choice(FLAGS)
                if record.reference_id >= 0:
                    length = lengths[record.reference_id]
                    record.reference_start = rng.randrange(0, min(span, length), 20)
                    record.cigarstring = f"{len(record.query_sequence)}M"
                    if i % 7 == 0:  # next to a mapped mate
                        record.flag, record.cigarstring = 4, None
                file.write(record)
        with pysam.BGZFile(str(self.path)) as bgzf:
            self.records = bgzf.read()[len(bam_header(self.header)) :]

    def pieces(self, rng: random.Random) -> list[bytes]:
        starts = [0]
        while starts[-1] < len(self.records):
            starts.append(starts[-1] + 4 + struct.unpack_from("<i", self.records, starts[-1])[0])
        chosen = sorted({0, len(starts) - 1, *rng.sample(range(len(starts)), len(starts) // 20)})
        return [self.records[starts[i] : starts[j]] for i, j in itertools.pairwise(chosen)]


@pytest.fixture(scope="module")
def unsorted(tmp_path_factory: pytest.TempPathFactory) -> Unsorted:
    return Unsorted(tmp_path_factory.mktemp("unsorted"), [5_000_000, 3_000_000, 20_000, 500])


def write_all(records: SortedRecords, unsorted: Unsorted) -> None:
    for piece in unsorted.pieces(random.Random(len(unsorted.records))):
        records.write(piece)


def text_of(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


def limit_memory(monkeypatch: pytest.MonkeyPatch, megabytes: int) -> None:
    monkeypatch.setattr(sorted_bam, "_MEGABYTES", megabytes)
    monkeypatch.setattr(record_runs, "_WINDOW_BYTES", 3 << 20)


def nameless_files(folder: Path) -> list[Path]:
    """List this process's open files in a folder that have no name there."""
    links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    return [link for link in links if link.exists() and is_nameless(os.readlink(link), folder)]


def is_nameless(target: str, folder: Path) -> bool:
    return target.startswith(f"{folder}/") and target.endswith(" (deleted)")


@pytest.mark.parametrize(("n_threads", "megabytes"), [(1, 768), (2, 2), (3, 0)])
def test_the_order_is_that_of_sort_and_the_index_that_of_index(
    unsorted: Unsorted, tmp_path: Path, monkeypatch, n_threads: int, megabytes: int
):
    assert len(unsorted.records) > 8 << 20
    pysam.sort("--no-PG", "-o", str(tmp_path / "theirs.bam"), str(unsorted.path))
    limit_memory(monkeypatch, megabytes)
    path = tmp_path / "out.bam"
    with SortedRecords(str(path), unsorted.header, n_threads) as records:
        write_all(records, unsorted)
        assert [one.stat().st_size > 0 for one in nameless_files(tmp_path)] == [True] * (megabytes < 768)
        assert not list(tmp_path.glob("out*"))
    assert text_of(path) == text_of(tmp_path / "theirs.bam")
    pysam.quickcheck(str(path))
    ours = Path(f"{path}.bai").read_bytes()
    pysam.index(str(path))
    assert ours == Path(f"{path}.bai").read_bytes()
    assert len(list(tmp_path.iterdir())) == 3


def test_an_index_of_long_contigs(tmp_path: Path):
    unsorted = Unsorted(tmp_path, [600_000_000, 3000, 70_000], 2000, 590_000_000)
    with SortedRecords(str(tmp_path / "out.bam"), unsorted.header) as records:
        write_all(records, unsorted)
    ours = (tmp_path / "out.bam.csi").read_bytes()
    pysam.index("-c", str(tmp_path / "out.bam"))
    assert ours == (tmp_path / "out.bam.csi").read_bytes()


def test_a_file_of_runs_that_has_changed_is_told(unsorted: Unsorted, tmp_path: Path, monkeypatch):
    limit_memory(monkeypatch, 1)

    def run() -> None:
        with SortedRecords(str(tmp_path / "out.bam"), unsorted.header) as records:
            write_all(records, unsorted)
            (runs,) = nameless_files(tmp_path)
            os.truncate(runs, runs.stat().st_size // 2)

    with pytest.raises(OutputFileError, match="a temporary file has changed"):
        run()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("megabytes", [768, 1])
@pytest.mark.parametrize("is_late", [False, True])
def test_an_interrupt_leaves_nothing(unsorted: Unsorted, tmp_path: Path, monkeypatch, is_late: bool, megabytes: int):
    limit_memory(monkeypatch, megabytes)

    def run() -> None:
        with ExitStack() as ending:
            with SortedRecords(str(tmp_path / "out.bam"), unsorted.header, ending=ending) as records:
                write_all(records, unsorted)
                if not is_late:
                    raise KeyboardInterrupt
                monkeypatch.setattr(sorted_bam, "bgzf_block", held_up)
            at_work.wait()
            going_on.set()
            raise KeyboardInterrupt

    at_work, going_on = threading.Event(), threading.Event()
    n_made = 0
    bgzf_block = sorted_bam.bgzf_block

    def held_up(text: np.ndarray) -> bytes:
        nonlocal n_made
        n_made += 1
        at_work.set()
        going_on.wait()
        return bgzf_block(text)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert list(tmp_path.iterdir()) == []
    assert n_made < len(unsorted.records) // 0xFF00  # the others were not wanted any more
    assert sorted_bam._THREAD not in [thread.name for thread in threading.enumerate()]


def test_a_thread_that_writes_comes_back_when_all_stops(unsorted: Unsorted, tmp_path: Path, monkeypatch):
    limit_memory(monkeypatch, 1)

    def run() -> None:
        with SortedRecords(str(tmp_path / "out.bam"), unsorted.header) as records:
            records.stop()
            with pytest.raises(record_runs.StoppedError):
                write_all(records, unsorted)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_has_seen_enough(unsorted: Unsorted, tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["head", "-c", "1000", str(pipe)], stdout=subprocess.PIPE)

    def run() -> None:
        with ExitStack() as ending, SortedRecords(str(pipe), unsorted.header, ending=ending) as records:
            write_all(records, unsorted)

    with pytest.raises(BrokenPipeError):
        run()
    assert len(reader.communicate()[0]) == 1000
    assert list(tmp_path.iterdir()) == [pipe]


sort_pairs = compiled(sort_pairs)


def sorted_by(sort, keys: np.ndarray, *places: int) -> tuple[list[int], list[int]]:
    x, y = keys.astype(np.uint64), np.arange(len(keys))
    sort(x, y, *places, len(keys), np.empty(SORT_SCRATCH, np.int64))
    return x.tolist(), y.tolist()


def plainly_sorted(keys: list[int], shift: int = 56) -> list[int]:
    """Sort as minimap2's radix sort does: in place, by the highest byte, then each bucket; return the indices."""
    order = list(range(len(keys)))
    if len(keys) <= 64:
        return sorted(order, key=lambda i: keys[i])
    buckets = [keys[i] >> shift & 255 for i in order]
    ends = np.cumsum(np.bincount(buckets, minlength=256)).tolist()
    heads = [0, *ends[:-1]]
    for bucket in range(256):
        while heads[bucket] < ends[bucket]:
            at = order[heads[bucket]]
            while buckets[at] != bucket:
                to = heads[buckets[at]]
                heads[buckets[at]] += 1
                at, order[to] = order[to], at
            order[heads[bucket]] = at
            heads[bucket] += 1
    if shift == 0:
        return order
    done: list[int] = []
    for first, end in zip([0, *ends[:-1]], ends, strict=True):
        part = order[first:end]
        done += [part[i] for i in plainly_sorted([keys[i] for i in part], shift - 8)]
    return done


@given(n=st.integers(0, 400), most=st.sampled_from([3, 40, 1000, 1 << 40]), is_sorted=st.booleans(), data=st.data())
def test_the_order_of_equal_keys_is_that_of_minimap2(n, most, is_sorted, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    keys = rng.integers(0, most, n) * data.draw(st.sampled_from([1, 1 << 8, 1 << 20]))
    if is_sorted:
        keys.sort()
    order = plainly_sorted(keys.tolist())
    assert sorted_by(sort_pairs, keys, 0) == (keys[order].tolist(), order)
