"""Inputs that are damaged or cut: every command that takes one says so, or gives what the whole file gives."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pysam
import pytest

from f5py.io.bytes.bgzf_blocks import END_BLOCK, bgzf_blocks
from f5py.io.signals.fast5.fast5_writer import fast5_writer
from f5py.io.signals.source import Calibration
from f5py.pore_model.model import builtin
from f5py.pore_model.text_file import model_text

from ..io.signals.made_slow5 import write_slow5
from ..made_data import ReadSet, error_line, refused, run_command
from ..readers_here import scans_here

#: Bytes of text in a block, so that small files have several.
_BLOCK = 2000
CALL = "call-methylation -t 1 --iop 1 -K 4"
#: Signals that read well, and what is mapped to them.
WELL = "--slow5 signals.blow5"


def in_blocks(text: bytes) -> list[bytes]:
    return [*bgzf_blocks(text, _BLOCK), END_BLOCK]


def text_of(content: bytes) -> bytes:
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def cut(content: bytes) -> bytes:
    at = len(content) * 3 // 5
    return content[: at - 3 if content[at - 1 : at] == b"\n" else at]  # not where it cannot be seen


def cut_short(content: bytes) -> bytes:
    return content[:-9]


def cut_between_blocks(content: bytes) -> bytes:
    blocks = in_blocks(text_of(content))
    assert len(blocks) > 4
    return b"".join(blocks[: len(blocks) * 3 // 5])


def without_end_block(content: bytes) -> bytes:
    return b"".join(in_blocks(text_of(content))[:-1])


def cut_between_lines(content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join(lines[:-1])


def cut_between_records(content: bytes) -> bytes:
    """Of BLOW5: header of 64 bytes, with the size of the text after it; records, each after its size; end marker."""
    at = 64 + int.from_bytes(content[60:64], "little")
    for _ in range(5):
        at += 8 + int.from_bytes(content[at : at + 8], "little")
    return content[:at]


def page_of_zeros(content: bytes) -> bytes:
    at = len(content) * 3 // 5
    size = min(512, len(content) // 8)
    return content[:at] + bytes(size) + content[at + size :]


def no_last_line_end(content: bytes) -> bytes:
    assert content.endswith(b"\n")
    return content[:-1]


def cut_in_last_line(content: bytes) -> bytes:
    return content[: content.rstrip(b"\n").rfind(b"\n") + 4]


def by_gzip(content: bytes) -> bytes:
    return gzip.compress(text_of(content), mtime=0)


def cut_gzip(content: bytes) -> bytes:
    return by_gzip(content)[:-12]


def other_version(content: bytes) -> bytes:
    for now, other in (
        (b"map index 3", b"map index 7"),
        (b"BLOW5\1\0", b"BLOW5\1\x09"),
        (b"version\t0.2.0", b"version\t9.0.0"),
    ):
        if now in content[:200]:
            return content.replace(now, other, 1)
    raise AssertionError("no version is known")


#: Damage by kind of file.
OF_TEXT = (cut, page_of_zeros, no_last_line_end, cut_in_last_line)
OF_BLOCKS = (cut, cut_short, cut_between_blocks, without_end_block, page_of_zeros, cut_gzip)
OF_BINARY = (cut, cut_short, page_of_zeros)

SEQUENCES = (
    "index --slow5 signals.blow5 --skip-slow5-idx -o {out} {in}",
    "map -t 1 ref.fa {in} --paf -o {out}",
    "resquiggle -t 1 {in} signals.blow5 -o {out}",
    f"{CALL} {WELL} -r {{in}} -b reads.bam -g ref.fa -o {{out}}",
)
REFERENCE = (
    "map -t 1 {in} reads.fasta --paf -o {out}",
    f"{CALL} {WELL} -b reads.bam -g {{in}} -o {{out}}",
    f"eventalign -t 1 {WELL} -b reads.bam -g {{in}} -o {{out}}",
    "simulate -g {in} -n 2 -o {out}",
)
ALIGNMENTS = (
    f"{CALL} {WELL} -b {{in}} -g ref.fa -o {{out}}",
    f"eventalign -t 1 {WELL} -b {{in}} -g ref.fa -o {{out}}",
    "map -t 1 ref.fa {in} --paf -o {out}",
    "index --slow5 signals.blow5 --skip-slow5-idx -o {out} {in}",
)
CALLS = (
    "meth-freq -i {in} -o {out}",
    "extract {in} -o {out}",
    "summary {in} -o {out}",
    "merge {in} calls.tsv -o {out}.tsv",
)
TAGS = ("meth-freq -i {in} -g ref.fa -o {out}", "extract {in} -o {out}", "merge {in} tags.bam -o {out}.bam")
EVENTS = ("merge {in} events.tsv -o {out}.tsv", "compare {in} events.tsv --min-coverage 1 -o {out}")
FREQUENCIES = (
    "freq-merge {in} freq.tsv -o {out}",
    "regions windows.bed {in} -o {out}",
    "validate {in} truth.tsv -o {out}",
)
BEDMETHYL = ("meth-freq -i {in} -o {out}", "regions windows.bed {in} -o {out}", "merge {in} sites.bed -o {out}.bed")
INDEXED = (f"{CALL} -r {{in}} -b reads.bam -g ref.fa -o {{out}}",)


class Case(NamedTuple):
    name: str  # of the file
    damages: tuple[Callable[[bytes], bytes], ...]
    commands: tuple[str, ...]
    suffix: str = ""  # of the file that is damaged, beside that which the command names


CASES = (
    Case("reads.fasta", OF_TEXT, SEQUENCES),
    Case("reads.fastq", OF_TEXT, SEQUENCES),
    Case("blocks.fasta.gz", OF_BLOCKS, SEQUENCES),
    Case("ref.fa", OF_TEXT, REFERENCE),
    Case("blocks.fa.gz", (*OF_BLOCKS, by_gzip), REFERENCE),
    Case("reads.bam", (*OF_BLOCKS, by_gzip), ALIGNMENTS),
    Case("reads.cram", OF_BINARY, ALIGNMENTS[:3]),
    Case("reads.sam", (*OF_TEXT, cut_short, cut_gzip), ALIGNMENTS),
    Case("blocks.sam.gz", OF_BLOCKS, ALIGNMENTS),
    Case("tags.bam", (*OF_BLOCKS, by_gzip), TAGS),
    Case("calls.tsv", OF_TEXT, CALLS),
    Case("calls.tsv.gz", OF_BLOCKS, CALLS),
    Case("events.tsv", OF_TEXT, EVENTS),
    Case("events.tsv.gz", OF_BLOCKS, EVENTS),
    Case("freq.tsv", OF_TEXT, FREQUENCIES),
    Case(
        "windows.bed",
        OF_TEXT,
        (f"{CALL} {WELL} -b reads.bam -g ref.fa -w {{in}} -o {{out}}", "regions {in} freq.tsv -o {out}"),
    ),
    Case("model.txt", OF_TEXT, (f"{CALL} {WELL} -b reads.bam -g ref.fa --kmer-model {{in}} -o {{out}}",)),
    Case("truth.tsv", OF_TEXT, ("validate freq.tsv {in} -o {out}",)),
    Case("sites.bed", OF_TEXT, BEDMETHYL),
    Case(
        "signals.blow5",
        (*OF_BINARY, cut_between_records, other_version),
        (f"{CALL} --slow5 {{in}} -b reads.bam -g ref.fa -o {{out}}",),
    ),
    Case("signals.slow5", (*OF_TEXT, other_version), (f"{CALL} --slow5 {{in}} -b reads.bam -g ref.fa -o {{out}}",)),
    Case("signals.pod5", OF_BINARY, (f"{CALL} --pod5 {{in}} -b reads.bam -g ref.fa -o {{out}}",)),
    Case("signals.fast5", OF_BINARY, (f"{CALL} --fast5 {{in}} -b reads.bam -g ref.fa -o {{out}}",)),
    Case("indexed.fasta", OF_BINARY, INDEXED, ".index"),
    Case("indexed.fasta", (*OF_TEXT, cut_between_lines), INDEXED, ".index.fai"),
    Case("indexed.fasta", OF_BINARY, INDEXED, ".index.gzi"),
    Case("indexed.fasta", (*OF_TEXT, cut_between_lines), INDEXED, ".index.readdb"),
    Case("ref.idx", (cut, cut_short, page_of_zeros, other_version), ("map -t 1 {in} reads.fasta --paf -o {out}",)),
)


@pytest.fixture(scope="module")
def whole(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a file of every kind, all of the same reads."""
    folder = tmp_path_factory.mktemp("whole")
    for path in (made.reads, made.genome, made.bam):
        shutil.copy(path, folder)
    shutil.copy(made.folder / "truth.tsv", folder)
    fasta = (folder / "reads.fasta").read_bytes()
    with pysam.FastxFile(str(made.reads)) as reads:
        fastq = "".join(f"@{read.name}\n{read.sequence}\n+\n{'5' * len(read.sequence or '')}\n" for read in reads)
    (folder / "reads.fastq").write_text(fastq)
    (folder / "blocks.fasta.gz").write_bytes(b"".join(in_blocks(fasta)))
    (folder / "blocks.fa.gz").write_bytes(b"".join(in_blocks((folder / "ref.fa").read_bytes())))
    text = gzip.decompress((folder / "reads.bam").read_bytes())
    (folder / "reads.bam").write_bytes(b"".join(in_blocks(text)))
    pysam.index(str(folder / "reads.bam"))
    for name in ("reads.cram", "reads.sam"):
        pysam.view("-h", "-T", str(made.genome), "-o", str(folder / name), str(made.bam), catch_stdout=False)
    (folder / "blocks.sam.gz").write_bytes(b"".join(in_blocks((folder / "reads.sam").read_bytes())))
    made.with_slow5(folder)
    made.with_pod5(folder)
    write_slow5(folder / "signals.slow5", made.signals(), [{}])
    with fast5_writer(folder / "signals.fast5") as writer:
        for read in made.signals():
            writer.write(read.name, read.samples, Calibration(**read.calibration()))
    contig = (folder / "ref.fa").read_text()[1:].split()[0]
    windows = "".join(f"{contig}\t{at}\t{at + 400}\twindow {at}\n" for at in range(0, 12000, 500))
    (folder / "windows.bed").write_text(windows)
    model = builtin("r9.4_450bps.nucleotide.6mer")
    text = model_text(model, np.zeros(len(model.level_mean)), "nucleotide", "made")
    (folder / "model.txt").write_bytes(b"".join(text))
    place = os.getcwd()
    os.chdir(folder)
    try:
        given = ("-b", "reads.bam", "-g", "ref.fa", "--slow5", "signals.blow5", "-t", "1")
        outputs = ("-o", "calls.tsv", "--modbam", "tags.bam", "--bedmethyl", "sites.bed", "--call-threshold", "0")
        assert run_command("call-methylation", *given, *outputs) == 0
        assert run_command("eventalign", *given, "--print-read-names", "-o", "events.tsv") == 0
        assert run_command("meth-freq", "-i", "calls.tsv", "-o", "freq.tsv") == 0
        assert run_command("map", "-d", "ref.idx", "ref.fa") == 0
        shutil.copy("reads.fasta", "indexed.fasta")
        with scans_here():
            assert run_command("index", "-d", str(made.signal_path), "indexed.fasta") == 0
    finally:
        os.chdir(place)
    (folder / "tags.bam").write_bytes(b"".join(in_blocks(gzip.decompress((folder / "tags.bam").read_bytes()))))
    for name in ("calls.tsv", "events.tsv"):
        (folder / f"{name}.gz").write_bytes(b"".join(in_blocks((folder / name).read_bytes())))
    return folder


