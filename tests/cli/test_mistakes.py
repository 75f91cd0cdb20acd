"""Command lines with mistakes that users make, and the line by which each is told: ``mistakes.tsv`` has both, exactly.

A message says what is wrong, where, and what to do. One that changes is changed in the table as well, so that it is
seen. Columns: the command line, as typed in a folder with the files below; the status; the line of error. ``READ``
stands for the names of reads, ``FOLDER`` for the folder.
"""

from __future__ import annotations

import csv
import gzip
import os
import re
import shlex
import shutil
from pathlib import Path
from unittest import mock

import pysam
import pytest

import f5py
from f5py.cli.commands import COMMANDS
from f5py.errors import MissingDependencyError

from ..made_data import error_line, run_command, standard_input

TABLE = Path(__file__).parent / "mistakes.tsv"
#: Endings of indices, which are made beside an input when it is first read, and right whatever becomes of the command.
_INDICES = (".fai", ".idx")
_READ = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def mistakes() -> list[tuple[str, int, str]]:
    with TABLE.open(newline="") as file:
        rows = csv.reader(file, "excel-tab", quoting=csv.QUOTE_NONE)
        return [(line, int(status), error) for line, status, error in rows]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder of files as users have them, good ones and others."""
    folder = tmp_path_factory.mktemp("mistakes")
    make_reads(folder)
    make_tables(folder)
    make_bad_files(folder)
    return folder


def make_reads(folder: Path) -> None:
    """Six reads of R9.4 DNA and four of RNA004, with references, alignments and BLOW5 files."""
    for name, about in (("reads", {"seed": 5}), ("rna", {"seed": 3, "pore": "rna004"})):
        made = folder / "made"
        f5py.simulate(output=made, genome_length=2_000, n_reads=6, median_length=700, signal_format="blow5", **about)
        for path in (made / "reads.fastq", made / "reads.bam", made / "reads.bam.bai", next(made.rglob("*.blow5"))):
            shutil.copy(path, folder / path.name.replace(path.name.partition(".")[0], name, 1))
        shutil.copy(made / "ref.fa", folder / ("ref.fa" if name == "reads" else "transcripts.fa"))
        if name == "reads":
            shutil.copy(made / "truth.tsv", folder)
        shutil.rmtree(made)
    (folder / "empty_folder").mkdir()
    (folder / "signals").mkdir()
    shutil.copy(folder / "reads.blow5", folder / "signals")


def make_tables(folder: Path) -> None:
    """Make what commands write."""
    given = {"bam": folder / "reads.bam", "genome": folder / "ref.fa", "slow5": folder / "reads.blow5", "threads": 1}
    made = {"modbam": "mod.bam", "bedmethyl": "sites.bed", "output": "calls.tsv"}
    f5py.call_methylation(**given, **{option: folder / name for option, name in made.items()})
    f5py.eventalign(**given, print_read_names=True, output=folder / "events.tsv")
    f5py.frequencies(folder / "calls.tsv", output=folder / "freq.tsv")
    with mock.patch.dict(os.environ, PATH=""), pytest.raises(MissingDependencyError):  # without Slurm no part is done
        f5py.call_methylation(
            **given, output=folder / "of_plan.tsv", plan=folder / "plan", partitions=2, engine="slurm"
        )


def make_bad_files(folder: Path) -> None:
    """Files that are not what their names say, or not what a command needs."""
    reference = (folder / "ref.fa").read_text()
    (folder / "ref.fa.gz").write_bytes(gzip.compress(reference.encode()))
    (folder / "other.fa").write_text(reference.replace(">", ">other_"))
    (folder / "uneven.fa").write_text(reference + "ACGT\nACGTACGT\n")
    for name in ("empty.fa", "empty.bam", "empty.bed", "empty.tsv", "empty.fastq"):
        (folder / name).touch()
    sites, calls = ((folder / name).read_text() for name in ("sites.bed", "calls.tsv"))
    header, first, *_ = calls.splitlines(keepends=True)
    for name, text in {
        "regions.bed": "simulated\t0\t500\tone\n",
        "other.bed": "elsewhere\t1\t2\tm\t9\t+\t1\t2\t0,0,0\t9\t100.0\n",
        "words.bed": "these are words\n",
        "reverse.bed": "simulated\t9\t3\n",
        "after.bed": "simulated\t2000\t2005\nsimulated\t20000\t21000\n",
        "combined.bed": re.sub("\t[+-]\t", "\t.\t", sites),
        "damaged.bed": sites.replace("\t+\t", "\t*\t", 1),
        "few.bed": "".join(line.rsplit("\t", 7)[0] + "\n" for line in sites.splitlines()),
        "cut.bed": sites + "simulated\t7\t8\n",
        "negative.bed": "\t".join([*sites.split("\t")[:11], *["-1"] * 7]) + "\n",
        "other.tsv": "a\tb\n1\t2\n",
        "old.tsv": calls.replace("\tstrand", "", 1),
        "header.tsv": header,
        "short.tsv": header + first + "simulated\t+\t5\n",
        "word.tsv": header + first.replace(first.split("\t")[5], "many", 1),
    }.items():
        (folder / name).write_text(text)
    for name in ("mod.svg", "mod.bw"):
        shutil.copy(folder / "mod.bam", folder / name)
    shutil.copy(folder / "reads.bam", folder / "packed")  # known by what it holds
    (folder / "cut.bam").write_bytes((folder / "reads.bam").read_bytes()[:1500])
    shutil.copy(folder / "reads.bam", folder / "no_index.bam")
    pysam.sort("-n", "-o", str(folder / "by_name.bam"), str(folder / "reads.bam"))
    pysam.view("-h", "-o", str(folder / "reads.sam"), str(folder / "reads.bam"), catch_stdout=False)
    with (
        pysam.AlignmentFile(folder / "reads.bam") as file,
        pysam.AlignmentFile(folder / "unaligned.bam", "wb", header={"HD": {"VN": "1.6"}}) as out,
    ):
        for record in file:
            one = pysam.AlignedSegment(out.header)
            one.query_name, one.query_sequence, one.flag = record.query_name, record.query_sequence, 4
            out.write(one)


def test_the_table_has_every_command():
    lines = [line for line, _, _ in mistakes()]
    assert len(lines) >= 200
    assert len(set(lines)) == len(lines)
    assert set(COMMANDS) <= {shlex.split(line)[1] for line in lines}
    assert all(error.startswith("[f5py::ERROR] ") for _, _, error in mistakes())


def test_every_mistake_is_told_in_its_words(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd):
    """One test for all lines, as the files are made for each process that runs tests."""
    monkeypatch.chdir(folder)
    with pysam.FastxFile("reads.fastq") as file:
        read = next(file).name or ""
    told = []
    with standard_input(Path("/dev/null")):
        for line, _, _ in mistakes():
            capfd.readouterr()
            before = set(folder.rglob("*"))
            status = run_command(*shlex.split(line.replace("READ", read))[1:])
            error = error_line(capfd.readouterr().err).replace(str(folder), "FOLDER")
            told.append((line, status, _READ.sub("READ", error)))
            left = [path for path in folder.rglob("*") if path not in before]
            left = [path for path in left if path.suffix not in _INDICES or path.with_suffix("") not in before]
            assert not left, f"{line}: leaves {left}"
    assert told == mistakes()
