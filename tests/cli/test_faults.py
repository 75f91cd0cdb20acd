"""Faults of machines and files, and hostile input: one line, the right status, and nothing lost without a word."""

from __future__ import annotations

import gzip
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pysam
import pytest

from ..forked import Run
from ..made_data import (
    ReadSet,
    error_line,
    last_of_each,
    process_of,
    refused,
    run_command,
    run_main,
    start_process,
    write_signals,
)
from ..patience import PATIENCE


def started(*arguments: object, **more: object) -> subprocess.Popen[str] | Run:
    return start_process(process_of(*arguments), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, **more)


def finished(*arguments: object, **more: object) -> tuple[int, str]:
    with started(*arguments, **more) as process:
        _, told = process.communicate(timeout=PATIENCE)
    return process.returncode, told


def has_rows(out: Path) -> bool:
    """Return whether a run has written something to a table that is not complete."""
    unfinished = out.with_name(f".unfinished-{out.name}")
    return unfinished.exists() and unfinished.stat().st_size > 0


# Outputs


@pytest.mark.parametrize("kind", ["fast5", "slow5", "pod5"])
def test_signals_are_never_written_over(made: ReadSet, tmp_path: Path, capfd, kind: str):
    if kind == "fast5":
        path = Path(shutil.copy(made.signal_file(made.names[0]), tmp_path / "x.fast5"))
    else:
        path = write_signals(tmp_path / f"x.{'blow5' if kind == 'slow5' else kind}", made.signals(made.names[:2]))
    content = path.read_bytes()
    unnamed = Path(shutil.copy(path, tmp_path / "x"))  # by its name it could be anything
    for option in ("-o", "--modbam", "--bedmethyl", "--report", "--failed-reads"):
        assert f"{path}: " in refused(capfd, "call-methylation", *made.options(), option, path, status=2)
        assert f"{unnamed}: is a signal file, which is never written over" in refused(
            capfd, "call-methylation", *made.options(), option, unnamed, status=2
        )
    assert path.read_bytes() == unnamed.read_bytes() == content


def test_two_runs_do_not_share_an_output(made: ReadSet, made_calls: bytes, tmp_path: Path, capfd):
    out = tmp_path / "calls.tsv"
    with started("call-methylation", *made.options(), "-K", 1, "-o", out) as first:
        while not has_rows(out):
            assert first.poll() is None
            time.sleep(0.005)
        first.send_signal(signal.SIGSTOP)  # while it is at it
        assert f"{out}: another run is writing to it" in refused(capfd, "call-methylation", *made.options(), "-o", out)
        first.send_signal(signal.SIGCONT)
        first.communicate()
    assert first.returncode == 0
    assert out.read_bytes() == made_calls
    assert run_main(*made.options(), "-o", out) == 0  # and afterwards as usual
    assert out.read_bytes() == made_calls


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_signals_leave_nothing_unfinished(made: ReadSet, tmp_path: Path, name: str):
    out = tmp_path / "calls.tsv"
    options = ["-K", 1, "-o", out, "--modbam", tmp_path / "calls.bam"]
    with started("call-methylation", *made.options(), *options) as process:
        while not has_rows(out):
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.Signals[name])
        _, told = process.communicate(timeout=PATIENCE)
    number = signal.Signals[name]
    if process.returncode == 0:
        pytest.skip("the run was faster")
    assert process.returncode == 128 + number
    line = error_line(told)
    assert ("interrupted" if name == "SIGINT" else f"ended by {name}") in line
    assert os.listdir(tmp_path) in ([], [".unfinished-calls.tsv"])
    if os.listdir(tmp_path):
        assert f"the rows until then are in {tmp_path}/.unfinished-calls.tsv" in line
        assert (tmp_path / ".unfinished-calls.tsv").read_bytes().endswith(b"\n")


