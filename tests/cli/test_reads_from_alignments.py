"""Bases from the alignment records, from memory and from other formats: the same calls as with an index."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pysam
import pytest

from ..made_data import ReadSet, process_of, refused, run_command, run_main, run_process, write_signals


def inputs_of(made: ReadSet, *options: object) -> list[str]:
    return [*map(str, ["-b", made.bam, "-g", made.genome, "-t", 2, *options])]


@pytest.fixture(scope="module")
def blow5(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_signals(tmp_path_factory.mktemp("signals") / "signals.blow5", made.signals())


@pytest.mark.parametrize("batch_size", [1, 512])
def test_no_reads_file(made: ReadSet, made_calls: bytes, blow5: Path, tmp_path: Path, batch_size: int):
    out = tmp_path / "calls.tsv"
    assert run_main(*inputs_of(made, "--slow5", blow5, "-K", batch_size, "-o", out)) == 0
    assert out.read_bytes() == made_calls


@pytest.mark.parametrize("suffix", ["sam", "cram"])
def test_no_reads_file_and_other_alignments(made: ReadSet, made_calls: bytes, blow5: Path, tmp_path: Path, suffix: str):
    path = tmp_path / f"reads.{suffix}"
    pysam.view("-h", "-T", str(made.genome), "-o", str(path), "-O", suffix, str(made.bam), catch_stdout=False)
    out = tmp_path / "calls.tsv"
    assert run_main("-b", str(path), "-g", str(made.genome), "--slow5", str(blow5), "-o", out) == 0
    assert out.read_bytes() == made_calls


def test_windows(made: ReadSet, blow5: Path, tmp_path: Path):
    out = [tmp_path / "with.tsv", tmp_path / "without.tsv"]
    window = ["-w", "simulated:3000-5000"]
    assert run_main(*made.options(), *window, "-o", out[0]) == 0
    assert run_main(*inputs_of(made, "--slow5", blow5, *window, "-o", out[1])) == 0
    assert out[0].read_bytes() == out[1].read_bytes()
    assert out[0].read_bytes().count(b"\n") > 10


def hard_clipped(made: ReadSet, folder: Path, with_primary: bool) -> ReadSet:
    """With a hard-clipped supplementary and a secondary record without bases, first in the file."""
    header, records = made.records()
    primary = max((record for record in records if record.is_reverse), key=lambda record: record.query_length)
    others = []
    pairs = primary.get_aligned_pairs(matches_only=True)
    for flags, at in ((0x800, 300), (0x100, 500)):
        start = pairs[at][0]
        inner = pysam.AlignedSegment.fromstring(primary.to_string(), header)
        inner.flag |= flags
        operations = [(0, 0)]
        position = pairs[at]
        for pair in pairs[at : at + 400]:
            for operation, gap in ((1, pair[0] - position[0]), (2, pair[1] - position[1])):
                if gap:
                    operations.append((operation, gap))
            if operations[-1][0] != 0:
                operations.append((0, 0))
            operations[-1] = (0, operations[-1][1] + 1)
            position = (pair[0] + 1, pair[1] + 1)
        bases = primary.query_sequence[start : position[0]]
        inner.query_sequence = bases if flags == 0x800 else None
        inner.reference_start = pairs[at][1]
        inner.cigartuples = [(5, start), *operations, (5, primary.query_length - position[0])]
        others.append(inner)
    kept = records if with_primary else [record for record in records if record.query_name != primary.query_name]
    return made.with_records(folder, [*others, *kept], index=False)


@pytest.mark.parametrize("with_primary", [True, False])
def test_records_without_all_bases_take_those_of_the_primary_one(
    made: ReadSet, blow5: Path, tmp_path: Path, capfd, with_primary: bool
):
    changed = hard_clipped(made, tmp_path, with_primary)
    tables = []
    for options in (["-r", made.reads], []):
        out = tmp_path / f"events{len(options)}.tsv"
        inputs = inputs_of(changed, "--slow5", blow5, "--secondary=yes", "--min-mapq", 0, "-o", out)
        capfd.readouterr()
        assert run_command("eventalign", *inputs, *options, "--print-read-names") == 0
        tables.append(out.read_text())
    told = capfd.readouterr().err
    n = len(made.names)
    if with_primary:
        assert tables[0] == tables[1]
        assert f"total entries: {n + 2}, " in told
        assert "were left out" not in told
    else:
        assert f"total entries: {n - 1}, " in told
        assert "2 records were left out: they are hard-clipped or have no sequence" in told


def test_a_pipe_is_read_once(made: ReadSet, made_calls: bytes, blow5: Path, tmp_path: Path, capfd, monkeypatch):
    """Hard-clipped records have no bases then; all others do."""
    changed = hard_clipped(made, tmp_path, True)
    out = tmp_path / "calls.tsv"
    command = process_of("call-methylation", "-b", "-", "-g", made.genome, "--slow5", blow5, "-o", out)
    with changed.bam.open("rb") as bam:
        done = run_process(command, stdin=bam, text=True)
    assert done.returncode == 0
    assert out.read_bytes() == made_calls
    assert "1 records were left out" in done.stderr


def test_supplementary_records_can_be_left_out(made: ReadSet, tmp_path: Path, capfd):
    changed = hard_clipped(made, tmp_path, True)
    out = tmp_path / "calls.tsv"
    assert run_main(*changed.options(), "--supplementary=no", "-o", out) == 0
    assert "skipped secondary: 1, skipped low_mapq: 0, skipped supplementary: 1" in capfd.readouterr().err


def test_alignments_without_any_bases(made: ReadSet, blow5: Path, tmp_path: Path, capfd):
    _, records = made.records()
    for record in records:
        record.query_sequence = None
    changed = made.with_records(tmp_path, records, index=False)
    line = refused(capfd, "call-methylation", *inputs_of(changed, "--slow5", blow5, "-o", tmp_path / "calls.tsv"))
    assert f"none of the {len(records)} aligned records has the bases of its whole read" in line


def ubam(made: ReadSet, path: Path) -> Path:
    """Write the reads as a basecaller does: unaligned, some of them as reverse complements of an alignment."""
    with pysam.AlignmentFile(str(path), "wb", header=made.records()[0]) as out:
        for i, record in enumerate(made.records()[1]):
            if i % 2:
                bases = record.get_forward_sequence()
                record.is_unmapped = True
                record.is_reverse = False
                record.cigarstring = None
                record.reference_id = record.reference_start = -1
                record.query_sequence = bases
            out.write(record)
    return path


@pytest.mark.parametrize("suffix", ["fasta", "fasta.gz", "fasta.bz2", "fasta.xz", "fasta.zst", "bam"])
def test_reads_without_an_index(made: ReadSet, made_calls: bytes, blow5: Path, tmp_path: Path, capfd, suffix: str):
    """In memory if the signals are named; the same formats can be indexed."""
    plain = made.reads.read_bytes()
    path = tmp_path / f"reads.{suffix}"
    if suffix == "bam":
        ubam(made, path)
    elif suffix.endswith("zst"):
        path.write_bytes(pytest.importorskip("zstandard").compress(plain))
    else:
        pack = {"fasta": bytes, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[suffix.split(".")[-1]]
        path.write_bytes(pack(plain))
    out = tmp_path / "calls.tsv"
    assert run_main(*inputs_of(made, "-r", path, "--slow5", blow5, "-o", out)) == 0
    assert f"{path} has no index; its reads are held in memory" in capfd.readouterr().err
    assert out.read_bytes() == made_calls
    assert run_command("index", "--slow5", blow5, path) == 0
    assert run_main(*inputs_of(made, "-r", path, "-o", out)) == 0
    assert "held in memory" not in capfd.readouterr().err
    assert out.read_bytes() == made_calls
    assert run_command("resquiggle", path, blow5, "-o", out) == 0


@pytest.mark.parametrize("suffix", ["bz2", "xz", "zst"])
def test_damaged_reads(made: ReadSet, blow5: Path, tmp_path: Path, capfd, suffix: str):
    plain = made.reads.read_bytes()
    if suffix == "zst":
        packed = pytest.importorskip("zstandard").compress(plain)
    else:
        packed = {"bz2": bz2, "xz": lzma}[suffix].compress(plain)
    path = tmp_path / f"reads.fasta.{suffix}"
    path.write_bytes(packed[: len(packed) // 2])
    line = refused(
        capfd, "call-methylation", *inputs_of(made, "-r", path, "--slow5", blow5, "-o", tmp_path / "calls.tsv")
    )
    assert f"{path}: damaged or truncated" in line


@pytest.mark.shared
def test_real_reads(call_ecoli, ecoli: Path, tmp_path: Path):
    """The hard-clipped records of this set have their primary ones in the file, so that all calls are equal."""
    expected = call_ecoli("reads.bam")
    out = tmp_path / "calls.tsv"
    inputs = ["-b", ecoli / "reads.bam", "-g", ecoli / "ref.fa", "--slow5", ecoli / "formats/reads.blow5", "-t", 2]
    assert run_command("call-methylation", *inputs, "-o", out) == 0
    assert out.read_bytes() == expected


def test_parts_of_split_reads(made: ReadSet, made_calls: bytes, tmp_path: Path):
    """Their signals are those of parents, which the alignments do not name otherwise; no index, no file of reads."""
    _, records = made.records()
    signals = made.signals()
    for signal, record in zip(signals, records, strict=True):
        assert signal.name == record.query_name
        before = 1000
        signal.samples = np.concatenate([np.full(before, 500, np.int16), signal.samples, np.full(77, 400, np.int16)])
        signal.name = f"parent-{record.query_name}"
        record.set_tags([("pi", signal.name), ("sp", before), ("ns", len(signal.samples) - before - 77)])
    changed = made.with_records(tmp_path, records, index=False)
    blow5 = write_signals(tmp_path / "parents.blow5", signals)
    out = tmp_path / "calls.tsv"
    assert run_main(*inputs_of(changed, "--slow5", blow5, "-o", out)) == 0
    assert out.read_bytes() == made_calls
