"""Bad input that only ``f5py resquiggle`` can meet: reads that are not indexed, and a path to any signals."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import replace
from pathlib import Path

import pysam
import pytest

from ...made_data import N_READS, ReadSet, run_process, write_signals
from .commands import RESQUIGGLE, SignalCommand, without_header
from .conftest import Fails, Stops, Succeeds


@pytest.fixture
def command() -> SignalCommand:
    return RESQUIGGLE


@pytest.fixture(scope="module")
def fastq(made: ReadSet) -> str:
    """Write the reads as FASTQ."""
    with pysam.FastxFile(str(made.reads)) as file:
        return "".join(f"@{read.name}\n{read.sequence}\n+\n{'I' * len(read.sequence or '')}\n" for read in file)


def test_reads_that_cannot_be_used(unlabelled: ReadSet, tmp_path: Path, fails: Fails) -> None:
    (tmp_path / "text").write_text("no reads\n")
    (tmp_path / "cut.fastq.gz").write_bytes(gzip.compress(b"@r\nACGT\n+\nIIII\n" * 1000)[:40])
    for name, words in [
        ("absent.fastq", "absent.fastq: no such file"),
        (".", "is a folder; give files of reads"),
        ("text", "is neither FASTA nor FASTQ"),
        ("cut.fastq.gz", "damaged or truncated"),
    ]:
        assert words in fails(replace(unlabelled, reads=tmp_path / name))


@pytest.mark.parametrize("where", ["bases", "qualities"])
def test_truncated_reads_keep_the_rows_before(
    made: ReadSet, table: bytes, fastq: str, tmp_path: Path, stops: Stops, where: str
) -> None:
    whole = fastq.splitlines(keepends=True)
    reads = tmp_path / "reads.fastq"
    reads.write_text("".join(whole[:48]) + "".join(whole[48 : 50 if where == "bases" else 52])[:-100])  # the 13th read
    line, output = stops(replace(made, reads=reads), "-K", 2)
    assert f"{reads}: truncated" in line
    assert line.endswith("the output is incomplete")
    assert table.startswith(output)
    rows = RESQUIGGLE.by_read(table)
    first = RESQUIGGLE.order(made)[:12]
    assert RESQUIGGLE.by_read(output) == {name: rows[name] for name in first}


def test_reads_from_standard_input(made: ReadSet, fastq: str, table: bytes) -> None:
    waiting = replace(made, reads=Path("-"))
    for reads in (made.reads.read_text(), fastq):
        told = run_process(RESQUIGGLE.process(waiting), input=reads.encode())
        assert told.returncode == 0
        assert told.stdout == table
    told = run_process(RESQUIGGLE.process(waiting), input=b"")
    assert told.returncode == 0
    assert "standard input: holds no reads" in told.stderr.decode()
    assert told.stdout == table.splitlines(keepends=True)[0]


def test_short_reads_and_repeated_names(made: ReadSet, table: bytes, tmp_path: Path, succeeds: Succeeds) -> None:
    name, other = made.names[0], made.names[1]
    reads = tmp_path / "reads.fasta"
    whole = made.sequence(name)
    reads.write_text(f">{name}\n{whole}\n>{other}\nACG\n>{name}\n{whole}\n>{made.names[2]}\n\n")
    output, told = succeeds(replace(made, reads=reads))
    assert without_header(output).splitlines() == RESQUIGGLE.by_read(table)[name] * 2
    assert "total entries: 4, qc fail: 0, could not calibrate: 0, no alignment: 2, bad reads: 0" in told


def test_signals_that_cannot_be_used(made: ReadSet, unlabelled: ReadSet, tmp_path: Path, fails: Fails) -> None:
    for folder in ("none", "mixed"):
        (tmp_path / folder).mkdir()
    (tmp_path / "none" / "notes.txt").write_text("text\n")
    shutil.copy(made.signal_file(made.names[0]), tmp_path / "mixed" / "a.fast5")
    write_signals(tmp_path / "mixed" / "b.pod5", made.signals(made.names[:2]))
    (tmp_path / "empty.blow5").touch()
    (tmp_path / "bad.fast5").write_bytes(made.signal_file(made.names[0]).read_bytes()[:1000])
    for name, words in [
        ("absent", "absent: not found"),
        ("none", "no fast5, POD5 or SLOW5 file is below this folder"),
        ("mixed", "has both fast5 and POD5 files below it"),
        ("none/notes.txt", "is not a SLOW5, POD5 or fast5 file"),
        ("empty.blow5", "is empty"),
        ("bad.fast5", "bad.fast5"),
    ]:
        assert words in fails(replace(made, signal_path=tmp_path / name))
    line = fails(replace(made, signal_path=made.genome))
    assert "is not a SLOW5, POD5 or fast5 file; give the signals of the reads" in line
    line = fails(replace(made, reads=unlabelled.signal_path, signal_path=made.reads))  # the wrong way round
    assert "is not a SLOW5, POD5 or fast5 file" in line


def test_reads_without_a_signal(made: ReadSet, table: bytes, tmp_path: Path, succeeds: Succeeds) -> None:
    """Each is one bad read."""
    there = made.names[N_READS // 2 :]
    half = write_signals(tmp_path / "half.blow5", made.signals(there))
    output, told = succeeds(replace(made, signal_path=half))
    expected = {name: lines for name, lines in RESQUIGGLE.by_read(table).items() if name in there}
    assert RESQUIGGLE.by_read(output) == expected
    missing = N_READS - len(there)
    assert f"total entries: {N_READS}, qc fail: 0, " in told
    assert f"no alignment: 0, bad reads: {missing}\n" in told
    assert told.count("is not in this file") == 3
    assert f"{missing} of {N_READS} reads, more than a tenth, have no usable signal: " in told
    assert f"; {missing - 3} more (--failed-reads FILE lists them all)" in told


def test_messages_of_batches_have_the_name_that_the_counts_have(made: ReadSet, succeeds: Succeeds) -> None:
    _, told = succeeds(made, "-K", 8)
    assert told.count("[resquiggle_main::") == 2
    assert "[resquiggle_main] total entries: 16," in told
    assert "meth_main" not in told
