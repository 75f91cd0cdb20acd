"""A small simulated read set and variations of it, for the tests of whole runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pysam
import pytest

from f5py.cli import main
from f5py.io.build_index import index_fast5
from f5py.io.read_index import READDB_SUFFIX, read_readdb
from f5py.simulate.run import simulate
from f5py.simulate.settings import SimulationSettings

N_READS = 16
READ_LENGTH = 1200


@dataclass(frozen=True)
class ReadSet:
    """The three inputs of a run. A change makes a new set whose changed files are in `folder`."""

    folder: Path
    reads: Path
    bam: Path
    genome: Path

    @classmethod
    def simulated(cls, folder: Path) -> ReadSet:
        """16 reads of 1,200 bases on both strands of one contig, four to a fast5 file."""
        settings = SimulationSettings(
            seed=3, genome_length=12_000, n_reads=N_READS, fixed_length=READ_LENGTH, reads_per_file=4
        )
        simulate(folder, settings, fasta=True)
        reads = folder / "reads.fasta"
        index_fast5(str(reads), [str(folder / "fast5")], threads=1, verbose=0)
        return cls(folder, reads, folder / "reads.bam", folder / "ref.fa")

    def options(self) -> list[str]:
        return ["-r", str(self.reads), "-b", str(self.bam), "-g", str(self.genome), "-t", "2"]

    def command(self, *options: str) -> list[str]:
        """The run as a process of its own, with buffered output as users have it."""
        python = ["env", "-u", "PYTHONUNBUFFERED", sys.executable]
        return [*python, "-m", "f5py", "call-methylation", *self.options(), *options]

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
        path = folder / "changed.fasta"
        with pysam.FastxFile(str(self.reads)) as file, path.open("w") as out:
            for read in file:
                out.write(f">{read.name}\n{sequences.get(read.name, read.sequence)}\n")
        index_fast5(str(path), [str(self.folder / "fast5")], threads=1, verbose=0)
        return replace(self, folder=folder, reads=path)

    def with_signals(self, folder: Path, files: dict[str, Path | str]) -> ReadSet:
        """With an index that says that these reads are in other fast5 files."""
        path = folder / "changed.fasta"
        for old in self.reads.parent.glob(f"{self.reads.name}*"):
            shutil.copy2(old, folder / old.name.replace(self.reads.name, path.name))
        known = read_readdb(f"{path}{READDB_SUFFIX}") | {name: str(file) for name, file in files.items()}
        Path(f"{path}{READDB_SUFFIX}").write_text("".join(f"{name}\t{file}\n" for name, file in known.items()))
        return replace(self, folder=folder, reads=path)

    def signal_file(self, name: str) -> Path:
        return Path(read_readdb(f"{self.reads}{READDB_SUFFIX}")[name])

    def sequence(self, name: str) -> str:
        with pysam.FastxFile(str(self.reads)) as file:
            return next(read.sequence or "" for read in file if read.name == name)


def repeated(records: list[pysam.AlignedSegment], times: int) -> list[pysam.AlignedSegment]:
    return [records[i] for i in np.tile(np.arange(len(records)), times)]


def run_main(*arguments: object) -> int:
    """Run the command line in this process; return its exit status."""
    with pytest.raises(SystemExit) as stop:
        main(["call-methylation", *map(str, arguments)])
    return int(stop.value.code or 0)


def run_process(command: list[str], **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, timeout=60, check=False, **options)


def error_line(messages: str) -> str:
    """The one line of error among the messages of a failed run."""
    assert "Traceback" not in messages
    assert "Exception ignored" not in messages
    lines = messages.splitlines()
    errors = [line for line in lines if "::ERROR]" in line]
    assert len(errors) == 1, messages
    assert lines[-1] == errors[0], messages
    assert all(line.startswith("[") for line in lines if line), messages
    return errors[0]


def rows_by_read(table: bytes) -> dict[str, list[bytes]]:
    """The rows of each read, in order; checks that every line is whole."""
    assert table.endswith(b"\n")
    header, *rows = table.splitlines()
    found: dict[str, list[bytes]] = {}
    for row in rows:
        assert row.count(b"\t") == header.count(b"\t")
        found.setdefault(row.split(b"\t")[4].decode(), []).append(row)
    return found
