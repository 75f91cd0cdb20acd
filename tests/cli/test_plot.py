"""``f5py plot``: its numbers against f5c on real reads, its files, and one clear line for whatever is wrong."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pysam
import pytest

import f5py
from f5py.cli import command_of
from f5py.commands.plot import PlotOptions, compute
from f5py.errors import (
    F5pyError,
    InputFileError,
    MissingDependencyError,
    OutputFileError,
    SignalError,
    UnsupportedDataError,
    UsageError,
)
from f5py.io.signals import SignalSource, open_signals
from f5py.plotting.data import PlotData

from ..made_data import ReadSet, standard_input, write_signals

command = command_of("plot")

CONTIG = "NC_000913.3_500001_760000"
FORWARD, REVERSE = "bd76fe67-db4b-4d72-95df-e23f07aea51a", "c7937d7b-d85f-433b-9327-7eb293974905"
RNA_READ = "ef9f8dfb-21ed-4119-8bf2-cc98e2f31877"
WITH_SUPPLEMENTARY = "67ee25a0-86c1-44be-9b64-5a0db853eaf2"


def plot(*arguments: object) -> None:
    command.main([str(argument) for argument in arguments], standalone_mode=False)


def options_of(read: str, *, slow5: Path | None = None, window: str | None = None, **files: Path) -> PlotOptions:
    """Make the options of a plot of these reads, bam and genome, which is not written."""
    signals = () if slow5 is None else (str(slow5),)
    given = {name: str(path) for name, path in files.items()}
    return PlotOptions(read=read, slow5=signals, window=window, output="", **given)


# The numbers


def rows_of(table: Path, read: str, first: int, last: int) -> dict[int, list[str]]:
    """Select a read's rows at positions `first` to `last`, 1-based, by event; of f5c's table for one or all reads."""
    lines = gzip.decompress(table.read_bytes()).decode().splitlines()[1:]
    rows = [line.split("\t") for line in lines if f"\t{read}\t" in line]
    return {int(row[5]): row for row in rows if row[3] == read and first <= int(row[1]) + 1 <= last}


def assert_shows(data: PlotData, rows: dict[int, list[str]]) -> None:
    """Check that the data are those of f5c's rows, to the digits that f5c prints."""
    assert rows
    aligned = np.flatnonzero(data.event_kmer >= 0)
    assert set(data.event_index[aligned].tolist()) == set(rows)
    for i in aligned.tolist():
        _, position, reference_kmer, _, _, _, mean, stdv, length, kmer, level, level_stdv, _ = rows[data.event_index[i]]
        at = data.event_kmer[i]
        assert data.position[at] == int(position)
        assert f"{data.event_mean[i]:.2f} {data.event_stdv[i]:.3f}" == f"{mean} {stdv}"
        assert f"{data.event_length[i] / data.sampling_rate:.5f}" == length
        assert data.event_bad[i] == (set(kmer) == {"N"})
        if not data.event_bad[i]:
            assert data.kmers[at].tobytes().decode() == kmer
            assert f"{data.level[at]:.2f} {data.level_stdv[at]:.2f}" == f"{level} {level_stdv}"
        base = reference_kmer[0]
        assert chr(data.letter[at]) == ("TGCA"["ACGT".index(base)] if data.strand == "-" else base)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("read", "number", "region"),
    [
        (FORWARD, "0", None),
        (FORWARD, "0", (20_001, 20_500)),
        (FORWARD, "0", (14_000, 14_700)),
        (REVERSE, "3", None),
        (REVERSE, "3", (20_001, 20_500)),
    ],
)
def test_numbers_equal_f5c(indexed_ecoli: Path, ecoli: Path, read: str, number: str, region: tuple[int, int] | None):
    aligned = {"reads": indexed_ecoli / "reads.fasta", "bam": ecoli / "reads8.bam", "genome": ecoli / "ref.fa"}
    window = None if region is None else f"{CONTIG}:{region[0]}-{region[1]}"
    data = compute(options_of(read, window=window, **aligned))
    first, last = int(data.position.min()) + 1, int(data.position.max()) + 1
    if region is None:  # what the signal passes first: the upper end of the reverse read
        assert last - first < 100
        everything = rows_of(ecoli / "expected" / "eventalign" / "default.tsv.gz", number, 0, 10**9)
        positions = [int(row[1]) + 1 for row in everything.values()]
        region = (max(positions) - 99, max(positions)) if data.strand == "-" else (min(positions), min(positions) + 99)
    assert region[0] <= first <= last <= region[1]
    assert data.strand == ("-" if read == REVERSE else "+")
    assert_shows(data, rows_of(ecoli / "expected" / "eventalign" / "default.tsv.gz", number, *region))
    assert np.all(np.diff(data.event_start) > 0)
    for i in range(len(data.event_index)):  # the samples are those of the events
        begin = data.event_start[i] - data.first_sample
        event = data.current[begin : begin + data.event_length[i]]
        assert event.mean() == pytest.approx(data.event_mean[i], abs=0.01)