def test_an_empty_value_of_a_tag_has_a_file_of_its_own(made: ReadSet, tmp_path: Path):
    _, records = made.records()
    for i, record in enumerate(records):
        if i % 3:
            record.set_tag("HP", ["", "ungrouped"][i % 3 - 1], "Z")
    changed = made.with_records(tmp_path, records, index=False)
    counted = []
    for name, options in (("all", []), ("parts", ["--partition-tag", "HP"])):
        path = tmp_path / f"{name}.bed"
        given = ["--bedmethyl", path, "--call-threshold", 0, "-o", tmp_path / "calls.tsv"]
        assert run_main(*changed.options(), *given, *options) == 0
        files = sorted(tmp_path.glob(f"{name}*.bed"))
        rows = [line.split("\t") for file in files for line in file.read_text().splitlines()]
        counted.append(sum(int(row[9]) for row in rows))
    assert [file.name for file in files] == ["parts.%.bed", "parts.%75ngrouped.bed", "parts.ungrouped.bed"]
    assert counted[0] == counted[1] > 100


# The index of reads


def test_nothing_follows_links_beside_the_reads(made: ReadSet, tmp_path: Path):
    """Names of temporary files cannot be foreseen."""
    reads = Path(shutil.copy(made.reads, tmp_path / "reads.fa"))
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for suffix in (".index", ".index.gzi", ".index.fai", ".index.readdb"):
        for number in range(os.getpid() - 50, os.getpid() + 50):
            os.symlink(victim, f"{reads}{suffix}.tmp{number}")
    assert run_command("index", "-d", made.folder / "fast5", reads) == 0
    assert victim.read_text() == "precious"


def test_zeros_in_a_list_of_files(made: ReadSet, tmp_path: Path, capfd):
    listing = tmp_path / "list"
    listing.write_bytes(b"fine.txt\nsum\0.txt\n")
    assert f"{listing}: line 2 is not a path" in refused(
        capfd, "index", "-d", made.folder / "fast5", "-f", listing, made.reads
    )


# Compiled code that is kept


@contextmanager
def cache_folder(tmp_path: Path, *options: object) -> Iterator[tuple[dict[str, str], Path]]:
    folder = tmp_path / "cache"
    folder.mkdir()
    yield os.environ | {"NUMBA_CACHE_DIR": str(folder)}, folder


def test_a_damaged_cache_is_made_again(tmp_path: Path):
    """Of a small kernel; what is right is compiled, and the damage is told once for each file.

    Every run is a process that forks from one that has imported Numba and compiled something.
    """
    program = (
        "import os, sys\n"
        "import numba, numpy as np\n"
        "numba.njit(lambda x: x[0])(np.zeros(1, np.int64))\n"
        "for _ in sys.stdin:\n"
        "    if os.fork() == 0:\n"
        "        from f5py.core._name_table_numba import fill_table\n"
        "        table = np.full(8, -1, np.int64)\n"
        "        fill_table(np.frombuffer(bytearray(b'abc'), np.uint8), np.arange(3), np.arange(1, 4), table)\n"
        "        print(sorted(table.tolist()), flush=True)\n"
        "        os._exit(0)\n"
        "    assert os.wait()[1] == 0\n"
        "    for stream in (sys.stdout, sys.stderr):\n"
        "        print('end', file=stream, flush=True)\n"
    )
    damages: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
        "empty code": ("nbc", lambda content: b""),
        "cut code": ("nbc", lambda content: content[:1000]),
        "a bit of code": ("nbc", lambda content: flipped(content, len(content) // 2)),
        "empty index": ("nbi", lambda content: b""),
        "rubbish in the index": ("nbi", lambda content: os.urandom(len(content))),
    }
    pipe = subprocess.PIPE
    with (
        cache_folder(tmp_path) as (environment, folder),
        subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        ) as process,
    ):

        def run() -> tuple[str, str]:
            process.stdin.write("run\n")
            process.stdin.flush()
            return "".join(iter(process.stdout.readline, "end\n")), "".join(iter(process.stderr.readline, "end\n"))

        expected, told = run()
        assert expected == "[-1, -1, -1, -1, -1, 0, 1, 2]\n"
        assert "WARNING" not in told
        for name, (suffix, damage) in damages.items():
            (path,) = folder.rglob(f"_name_table_numba.fill_table*.{suffix}")
            path.write_bytes(damage(path.read_bytes()))
            again, told = run()
            assert again == expected, name
            assert told.count("is damaged") == 1, name
        assert run() == (expected, "")


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def test_a_cache_that_cannot_be_filled_is_no_error(tmp_path: Path):
    """A limit on the size of files stands for a full disk."""
    program = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "from f5py.core._name_table_numba import fill_table\n"
        "import numpy as np\n"
        "fill_table(np.zeros(1, np.uint8), np.zeros(1, np.int64), np.ones(1, np.int64), np.full(4, -1))\n"
        "print('done')\n"
    )
    with cache_folder(tmp_path) as (environment, _):
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "done\n"
    assert "compiled code cannot be kept" in done.stderr


