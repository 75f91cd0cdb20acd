"""A small simulated read set and variations of it, for the tests of whole runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pysam
import pytest

from f5py.cli import main
from f5py.commands.simulate import simulate
from f5py.io.reads.read_files import ReadFiles
from f5py.io.signals import SignalSource, open_signals
from f5py.options.input_names import READDB_SUFFIX
from f5py.simulation.settings import SimulationSettings

from .forked import Run, can_be_forked
from .index_files import index_quietly
from .patience import PATIENCE
from .readers_here import scans_here

if TYPE_CHECKING:
    from .io.signals.made_signals import MadeRead


#: Of bases and codes of several in upper case.
COMPLEMENT = str.maketrans("ACGTRYKM", "TGCAYRMK")
N_READS = 16
READ_LENGTH = 1200


@dataclass(frozen=True)
class ReadSet:
    """The inputs of a run. A change makes a new set whose changed files are in `folder`."""

    folder: Path
    reads: Path
    bam: Path
    genome: Path
    signal_path: Path

    @classmethod
    def simulated(cls, folder: Path, length: int = READ_LENGTH, n_reads: int = N_READS) -> ReadSet:
        """16 reads of 1,200 bases, or others, on both strands of one contig, four to a fast5 file."""
        settings = SimulationSettings(
            seed=3, genome_length=10 * length, n_reads=n_reads, fixed_length=length, reads_per_file=4
        )
        simulate(folder, settings, fasta=True)
        reads = folder / "reads.fasta"
        with scans_here():
            index_quietly(reads, folder / "fast5")
        return cls(folder, reads, folder / "reads.bam", folder / "ref.fa", folder / "fast5")

    def options(self) -> list[str]:
        """For a run in this process; reader processes would take most of its time."""
        return [*self.inputs(), "--iop", "1"]

    def inputs(self) -> list[str]:
        """For a run that starts as many reader processes as it likes."""
        return ["-r", str(self.reads), "-b", str(self.bam), "-g", str(self.genome), "-t", "2"]

    def command(self, *options: str, subcommand: str = "call-methylation") -> list[str]:
        """Write the command line of the run as a process of its own, with buffered output as users have it."""
        return process_of(subcommand, *last_of_each([*self.inputs(), *options]))

    @property
    def names(self) -> list[str]:
        """Read names in the order of the BAM file, which has each once."""
        return [record.query_name or "" for record in self.records()[1]]

    def records(self) -> tuple[pysam.AlignmentHeader, list[pysam.AlignedSegment]]:
        with pysam.AlignmentFile(str(self.bam), check_sq=False) as file:
            return file.header, list(file.fetch(until_eof=True))

    def with_records(
        self, folder: Path, records: list[pysam.AlignedSegment], header: object = None, index: bool = True
    ) -> ReadSet:
        """With these alignment records."""
        path = folder / "changed.bam"
        header = self.records()[0] if header is None else pysam.AlignmentHeader.from_dict(header)
        with pysam.AlignmentFile(str(path), "wb", header=header) as file:
            for record in records:
                file.write(record)
        if index:
            pysam.index(str(path))
        return replace(self, folder=folder, bam=path)

    def with_bam(self, folder: Path, content: bytes) -> ReadSet:
        path = folder / "changed.bam"
        path.write_bytes(content)
        return replace(self, folder=folder, bam=path)

    def with_genome(self, folder: Path, text: str) -> ReadSet:
        path = folder / "changed.fa"
        path.write_text(text)
        return replace(self, folder=folder, genome=path)

    def with_reads(self, folder: Path, sequences: dict[str, str]) -> ReadSet:
        """With a FASTA file and an index in which these reads have other sequences."""
        with pysam.FastxFile(str(self.reads)) as file:
            text = "".join(f">{read.name}\n{sequences.get(read.name or '', read.sequence or '')}\n" for read in file)
        return self.with_text_of_reads(folder / "changed.fasta", text)

    def with_mapped_reads(self, folder: Path, sequences: dict[str, str]) -> ReadSet:
        """With other sequences of reads and records; where most bases differ, the alignment is of one base."""
        _, records = self.records()
        for record in records:
            if (sequence := sequences.get(record.query_name or "")) is None:
                continue
            old = record.get_forward_sequence() or ""
            n_same = sum(one.upper() == other for one, other in zip(sequence, old, strict=False))
            letters = sequence.upper().replace("U", "T")
            record.query_sequence = letters.translate(COMPLEMENT)[::-1] if record.is_reverse else letters
            if len(sequence) != len(old) or n_same < len(old) / 2:
                record.cigarstring = f"1M{len(sequence) - 1}S"
        (folder / "mapped").mkdir()
        return self.with_records(folder / "mapped", records).with_reads(folder, sequences)

    def with_text_of_reads(self, path: Path, text: str) -> ReadSet:
        """With a FASTA file of this text, indexed with the same signals."""
        path.write_text(text)
        if self.signal_path.suffix == ".blow5":
            index_quietly(path, slow5=(str(self.signal_path),))
        else:
            with scans_here():
                index_quietly(path, self.signal_path)
        return replace(self, folder=path.parent, reads=path)

    def with_last_read_past_the_end(self, folder: Path) -> ReadSet:
        """With an alignment that extends past the end of the contig."""
        _, records = self.records()
        records[-1].reference_start = 11_500
        records[-1].cigarstring = f"{len(records[-1].query_sequence or '')}M"
        return self.with_records(folder, records, index=False)

    def with_signals(self, folder: Path, files: dict[str, Path | str]) -> ReadSet:
        """With an index that says that these reads are in other fast5 files."""
        path = folder / "changed.fasta"
        for old in self.reads.parent.glob(f"{self.reads.name}*"):
            shutil.copy2(old, folder / old.name.replace(self.reads.name, path.name))
        known = dict(ReadFiles.read(f"{path}{READDB_SUFFIX}")) | {name: str(file) for name, file in files.items()}
        Path(f"{path}{READDB_SUFFIX}").write_text("".join(f"{name}\t{file}\n" for name, file in known.items()))
        return replace(self, folder=folder, reads=path)

    def with_slow5(self, folder: Path, names: Iterable[str] | None = None, **attributes: str) -> ReadSet:
        """With all signals, or those of some reads, in ``signals.blow5``, whose header has these attributes."""
        blow5 = write_signals(folder / "signals.blow5", self.signals(names), **attributes)
        changed = replace(self, folder=folder, reads=folder / "slow5.fasta", signal_path=blow5)
        shutil.copy(self.reads, changed.reads)
        index_quietly(changed.reads, slow5=(str(blow5),))
        return changed

    def with_pod5(self, folder: Path, names: Iterable[str] | None = None, **fields: object) -> ReadSet:
        """With all signals, or those of some reads, in ``signals.pod5``, whose run has these fields."""
        pod5 = write_signals(folder / "signals.pod5", self.signals(names), **fields)
        changed = replace(self, folder=folder, reads=folder / "pod5.fasta", signal_path=pod5)
        shutil.copy(self.reads, changed.reads)
        index_quietly(changed.reads, pod5=(str(pod5),))
        return changed

    def signals(self, names: Iterable[str] | None = None) -> list[MadeRead]:
        source = open_signals(str(self.reads))
        try:
            return signals_of(source, self.names if names is None else list(names))
        finally:
            source.close()

    def signal_file(self, name: str) -> Path:
        return Path(ReadFiles.read(f"{self.reads}{READDB_SUFFIX}")[name])

    def sequence(self, name: str) -> str:
        with pysam.FastxFile(str(self.reads)) as file:
            return next(read.sequence or "" for read in file if read.name == name)


#: Options with a value that tests give instead of the usual one.
_REPLACED = ("-r", "-b", "-g", "-o", "-t", "-K", "--iop")


def last_of_each(words: list[Any]) -> list[Any]:
    """Leave out options, and their values, that another one of the same name replaces later on."""
    kept: list[Any] = []
    for i, word in enumerate(words):
        is_value = bool(i) and words[i - 1] in _REPLACED
        of = words[i - 1] if is_value else word
        if of not in _REPLACED or of not in words[i + 1 :]:
            kept.append(word)
    return kept


def repeated(records: list[pysam.AlignedSegment], times: int) -> list[pysam.AlignedSegment]:
    return [records[i] for i in np.tile(np.arange(len(records)), times)]


def signals_of(source: SignalSource, names: list[str]) -> list[MadeRead]:
    """Fetch the named reads of a source, all of which must be there."""
    from .io.signals.made_signals import MadeRead

    block = source.fetch(names)
    assert not block.problems
    return [
        MadeRead(name, block.samples[start:end], *block.calibration[:4, i].tolist())
        for i, (name, (start, end)) in enumerate(zip(names, pairwise(block.offsets.tolist()), strict=True))
    ]


def write_signals(path: Path, reads: list[MadeRead], **attributes: Any) -> Path:
    """Write a BLOW5 or POD5 file, by the name's ending, with these header attributes or fields of the run."""
    if path.suffix == ".blow5":
        from .io.signals.made_slow5 import write_blow5

        write_blow5(path, reads, [attributes])
        return path
    from pod5 import Writer

    from .io.signals.made_pod5 import pod5_read

    with Writer(path) as file:
        file.add_reads([pod5_read(read, read.name, **attributes) for read in reads])
    return path