@pytest.fixture
def rna_options(slow5_set: Callable[[str], Path]) -> PlotOptions:
    folder = slow5_set("rna002_sequin")
    files = {"reads": "reads.fastq", "bam": "reads.bam", "genome": "ref.fa", "slow5": "signals.blow5"}
    return options_of(RNA_READ, **{option: folder / name for option, name in files.items()})


@pytest.mark.shared
def test_numbers_of_rna_equal_f5c(rna_options: PlotOptions, shared_data: Path):
    data = compute(replace(rna_options, window="R1_92_1:501-700"))
    assert data.source.rna
    assert_shows(data, rows_of(shared_data / "rna002_sequin" / "expected" / "eventalign.tsv.gz", "0", 501, 700))
    assert np.all(np.diff(data.event_start) > 0)
    assert np.all(np.diff(data.position) == -1)
    # the 3' end goes through the pore first
    assert compute(rna_options).position[0] > 1100


def kmers_of_table(path: Path, read: str) -> dict[int, tuple[int, int]]:
    """Read the samples of a read's k-mers from f5c's table."""
    rows = [line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().splitlines()[1:]]
    return {int(row[1]): (int(row[2]), int(row[3])) for row in rows if row[0] == read and row[2] != "."}


def kmers_of_rna_paf(path: Path, read: str) -> dict[int, tuple[int, int]]:
    """Read the samples of a read's k-mers from the ss string of f5c's PAF line, which goes down the read."""
    fields = next(line for line in path.read_text().splitlines() if line.startswith(read)).split("\t")
    assert int(fields[7]) > int(fields[8])
    sample, kmer, found = int(fields[2]), int(fields[7]) - 1, {}
    for number, kind in re.findall(r"(\d+)([,ID])", fields[-1].removeprefix("ss:Z:")):
        if kind == "D":
            kmer -= int(number)
        else:
            if kind == ",":
                found[kmer] = (sample, sample + int(number))
                kmer -= 1
            sample += int(number)
    assert sample == int(fields[3])
    return found


def samples_of_kmers(data: PlotData) -> dict[int, tuple[int, int]]:
    shown = zip(data.position.tolist(), data.kmer_start.tolist(), data.kmer_end.tolist(), strict=True)
    return {position: (start, end) for position, start, end in shown if end > start}


@pytest.mark.shared
def test_own_bases_have_the_samples_that_f5c_says(
    indexed_ecoli: Path, ecoli: Path, rna_options: PlotOptions, shared_data: Path
):
    dna = options_of(REVERSE, reads=indexed_ecoli / "reads.fasta", window="301-900")
    rna = replace(rna_options, bam=None, genome=None, window="301-900")
    for options, everything in (
        (dna, kmers_of_table(ecoli / "expected" / "resquiggle" / "reads8.tsv.gz", REVERSE)),
        (rna, kmers_of_rna_paf(shared_data / "rna002_sequin" / "expected" / "resquiggle.paf", RNA_READ)),
    ):
        data = compute(options)
        expected = {kmer: samples for kmer, samples in everything.items() if 300 <= kmer < 900}
        assert len(expected) > 400
        assert samples_of_kmers(data) == expected
        assert data.strand is None
        assert data.descending == data.source.rna


