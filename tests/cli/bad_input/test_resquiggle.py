"""Bad input that only ``f5py resquiggle`` can meet: reads that are not indexed, and a path to any signals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pysam
import pytest

from ...made_data import N_READS, ReadSet, run_process, write_signals
from .commands import RESQUIGGLE, SignalCommand, without_header
from .conftest import Stops, Succeeds


@pytest.fixture
def command() -> SignalCommand:
    return RESQUIGGLE


@pytest.fixture(scope="module")
def fastq(made: ReadSet) -> str:
    with pysam.FastxFile(str(made.reads)) as file:
        return "".join(f"@{read.name}\n{read.sequence}\n+\n{'I' * len(read.sequence or '')}\n" for read in file)


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
