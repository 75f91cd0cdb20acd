"""SLOW5 files: their index, their header, and everything that can be wrong with them."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from f5py.errors import MissingDependencyError, OutputFileError, SignalError
from f5py.io.signals.slow5.blow5_writer import blow5_writer
from f5py.io.signals.slow5.reader import Slow5Source, read_groups
from f5py.io.signals.source import Calibration

from .made_signals import MadeRead, assert_holds, assert_unreadable, make_reads
from .made_slow5 import GROUPS, blow5_record, write_blow5, write_slow5

WRITERS = [write_slow5, write_blow5]


@pytest.fixture
def reads() -> list[MadeRead]:
    return make_reads()


def fetch(path, names, n_threads=1):
    source = Slow5Source(str(path), n_threads)
    try:
        return source.fetch(names)
    finally:
        source.close()


def assert_all_there(path, reads):
    block = fetch(path, [read.name for read in reads])
    assert block.problems == {}
    for i, read in enumerate(reads):
        assert_holds(block, i, read)


def test_a_closed_source_says_so(tmp_path, reads):
    source = Slow5Source(write_blow5(tmp_path / "a.blow5", reads))
    source.close()
    with pytest.raises(SignalError, match=r"a\.blow5: has been closed"):
        source.fetch(["read-0"])


# The index


@pytest.mark.parametrize("write", WRITERS)
def test_an_absent_index_is_made_once(tmp_path, reads, write, capfd):
    path = write(tmp_path / "a.blow5", reads)
    assert_all_there(path, reads)
    told = capfd.readouterr().err
    assert told == f"[open_slow5::INFO] {path}.idx: not found; indexing {path}\n"
    made = Path(f"{path}.idx").read_bytes()
    assert_all_there(path, reads)
    assert capfd.readouterr().err == ""
    assert Path(f"{path}.idx").read_bytes() == made
    os.utime(f"{path}.idx", (1, 1))  # as when a folder is copied
    assert_all_there(path, reads)
    assert capfd.readouterr().err == ""
    assert sorted(os.listdir(tmp_path)) == ["a.blow5", "a.blow5.idx"]


def test_the_index_is_what_pyslow5_makes(tmp_path, reads):
    pyslow5 = pytest.importorskip("pyslow5", reason="compared with it")

    path = write_blow5(tmp_path / "a.blow5", reads)
    assert_all_there(path, reads)
    shutil.copy(path, tmp_path / "b.blow5")
    pyslow5.Open(str(tmp_path / "b.blow5"), "r").get_read_ids()
    assert (tmp_path / "b.blow5.idx").read_bytes() == (tmp_path / "a.blow5.idx").read_bytes()


def other_file(path, reads):
    write_blow5(path, reads[:3])


def reads_added(path, reads):
    write_blow5(path, [*reads, MadeRead("new", np.arange(9, dtype=np.int16))])


@pytest.mark.parametrize("change", [other_file, reads_added])
def test_the_index_of_another_file_is_made_anew(tmp_path, reads, change, capfd):
    path = write_blow5(tmp_path / "a.blow5", reads)
    fetch(path, [])
    change(tmp_path / "a.blow5", reads)
    capfd.readouterr()
    assert_all_there(path, reads[:3])
    assert f"WARNING] {path}.idx: is not the index of this file; indexing {path} again\n" in capfd.readouterr().err
    fetch(path, [])
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not an index"),
        (b"something else" * 20, "is not an index"),
        (b"SLOW5IDX\x01" + bytes(55) + b"abc", "is truncated"),
        (b"SLOW5IDX\x01" + bytes(91), "is truncated"),
        (b"SLOW5IDX\x01" + bytes(55) + b"XDI5WOLS", "lists no reads"),
    ],
)
def test_a_damaged_index_is_made_anew(tmp_path, reads, content, words, capfd):
    path = write_blow5(tmp_path / "a.blow5", reads)
    Path(f"{path}.idx").write_bytes(content)
    assert_all_there(path, reads)
    told = capfd.readouterr().err
    assert told.count("\n") == 1
    assert f"{path}.idx: {words}" in told


def test_an_index_with_a_foreign_middle(tmp_path, reads, capfd):
    """The ends fit, so that it is taken; what it says of a read is then compared with the read."""
    path = write_blow5(tmp_path / "a.blow5", reads)
    fetch(path, [])
    index = Path(f"{path}.idx")
    index.write_bytes(index.read_bytes().replace(b"read-2", b"read-x"))
    capfd.readouterr()
    block = fetch(path, ["read-1", "read-x", "read-2"])
    assert_holds(block, 0, reads[1])
    assert_unreadable(block, 1, "read read-x", "is damaged")
    assert_unreadable(block, 2, "is not in this file")
    assert capfd.readouterr().err == ""


def test_a_folder_that_cannot_be_written(tmp_path, reads, monkeypatch, capfd):
    from f5py.io.signals.slow5 import _slow5_index

    def refuse(path, **_):
        raise OutputFileError(f"{path}: cannot write: Permission denied")

    path = write_blow5(tmp_path / "a.blow5", reads)
    monkeypatch.setattr(_slow5_index, "complete_output", refuse)
    assert_all_there(path, reads)
    assert f"WARNING] {path}.idx: cannot be written (Permission denied)" in capfd.readouterr().err
    assert os.listdir(tmp_path) == ["a.blow5"]


# The header


@pytest.mark.parametrize("write", WRITERS)
def test_run_info_is_that_of_the_read_group(tmp_path, reads, write, capfd):
    groups = [GROUPS[0], {"Sequencing_Kit": "sqk-rna002", "sample_frequency": "3012", "flow_cell_id": ""}]
    source = Slow5Source(write(tmp_path / "a.blow5", reads, groups, of_group=1))
    capfd.readouterr()
    assert source.run_info(["nobody", "read-4"]) == {"sequencing_kit": "sqk-rna002", "sample_frequency": "3012"}
    assert source.run_info(["nobody"]) == {}
    assert source.run_info([]) == {}
    assert capfd.readouterr().err == ""
    source.close()


def test_mixed_experiments_are_warned_of(tmp_path, reads, capfd):
    groups = [GROUPS[0], {"experiment_type": "rna"}]
    source = Slow5Source(write_slow5(tmp_path / "a.slow5", reads, groups))
    capfd.readouterr()
    assert source.run_info(["read-0"])["experiment_type"] == "genomic_dna"
    told = capfd.readouterr().err
    assert told.count("\n") == 1
    assert "a.slow5: its read groups differ in experiment_type (genomic_dna, rna)" in told
    source.close()


def test_a_file_without_reads_and_attributes(tmp_path):
    path = write_slow5(tmp_path / "a.slow5", [], [{}])
    source = Slow5Source(path)
    assert_unreadable(source.fetch(["a"]), 0, "is not in this file")
    assert source.run_info(["a"]) == {}
    source.close()
    assert read_groups(path) == []


# What is wrong with a file, and words that the error must hold.


def assert_refused(path, *words, capfd=None):
    with pytest.raises(SignalError) as stop:
        Slow5Source(str(path))
    line = str(stop.value)
    assert "\n" not in line
    for word in (str(path), *words):
        assert word in line
    assert not Path(f"{path}.idx").exists()
    if capfd is not None:  # what the C library would print
        assert all(line.startswith("[open_slow5::INFO]") for line in capfd.readouterr().err.splitlines())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b">a\nACGT\n", "not a SLOW5 or BLOW5 file"),
        (b"\x89HDF\r\n\x1a\n" + bytes(99), "is a fast5 file, not SLOW5"),
        (b"\x8bPOD\r\n\x1a\n" + bytes(99), "is a POD5 file, not SLOW5"),
        (b"BLOW5\x01", "damaged header"),
        (b"BLOW5\x01" + bytes(58) + b"\xff\xff\xff\x00text", "damaged header"),
        (b"#slow5_version\t0.2.0\n", "header"),
    ],
)
def test_no_slow5(tmp_path, content, words, capfd):
    (tmp_path / "a.blow5").write_bytes(content)
    assert_refused(tmp_path / "a.blow5", words, capfd=capfd)


@pytest.mark.parametrize("write", WRITERS)
def test_a_version_from_the_future(tmp_path, reads, write, capfd):
    path = Path(write(tmp_path / "a", reads))
    old, new = (b"0.2.0", b"9.0.0") if write is write_slow5 else (b"\x01\x00\x02\x00", b"\x01\x09\x00\x00")
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    assert_refused(path, "version", "update f5py", capfd=capfd)


@pytest.mark.parametrize("write", WRITERS)
def test_a_read_that_is_there_twice(tmp_path, reads, write, capfd):
    assert_refused(write(tmp_path / "a.blow5", [*reads, reads[2]]), "holds read read-2 more than once", capfd=capfd)


@pytest.mark.parametrize("lost", [1, 5, 6, 700, 5000, None])
def test_truncated_or_followed_by_more(tmp_path, reads, lost, capfd):
    path = Path(write_blow5(tmp_path / "a.blow5", reads))
    path.write_bytes(path.read_bytes()[:-lost] if lost else path.read_bytes() + bytes(100))
    assert_refused(path, "truncated or damaged after read number", "copy the file again", capfd=capfd)


def test_no_file_and_a_line_that_is_cut(tmp_path, reads):
    assert_refused(tmp_path / "gone.blow5", "cannot be opened (No such file")
    assert_refused(tmp_path, "is a folder")
    path = Path(write_slow5(tmp_path / "a.slow5", reads))
    path.write_bytes(path.read_bytes()[:-3])
    assert_refused(path, "is truncated after read number")


def damaged(path, reads, which):
    """Write a file of which one record is damaged after its frame."""
    write_blow5(path, reads)
    record = blow5_record(reads[which])
    broken = record[:30] + bytes(len(record) - 30)
    path.write_bytes(path.read_bytes().replace(record, broken))
    return str(path)


def test_a_damaged_record_before_indexing(tmp_path, reads, capfd):
    assert_refused(damaged(tmp_path / "a.blow5", reads, 3), "after read read-2, number 3", capfd=capfd)


def test_a_damaged_record_behind_a_good_index(tmp_path, reads, capfd):
    path = write_blow5(tmp_path / "a.blow5", reads)
    fetch(path, [])
    capfd.readouterr()
    block = fetch(damaged(tmp_path / "a.blow5", reads, 3), [read.name for read in reads])
    assert list(block.problems) == [3]
    assert_unreadable(block, 3, "a.blow5: read read-3 ", "cannot be decompressed")
    assert_holds(block, 2, reads[2])
    assert_holds(block, 4, reads[4])
    assert capfd.readouterr().err == ""


def test_a_read_without_samples_or_calibration(tmp_path, reads):
    odd = [MadeRead("none", np.empty(0, np.int16)), MadeRead("nan", reads[0].samples, range=float("nan")), reads[1]]
    block = fetch(write_blow5(tmp_path / "a.blow5", odd), ["none", "nan", "read-1"])
    assert_unreadable(block, 0, "has no samples")
    assert_unreadable(block, 1, "range nan")
    assert_holds(block, 2, reads[1])


@pytest.mark.parametrize(
    ("library_says", "words"),
    [
        (None, ""),
        ("libzstd.so.1: cannot open shared object file: No such file or directory", "but its library is not on this"),
        (
            "libzstd.so.1: version `GLIBC_2.99' not found",
            r"library cannot be loaded \(libzstd.so.1: version `GLIBC_2.99'",
        ),
    ],
)
def test_records_compressed_with_zstd(tmp_path, reads, monkeypatch, library_says, words):
    zstandard = pytest.importorskip("zstandard")
    path = Path(write_blow5(tmp_path / "a.blow5", reads, zipped=False))
    start, names = path.read_bytes()[: -len(b"5WOLB")], [read.name for read in reads]
    records = [blow5_record(read, zipped=False)[8:] for read in reads]
    for record in records:
        start = start.replace(struct.pack("<Q", len(record)) + record, b"")
    packed = [zstandard.ZstdCompressor().compress(record) for record in records]
    packed[1] = packed[1][:-9]  # cut
    framed = b"".join(struct.pack("<Q", len(record)) + record for record in packed)
    path.write_bytes(start[:9] + bytes([2]) + start[10:] + framed + b"5WOLB")
    if library_says is not None:
        monkeypatch.setattr("ctypes.CDLL", no_zstd(ctypes.CDLL, library_says))
        with pytest.raises(
            MissingDependencyError, match=rf"a\.blow5: is compressed with zstd, .*{words}.*apt-get install libzstd1"
        ):
            Slow5Source(str(path))
        return
    write_index(path, [name.encode() for name in names], packed)
    block = fetch(path, names)
    assert list(block.problems) == [1]
    for i in (0, *range(2, len(reads))):
        assert_holds(block, i, reads[i])


def no_zstd(load, says):
    """Return a loader of libraries that refuses zstd's."""

    def loader(name, *more, **options):
        if "zstd" in str(name):
            raise OSError(says)
        return load(name, *more, **options)

    return loader