# Signals


def single_fast5(made: ReadSet, folder: Path) -> ReadSet:
    """With every read in a file of its own."""
    from f5py.io.signals.fast5.fast5_writer import fast5_writer
    from f5py.io.signals.source import Calibration

    files: dict[str, Path | str] = {}
    for read in made.signals():
        path = folder / f"{read.name}.fast5"
        with fast5_writer(path) as writer:
            writer.write(read.name, read.samples, Calibration(**read.calibration()))
        files[read.name] = path
    return made.with_signals(folder, files)


def test_few_file_descriptors(made: ReadSet, made_calls: bytes, tmp_path: Path):
    """Fewer files are kept open then; no read is lost."""
    changed = single_fast5(made, tmp_path)
    out = tmp_path / "calls.tsv"
    options = ["call-methylation", *last_of_each([*changed.options(), "-K", 4, "-t", 1, "-o", out])]
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (34, 34))  # noqa: E731
    status, told = finished(*options, preexec_fn=limit)
    assert status == 0, told
    assert out.read_bytes() == made_calls


@pytest.mark.parametrize("how", ["external storage", "virtual", "link", "bomb"])
def test_samples_that_are_not_in_the_file(made: ReadSet, tmp_path: Path, capfd, how: str):
    """Of other files nothing is read, and no memory is taken for what a header says."""
    name = made.names[0]
    path = Path(shutil.copy(made.signal_file(name), tmp_path / "changed.fast5"))
    secret = tmp_path / "secret"
    secret.write_bytes(b"hunter2 " * 1000)
    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["Signal"] = np.full(4000, 77, np.int16)
    with h5py.File(path, "r+") as file:
        raw = file[f"read_{name}/Raw"]
        del raw["Signal"]
        if how == "external storage":
            raw.create_dataset("Signal", (4000,), "i2", external=[(str(secret), 0, 8000)])
        elif how == "virtual":
            layout = h5py.VirtualLayout((4000,), "i2")
            layout[:] = h5py.VirtualSource(str(other), "Signal", (4000,))
            raw.create_virtual_dataset("Signal", layout)
        elif how == "link":
            raw["Signal"] = h5py.ExternalLink(str(other), "Signal")
        else:
            raw.create_dataset("Signal", (10**9,), "i2", chunks=(1 << 16,), compression="gzip")
    changed = made.with_signals(tmp_path, {name: path})
    out = tmp_path / "events.tsv"
    assert run_command("eventalign", *changed.options(), "--print-events=yes", "-o", out) == 0
    told = capfd.readouterr().err
    assert "bad reads: 1\n" in told
    words = {"bomb": "it is damaged"}
    assert words.get(how, "another file") in told
    assert f">{name}" not in out.read_text() or f">{name}\tLN:0" in out.read_text()