_COMMAND = ["env", "-u", "PYTHONUNBUFFERED", sys.executable, "-m", "f5py"]


def process_of(*arguments: object) -> list[str]:
    """Write the command line of a process of its own, with buffered output as users have it."""
    return [*_COMMAND, *map(str, arguments)]


def start_process(command: list[str], *, before: str = "", **options: Any) -> subprocess.Popen | Run:
    """Start a process with these options of `subprocess.Popen`; one of `process_of` is forked where that can be.

    Such a one runs the Python statements of `before` first.
    """
    if command[: len(_COMMAND)] == _COMMAND:
        arguments = command[len(_COMMAND) :]
        if can_be_forked(options):
            return Run(arguments, before=before, **options)
        if before:
            command = [*_COMMAND[:-2], "-c", f"{before}; from f5py.cli import main; main()", *arguments]
    return subprocess.Popen(command, **options)


def run_process(
    command: list[str], *, input: Any = None, timeout: float = PATIENCE, **options: Any
) -> subprocess.CompletedProcess:
    """Run a process to its end, with what it writes."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start_process(command, **{**pipes, **options}) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def run_command(*arguments: object) -> int:
    """Run a subcommand in this process, which stays even if a GPU is still starting; return its exit status."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os._exit", sys.exit)
        with pytest.raises(SystemExit) as stop:
            main([*map(str, arguments)])
    return int(stop.value.code or 0)


