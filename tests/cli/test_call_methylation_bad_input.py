"""What ``f5py call-methylation`` does with bad input: one line that says what is wrong, and valid output so far."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from f5py.pore_model import builtin

from ..made_data import (
    N_READS,
    ReadSet,
    error_line,
    repeated,
    rows_by_read,
    run_main,
    run_process,
)
from ..shared_memory import FOLDER, to_oneself


@pytest.fixture
def fails(tmp_path, capfd):
    """Run and expect one line of error; return it. Nothing must have been written."""

    def run(reads: ReadSet, *options: object) -> str:
        out = tmp_path / "unwritten.tsv"
        assert run_main(*reads.options(), "-o", out, *options) == 1
        assert not out.exists()
        told = capfd.readouterr()
        assert told.out == ""
        return error_line(told.err)

    return run


@pytest.fixture
def stops(tmp_path, capfd):
    """Run and expect one line of error after some output; return it and the output."""

    def run(reads: ReadSet, *options: object) -> tuple[str, bytes]:
        out = tmp_path / "calls.tsv"
        assert run_main(*reads.options(), "-o", out, *options) == 1
        line = error_line(capfd.readouterr().err)
        assert line.endswith("the output is incomplete")
        return line, out.read_bytes()

    return run


@pytest.fixture
def succeeds(tmp_path, capfd):
    """Run without an error; return the output and the messages."""

    def run(reads: ReadSet, *options: object) -> tuple[bytes, str]:
        out = tmp_path / "calls.tsv"
        assert run_main(*reads.options(), "-o", out, *options) == 0
        return out.read_bytes(), capfd.readouterr().err

    return run


# Alignments


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (lambda bam: bam[:-28], "no BGZF EOF marker"),
        (lambda bam: bam[: len(bam) // 2], "no BGZF EOF marker"),
        (lambda bam: bam[:40], "no BGZF EOF marker|does not contain alignment data"),
        (lambda _: b"", "does not contain alignment data"),
        (lambda _: b"not an alignment\n" * 9, "does not contain alignment data"),
        (lambda _: b"@HD\tVN:1.6\nread\t4\t*\t0\t0\t*\t*\t0\t0\tA\t*\n", "the header names no contigs"),
        (lambda _: b">r\nACGT\n", "the header names no contigs"),
    ],
    ids=["no end", "half", "header cut", "empty", "garbage", "unmapped", "reads instead"],
)
def test_alignment_file_that_cannot_be_used(made, tmp_path, fails, damage, cause):
    line = fails(made.with_bam(tmp_path, damage(made.bam.read_bytes())))
    assert f"{tmp_path}/changed.bam: " in line
    assert any(words in line for words in cause.split("|"))


def test_missing_alignment_file(made, tmp_path, fails):
    assert f"{tmp_path}/absent.bam: no such file" in fails(replace(made, bam=tmp_path / "absent.bam"))
    assert "Is a directory" in fails(replace(made, bam=tmp_path))


def test_damage_in_mid_file_keeps_the_rows_before_it(made, made_calls, tmp_path, stops):
    many = made.with_records(tmp_path, repeated(made.records()[1], 4), index=False)
    bam = many.bam.read_bytes()
    middle = int(len(bam) * 0.8)
    for damaged in (bam[:middle] + os.urandom(200) + bam[middle + 200 :], bam[:middle] + bam[-28:]):
        line, output = stops(many.with_bam(tmp_path, damaged), "-K", 3)
        assert f"{tmp_path}/changed.bam: truncated or damaged after " in line
        assert len(output) > len(made_calls)
        rows = made_calls[made_calls.index(b"\n") + 1 :]
        assert (made_calls + rows * 3).startswith(output)
        assert output.endswith(b"\n")


def test_windows_need_an_index_and_the_whole_file_does_not(made, made_calls, tmp_path, fails, succeeds):
    unindexed = made.with_records(tmp_path, made.records()[1], index=False)
    assert "-w needs an index; run: samtools index" in fails(unindexed, "-w", "simulated:1-5000")
    assert succeeds(unindexed)[0] == made_calls
    (tmp_path / "changed.bam.bai").write_bytes(b"no index at all")
    assert "changed.bam.bai: is damaged or not the index of" in fails(unindexed, "-w", "simulated:1-5000")
    assert succeeds(unindexed)[0] == made_calls


def test_contigs_that_the_reference_lacks_are_listed(made, made_calls, tmp_path, capfd):
    """Once; if no read lies on them, that is all."""
    header, records = made.records()
    names = ["alpha", "beta", "gamma", "delta"]
    lengths = [*header.lengths, 100, 100, 100, 100]
    longer = {"SQ": [{"SN": n, "LN": x} for n, x in zip([*header.references, *names], lengths, strict=True)]}
    out = tmp_path / "calls.tsv"
    assert run_main(*made.with_records(tmp_path, records, longer).options(), "-o", out) == 0
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "WARNING" in line]
    assert f"{made.genome}: the reference lacks 4 of the BAM file's 5 contigs (alpha, beta, gamma, ...)" in line
    assert out.read_bytes() == made_calls


def test_contig_of_another_length(made, tmp_path, fails):
    name, bases = made.genome.read_text().split("\n", 1)
    line = fails(made.with_genome(tmp_path, f"{name}\n{bases}ACGT\n"))
    assert "contig simulated has 12004 bases, but 12000 in the BAM file" in line


def test_reference_that_cannot_be_read(made, tmp_path, fails):
    assert "absent.fa: no such file" in fails(replace(made, genome=tmp_path / "absent.fa"))
    assert "cannot read the reference: it is no FASTA" in fails(made.with_genome(tmp_path, "no FASTA\n"))
    assert "cannot read the reference: it is no FASTA" in fails(made.with_genome(tmp_path, ""))


def test_reference_shorter_than_its_index(made, tmp_path, fails):
    changed = made.with_genome(tmp_path, made.genome.read_text()[:6000])
    shutil.copy(f"{made.genome}.fai", f"{changed.genome}.fai")
    line = fails(changed)
    assert f"{changed.genome}.fai: is not the index of {changed.genome} as it is now; delete it" in line


def test_spliced_alignment(made, tmp_path, stops, made_calls):
    _, records = made.records()
    records[9].cigarstring = f"600M100N{len(records[9].query_sequence) - 600}M"
    changed = made.with_records(tmp_path, records, index=False)
    spliced = records[9].query_name
    line, output = stops(changed, "-K", 4)
    assert f"read {spliced}: spliced alignment (N in the CIGAR)" in line
    before = {record.query_name for record in records[:8]}
    assert rows_by_read(output) == {
        name: rows for name, rows in rows_by_read(made_calls).items() if name in before
    }


def test_alignment_behind_the_end_of_its_contig(made, tmp_path, stops):
    _, records = made.records()
    records[-1].reference_start = 11_500
    records[-1].cigarstring = f"{len(records[-1].query_sequence)}M"
    line, _ = stops(made.with_records(tmp_path, records, index=False))
    assert f"{tmp_path}/changed.bam: the alignment of read {records[-1].query_name} extends past the end" in line


def test_mapped_record_without_an_alignment_has_no_rows(made, made_calls, tmp_path, succeeds):
    _, records = made.records()
    records[3].cigarstring = None
    expected = rows_by_read(made_calls)
    del expected[records[3].query_name]
    assert rows_by_read(succeeds(made.with_records(tmp_path, records, index=False))[0]) == expected


# Reads and their index


def test_reads_without_an_index(made, tmp_path, fails):
    bare = tmp_path / "bare.fasta"
    shutil.copy(made.reads, bare)
    line = fails(replace(made, reads=bare))
    assert f"{bare}.index: not found" in line
    assert "f5py index" in line
    for suffix in (".index", ".index.fai", ".index.gzi"):
        shutil.copy(f"{made.reads}{suffix}", f"{bare}{suffix}")
    line = fails(replace(made, reads=bare))
    assert f"{bare}.index.readdb: not found" in line
    assert "f5py index" in line


def test_index_of_other_reads(made, tmp_path, stops):
    _, records = made.records()
    for i, record in enumerate(records):
        record.query_name = f"other{i}"
    line, output = stops(made.with_records(tmp_path, records), "-K", 5)
    assert f"{made.reads}: none of the {N_READS} aligned reads, such as other15, is among the reads" in line
    assert output.count(b"\n") == 1


def test_some_unknown_reads_are_bad_reads(made, made_calls, tmp_path, succeeds):
    """Also in the first batch, however small."""
    _, records = made.records()
    expected = rows_by_read(made_calls)
    del expected[records[0].query_name]
    records[0].query_name = "unknown"
    output, told = succeeds(made.with_records(tmp_path, records), "-K", 1)
    assert rows_by_read(output) == expected
    assert "bad reads: 1\n" in told


def test_read_shorter_than_a_kmer(made, made_calls, tmp_path, succeeds):
    name = made.names[5]
    output, told = succeeds(made.with_reads(tmp_path, {name: "ACGTA"}))
    expected = rows_by_read(made_calls)
    del expected[name]
    assert rows_by_read(output) == expected
    assert "could not calibrate: 0, no alignment: 1, bad reads: 0\n" in told


def test_reads_changed_after_mapping_are_told(made, tmp_path, succeeds):
    name = made.names[3]
    whole = made.sequence(name)
    _, told = succeeds(made.with_reads(tmp_path, {name: whole[:-100], made.names[5]: whole}))
    warnings = [line for line in told.splitlines() if "WARNING" in line]
    assert len(warnings) == 1
    assert f"read {name} has {len(whole) - 100} bases, but {len(whole)} in its alignment" in warnings[0]
    assert "WARNING" not in succeeds(made)[1]


def test_letters_that_are_no_base_count_as_a_in_reads(made, tmp_path, succeeds):
    rng = np.random.default_rng(1)
    resolved, ambiguous = {}, {}
    for name in made.names[:6]:
        letters = np.array(list(made.sequence(name)))
        where = rng.choice(len(letters), 60, replace=False)
        letters[where] = rng.choice(list("NRYKMSWn"), 60)
        ambiguous[name] = "".join(letters)
        letters[where] = "A"
        resolved[name] = "".join(letters).lower()
    tables = []
    for which in (ambiguous, resolved):
        folder = tmp_path / str(len(tables))
        folder.mkdir()
        tables.append(succeeds(made.with_reads(folder, which))[0])
    assert tables[0] == tables[1]
    assert tables[0].count(b"\n") > 500


def test_ambiguity_codes_and_case_of_the_reference(made, made_calls, tmp_path, succeeds):
    """Codes stand for their alphabetically first base, so writing them for that base changes nothing."""
    rng = np.random.default_rng(2)
    header, bases = made.genome.read_text().split("\n", 1)
    codes = {"A": "MRWVHDN", "C": "SYB", "G": "K", "T": "T"}
    letters = [
        codes[base][rng.integers(len(codes[base]))] if rng.random() < 0.1 else base
        for base in bases.upper().replace("\n", "")
    ]
    letters = [letter.lower() if rng.random() < 0.5 else letter for letter in letters]
    assert succeeds(made.with_genome(tmp_path, f"{header}\n{''.join(letters)}\n"))[0] == made_calls


# Signals


def _truncate(path: Path, _: str) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _edit(change):
    def damage(path: Path, name: str) -> None:
        with h5py.File(path, "r+") as file:
            change(file, file[f"read_{name}"])

    return damage


def _empty_signal(_, read) -> None:
    del read["Raw/Signal"]
    read["Raw"].create_dataset("Signal", data=np.empty(0, np.int16))


_DAMAGES = [
    ("truncated", _truncate, "is truncated"),
    ("not HDF5", lambda path, _: path.write_text("text"), "is not HDF5"),
    ("empty file", lambda path, _: path.write_bytes(b""), "is empty"),
    ("missing file", lambda path, _: path.unlink(), "No such file"),
    ("no calibration", _edit(lambda _, read: read.__delitem__("channel_id")), "no calibration"),
    ("no range", _edit(lambda _, read: read["channel_id"].attrs.__delitem__("range")), "attribute range"),
    ("zero range", _edit(lambda _, read: read["channel_id"].attrs.modify("range", 0.0)), "range 0"),
    ("zero samples", _edit(_empty_signal), "has no samples"),
    ("missing read", _edit(lambda file, read: file.__delitem__(read.name)), "is not in this file"),
]


@pytest.mark.parametrize(("damage", "cause"), [pytest.param(*rest, id=name) for name, *rest in _DAMAGES])
def test_bad_signal_is_a_bad_read(made, made_calls, tmp_path, capfd, damage, cause):
    bad = made.names[4]
    signals = tmp_path / "bad.fast5"
    shutil.copy(made.signal_file(bad), signals)
    damage(signals, bad)
    changed = made.with_signals(tmp_path, {bad: signals})
    expected = rows_by_read(made_calls)
    del expected[bad]

    out = tmp_path / "calls.tsv"
    assert run_main(*changed.options(), "-o", out) == 0
    assert rows_by_read(out.read_bytes()) == expected
    told = capfd.readouterr().err
    (warning,) = [line for line in told.splitlines() if "WARNING" in line]
    for words in (str(signals), bad, cause):
        assert words in warning
    assert f"total entries: {N_READS}, qc fail: 0, could not calibrate: 0, no alignment: 0, bad reads: 1\n" in told

    assert run_main(*changed.options(), "-o", out, "--skip-unreadable=no", "-K", "1") == 1
    line = error_line(capfd.readouterr().err)
    for words in (str(signals), bad, cause, "--skip-unreadable=no", "the output is incomplete"):
        assert words in line
    before = made.names[:4]
    assert rows_by_read(out.read_bytes()) == {name: rows for name, rows in expected.items() if name in before}


def test_bad_signals_with_reader_processes(made, made_calls, tmp_path, succeeds):
    """They are skipped too, where f5c ends."""
    bad = made.names[2:5]
    signals = tmp_path / "bad.fast5"
    signals.write_text("text")
    files = [signals, tmp_path / "absent.fast5", ""]
    changed = made.with_signals(tmp_path, dict(zip(bad, files, strict=True)))
    output, told = succeeds(changed, "--iop", "2", "-K", "4")
    expected = rows_by_read(made_calls)
    for name in bad:
        del expected[name]
    assert rows_by_read(output) == expected
    assert "bad reads: 3\n" in told
    for name, cause in zip(bad, ["is not HDF5", "No such file", "no signal file in the index"], strict=True):
        assert any(name in line and cause in line for line in told.splitlines())


def test_all_reads_bad(made, tmp_path, capfd):
    changed = made.with_signals(tmp_path, dict.fromkeys(made.names, tmp_path / "absent.fast5"))
    assert run_main(*changed.options(), "-o", tmp_path / "calls.tsv") == 1
    told = capfd.readouterr().err
    assert f"all {N_READS} reads failed" in error_line(told)
    assert f"total entries: {N_READS}," in told
    assert f"bad reads: {N_READS}\n" in told


# Models


def _model_text(k: int, alphabet: str) -> str:
    kmers = np.array(np.meshgrid(*[list(alphabet)] * k, indexing="ij")).reshape(k, -1).T
    return f"#k\t{k}\n" + "".join(f"{''.join(kmer)}\t90.0\t2.0\n" for kmer in kmers)


@pytest.mark.parametrize(
    ("option", "text", "cause"),
    [
        ("--kmer-model", _model_text(5, "ACGT"), "k"),
        ("--kmer-model", "#k\t6\nAAAAAA\t1\t1\n", "line 2: the file ends here"),
        ("--kmer-model", "kmer\tlevel_mean\tlevel_stdv\n", "no k-mers in it"),
        ("--kmer-model", _model_text(2, "ACGT").replace("AC\t90.0", "AC\tmany"), "line 3: column mean, 'many'"),
        ("--kmer-model", _model_text(2, "ACGMT"), "over ACGT in lexicographic order"),
        ("--meth-model", _model_text(2, "ACGT"), "over ACGMT in lexicographic order"),
        ("--meth-model", _model_text(2, "ACGMT"), "k"),
        ("--meth-model", None, "cannot be read"),
    ],
)
def test_wrong_model_file(made, tmp_path, fails, option, text, cause):
    path = tmp_path / "model.txt"
    if text is not None:
        path.write_text(text)
    line = fails(made, option, path)
    assert str(path) in line
    assert cause in line


def test_model_files_with_the_builtin_numbers_change_nothing(made, made_calls, tmp_path, succeeds):
    options: list[object] = []
    for option, name in (("--kmer-model", "r9.4_450bps.nucleotide.6mer"), ("--meth-model", "r9.4_450bps.cpg.6mer")):
        model = builtin(name)
        kmers = [line.split("\t")[0] for line in _model_text(6, model.alphabet).splitlines()[1:]]
        path = tmp_path / name
        values = zip(kmers, model.level_mean, model.level_stdv, strict=True)
        path.write_text("".join(f"{kmer}\t{mean:.9g}\t{stdv:.9g}\n" for kmer, mean, stdv in values))
        options += [option, path]
    assert succeeds(made, *options)[0] == made_calls


# Outputs


def test_output_that_cannot_be_opened(made, tmp_path, capfd):
    assert run_main(*made.options(), "-o", tmp_path / "absent" / "calls.tsv") == 1
    assert "absent/calls.tsv: cannot write: No such file or directory" in error_line(capfd.readouterr().err)
    assert run_main(*made.options(), "-o", tmp_path) == 2
    assert "is a folder; name a file" in capfd.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_output_in_a_write_protected_folder(made, tmp_path, fails):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    assert run_main(*made.options(), "-o", locked / "calls.tsv") == 1


@pytest.mark.parametrize("which", ["reads", "bam", "genome"])
def test_inputs_are_not_written_over(made, tmp_path, capfd, which):
    files = {name: tmp_path / getattr(made, name).name for name in ("reads", "bam", "genome")}
    for name, path in files.items():
        shutil.copy(getattr(made, name), path)
    link = tmp_path / "link"
    link.symlink_to(files[which])
    changed = replace(made, **files)
    before = files[which].read_bytes()
    for option in ("-o", "--skip-ultra"):
        assert run_main(*changed.options(), option, link) == 2
        assert "is an input as well" in error_line(capfd.readouterr().err)
        assert files[which].read_bytes() == before


def test_two_outputs_in_one_file(made, tmp_path, capfd):
    same = tmp_path / "same"
    assert run_main(*made.options(), "-o", same, "--skip-ultra", same) == 2
    assert "cannot take what both -o and --skip-ultra write" in error_line(capfd.readouterr().err)
    assert run_main(*made.options(), "--skip-ultra", "-") == 2
    assert "give the name of a file" in error_line(capfd.readouterr().err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")
def test_full_disk(made, tmp_path):
    told = run_process(made.command("-o", "/dev/full"))
    assert told.returncode == 1
    line = error_line(told.stderr.decode())
    assert "/dev/full: cannot write: No space left on device; the output is incomplete" in line
    with open("/dev/full", "wb") as full:
        told = subprocess.run(made.command("-K", "2"), stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert told.returncode == 1
    line = error_line(told.stderr.decode())
    assert "standard output: cannot write: No space left on device; the output is incomplete" in line
    told = run_process(made.command("--skip-ultra", "/dev/full", "--ultra-thresh", "1"))
    assert told.returncode == 1
    assert "/dev/full: cannot write" in error_line(told.stderr.decode())


def test_file_that_cannot_grow_ends_with_a_whole_row(made, made_calls, tmp_path, capfd):
    out = tmp_path / "calls.tsv"
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = len(made_calls) // 2 + 7
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        assert run_main(*made.options(), "--iop", "1", "-o", out) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    line = error_line(capfd.readouterr().err)
    assert f"{out}: cannot write: File too large; the output is incomplete" in line
    assert made_calls[:size].rpartition(b"\n")[0] + b"\n" == out.read_bytes()


def test_standard_output_is_closed(made):
    told = run_process(["sh", "-c", 'exec "$@" >&-', "sh", *made.command()])
    assert told.returncode == 1
    assert "standard output: is closed; name a file with -o" in error_line(told.stderr.decode())


def test_closed_pipe_is_quiet(made, made_calls, tmp_path):
    many = made.with_records(tmp_path, repeated(made.records()[1], 8), index=False)  # more than a pipe holds
    with subprocess.Popen(many.command("-K", "1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == made_calls.splitlines(keepends=True)[0]
        process.stdout.close()
        messages = process.stderr.read().decode()
        assert process.wait(timeout=30) == 128 + signal.SIGPIPE
    assert all(line.startswith(("[init_cuda", "[meth_main::", "[pthread_")) for line in messages.splitlines())
    assert "ERROR" not in messages


# Interrupts and killed processes. A SAM stream that is held back makes the run wait where the test wants it to.


class Held:
    """A run that has put out the rows of the first batches and now waits for more records, or for its reader."""

    def __init__(self, made: ReadSet, *options: str) -> None:
        header, records = made.records()
        command = replace(made, bam=Path("-")).command("-K", "2", *options)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self.sam = [f"{record.to_string()}\n".encode() for record in records]
        self.process.stdin.write(str(header).encode() + b"".join(self.sam[:6]))

        self.told = b""

    def wait_for_batches(self) -> None:
        """Until the three batches that can be made have been processed and, most probably, written."""
        while self.told.count(b" processed\n") < 3:
            piece = self.process.stderr.read(1000)
            assert piece, self.told
            self.told += piece
        time.sleep(0.2)

    def readers(self, count: int) -> list[int]:
        """The reader processes, once there are so many."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        deadline = time.monotonic() + 20
        while True:
            readers = [
                int(child)
                for child in path.read_text().split()
                if b"f5py.io.helper_process" in Path(f"/proc/{child}/cmdline").read_bytes()
            ]
            if len(readers) == count:
                return readers
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def end(self) -> tuple[int, bytes, str]:
        """Exit status, the rest of the output and messages."""
        status = self.process.wait(timeout=30)
        with self.process as process:
            return status, process.stdout.read(), (self.told + process.stderr.read()).decode()


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")