@pytest.mark.parametrize("bits", [10, 20, 23])
def test_records_that_shrink_to_a_thousandth(tmp_path, bits):
    """The room for what is decompressed is guessed at first."""
    reads = [MadeRead("flat", np.zeros(1 << bits, np.int16))]
    assert fetch(write_blow5(tmp_path / "a.blow5", reads), ["flat"]).samples.tobytes() == reads[0].samples.tobytes()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"#char*", b"#cher*"), (b"#read_id", b"#reed_id"), (b"sampling_rate", b"samplingrate"),
        (b"@experiment_type\t", b"@experiment_type\tx\t"), (b"@experiment_type\tgenomic_dna", b"@experiment_type"),
        (b"@sample_frequency", b"@experiment_type"), (b"@sequencing_kit", b"sequencing_kit"), (b"genomic", b"geno\0ic"),
        (b"\tint16_t*\n", b"\tint16_t*\tchar*\n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("write", WRITERS)
def test_damaged_headers(tmp_path, reads, write, old, new):
    path = Path(write(tmp_path / "a.blow5", reads))
    content = path.read_bytes()
    assert old in content
    changed = content.replace(old, new, 1)
    if write is write_blow5:
        length = int.from_bytes(content[64:68], "little") + len(new) - len(old)
        changed = changed[:64] + struct.pack("<I", length) + changed[68:]
    path.write_bytes(changed)
    assert_refused(path, "damaged header", "copy the file again")


@pytest.mark.parametrize(("at", "number"), [(9, 3), (14, 3)])
def test_compressions_that_are_not_known(tmp_path, reads, at, number):
    path = Path(write_blow5(tmp_path / "a.blow5", reads))
    content = bytearray(path.read_bytes())
    content[at] = number
    path.write_bytes(content)
    assert_refused(path, "is compressed in a way that f5py does not know", "slow5tools")


# Lengths that lie


def write_records(path, records, signal_press=0):
    """Write a file of records that are not compressed as a whole."""
    write_blow5(path, [], zipped=False)
    start = bytearray(path.read_bytes()[: -len(b"5WOLB")])
    start[14] = signal_press
    framed = b"".join(struct.pack("<Q", len(record)) + record for record in records)
    path.write_bytes(bytes(start) + framed + b"5WOLB")
    return str(path)


def record_of(name, signal, length, name_size=None):
    """Make a record with these bytes of signal, and the length that it claims."""
    size = struct.pack("<H", len(name) if name_size is None else name_size)
    return size + name + struct.pack("<I4dQ", 0, 8192.0, 6.0, 1400.0, 4000.0, length % (1 << 64)) + signal


def write_index(path, names, records):
    """Write the index of the file before the damage; otherwise making one would find the damage first."""
    at = Path(path).stat().st_size - 5 - sum(8 + len(record) for record in records)
    entries = b""
    for name, record in zip(names, records, strict=True):
        entries += struct.pack("<H", len(name)) + name + struct.pack("<QQ", at, 8 + len(record))
        at += 8 + len(record)
    Path(f"{path}.idx").write_bytes((b"SLOW5IDX\x01" + bytes([0, 2, 0])).ljust(64, b"\0") + entries + b"XDI5WOLS")


SAMPLES = np.array([500, 400, 450, 300, 301, 302, 303, 304, 310], np.int16)


def assert_only_the_second_is_good(path, names, records, cause="is damaged"):
    write_index(path, names, records)
    block = fetch(path, ["one", "two"])
    assert_unreadable(block, 0, cause)
    assert block.samples.tolist() == SAMPLES.tolist()


@pytest.mark.parametrize("length", [10, 1 << 32, 1 << 62, (1 << 63) - 1, -1, -(1 << 63)])
def test_a_record_that_claims_more_samples_than_it_has(tmp_path, length):
    signal = SAMPLES.tobytes()
    records = [record_of(b"one", signal, length), record_of(b"two", signal, 9)]
    assert_only_the_second_is_good(write_records(tmp_path / "a.blow5", records), [b"one", b"two"], records)


@pytest.mark.parametrize("name_size", [1000, 65535, 36])
def test_a_record_that_claims_a_longer_name(tmp_path, name_size):
    signal = SAMPLES.tobytes()
    records = [record_of(b"one", signal, 9, name_size), record_of(b"two", signal, 9)]
    path = write_records(tmp_path / "a.blow5", records)
    assert_only_the_second_is_good(path, [b"one", b"two"], records)
    os.remove(f"{path}.idx")
    with pytest.raises(SignalError, match=r"a\.blow5: is damaged; copy the file again|no reads|more than once"):
        fetch(path, ["two"])


@pytest.mark.parametrize("record", [b"", b"\1", b"\3\0on", b"\3\0one" + bytes(43)])
def test_a_record_that_is_shorter_than_its_fields(tmp_path, record):
    records = [record, record_of(b"two", SAMPLES.tobytes(), 9)]
    assert_only_the_second_is_good(write_records(tmp_path / "a.blow5", records), [b"one", b"two"], records)


def svb(samples):
    """StreamVByte of the zigzag coded differences, all of which take two bytes here."""
    differences = np.diff(samples.astype(np.int64), prepend=0)
    coded = (differences << 1) ^ (differences >> 63)
    control = bytes([0x55] * (len(coded) // 4) + [0x55 >> (8 - 2 * (len(coded) % 4))] * (len(coded) % 4 > 0))
    return struct.pack("<I", len(coded)) + control + coded.astype("<u2").tobytes()


@pytest.mark.parametrize(
    "change",
    [
        lambda data: struct.pack("<I", 1 << 31) + data[4:],
        lambda data: struct.pack("<I", 10) + data[4:],
        lambda data: struct.pack("<I", 8) + data[4:],
        lambda data: data[:4] + b"\xff" + data[5:],
        lambda data: data[:-1],
        lambda data: data[:3],
        lambda data: data + b"\0",
    ],
)
def test_compressed_samples_that_claim_to_be_others(tmp_path, change):
    good = svb(SAMPLES)
    bad = change(good)
    records = [record_of(b"one", bad, len(bad)), record_of(b"two", good, len(good))]
    assert_only_the_second_is_good(write_records(tmp_path / "a.blow5", records, 1), [b"one", b"two"], records)


def ex_zd_of(path, samples):
    """Return the bytes of a signal that pyslow5 has compressed."""
    pyslow5 = pytest.importorskip("pyslow5", reason="compared with it")

    file = pyslow5.Open(str(path), "w", rec_press="none", sig_press="ex-zd")
    header = file.get_empty_header()
    file.write_header(dict.fromkeys(header, "x"))
    record = file.get_empty_record(aux=False)
    known = {"digitisation": 8192.0, "offset": 6.0, "range": 1400.0, "sampling_rate": 4000.0, "read_group": 0}
    record.update(known, read_id="one", len_raw_signal=len(samples), signal=samples)
    file.write_record(record)
    file.close()
    content = path.read_bytes()
    return content[content.index(b"\3\0one") + 5 + 44 : -5]


def test_ex_zd_equals_the_library(tmp_path):
    rng = np.random.default_rng(11)
    for i in range(60):
        steps = rng.integers(-60, 61, int(rng.integers(1, 400)))
        far = rng.random(len(steps)) < rng.choice([0, 0.01, 0.3, 1.0])
        steps[far] += rng.integers(-3000, 3000, far.sum())
        samples = (np.cumsum(steps).clip(-8000, 8000) * rng.choice([1, 2, 4])).astype(np.int16)
        signal = ex_zd_of(tmp_path / "library.blow5", samples)
        (tmp_path / "library.blow5").unlink()
        path = write_records(tmp_path / f"{i}.blow5", [record_of(b"one", signal, len(signal))], 2)
        assert fetch(path, ["one"]).samples.tolist() == samples.tolist()


def test_svb_zd_equals_the_library(tmp_path):
    """Differences of one, two and three bytes, in signals of all lengths around those of a vector."""
    pyslow5 = pytest.importorskip("pyslow5", reason="compared with it")

    rng = np.random.default_rng(12)
    signals = {}
    path = tmp_path / "library.blow5"
    with blow5_writer(path) as out:
        for i in range(150):
            steps = rng.integers(-60, 61, i if i < 100 else int(rng.integers(1, 3000)))
            far = rng.random(len(steps)) < rng.choice([0, 0.003, 0.3, 1.0])
            most = rng.choice([1000, 65535])  # up to two and up to three bytes
            steps[far] = rng.integers(-most, most + 1, far.sum())
            samples = np.cumsum(steps).clip(-32768, 32767).astype(np.int16)
            signals[f"r{i}"] = samples if len(samples) else np.zeros(1, np.int16)
            out.write(f"r{i}", signals[f"r{i}"], Calibration(8192, 6, 1400, 4000))
    library = pyslow5.Open(str(path), "r")
    for name, samples in signals.items():
        assert np.array_equal(library.get_read(name)["signal"], samples)
    library.close()
    for n_threads in (1, 3):
        block = fetch(path, list(signals), n_threads)
        assert not block.problems
        for i, samples in enumerate(signals.values()):
            assert np.array_equal(block.samples[block.offsets[i] : block.offsets[i + 1]], samples)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_records_that_have_far_more_samples_than_bytes(tmp_path, n_threads):
    path = tmp_path / "a.blow5"
    with blow5_writer(path) as out:
        for i in range(8):
            out.write(f"r{i}", np.full(50_000 + i, 100 * i, np.int16), Calibration(8192, 6, 1400, 4000))
    assert path.stat().st_size < 100_000
    for _ in range(2):
        block = fetch(path, [f"r{i}" for i in range(8)], n_threads)
        assert not block.problems
        assert np.array_equal(block.samples, np.repeat(100 * np.arange(8), 50_000 + np.arange(8)))


def test_several_threads_may_fetch_at_the_same_time(tmp_path):
    reads = make_reads(60)
    source = Slow5Source(write_blow5(tmp_path / "a.blow5", reads), 2)
    assert source.is_concurrent
    names = [[read.name for read in reads[i : i + 6]] for i in range(0, 60, 6)]
    with ThreadPoolExecutor(5) as pool:
        blocks = list(pool.map(source.fetch, names))
    source.close()
    for block, first in zip(blocks, range(0, 60, 6), strict=True):
        for i, read in enumerate(reads[first : first + 6]):
            assert_holds(block, i, read)


def test_damaged_ex_zd_takes_only_its_own_read(tmp_path):
    rng = np.random.default_rng(12)
    samples = (500 + np.cumsum(rng.integers(-30, 31, 90)) + 2000 * (rng.random(90) < 0.1)).astype(np.int16)
    good = ex_zd_of(tmp_path / "library.blow5", samples)
    bad = [good[:cut] for cut in range(1, len(good))]
    for at in range(16 + 30):
        for value in (0, 1, 0x7F, 0xFF):
            bad.append(good[:at] + bytes([value]) + good[at + 1 :])
    names = [f"r{i}".encode() for i in range(len(bad))]
    records = [record_of(name, signal, len(signal)) for name, signal in zip(names, bad, strict=True)]
    path = write_records(tmp_path / "a.blow5", [*records, record_of(b"good", good, len(good))], 2)
    block = fetch(path, [*(name.decode() for name in names), "good"])
    assert block.samples[block.offsets[-2] :].tolist() == samples.tolist()
    assert set(range(len(good) - 1)) <= set(block.problems)  # all that were cut


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (6, "1"),
        (6, "10"),
        (6, "18446744073709551615"),
        (6, "-9"),
        (6, ""),
        (6, "9x"),
        (7, "1,2"),
        (7, "500,400,450,300,301,302,303,304,40000"),
        (7, "500,400,450,300,301,302,303,304,"),
        (7, "500,400,,450,300,301,302,303,304"),
        (7, "500,400,450,300,301,302,303,304,3 4"),
        (2, "x"),
        (2, ""),
        (1, "-1"),
        (0, "other"),
    ],
)
def test_fields_of_a_line_that_lie(tmp_path, field, value):
    reads = [MadeRead("one", SAMPLES), MadeRead("two", SAMPLES)]
    path = Path(write_slow5(tmp_path / "a.slow5", reads))
    lines = path.read_text().split("\n")
    fields = lines[-3].split("\t")
    assert fields[0] == "one"
    fields[field] = value
    lines[-3] = "\t".join(fields)
    path.write_text("\n".join(lines))
    block = fetch(path, ["one", "two"])
    assert list(block.problems) == [0]
    assert block.samples.tolist() == SAMPLES.tolist()


def test_a_file_that_becomes_shorter_is_no_bad_read(tmp_path, reads):
    path = Path(write_blow5(tmp_path / "a.blow5", reads))
    source = Slow5Source(str(path))
    os.truncate(path, path.stat().st_size - 700)
    with pytest.raises(SignalError, match="became shorter while it was read"):
        source.fetch([reads[-1].name])
    source.close()


def test_an_error_of_the_disk_is_no_bad_read(tmp_path, reads):
    path = write_blow5(tmp_path / "a.blow5", reads)
    source = Slow5Source(path)
    folder = os.open(tmp_path, os.O_RDONLY)
    os.dup2(folder, source._opened().descriptor)  # of which nothing can be read
    with pytest.raises(SignalError, match=r"a\.blow5: cannot be read \(Is a directory\)"):
        source.fetch(["read-0"])
    os.close(folder)
    source.close()