def results(folder: Path) -> dict[str, bytes]:
    """Contents of all outputs, but for lines that name the command line."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            is_bam = path.suffix == ".bam" and content.startswith(b"\x1f\x8b")
            found[path.relative_to(folder).as_posix()] = pysam.view(str(path)).encode() if is_bam else content
    return found


def run(command: str, source: str, whole: Path, folder: Path) -> tuple[int, dict[str, bytes]]:
    """Run a command in the folder of the whole files; return its status and what it has written."""
    folder.mkdir()
    words = [word.format(**{"in": source, "out": folder / "out"}) for word in command.split()]
    place = os.getcwd()
    os.chdir(whole)
    try:
        return run_command(*words), results(folder)
    finally:
        os.chdir(place)


@pytest.fixture(scope="module")
def expected(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], dict[str, bytes]]:
    """Return a function from a command and a whole file to what the command makes of it."""
    known: dict[tuple[str, str], dict[str, bytes]] = {}

    def of(command: str, name: str) -> dict[str, bytes]:
        if (command, name) not in known:
            status, found = run(command, name, whole, tmp_path_factory.mktemp("expected") / "x")
            assert status == 0
            assert any(found.values())
            known[command, name] = found
        return known[command, name]

    return of


def cases() -> Iterator[object]:
    for case in CASES:
        for command in case.commands:
            for damage in case.damages:
                name = f"{case.name}{case.suffix}-{damage.__name__}-{command.split()[0]}"
                yield pytest.param(case, damage, command, id=name)


@pytest.mark.parametrize(("case", "damage", "command"), list(cases()))
def test_nothing_is_lost_silently(
    case: Case,
    damage: Callable[[bytes], bytes],
    command: str,
    whole: Path,
    expected: Callable[[str, str], dict[str, bytes]],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
):
    wanted = expected(command, case.name)
    folder = tmp_path / "in"
    folder.mkdir()
    if case.suffix:
        for path in whole.glob(f"{case.name}*"):
            shutil.copy(path, folder)
    damaged = folder / f"{case.name}{case.suffix}"
    content = (whole / damaged.name).read_bytes()
    damaged.write_bytes(damage(content))
    capfd.readouterr()
    status, made_of_it = run(command, str(folder / case.name), whole, tmp_path / "out")
    told = capfd.readouterr().err
    assert "Traceback" not in told
    if status == 0:
        is_told = "WARNING" in told or ("bad reads: " in told and "bad reads: 0" not in told)
        assert is_told or made_of_it == wanted, told
        assert damage is not no_last_line_end or made_of_it == wanted
    else:
        assert "::ERROR]" in told
        assert str(folder) in told or "reads failed" in told, told


@pytest.mark.parametrize(
    "damage", [cut, page_of_zeros, lambda content: content.replace(b'"version": ', b'"version": 9')]
)
def test_a_damaged_plan(
    damage: Callable[[bytes], bytes], whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    """It is not worked on, and what is done already is not taken for the whole."""
    place = os.getcwd()
    os.chdir(whole)
    try:
        out = tmp_path / "calls.tsv"
        plan = tmp_path / "plan"
        given = [*CALL.split(), *WELL.split(), "-b", "reads.bam", "-g", "ref.fa", "-o", out]
        assert run_command(*given, "--plan", plan, "--partitions", 2) == 0
        assert run_command("run-part", plan, 0, 1) == 0
        content = (plan / "plan.json").read_bytes()
        (plan / "plan.json").write_bytes(damage(content))
        for command in (("plan", plan), ("run-part", plan, 0), ("finish", plan)):
            capfd.readouterr()
            assert run_command(*command) != 0
            assert "plan.json" in error_line(capfd.readouterr().err)
        assert not out.exists()
        (plan / "plan.json").write_bytes(content)
        assert run_command("finish", plan) == 0
        assert out.read_bytes() == (whole / "calls.tsv").read_bytes()
    finally:
        os.chdir(place)


def test_cram_needs_a_reference_by_bgzip(whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """It is refused before anything is mapped."""
    packed = tmp_path / "ref.fa.gz"
    packed.write_bytes(by_gzip((whole / "ref.fa").read_bytes()))
    line = refused(capfd, "map", "-t", 1, packed, whole / "reads.fasta", "-o", tmp_path / "out.cram")
    assert f"{packed}: cannot read the reference: it is compressed with gzip, not bgzip; run: gunzip -c" in line
    assert os.listdir(tmp_path) == ["ref.fa.gz"]


@pytest.mark.parametrize("name", ["calls.tsv", "events.tsv"])
@pytest.mark.parametrize("pack", [bytes, by_gzip])
def test_merged_rows_stay_apart(
    name: str, pack: Callable[[bytes], bytes], whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    content = (whole / name).read_bytes()
    header, rows = content.split(b"\n", 1)
    for rest, lost in ((content[:-1], b""), (content.rstrip(b"\n").rpartition(b"\t")[0], None)):
        (tmp_path / "first").write_bytes(pack(rest))
        status = run_command("merge", tmp_path / "first", whole / name, "-o", tmp_path / "out.tsv")
        if lost is None:
            where = content.count(b"\n"), header.count(b"\t")
            assert status == 1
            assert "first: line {} has {} columns".format(*where) in error_line(capfd.readouterr().err)
        else:
            assert status == 0
            assert (tmp_path / "out.tsv").read_bytes() == content + rows
            (tmp_path / "out.tsv").unlink()
        capfd.readouterr()
    assert not (tmp_path / "out.tsv").exists()


def test_an_index_whose_fasta_was_touched(whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """It is refused only if the bases are others."""
    reference = Path(shutil.copy(whole / "ref.fa", tmp_path))
    index, out = tmp_path / "ref.idx", tmp_path / "out.paf"
    assert run_command("map", "-d", index, reference) == 0
    os.utime(reference, ns=(0, 0))
    assert run_command("map", "-t", 1, index, whole / "reads.fasta", "--paf", "-o", out) == 0
    text = reference.read_text()
    at = text.index("ACGT", 1000)
    for other in (text[:at] + "TGCA" + text[at + 4 :], text.replace(">", ">x", 1)[:-2] + "\n"):
        reference.write_text(other)
        assert len(other) == len(text)
        assert "has changed since" in refused(capfd, "map", index, whole / "reads.fasta", "--paf", "-o", out)


def test_an_index_whose_folder_was_copied(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """The warning says which file of signals is not where the index says."""
    there = tmp_path / "there"
    shutil.copytree(made.signal_path, there / "fast5")
    reads = Path(shutil.copy(made.reads, there / "reads.fasta"))
    assert run_command("index", "-d", there / "fast5", reads) == 0
    there.rename(tmp_path / "here")
    capfd.readouterr()
    given = ["-r", tmp_path / "here/reads.fasta", "-b", made.bam, "-g", made.genome, "--iop", 1]
    assert run_command("call-methylation", *given, "-o", tmp_path / "calls.tsv") == 1
    told = capfd.readouterr().err
    error_line(told)
    (warning,) = [line for line in told.splitlines() if "signal files that it names, such as" in line]
    assert f"here/reads.fasta.index.readdb: signal files that it names, such as {there}/fast5/" in warning
    assert "run f5py index again" in warning