@pytest.mark.parametrize("iop", [1, 2])
def test_interrupt_while_waiting_for_input(made, made_calls, iop):
    run = Held(made, "--iop", str(iop))
    run.wait_for_batches()
    os.killpg(run.process.pid, signal.SIGINT)  # as a terminal does, to all of them
    status, output, messages = run.end()
    assert status == 130
    assert "interrupted" in error_line(messages)
    assert made_calls.startswith(output)
    assert list(rows_by_read(output)) == made.names[:6]


@needs_proc
def test_interrupt_before_there_is_any_input(made):
    command = replace(made, bam=Path("-")).command()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 20
        while b"libcalignmentfile" not in Path(f"/proc/{process.pid}/maps").read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.3)  # the library has been loaded, and standard input is waited for
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 130
        assert "interrupted" in error_line(process.stderr.read().decode())


def test_interrupt_in_mid_computation(made, made_calls, tmp_path):
    many = made.with_records(tmp_path, repeated(made.records()[1], 150), index=False)
    out = tmp_path / "calls.tsv"
    with subprocess.Popen(many.command("-o", str(out), "-K", "40"), stderr=subprocess.PIPE) as process:
        while b"processed" not in process.stderr.readline():
            assert process.poll() is None
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        messages = process.stderr.read().decode()
        assert process.wait(timeout=30) == 130
    assert "interrupted" in error_line(messages)
    rows = made_calls[made_calls.index(b"\n") + 1 :]
    output = out.read_bytes()
    assert len(made_calls) < len(output) < 140 * len(rows)
    assert output.endswith(b"\n")
    assert (made_calls + rows * 150).startswith(output)


