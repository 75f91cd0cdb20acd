"""What ``f5py resquiggle`` does with bad input: one line that says what is wrong, and valid output so far."""

from __future__ import annotations

import fcntl
import gzip
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pysam
import pytest

from ..made_data import N_READS, ReadSet, error_line, process_of, run_command, run_process, write_signals

Fails = Callable[..., str]
Runs = Callable[..., tuple[bytes, str]]


@pytest.fixture(scope="module")
def blow5(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The signals of the made reads without a word on their chemistry."""
    return made.with_slow5(tmp_path_factory.mktemp("resquiggle")).folder / "signals.blow5"


@pytest.fixture(scope="module")
def fastq(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("resquiggle") / "reads.fastq"
    with pysam.FastxFile(str(made.reads)) as file:
        path.write_text("".join(f"@{read.name}\n{read.sequence}\n+\n{'I' * len(read.sequence)}\n" for read in file))
    return path


@pytest.fixture(scope="module")
def expected(made: ReadSet, blow5: Path) -> bytes:
    out = blow5.parent / "table.tsv"
    assert run_command("resquiggle", made.reads, blow5, "-t", 2, "-o", out) == 0
    table = out.read_bytes()
    assert len(by_read(table)) == N_READS
    return table


@pytest.fixture
def fails(tmp_path: Path, capfd) -> Fails:
    """Run and expect one line of error; return it. Nothing must have been written."""

    def run(reads: Path, signals: Path, *options: object, status: int = 1) -> str:
        folder = tmp_path / "output"
        folder.mkdir(exist_ok=True)
        capfd.readouterr()
        assert run_command("resquiggle", reads, signals, "-t", 2, "-o", folder / "out.tsv", *options) == status
        assert list(folder.iterdir()) == []
        told = capfd.readouterr()
        assert told.out == ""
        return error_line(told.err)

    return run


@pytest.fixture
def runs(tmp_path: Path, capfd) -> Runs:
    """Run with an exit status; return the output, all of whose lines are whole, and the messages."""

    def run(status: int, reads: Path, signals: Path, *options: object) -> tuple[bytes, str]:
        out = tmp_path / "out.tsv"
        capfd.readouterr()
        assert run_command("resquiggle", reads, signals, "-t", 2, "-o", out, *options) == status
        table = out.read_bytes()
        assert table.endswith(b"\n")
        assert {row.count(b"\t") for row in rows(table)} <= {table.split(b"\n")[0].count(b"\t")}
        return table, capfd.readouterr().err

    return run


def rows(table: bytes) -> list[bytes]:
    return table.splitlines(keepends=True)[1:]


def by_read(table: bytes) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for row in rows(table):
        found.setdefault(row.split(b"\t")[0].decode(), []).append(row)
    return found


# Reads


def test_reads_that_cannot_be_used(made: ReadSet, blow5: Path, tmp_path: Path, fails: Fails):
    (tmp_path / "empty.fastq").touch()
    (tmp_path / "text").write_text("no reads\n")
    (tmp_path / "a.sam").write_text("@SQ\tSN:x\tLN:9\nread\t4\t*\t0\t0\t*\t*\t0\t0\tA\t*\n")
    (tmp_path / "cut.fastq.gz").write_bytes(gzip.compress(b"@r\nACGT\n+\nIIII\n" * 1000)[:40])
    for name, words in [
        ("absent.fastq", "absent.fastq: not found"),
        (".", "is a folder; give a FASTA or FASTQ file"),
        ("empty.fastq", "holds no reads"),
        ("text", "is neither FASTA nor FASTQ"),
        ("a.sam", "a SAM file; give the base-called reads"),
        ("cut.fastq.gz", "truncated or damaged"),
    ]:
        assert words in fails(tmp_path / name, blow5)


@pytest.mark.parametrize("where", ["bases", "qualities"])
def test_truncated_reads_keep_the_rows_before(
    fastq: Path, blow5: Path, expected: bytes, tmp_path: Path, runs: Runs, where: str
):
    whole = fastq.read_text().splitlines(keepends=True)
    reads = tmp_path / "reads.fastq"
    reads.write_text("".join(whole[:48]) + "".join(whole[48 : 50 if where == "bases" else 52])[:-100])  # the 13th read
    table, told = runs(1, reads, blow5, "-K", 2)
    line = error_line(told)
    assert f"{reads}: truncated" in line
    assert line.endswith("the output is incomplete")
    assert expected.startswith(table)
    assert list(by_read(table)) == list(by_read(expected))[:12]
    assert len(table.splitlines()) == 1 + sum(len(lines) for lines in list(by_read(expected).values())[:12])


def test_reads_from_standard_input(made: ReadSet, fastq: Path, blow5: Path, expected: bytes):
    for reads in (made.reads, fastq):
        told = run_process(process_of("resquiggle", "-t", 2, "-", blow5), input=reads.read_bytes())
        assert told.returncode == 0
        assert told.stdout == expected
    told = run_process(process_of("resquiggle", "-", blow5), input=b"")
    assert told.returncode == 1
    assert "standard input: holds no reads" in error_line(told.stderr.decode())
    assert told.stdout == b""


def test_short_reads_and_repeated_names(made: ReadSet, blow5: Path, expected: bytes, tmp_path: Path, runs: Runs):
    name, other = made.names[0], made.names[1]
    reads = tmp_path / "reads.fasta"
    whole = made.sequence(name)
    reads.write_text(f">{name}\n{whole}\n>{other}\nACG\n>{name}\n{whole}\n>{made.names[2]}\n\n")
    table, told = runs(0, reads, blow5)
    assert rows(table) == by_read(expected)[name] * 2
    assert "total entries: 4, qc fail: 0, could not calibrate: 0, no alignment: 2, bad reads: 0" in told


# Signals


def test_signals_that_cannot_be_used(made: ReadSet, blow5: Path, tmp_path: Path, fails: Fails):
    for folder in ("none", "mixed", "slow5"):
        (tmp_path / folder).mkdir()
    (tmp_path / "none" / "notes.txt").write_text("text\n")
    shutil.copy(made.signal_file(made.names[0]), tmp_path / "mixed" / "a.fast5")
    write_signals(tmp_path / "mixed" / "b.pod5", made.signals(made.names[:2]))
    shutil.copy(blow5, tmp_path / "slow5" / "a.blow5")
    (tmp_path / "empty.blow5").touch()
    (tmp_path / "bad.fast5").write_bytes(made.signal_file(made.names[0]).read_bytes()[:1000])
    (tmp_path / "cut.blow5").write_bytes(blow5.read_bytes()[:-3000])
    (tmp_path / "cut.pod5").write_bytes((tmp_path / "mixed" / "b.pod5").read_bytes()[:-300])
    for name, words in [
        ("absent", "absent: not found"),
        ("none", "no fast5 or POD5 file is below this folder"),
        ("mixed", "has both fast5 and POD5 files below it"),
        ("slow5", "is a folder; of SLOW5 give the file itself, such as"),
        ("none/notes.txt", "is not a SLOW5, POD5 or fast5 file"),
        ("empty.blow5", "is empty"),
        ("bad.fast5", "bad.fast5"),
        ("cut.blow5", "is truncated or damaged after read number 15"),
        ("cut.pod5", "cut.pod5"),
    ]:
        assert words in fails(made.reads, tmp_path / name)
    assert "is not a SLOW5, POD5 or fast5 file; give the signals of the reads" in fails(made.reads, made.genome)


def test_reads_and_signals_the_wrong_way_round(made: ReadSet, blow5: Path, fails: Fails):
    assert "is not a SLOW5, POD5 or fast5 file" in fails(blow5, made.reads)


def test_reads_without_a_signal(made: ReadSet, expected: bytes, tmp_path: Path, runs: Runs):
    """Each is one bad read; all of them, and the run has failed."""
    there = made.names[N_READS // 2 :]
    half = write_signals(tmp_path / "half.blow5", made.signals(there))
    table, told = runs(0, made.reads, half)
    assert by_read(table) == {name: lines for name, lines in by_read(expected).items() if name in there}
    missing = N_READS - len(there)
    assert f"total entries: {N_READS}, qc fail: 0, " in told
    assert f"no alignment: 0, bad reads: {missing}\n" in told
    assert told.count("is not in this file") == 3
    assert f"{missing} of {N_READS} reads, more than a tenth, have no usable signal: " in told
    assert f"; {missing - 3} more (--failed-reads FILE lists them all)" in told
    others = made.signals(there[:2])
    for i, read in enumerate(others):
        read.name = f"00000000-0000-0000-0000-00000000000{i}"
    for kind in ("blow5", "pod5"):
        table, told = runs(1, made.reads, write_signals(tmp_path / f"other.{kind}", others))
        assert "none of the reads has a signal; give the signals of these reads" in error_line(told)
        assert f"bad reads: {N_READS}\n" in told
        assert rows(table) == []


# Chemistry


def test_contradictions_of_chemistry(made: ReadSet, tmp_path: Path, fails: Fails):
    signals = made.signals(made.names[:2])
    dna = write_signals(tmp_path / "dna.blow5", signals, experiment_type="genomic_dna", sequencing_kit="sqk-lsk109")
    rna = write_signals(tmp_path / "rna.blow5", signals, experiment_type="rna", sequencing_kit="sqk-rna002")
    new = write_signals(tmp_path / "new.pod5", signals, sequencing_kit="sqk-rna004")
    odd = write_signals(tmp_path / "odd.blow5", signals, experiment_type="rna", sequencing_kit="sqk-lsk114")
    for path, options, words in [
        (dna, ["--rna"], "--rna, but the signals are DNA (experiment_type genomic_dna, sequencing_kit sqk-lsk109)"),
        (dna, ["--pore", "r10"], "--pore r10, but the signals are of r9"),
        (dna, ["--pore", "rna004"], "--pore rna004, but the signals are DNA"),
        (rna, ["--pore", "r10"], "--pore r10, but the signals are RNA"),
        (new, ["--pore", "r9"], "--pore r9, but the signals are of rna004"),
        (odd, [], "RNA and R10 at the same time"),
        (dna, ["--rna", "--pore", "r10"], "--pore r10 and --rna exclude each other"),
    ]:
        assert words in fails(made.reads, path, *options)


def test_chemistry_that_only_the_data_can_tell(made: ReadSet, fastq: Path, blow5: Path, tmp_path: Path, runs: Runs):
    letters = tmp_path / "u.fasta"
    letters.write_text("".join(f">{name}\n{made.sequence(name).replace('T', 'U')}\n" for name in made.names))
    table, told = runs(1, letters, blow5)
    line = error_line(told)
    assert "the reads have the letter U, so they are direct RNA" in line
    assert "resquiggle with --rna" in line
    assert table.count(b"\n") == 1

    many = tmp_path / "many.fastq"
    many.write_bytes(fastq.read_bytes() * 4)
    table, told = runs(1, many, blow5, "--rna")
    assert "50 of the first 50 reads of 300 bases or more do not fit the pore model r9.4_70bps_rna." in error_line(told)
    assert table.count(b"\n") == 1


# Usage and outputs


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing argument 'READS'"),
        (["reads"], "Missing argument 'SIGNALS'"),
        (["reads", "signals", "more"], "unexpected extra argument"),
        (["reads", "signals", "--sam"], "No such option"),
        (["reads", "signals", "-t", "0"], "--threads 0: must be at least 1"),
    ],
)
def test_wrong_usage(capfd, arguments: list[str], words: str):
    assert run_command("resquiggle", *arguments) == 2
    told = capfd.readouterr().err
    assert words in told
    assert "Traceback" not in told


def test_outputs_that_cannot_be(made: ReadSet, blow5: Path, tmp_path: Path, fails: Fails):
    assert "absent/out: cannot write: No such file or directory" in fails(
        made.reads, blow5, "-o", tmp_path / "absent" / "out"
    )
    for original in (made.reads, blow5):
        copy = tmp_path / original.name
        shutil.copy(original, copy)
        inputs = (copy, blow5) if original == made.reads else (made.reads, copy)
        assert "is an input as well" in fails(*inputs, "-o", copy, status=2)
        assert copy.read_bytes() == original.read_bytes()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")
@pytest.mark.parametrize("options", [[], ["--paf"]], ids=["table", "PAF"])
def test_full_disk(made: ReadSet, blow5: Path, capfd, options: list[str]):
    assert run_command("resquiggle", made.reads, blow5, "-o", "/dev/full", *options) == 1
    line = error_line(capfd.readouterr().err)
    assert "/dev/full: cannot write: No space left on device; the output is incomplete" in line


@pytest.fixture(scope="module")
def long_run(fastq: Path, blow5: Path) -> list[str]:
    """A run of many batches of 16 reads."""
    many = blow5.parent / "many.fastq"
    many.write_bytes(fastq.read_bytes() * 80)
    return process_of("resquiggle", many, blow5, "-t", 2, "-K", N_READS)


def test_closed_pipe_is_quiet(long_run: list[str], expected: bytes):
    with subprocess.Popen(long_run, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == expected.splitlines(keepends=True)[0]
        process.stdout.close()
        messages = process.stderr.read().decode()
        assert process.wait(timeout=30) == 128 + signal.SIGPIPE
    assert "ERROR" not in messages
    assert "Traceback" not in messages


def test_interrupt(long_run: list[str], expected: bytes, tmp_path: Path):
    out = tmp_path / "table.tsv"
    with subprocess.Popen([*long_run, "-o", str(out)], stderr=subprocess.PIPE) as process:
        for _ in range(3):
            while b"processed" not in process.stderr.readline():
                assert process.poll() is None
        process.send_signal(signal.SIGINT)
        messages = process.stderr.read().decode()
        assert process.wait(timeout=30) == 130
    assert "interrupted" in error_line(messages)
    output, block = out.read_bytes(), b"".join(rows(expected))
    assert len(expected) <= len(output) < 79 * len(block)
    assert output.endswith(b"\n")
    assert (expected + block * 80).startswith(output)


@pytest.mark.skipif(not Path("/proc/self/maps").is_file(), reason="needs /proc")
def test_interrupt_while_reads_are_waited_for(blow5: Path):
    reading, writing = os.pipe()
    with subprocess.Popen(
        process_of("resquiggle", "-", blow5), stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        os.close(reading)
        deadline = time.monotonic() + 20
        while b"libcfaidx" not in Path(f"/proc/{process.pid}/maps").read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.3)  # the library has been loaded, and standard input is waited for
        process.send_signal(signal.SIGINT)
        messages = process.stderr.read().decode()
        assert process.wait(timeout=10) == 130
        os.close(writing)
    assert "interrupted" in error_line(messages)


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="needs Linux, to make a pipe small")
@pytest.mark.parametrize("name", ["out.tsv", "out.tsv.gz"])
def test_interrupt_while_the_writer_is_stuck(long_run: list[str], tmp_path: Path, name: str):
    """In a pipe that nobody reads."""
    out = tmp_path / name
    os.mkfifo(out)
    reader = os.open(out, os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        with subprocess.Popen([*long_run, "-o", str(out)], stderr=subprocess.PIPE) as process:
            select.select([reader], [], [], 60)
            for _ in range(2):
                while b"processed" not in process.stderr.readline():
                    assert process.poll() is None
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            try:
                messages = process.communicate(timeout=20)[1].decode()
            finally:
                process.kill()
            assert process.returncode == 130
    finally:
        os.close(reader)
    assert "interrupted" in error_line(messages)
    assert list(tmp_path.iterdir()) == [out]


def test_messages_of_batches_have_the_name_that_the_counts_have(made: ReadSet, blow5: Path, tmp_path: Path, runs: Runs):
    _, told = runs(0, made.reads, blow5, "-K", 8)
    assert told.count("[resquiggle_main::") == 2
    assert "[resquiggle_main] total entries: 16," in told
    assert "meth_main" not in told