@pytest.mark.shared
def test_own_bases_from_reads_without_index(slow5_set: Callable[[str], Path], tmp_path: Path):
    folder = slow5_set("r10_wga")
    reads = tmp_path / "reads.fastq"
    shutil.copyfile(folder / "reads.fastq", reads)
    name = _names(reads)[3]
    options = options_of(name, reads=reads, slow5=folder / "signals.blow5")
    data = compute(options)
    assert data.source.chemistry == "R10.4.1 DNA"
    assert data.kmers.shape[1] == 9
    indexed = compute(replace(options, reads=str(folder / "reads.fastq")))
    np.testing.assert_array_equal(data.event_kmer, indexed.event_kmer)
    np.testing.assert_array_equal(data.letter, indexed.letter)


def _names(reads: Path) -> list[str]:
    with pysam.FastxFile(str(reads)) as file:
        return [read.name or "" for read in file]


@pytest.mark.shared
@pytest.mark.parametrize("indexed", [True, False])
def test_region_chooses_the_record(indexed_ecoli: Path, ecoli: Path, tmp_path: Path, indexed: bool):
    """The supplementary record of the read is on the other strand."""
    bam = ecoli / "reads.bam"
    if not indexed:
        bam = Path(shutil.copyfile(bam, tmp_path / "reads.bam"))
    files = {"reads": indexed_ecoli / "reads.fasta", "bam": bam, "genome": ecoli / "ref.fa"}
    options = options_of(WITH_SUPPLEMENTARY, **files)
    for region, strand, first, last in (
        (None, "+", 225_996, 229_953),
        (f"{CONTIG}:226001-226100", "+", 226_001, 226_100),
        (f"{CONTIG}:21001-21100", "-", 21_001, 21_100),
    ):
        data = compute(replace(options, window=region))
        assert data.strand == strand
        assert first <= data.position.min() + 1 <= data.position.max() + 1 <= last
        fit = np.abs(data.event_mean - data.level[data.event_kmer])[(data.event_kmer >= 0) & ~data.event_bad]
        assert np.median(fit) < 4  # pA; so the events are those of the record's part of the read
    with pytest.raises(F5pyError, match=f"aligned to {CONTIG}:20871-23636 and {CONTIG}:225996-229953; choose"):
        compute(replace(options, window=f"{CONTIG}:1-100"))


@pytest.mark.shared
def test_number_chooses_the_record(indexed_ecoli: Path, ecoli: Path):
    files = {"reads": indexed_ecoli / "reads.fasta", "bam": ecoli / "reads.bam", "genome": ecoli / "ref.fa"}
    options = options_of(WITH_SUPPLEMENTARY, **files)
    first, second = (compute(replace(options, alignment=number)) for number in (1, 2))
    assert 20_871 <= first.position.min() + 1 <= first.position.max() + 1 <= 23_636
    assert 225_996 <= second.position.min() + 1 <= second.position.max() + 1 <= 229_953
    where = f"{CONTIG}:20871-23636, {CONTIG}:225996-229953"
    with pytest.raises(F5pyError, match=f"--alignment 3: .* has 2 primary and supplementary alignments: {where}$"):
        compute(replace(options, alignment=3))
    with pytest.raises(F5pyError, match=f"-w .*: read .* is aligned to {CONTIG}:20871-23636 and"):
        compute(replace(options, alignment=1, window=f"{CONTIG}:226001-226100"))
    with pytest.raises(UsageError, match="--alignment needs --bam"):
        replace(options, bam=None, genome=None, alignment=1, output="x.html")


@pytest.mark.shared
@pytest.mark.parametrize("read", [FORWARD, REVERSE])
def test_calls_are_those_of_call_methylation(read: str, indexed_ecoli: Path, ecoli: Path):
    aligned = {"reads": indexed_ecoli / "reads.fasta", "bam": ecoli / "reads.bam", "genome": ecoli / "ref.fa"}
    data = compute(options_of(read, window=f"{CONTIG}:1-1000000", **aligned))
    table = f5py.call_methylation(returns="pandas", **aligned)
    expected = table[table.read_name == read].sort_values("start", ascending=not data.descending)
    calls = data.calls
    assert calls is not None
    assert len(calls.ratio) == len(expected) > 20
    assert (calls.first.tolist(), calls.last.tolist()) == (expected.start.tolist(), expected.end.tolist())
    np.testing.assert_allclose(calls.ratio, expected.log_lik_ratio, atol=1e-4)
    assert calls.sites.tolist() == expected.num_motifs.tolist()
    assert np.all(calls.start_sample[1:] >= calls.end_sample[:-1])
    here = {int(position): i for i, position in enumerate(data.position)}
    for i in np.flatnonzero(calls.sites == 1).tolist():  # the samples are those of the site's k-mer
        at = here[int(calls.first[i])]
        assert (calls.start_sample[i], calls.end_sample[i]) == (data.kmer_start[at], data.kmer_end[at])
        assert chr(data.letter[at]) == ("G" if data.strand == "-" else "C")