def test_a_file_that_is_cut_while_it_is_read(made: ReadSet, tmp_path: Path):
    """Its reads are not bad ones: the run ends."""
    from f5py.errors import SignalError
    from f5py.io.signals.fast5.reader import Fast5Reader

    names = [name for name in made.names if made.signal_file(name) == made.signal_file(made.names[0])]
    path = Path(shutil.copy(made.signal_file(names[0]), tmp_path / "cut.fast5"))
    reader = Fast5Reader()
    try:
        assert not reader.read(names[:1], [str(path)]).problems
        os.truncate(path, path.stat().st_size // 3)
        with pytest.raises(SignalError, match=r"cut\.fast5: was changed while it was read"):
            reader.read(names, [str(path)] * len(names))
    finally:
        reader.close()


# Alignments


def test_damaged_tags_in_sam(made: ReadSet, tmp_path: Path, capfd):
    plain = tmp_path / "plain.bam"
    with pysam.AlignmentFile(str(made.bam)) as file, pysam.AlignmentFile(str(plain), "wbu", template=file) as out:
        record = next(file)
        record.set_tag("XX", "find-me", "Z")
        out.write(record)
    unzipped = pysam.BGZFile(str(plain)).read()
    at = unzipped.index(b"XXZfind-me")
    with pysam.BGZFile(str(tmp_path / "bad.bam"), "wb") as packed:
        packed.write(unzipped[:at] + b"XX?" + unzipped[at + 3 :])
    changed = replace(made, folder=tmp_path, bam=tmp_path / "bad.bam")
    capfd.readouterr()
    status = run_command("eventalign", *changed.options(), "--sam", "-o", tmp_path / "out.sam")
    told = capfd.readouterr().err
    assert "Traceback" not in told
    assert status == 1
    assert "damaged" in error_line(told)


def test_a_pipe_in_the_place_of_a_signal_file(made: ReadSet, tmp_path: Path, capfd):
    """It is not waited for."""
    os.mkfifo(tmp_path / "pipe.fast5")
    changed = made.with_signals(tmp_path, {made.names[0]: tmp_path / "pipe.fast5"})
    for processes in (1, 2):
        assert run_main(*last_of_each([*changed.options(), "--iop", processes]), "-o", tmp_path / "calls.tsv") == 0
        assert "bad reads: 1\n" in capfd.readouterr().err


# Messages and options


def test_names_do_not_steer_the_terminal(made: ReadSet, tmp_path: Path, capfd):
    assert run_main(*made.options(), "-w", "\x1b[31mred\x07:1-2", "-o", tmp_path / "calls.tsv") != 0
    told = capfd.readouterr().err
    assert "\x1b[31m" not in told
    assert "\x07" not in told
    assert "\\x1b[31mred\\x07" in told


def test_errors_of_reading_are_not_blamed_on_the_output(tmp_path: Path):
    import errno

    from f5py.errors import OutputFileError
    from f5py.io.files.output import open_output

    for number, kind in ((errno.ESTALE, OSError), (errno.EMFILE, OSError), (errno.ENOSPC, OutputFileError)):
        with pytest.raises(OSError if kind is OSError else kind), open_output(str(tmp_path / "x")):
            raise OSError(number, "of something")


def test_a_cram_file_of_another_reference(made: ReadSet, tmp_path: Path, capfd):
    cram = tmp_path / "reads.cram"
    pysam.view("-C", "-T", str(made.genome), "-o", str(cram), str(made.bam), catch_stdout=False)
    text = made.genome.read_text()
    other = tmp_path / "other.fa"
    other.write_text(text[: text.index("\n")] + text[text.index("\n") :].replace("A", "C"))
    options = ["-r", made.reads, "-b", cram, "-g", other, "-o", tmp_path / "calls.tsv"]
    line = refused(capfd, "call-methylation", *options)
    assert f"or {other} is not the reference that it was made with" in line


def test_a_small_file_that_becomes_a_large_model(made: ReadSet, tmp_path: Path, capfd):
    bomb = tmp_path / "model.gz"
    with gzip.open(bomb, "wb", 1) as out:
        for _ in range(300):
            out.write(bytes(1 << 20))
    assert "has more than 256 MB of text, which no pore model has" in refused(
        capfd, "call-methylation", *made.options(), "--kmer-model", bomb
    )


def test_no_more_threads(made: ReadSet, tmp_path: Path, capfd, monkeypatch: pytest.MonkeyPatch):
    def refuse(self: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    assert "-t" in refused(capfd, "call-methylation", *made.options(), "-o", tmp_path / "calls.tsv")