def test_interrupt_while_the_output_is_blocked(made, tmp_path):
    many = made.with_records(tmp_path, repeated(made.records()[1], 20), index=False)
    with subprocess.Popen(many.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while b"processed" not in process.stderr.readline():
            assert process.poll() is None
        time.sleep(0.5)  # nobody reads, so the pipe is full now
        process.send_signal(signal.SIGINT)
        messages = process.stderr.read().decode()
        assert process.wait(timeout=30) == 130
    assert "interrupted" in error_line(messages)


@needs_proc
def test_killed_reader_process(made, made_calls):
    run = Held(made, "--iop", "2")
    run.wait_for_batches()
    for reader in run.readers(2):
        os.kill(reader, signal.SIGKILL)
    run.process.stdin.write(b"".join(run.sam[6:]))
    run.process.stdin.close()
    status, output, messages = run.end()
    assert status == 1
    line = error_line(messages)
    assert "a signal reader process (pid " in line
    assert "was ended by SIGKILL" in line
    assert line.endswith("the output is incomplete")
    assert made_calls.startswith(output)
    assert list(rows_by_read(output)) == made.names[:6]


@needs_proc
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@to_oneself()
def test_nothing_is_left_after_being_ended(made, how):
    shared = Path(FOLDER)
    before = set(shared.iterdir()) if shared.is_dir() else set()
    run = Held(made, "--iop", "2")
    run.wait_for_batches()
    readers = run.readers(2)
    run.process.send_signal(how)
    assert run.end()[0] == (128 + how if how == signal.SIGTERM else -how)
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{reader}/cmdline").exists() for reader in readers):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not shared.is_dir() or not (set(shared.iterdir()) - before)