# The files


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "html", "PNG"])
def test_files(made: ReadSet, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / f"read.{ending}"
    plot(made.names[0], *made.options()[:6], "-o", out)
    content = out.read_bytes()
    starts = {"png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-", "svg": b"<?xml", "html": b"<!DOCTYPE html>"}
    assert content.startswith(starts[ending.lower()])
    if ending == "svg":
        ElementTree.fromstring(content)
    if ending in ("svg", "html"):
        assert made.names[0].encode() in content
    assert os.listdir(tmp_path) == [out.name]
    note = capsys.readouterr().err
    assert note.startswith(f"[plot_main] {out}: read {made.names[0]}, ")
    assert note.count("\n") == 1
    assert (" 100 k-mers, " in note) == (ending != "html")  # which shows the whole read
    plot(made.names[0], *made.options()[:6], "-o", out)
    assert out.read_bytes() == content


def test_default_output_is_named_after_the_read(made: ReadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    plot(made.names[1], "-r", made.reads, "--x-axis", "time")
    assert os.listdir(tmp_path) == [f"{made.names[1]}.png"]


def test_alignments_from_sam_and_from_standard_input(made: ReadSet, tmp_path: Path):
    sam = tmp_path / "reads.sam"
    header, records = made.records()
    with pysam.AlignmentFile(str(sam), "w", header=header) as file:
        for record in records:
            file.write(record)
    where = f"{records[-1].reference_name}:{records[-1].reference_start + 100}-{records[-1].reference_start + 150}"
    rest = ["-r", made.reads, "-g", made.genome, "-w", where]
    plot(made.names[-1], "-b", made.bam, *rest, "-o", tmp_path / "bam.svg")
    plot(made.names[-1], "-b", sam, *rest, "-o", tmp_path / "sam.svg")
    with standard_input(sam):
        plot(made.names[-1], "-b", "-", *rest, "-o", tmp_path / "stdin.svg")
    expected = (tmp_path / "bam.svg").read_bytes()
    assert (tmp_path / "sam.svg").read_bytes() == expected
    assert (tmp_path / "stdin.svg").read_bytes() == expected


# Wrong usage


# Bad input


@pytest.fixture
def refuses(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Return a function that checks that a plot fails with one line of that error and leaves no file."""

    def check(error: type[F5pyError], message: str, name: str, *arguments: object) -> None:
        folder = tmp_path_factory.mktemp("refused")
        with pytest.raises(error, match=message) as problem:
            plot(name, *arguments, "-o", folder / "read.png")
        assert "\n" not in str(problem.value)
        assert os.listdir(folder) == []

    return check


def test_read_is_missing(made: ReadSet, refuses: Callable[..., None], tmp_path: Path):
    aligned = made.options()[:6]
    refuses(InputFileError, r"reads.bam: has no read nobody; leave -b and -g out", "nobody", *aligned)
    refuses(InputFileError, r"reads.fasta: has no read nobody", "nobody", *aligned[:2])

    name = made.names[0]
    header, records = made.records()
    lacking = made.with_records(tmp_path, records[1:])
    refuses(InputFileError, rf"changed.bam: has no read {name}", name, *lacking.options()[:6])
    in_region = ("-w", f"{records[1].reference_name}:1-12000")
    refuses(InputFileError, rf"changed.bam: has no read {name}", name, *lacking.options()[:6], *in_region)

    bam_has_it = made.options()[2:6]
    reads = tmp_path / "few.fasta"
    reads.write_text(f">other\n{made.sequence(name)}\n")
    pysam.faidx(str(reads))
    refuses(InputFileError, r"few.fasta.index: not found", name, "-r", reads, *bam_has_it)
    refuses(InputFileError, rf"few.fasta: has no read {name}", name, "-r", reads)

    record = pysam.AlignedSegment.fromstring(records[0].to_string(), header)
    record.is_unmapped = True
    unmapped = made.with_records(tmp_path, [record, *records[1:]], index=False)
    refuses(F5pyError, rf"changed.bam: read {name} is not aligned", name, *unmapped.options()[:6])
    record = pysam.AlignedSegment.fromstring(records[0].to_string(), header)
    record.is_secondary = True
    secondary = made.with_records(tmp_path, [record, *records[1:]])
    refuses(F5pyError, rf"changed.bam: read {name} has secondary records only", name, *secondary.options()[:6])


def test_read_of_the_bam_is_not_among_the_reads(made: ReadSet, refuses: Callable[..., None], tmp_path: Path):
    header, records = made.records()
    record = pysam.AlignedSegment.fromstring(records[0].to_string(), header)
    record.query_name = "stranger"
    changed = made.with_records(tmp_path, [record, *records[1:]])
    refuses(InputFileError, r"reads.fasta: has no read stranger", "stranger", *changed.options()[:6])


def test_signal_is_missing(
    made: ReadSet, refuses: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    name = made.names[0]
    without = made.with_signals(tmp_path, {name: ""})
    message = f"read {name} cannot be drawn without its signal: read {name} "
    refuses(SignalError, f"{message}has no signal file in the index", name, *without.options()[:6])
    refuses(SignalError, f"read {name} has no signal file in the index", name, *without.options()[:2])
    gone = made.with_signals(tmp_path, {name: tmp_path / "gone.fast5"})
    refuses(SignalError, "gone.fast5", name, *gone.options()[:6])
    refuses(SignalError, "gone.fast5", name, *gone.options()[:2])
    refuses(SignalError, "gone.blow5", name, *made.options()[:6], "--slow5", tmp_path / "gone.blow5")
    refuses(F5pyError, "a: not found", name, *made.options()[:2], "--slow5", "a", "--pod5", "b")


def split_from(parent: str, made: ReadSet, folder: Path, **tags: object) -> tuple[ReadSet, Path]:
    """Split the last read from a parent, whose signal begins with that of another read; with these tags changed.

    Returns the reads and the only signal file.
    """
    other, part = made.signals([made.names[0], made.names[-1]])
    start = len(other.samples)
    whole = replace(part, name=parent, samples=np.concatenate([other.samples, part.samples, other.samples]))
    signals = write_signals(folder / "parent.blow5", [whole], experiment_type="genomic_dna")
    _, records = made.records()
    for tag, value in ({"pi": parent, "sp": start, "ns": len(part.samples)} | tags).items():
        records[-1].set_tag(tag, value)
    return made.with_records(folder, records), signals


def test_split_read_is_drawn_from_its_part_of_the_parent(made: ReadSet, refuses: Callable[..., None], tmp_path: Path):
    changed, signals = split_from("parent", made, tmp_path)
    name = made.names[-1]
    options = options_of(name, reads=made.reads, bam=changed.bam, genome=made.genome, slow5=signals)
    found = compute(options)
    expected = compute(replace(options, slow5=()))
    assert len(found.current) > 500
    for field in fields(PlotData):
        mine, other = getattr(found, field.name), getattr(expected, field.name)
        for one, its in zip(mine, other, strict=True) if field.name == "calls" else [(mine, other)]:
            np.testing.assert_array_equal(one, its, field.name)
    refuses(SignalError, name, name, *made.options()[:2], "--slow5", signals)
    # what the parent's metadata say counts
    arguments = (*changed.options()[:6], "--slow5", signals)
    refuses(UnsupportedDataError, "the signals are DNA", name, *arguments, "--rna")


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ({"sp": None}, "does not say where (tag sp)"),
        ({"sp": 10**8}, "its parent parent, which has"),
        ({"pi": "stranger"}, "the parent of the split read"),
    ],
)
def test_split_read_without_its_part_of_the_parent(
    made: ReadSet,
    refuses: Callable[..., None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    tags: dict[str, object],
    message: str,
):
    changed, signals = split_from("parent", made, tmp_path, **tags)
    refuses(SignalError, re.escape(message), made.names[-1], *changed.options()[:6], "--slow5", signals)


def test_signal_is_read_once(made: ReadSet, monkeypatch: pytest.MonkeyPatch):
    asked: list[list[str]] = []

    def opened(*arguments: Any, **named: Any) -> SignalSource:
        source = open_signals(*arguments, **named)
        fetch = source.fetch
        monkeypatch.setattr(source, "fetch", lambda names: (asked.append(list(names)), fetch(names))[1])
        return source

    monkeypatch.setattr("f5py.commands.plot.open_signals", opened)
    name = made.names[0]
    options = options_of(name, reads=made.reads)
    compute(options)
    compute(replace(options, bam=str(made.bam), genome=str(made.genome)))
    assert asked == [[name], [name]]


def test_read_that_does_not_align(made: ReadSet, refuses: Callable[..., None], tmp_path: Path):
    name, other = made.names[:2]
    changed = made.with_mapped_reads(tmp_path, {name: "ACGT" * 300, other: "ACGTA"})
    message = rf"read {name} cannot be drawn: its events do not fit its bases"
    refuses(F5pyError, message, name, *changed.options()[:6])
    refuses(F5pyError, message, name, *changed.options()[:2])
    refuses(F5pyError, rf"read {other} has 5 bases, less than a k-mer", other, *changed.options()[:2])
    many = ("--min-recalib-events", 100_000)
    refuses(F5pyError, "too few events to be calibrated with", name, *made.options()[:6], *many)


def test_regions_of_the_reference(made: ReadSet, refuses: Callable[..., None]):
    name, aligned = made.names[0], made.options()[:6]
    record = made.records()[1][0]
    contig, start, end = record.reference_name, record.reference_start, record.reference_end
    assert end is not None
    place = rf"read {name} is aligned to {contig}:{start + 1}-{end}; choose a region there"
    refuses(F5pyError, place, name, *aligned, "-w", f"{contig}:{end + 50}-{end + 100}")
    refuses(F5pyError, f"contig {contig} has only 12000 bases", name, *aligned, "-w", f"{contig}:12001-13000")
    refuses(F5pyError, "no contig 'nowhere'", name, *aligned, "-w", "nowhere:1-100")
    refuses(F5pyError, "contig:start-end", name, *aligned, "-w", f"{contig}:7-2")
    refuses(F5pyError, "a plot takes one region", name, *aligned, "-w", "windows.bed")
    # the last bases start no k-mer
    message = f"no event of read {name} is aligned in the region; its events are aligned to positions"
    refuses(F5pyError, message, name, *aligned, "-w", f"{contig}:{end - 1}-{end}")


def test_regions_of_the_read(made: ReadSet, refuses: Callable[..., None]):
    name, reads = made.names[0], made.options()[:2]
    for region in ("contig:1-100", "0-5", "9-3", "5", "-5", "5-", "a-b"):
        refuses(F5pyError, "write a region as first-last", name, *reads, f"--window={region}")
    refuses(F5pyError, rf"read {name} has only \d+ k-mers", name, *reads, "-w", "100000-100100")


@pytest.mark.shared
def test_region_that_is_too_large(refuses: Callable[..., None], indexed_ecoli: Path, ecoli: Path):
    reads = ("-r", indexed_ecoli / "reads.fasta")
    message = r"-w: the region has \d+ k-mers of read .*, too many for a figure; choose one of at most 5000"
    refuses(F5pyError, message, FORWARD, *reads, "-b", ecoli / "reads8.bam", "-g", ecoli / "ref.fa", "-w", CONTIG)
    refuses(F5pyError, message, FORWARD, *reads, "-w", "1-9000")


def test_outputs_that_cannot_be(made: ReadSet, tmp_path: Path):
    name, reads = made.names[0], made.options()[:2]
    with pytest.raises(OutputFileError, match="cannot write"):
        plot(name, *reads, "-o", tmp_path / "no folder" / "read.png")
    model = tmp_path / "model.png"
    model.write_text("not to be overwritten")
    with pytest.raises(UsageError, match="is an input as well"):
        plot(name, *reads, "--kmer-model", model, "-o", model)
    assert model.read_text() == "not to be overwritten"


def test_without_matplotlib(made: ReadSet, refuses: Callable[..., None], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refuses(MissingDependencyError, "pip install matplotlib", made.names[0], *made.options()[:2])