def run_main(*arguments: object) -> int:
    """Run call-methylation in this process; return its exit status."""
    return run_command("call-methylation", *arguments)


def refused(capfd: pytest.CaptureFixture[str], *arguments: object, status: int = 1) -> str:
    """Run a subcommand that ends with this status; return its line of error."""
    capfd.readouterr()
    assert run_command(*arguments) == status
    return error_line(capfd.readouterr().err)


def error_line(messages: str) -> str:
    """Return the one line of error among the messages of a failed run."""
    assert "Traceback" not in messages
    assert "Exception ignored" not in messages
    lines = messages.splitlines()
    errors = [line for line in lines if "::ERROR]" in line]
    assert len(errors) == 1, messages
    assert lines[-1] == errors[0], messages
    assert all(line.startswith("[") for line in lines if line), messages
    return errors[0]


@contextmanager
def standard_input(path: Path) -> Iterator[None]:
    """Let a file be the standard input of this process."""
    kept = os.dup(0)
    try:
        with path.open("rb") as file:
            os.dup2(file.fileno(), 0)
            yield
    finally:
        os.dup2(kept, 0)
        os.close(kept)


def rows_by_read(table: bytes) -> dict[str, list[bytes]]:
    """Collect the rows of each read, in order; checks that every line is whole."""
    assert table.endswith(b"\n")
    header, *rows = table.splitlines()
    found: dict[str, list[bytes]] = {}
    for row in rows:
        assert row.count(b"\t") == header.count(b"\t")
        found.setdefault(row.split(b"\t")[4].decode(), []).append(row)
    return found
