"""What ``f5py eventalign`` does with bad input: one line that says what is wrong, and valid output so far."""

from __future__ import annotations

import fcntl
import gzip
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pysam
import pytest

from f5py.commands.index import index_slow5

from ..made_data import N_READS, ReadSet, error_line, process_of, repeated, run_command, run_process, write_signals

HEADER_FIELDS = 13
Fails = Callable[..., str]
Stops = Callable[..., tuple[str, bytes]]
Succeeds = Callable[..., tuple[bytes, str]]


@pytest.fixture
def fails(tmp_path: Path, capfd) -> Fails:
    """Run and expect one line of error; return it. Nothing must have been written."""

    def run(reads: ReadSet, *options: object, status: int = 1) -> str:
        folder = tmp_path / "output"
        folder.mkdir(exist_ok=True)
        capfd.readouterr()
        assert run_command("eventalign", *reads.options(), "-o", folder / "unwritten.tsv", *options) == status
        assert list(folder.iterdir()) == []
        told = capfd.readouterr()
        assert told.out == ""
        return error_line(told.err)

    return run


@pytest.fixture
def stops(tmp_path: Path, capfd) -> Stops:
    """Run and expect one line of error after some output; return it and the output, all of whose lines are whole."""

    def run(reads: ReadSet, *options: object) -> tuple[str, bytes]:
        out = tmp_path / "rows.tsv"
        capfd.readouterr()
        assert run_command("eventalign", *reads.options(), "-o", out, *options) == 1
        rows_by_read(out.read_bytes())
        return error_line(capfd.readouterr().err), out.read_bytes()

    return run


@pytest.fixture
def succeeds(tmp_path: Path, capfd) -> Succeeds:
    """Run without an error; return the output and the messages."""

    def run(reads: ReadSet, *options: object) -> tuple[bytes, str]:
        out = tmp_path / "rows.tsv"
        capfd.readouterr()
        assert run_command("eventalign", *reads.options(), "-o", out, *options) == 0
        return out.read_bytes(), capfd.readouterr().err

    return run


@pytest.fixture(scope="module")
def made_rows(made: ReadSet) -> bytes:
    """The rows of the made reads, with their names."""
    out = made.folder / "rows.tsv"
    assert run_command("eventalign", *made.options(), "-o", out, "--print-read-names") == 0
    return out.read_bytes()


@pytest.fixture(scope="module")
def unlabelled(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> ReadSet:
    """The made reads with signals that say nothing about their chemistry."""
    return made.with_slow5(tmp_path_factory.mktemp("unlabelled"))


def rows_by_read(table: bytes) -> dict[str, list[list[bytes]]]:
    """The fields of the rows of each read, or of each read index; checks that every line is whole."""
    assert table.endswith(b"\n")
    header, *rows = [line.split(b"\t") for line in table.splitlines()]
    assert len(header) == HEADER_FIELDS
    found: dict[str, list[list[bytes]]] = {}
    for row in rows:
        assert len(row) == HEADER_FIELDS
        found.setdefault(row[3].decode(), []).append(row)
    return found


def with_u(reads: ReadSet) -> dict[str, str]:
    return {name: reads.sequence(name).replace("T", "U") for name in reads.names}


# Chemistry


@pytest.mark.parametrize("labelled", [True, False])
def test_reads_with_the_letters_of_rna_need_the_option(made: ReadSet, tmp_path: Path, stops: Stops, labelled: bool):
    reads = made.with_reads(tmp_path, with_u(made))
    line, output = stops(reads if labelled else reads.with_slow5(tmp_path))
    assert "the reads have the letter U, so they are direct RNA" in line
    assert "--rna" in line
    assert output.count(b"\n") == 1


@pytest.mark.parametrize(
    ("ending", "options"), [("bam", ["--sam"]), ("parquet", ["--output-format", "parquet"]), ("tsv.gz", [])]
)
def test_what_is_left_of_a_run_that_stopped(made: ReadSet, tmp_path: Path, ending: str, options: list[str]):
    """No BAM or Parquet file at all, and a whole compressed file of whole lines."""
    _, records = made.records()
    records[-1].reference_start = 11_500
    records[-1].cigarstring = f"{len(records[-1].query_sequence)}M"
    reads = made.with_records(tmp_path, records, index=False)
    before = set(tmp_path.iterdir())
    out = tmp_path / f"out.{ending}"
    told = run_process(process_of("eventalign", *reads.options(), "-o", out, "-K", 4, *options))
    assert told.returncode == 1
    assert "extends past the end of contig simulated" in error_line(told.stderr.decode())
    if options:
        assert set(tmp_path.iterdir()) == before
    else:
        text = gzip.decompress(out.read_bytes())
        assert len(rows_by_read(text)) == 12


def test_dna_with_the_option_for_rna(made: ReadSet, tmp_path: Path, fails: Fails):
    line = fails(made, "--rna")
    assert "--rna, but the signals are DNA (experiment_type genomic_dna); leave --rna out" in line
    kit = made.with_slow5(tmp_path, experiment_type="genomic_dna", sequencing_kit="sqk-lsk114")
    line = fails(kit, "--rna")
    assert "--rna, but the signals are DNA (experiment_type genomic_dna, sequencing_kit sqk-lsk114)" in line


@pytest.mark.parametrize(
    ("options", "fields", "words"),
    [
        (["--pore", "r10"], {"sequencing_kit": "sqk-lsk109"}, "--pore r10, but the signals are of r9"),
        (["--pore", "r9"], {"sequencing_kit": "sqk-lsk114"}, "--pore r9, but the signals are of r10"),
        (["--pore", "rna004"], {"experiment_type": "genomic_dna"}, "--pore rna004, but the signals are DNA"),
        (["--pore", "r10"], {"sequencing_kit": "sqk-rna002"}, "--pore r10, but the signals are RNA"),
        (["--pore", "r10", "--rna"], {}, "--pore r10 and --rna exclude each other"),
        ([], {"sequencing_kit": "sqk-lsk114", "experiment_type": "rna"}, "RNA and R10 at the same time"),
    ],
)
@pytest.mark.parametrize("kind", ["slow5", "pod5"])
def test_options_that_contradict_the_signals(
    made: ReadSet, tmp_path: Path, fails: Fails, kind: str, options: list[str], fields: dict[str, str], words: str
):
    """The same from the header of a SLOW5 file and from the run of a POD5 file."""
    names = made.names[:3]
    if kind == "slow5":
        reads = made.with_slow5(tmp_path, names, **fields)
    else:
        kit = fields.get("sequencing_kit", "")
        tags = {key: value for key, value in fields.items() if key != "sequencing_kit"}
        reads = made.with_pod5(tmp_path, names, sequencing_kit=kit, context_tags=tags)
    assert words in fails(reads, *options)


def test_dna_with_the_option_for_rna_and_signals_that_do_not_say(unlabelled: ReadSet, tmp_path: Path, stops: Stops):
    many = unlabelled.with_records(tmp_path, repeated(unlabelled.records()[1], 4), index=False)
    line, output = stops(many, "--rna")
    assert "50 of the first 50 reads of 300 bases or more do not fit the pore model r9.4_70bps_rna." in line
    assert "(--pore, --rna)" in line
    assert output.count(b"\n") == 1
    line, _ = stops(unlabelled, "--rna")  # too few reads to judge by
    assert f"all {N_READS} reads failed" in line


@pytest.mark.shared
def test_rna_in_the_letters_of_dna_and_signals_that_do_not_say(slow5_set, tmp_path: Path, capfd):
    """Then only the pore model can tell; with the option it is the same as with the metadata."""
    from f5py.io.signals import open_any

    from ..made_data import signals_of

    folder = slow5_set("rna002_sequin")
    with pysam.FastxFile(str(folder / "reads.fastq")) as file:
        reads = [(read.name or "", (read.sequence or "").replace("U", "T")) for read in file]
    source = open_any(str(folder / "signals.blow5"))
    signals = signals_of(source, [name for name, _ in reads])
    source.close()
    write_signals(tmp_path / "signals.blow5", signals)
    (tmp_path / "reads.fasta").write_text("".join(f">{name}\n{bases}\n" for name, bases in reads))
    assert run_command("index", "--slow5", tmp_path / "signals.blow5", tmp_path / "reads.fasta") == 0
    inputs = ["-b", folder / "reads.bam", "-g", folder / "ref.fa", "--min-mapq", 0, "-t", 2]
    out = tmp_path / "out.tsv"
    capfd.readouterr()
    assert run_command("eventalign", "-r", tmp_path / "reads.fasta", *inputs, "-o", out) == 1
    line = error_line(capfd.readouterr().err)
    assert "all 20 reads failed (no alignment: " in line
    assert "(--pore, --rna)" in line
    assert out.read_bytes().count(b"\n") == 1
    assert run_command("eventalign", "-r", tmp_path / "reads.fasta", *inputs, "-o", out, "--rna") == 0
    labelled = tmp_path / "labelled.tsv"
    assert run_command("eventalign", "-r", folder / "reads.fastq", *inputs, "-o", labelled) == 0
    assert out.read_bytes() == labelled.read_bytes()
    assert out.read_bytes().count(b"\n") > 40_000


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "methylation", "words"),
    [("rna002_sequin", "cpg", "for RNA use eventalign"), ("r10_wga", "gpc", "give one with --meth-model")],
)
def test_methylation_cannot_be_called_in_it(slow5_set, tmp_path: Path, capfd, name: str, methylation: str, words: str):
    folder = slow5_set(name)
    inputs = ["-r", folder / "reads.fastq", "-b", folder / "reads.bam", "-g", folder / "ref.fa"]
    capfd.readouterr()
    assert run_command("call-methylation", *inputs, "-q", methylation, "-o", tmp_path / "calls.tsv") == 1
    assert words in error_line(capfd.readouterr().err)
    assert list(tmp_path.iterdir()) == []


# Alignments


def with_intron(made: ReadSet, folder: Path, at: int, length: int) -> tuple[ReadSet, str, int]:
    """A read set with one read over bases that have been put into the genome, the read's name, and where they are."""
    _, records = made.records()
    record = records[9]
    assert record.cigartuples is not None
    cut = record.reference_start + at
    bases = "".join(made.genome.read_text().split("\n")[1:])
    extra = "".join(np.random.default_rng(4).choice(list("ACGT"), length))
    before, after, reference = [], [], record.reference_start
    for kind, size in record.cigartuples:
        if reference >= cut or kind not in (0, 2, 7, 8):
            (after if reference >= cut else before).append((kind, size))
        else:
            first = min(size, cut - reference)
            before.append((kind, first))
            if size > first:
                after.append((kind, size - first))
            reference += size
    record.cigartuples = [*before, (3, length), *after]
    changed = made.with_genome(folder, f">simulated\n{bases[:cut]}{extra}{bases[cut:]}\n")
    longer = {"SQ": [{"SN": "simulated", "LN": len(bases) + length}]}
    return changed.with_records(folder, [record], longer), record.query_name or "", cut


def test_spliced_records_have_the_rows_of_their_exons(made: ReadSet, made_rows: bytes, tmp_path: Path, succeeds):
    length = 700
    spliced, name, cut = with_intron(made, tmp_path, 500, length)
    table, _ = succeeds(spliced, "--print-read-names")
    rows = rows_by_read(table)[name]
    positions = np.array([int(row[1]) for row in rows])
    assert not ((positions > cut) & (positions < cut + length - 6)).any()
    assert (positions <= cut).sum() > 800
    assert (positions >= cut + length).sum() > 800
    keys = {
        (int(row[1]) - (length if int(row[1]) >= cut + length else 0), *row[2:])
        for row in rows
    }
    unspliced = {(int(row[1]), *row[2:]) for row in rows_by_read(made_rows)[name]}
    near = {row for row in keys ^ unspliced if abs(row[0] - cut) <= 110}  # the last block before the cut differs
    assert keys ^ unspliced == near
    assert len(keys & unspliced) > 0.85 * len(unspliced)


def test_spliced_records_are_refused_by_methylation_calling(made: ReadSet, tmp_path: Path, capfd):
    spliced, name, _ = with_intron(made, tmp_path, 500, 700)
    assert run_command("call-methylation", *spliced.options(), "-o", tmp_path / "calls.tsv") == 1
    assert f"read {name}: spliced alignment (N in the CIGAR)" in error_line(capfd.readouterr().err)


@pytest.mark.parametrize(("option", "version"), [("--paf", ""), ("--sam", "1"), ("--sam", "2")])
def test_spliced_records_in_other_layouts(made: ReadSet, tmp_path: Path, succeeds, option: str, version: str):
    spliced, name, cut = with_intron(made, tmp_path, 500, 700)
    output, _ = succeeds(spliced, option, *(["--sam-out-version", version] if option == "--sam" else []))
    if option == "--sam":
        (tmp_path / "out.sam").write_bytes(output)
        with pysam.AlignmentFile(str(tmp_path / "out.sam")) as file:
            for record in file:
                assert (record.query_name or "").removesuffix(".template") == name
                assert any(kind == 3 for kind, _ in record.cigartuples or [])
                assert record.reference_end > cut + 700
    else:
        fields = output.decode().rstrip("\n").split("\t")
        assert fields[0] == name
        assert int(fields[7]) < cut
        assert int(fields[8]) > cut + 700


def test_summary_needs_no_nm_tag(made: ReadSet, made_rows: bytes, tmp_path: Path, succeeds):
    _, records = made.records()
    summaries = []
    for nm in (7, None):
        for record in records:
            record.set_tag("NM", nm)
        path = tmp_path / "summary.tsv"
        table, _ = succeeds(made.with_records(tmp_path, records, index=False), "--summary", path, "--print-read-names")
        assert table == made_rows
        summaries.append(path.read_bytes())
    assert summaries[0] == summaries[1]
    assert [line.split(b"\t")[1].decode() for line in summaries[0].splitlines()[1:]] == made.names


def test_contigs_that_the_reference_lacks(made: ReadSet, tmp_path: Path, fails: Fails, stops: Stops):
    """It is an error if a read lies on one, if -w names one, or if all are lacking."""
    _, records = made.records()
    longer = {"SQ": [{"SN": "simulated", "LN": 12_000}, {"SN": "other", "LN": 12_000}]}
    assert f"{made.genome}: the reference lacks contig other, which -w names" in fails(
        made.with_records(tmp_path, records, longer), "-w", "other:1-100"
    )
    texts = [record.to_string().replace("\tsimulated\t", "\tother\t", i == 5) for i, record in enumerate(records)]
    header = pysam.AlignmentHeader.from_dict(longer)
    moved = [pysam.AlignedSegment.fromstring(text, header) for text in texts]
    line, _ = stops(made.with_records(tmp_path, moved, longer, index=False))
    assert f"{made.genome}: the reference lacks contig other, on which reads lie" in line


def test_a_record_of_an_unknown_read_is_a_bad_read(made: ReadSet, made_rows: bytes, tmp_path: Path, succeeds):
    _, records = made.records()
    expected = rows_by_read(made_rows)
    del expected[records[2].query_name]
    records[2].query_name = "unknown"
    table, told = succeeds(made.with_records(tmp_path, records, index=False), "--print-read-names", "-K", 1)
    assert rows_by_read(table) == expected
    assert "no alignment: 0, bad reads: 1\n" in told


def test_no_records(made: ReadSet, tmp_path: Path, stops: Stops):
    line, output = stops(made.with_records(tmp_path, []))
    assert f"{tmp_path}/changed.bam: no record was used" in line
    assert output.count(b"\n") == 1


def test_truncated_alignment_file(made: ReadSet, tmp_path: Path, fails: Fails):
    assert "no BGZF EOF marker" in fails(made.with_bam(tmp_path, made.bam.read_bytes()[:-40]))
    assert "no such file" in fails(replace(made, bam=tmp_path / "absent.bam"))


def test_damage_in_mid_file_keeps_the_rows_before_it(made: ReadSet, made_rows: bytes, tmp_path: Path, stops: Stops):
    many = made.with_records(tmp_path, repeated(made.records()[1], 4), index=False)
    bam = many.bam.read_bytes()
    middle = int(len(bam) * 0.8)
    damaged = many.with_bam(tmp_path, bam[:middle] + os.urandom(200) + bam[middle + 200 :])
    line, output = stops(damaged, "-K", 3, "--print-read-names", "--summary", tmp_path / "summary.tsv")
    assert f"{tmp_path}/changed.bam: truncated or damaged after " in line
    assert line.endswith("the output is incomplete")
    rows = made_rows[made_rows.index(b"\n") + 1 :]
    assert (made_rows + rows).startswith(output)
    summary = (tmp_path / "summary.tsv").read_text()
    assert summary.endswith("\n")
    reads = [line.split("\t")[1] for line in summary.splitlines()[1:]]
    assert reads == (made.names * 2)[: len(reads)]
    assert set(reads) == set(rows_by_read(output))


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ("chrX:1-5", "there is no contig 'chrX' in the BAM file; it has simulated"),
        ("simulated:5-1", "write a region as contig:start-end"),
        ("simulated:a-b", "write a region as contig:start-end"),
        ("simulated:", "write a region as contig:start-end"),
        ("simulated:12001-13000", "lies after the end of contig simulated, which has 12000 bases"),
        ("simulated:13000", "lies after the end of contig simulated, which has 12000 bases"),
        ("absent.bed", "absent.bed: cannot read the BED file"),
        ("empty.bed", "the BED file has no windows"),
        ("other.bed", "line 2: there is no contig 'chrX' in the BAM file"),
        ("after.bed", "lies after the end of contig simulated, which has 12000 bases"),
        ("words.bed", "line 1: expected contig, start and end, found"),
        ("reverse.bed", "line 1: start 9 and end 3 are no interval"),
    ],
)
def test_wrong_region(made: ReadSet, tmp_path: Path, fails: Fails, window: str, words: str):
    beds = {
        "empty": "# nothing\n",
        "other": "simulated\t1\t5\nchrX\t1\t5\n",
        "after": "simulated\t12000\t12005\nsimulated\t20000\t21000\n",
        "words": "simulated one five\n",
        "reverse": "simulated\t9\t3\n",
    }
    for name, text in beds.items():
        (tmp_path / f"{name}.bed").write_text(text)
    assert words in fails(made, "-w", tmp_path / window if window.endswith(".bed") else window)


def test_region_over_the_end_of_the_contig(made: ReadSet, made_rows: bytes, tmp_path: Path, succeeds, stops: Stops):
    table, _ = succeeds(made, "-w", "simulated:9001-99999", "--print-read-names")
    expected = {row for row in made_rows.splitlines()[1:] if int(row.split(b"\t")[1]) >= 9000}
    rows = set(table.splitlines()[1:])
    assert all(int(row.split(b"\t")[1]) >= 9000 for row in rows)
    assert len(rows) > 5000
    assert len(rows ^ expected) < 0.02 * len(expected)  # segments begin at other places, so that blocks differ
    (tmp_path / "some.bed").write_text("simulated\t9000\t99999\nsimulated\t50000\t60000\n")
    assert succeeds(made, "-w", tmp_path / "some.bed", "--print-read-names")[0] == table
    early = [record for record in made.records()[1] if (record.reference_end or 0) < 9000]
    table, told = succeeds(made.with_records(tmp_path, early), "-w", "simulated:11001-12000")
    assert "in simulated:11001-12000 was used; the results are empty" in told
    assert table.count(b"\n") == 1


def test_regions_need_an_index_of_the_alignments(made: ReadSet, made_rows: bytes, tmp_path: Path, fails, succeeds):
    unindexed = made.with_records(tmp_path, made.records()[1], index=False)
    line = fails(unindexed, "-w", "simulated:1-5000")
    assert "-w needs an index; run: samtools index" in line
    assert succeeds(unindexed, "--print-read-names")[0] == made_rows


# Reads, signals, models


def test_reads_without_an_index(made: ReadSet, tmp_path: Path, fails: Fails):
    shutil.copy(made.reads, tmp_path / "bare.fasta")
    line = fails(replace(made, reads=tmp_path / "bare.fasta"))
    assert f"{tmp_path}/bare.fasta.index: not found" in line
    assert "f5py index" in line
    assert "f5py index" in fails(replace(made, reads=tmp_path / "absent.fasta"))


def test_signals_of_another_kind_or_missing(made: ReadSet, unlabelled: ReadSet, tmp_path: Path, fails: Fails):
    blow5, fast5 = unlabelled.folder / "signals.blow5", made.signal_file(made.names[0])
    pod5 = write_signals(tmp_path / "signals.pod5", made.signals(made.names[:2]))
    (tmp_path / "text.blow5").write_text("no signals\n")
    (tmp_path / "empty.blow5").touch()
    (tmp_path / "folder").mkdir()
    for options, words in [
        (["--slow5", fast5], f"{fast5}: is a fast5 file; give it with --fast5"),
        (["--pod5", fast5], f"{fast5}: is a fast5 file; give it with --fast5"),
        (["--slow5", pod5], f"{pod5}: is a POD5 file; give it with --pod5"),
        (["--pod5", blow5], f"{blow5}: is a SLOW5 file; give it with --slow5"),
        (["--slow5", blow5, "--pod5", pod5], "--slow5 and --pod5 are both given"),
        (["--slow5", tmp_path / "absent.blow5"], "absent.blow5: not found"),
        (["--pod5", tmp_path / "absent.pod5"], "absent.pod5: not found"),
        (["--slow5", tmp_path / "text.blow5"], "text.blow5: is not a SLOW5, POD5 or fast5 file"),
        (["--slow5", tmp_path / "empty.blow5"], "empty.blow5: is empty"),
        (["--pod5", tmp_path / "folder"], "folder: "),
    ]:
        assert words in fails(made, *options, status=2 if "both given" in words else 1)


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("lost", [3, 5000])
def test_truncated_slow5_file(unlabelled: ReadSet, tmp_path: Path, fails: Fails, indexed: bool, lost: int):
    whole = unlabelled.folder / "signals.blow5"
    cut = tmp_path / "signals.blow5"
    cut.write_bytes(whole.read_bytes()[:-lost])
    if indexed:
        shutil.copy(f"{whole}.idx", f"{cut}.idx")
    line = fails(unlabelled, "--slow5", cut)
    assert f"{cut}: is truncated or damaged after read number " in line


def test_truncated_pod5_file(made: ReadSet, tmp_path: Path, fails: Fails):
    path = write_signals(tmp_path / "signals.pod5", made.signals(made.names[:4]))
    path.write_bytes(path.read_bytes()[:-500])
    assert f"{path}: " in fails(made, "--pod5", path)


def test_signals_of_other_reads(made: ReadSet, tmp_path: Path, stops: Stops):
    signals = made.signals(made.names[:2])
    for i, read in enumerate(signals):
        read.name = f"00000000-0000-0000-0000-00000000000{i}"
    line, output = stops(made, "--slow5", write_signals(tmp_path / "other.blow5", signals))
    assert f"all {N_READS} reads failed" in line
    assert output.count(b"\n") == 1


def model_file(path: Path, k: int, alphabet: str = "ACGT") -> Path:
    kmers = ("".join(kmer) for kmer in product(alphabet, repeat=k))
    path.write_text(f"#k\t{k}\n" + "".join(f"{kmer}\t90.0\t2.0\n" for kmer in kmers))
    return path


@pytest.mark.parametrize("k", [2, 5, 7])
def test_a_model_of_another_k(made: ReadSet, tmp_path: Path, stops: Stops, k: int):
    """It is a model of something else, as the reads show; rows are never made with it."""
    many = made.with_records(tmp_path, repeated(made.records()[1], 4), index=False)
    path = model_file(tmp_path / "model.txt", k)
    line, output = stops(many, "--kmer-model", path)
    assert "of the first 50 reads of 300 bases or more do not fit the pore model" in line
    assert "model.txt" in line
    assert "give a fitting --kmer-model" in line
    assert output.count(b"\n") == 1


def test_damaged_models(made: ReadSet, tmp_path: Path, fails: Fails):
    path = model_file(tmp_path / "model.txt", 3)
    whole = path.read_text()
    for text, words in [
        (whole[: len(whole) // 2], "the file ends here"),
        (whole.replace("AAC\t90.0", "AAC\tmany"), "line 3: column mean, 'many'"),
        (whole.replace("#k\t3", "#k\t4"), "k"),
        (whole.replace("90.0\t2.0", "90.0\t-2.0"), "line 2"),
        (whole.replace("90.0", "nan"), "line 2"),
        ("", "no k-mers in it"),
        (model_file(path, 2, "ACGMT").read_text(), "over ACGT in lexicographic order"),
    ]:
        path.write_text(text)
        line = fails(made, "--kmer-model", path)
        assert str(path) in line
        assert words in line
    assert "absent.txt: cannot be read" in fails(made, "--kmer-model", tmp_path / "absent.txt")


# Options and outputs


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-c", "-a"], "--paf and --sam exclude each other"),
        (["--paf", "--m6anet"], "--paf and --m6anet exclude each other"),
        (["-a", "--m6anet"], "--sam and --m6anet exclude each other"),
        (["-c", "--output-format", "parquet"], "--paf and --output-format parquet exclude each other"),
        (["--m6anet", "--output-format=parquet"], "--m6anet and --output-format parquet exclude each other"),
        (["-c", "-a", "--m6anet"], "--paf and --sam and --m6anet exclude each other"),
        (["--sam", "--print-events=yes"], "--sam: has no place for what the --print options print"),
        (["-o", "-", "--output-format=parquet"], "--output-format parquet: name a file with -o"),
    ],
)
def test_options_that_exclude_each_other(made: ReadSet, fails: Fails, options: list[str], words: str):
    assert words in fails(made, *options, status=2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--sam-out-version", "3"], "'3' is not one of '1', '2'"),
        (["--pore", "r8"], "'r8' is not one of"),
        (["--output-format", "csv"], "'csv' is not one of"),
        (["--nonsense"], "No such option"),
        (["extra"], "unexpected extra argument"),
    ],
)
def test_wrong_usage(made: ReadSet, tmp_path: Path, capfd, options: list[str], words: str):
    assert run_command("eventalign", *made.options(), "-o", tmp_path / "rows.tsv", *options) == 2
    told = capfd.readouterr().err
    assert words in told
    assert "Traceback" not in told
    assert list(tmp_path.iterdir()) == []


def test_outputs_that_cannot_be(made: ReadSet, tmp_path: Path, fails: Fails):
    """Noticed before any work, also where the file is written only at the end."""
    absent, unwritten = tmp_path / "absent" / "out", tmp_path / "output" / "unwritten.tsv"
    for option in ("-o", "--summary", "--report", "--skip-ultra"):
        assert f"{absent}: cannot write: No such file or directory" in fails(made, option, absent)
    for option in ("--summary", "--report", "--skip-ultra"):
        assert f"cannot take what both -o and {option} write" in fails(made, option, unwritten, status=2)
        assert f"{option} -: give the name of a file" in fails(made, option, "-", status=2)
    assert "cannot take what both --summary and --report write" in fails(
        made, "--report", tmp_path / "x", "--summary", tmp_path / "x", status=2
    )


@pytest.mark.parametrize("which", ["reads", "bam", "genome"])
@pytest.mark.parametrize("option", ["-o", "--summary"])
def test_inputs_are_not_written_over(made: ReadSet, tmp_path: Path, fails: Fails, which: str, option: str):
    copy = tmp_path / getattr(made, which).name
    shutil.copy(getattr(made, which), copy)
    (tmp_path / "link").symlink_to(copy)
    before = copy.read_bytes()
    assert "is an input as well" in fails(replace(made, **{which: copy}), option, tmp_path / "link", status=2)
    assert copy.read_bytes() == before


def test_signals_and_models_are_not_written_over(made: ReadSet, unlabelled: ReadSet, tmp_path: Path, fails: Fails):
    blow5 = tmp_path / "a.blow5"
    shutil.copy(unlabelled.folder / "signals.blow5", blow5)
    before = blow5.read_bytes()
    assert "is an input as well" in fails(made, "--slow5", blow5, "-o", blow5, status=2)
    assert blow5.read_bytes() == before
    model = model_file(tmp_path / "model.txt", 2)
    assert "is an input as well" in fails(made, "--kmer-model", model, "--report", model, status=2)
    assert model.stat().st_size > 0


full_disk = pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")


@full_disk
@pytest.mark.parametrize("options", [[], ["--paf"], ["--sam"], ["--collapse-events"]], ids=str)
def test_full_disk(made: ReadSet, capfd, options: list[str]):
    assert run_command("eventalign", *made.options(), "-o", "/dev/full", *options) == 1
    line = error_line(capfd.readouterr().err)
    assert "/dev/full: cannot write: No space left on device; the output is incomplete" in line


@full_disk
def test_full_disk_names_the_right_file(made: ReadSet, made_rows: bytes, tmp_path: Path, capfd):
    out = tmp_path / "rows.tsv"
    assert run_command("eventalign", *made.options(), "-o", out, "--print-read-names", "--summary", "/dev/full") == 1
    line = error_line(capfd.readouterr().err)
    assert "/dev/full" in line
    assert "No space left on device" in line
    assert str(out) not in line
    assert made_rows.startswith(out.read_bytes())
    assert out.read_bytes().endswith(b"\n")
    assert run_command("eventalign", *made.options(), "-o", out, "--report", "/dev/full") == 1
    assert "/dev/full: cannot write" in error_line(capfd.readouterr().err)


@pytest.mark.parametrize("name", ["rows.tsv", "rows.tsv.gz", "rows.bam"])
def test_file_that_cannot_grow(made: ReadSet, made_rows: bytes, tmp_path: Path, capfd, name: str):
    """A table ends with a whole row, a compressed one can be read, and no BAM file is left."""
    out = tmp_path / name
    options = ["--sam", *["--sam-out-version", "1"]] if name.endswith(".bam") else ["--print-read-names"]
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = {"rows.tsv": len(made_rows) // 2 + 7, "rows.tsv.gz": 200_000, "rows.bam": 10_000}[name]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        assert run_command("eventalign", *made.options(), "--iop", "1", "-o", out, *options) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    line = error_line(capfd.readouterr().err)
    assert f"{out}: cannot write" in line
    if name == "rows.tsv":
        assert made_rows[:size].rpartition(b"\n")[0] + b"\n" == out.read_bytes()
    elif name == "rows.tsv.gz":
        assert out.stat().st_size <= size
        text = run_process(["gzip", "-dc", str(out)]).stdout
        assert made_rows.startswith(text)
    else:
        assert list(tmp_path.iterdir()) == []


def test_parquet_without_its_package(made: ReadSet, fails: Fails, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install" in fails(made, "--output-format", "parquet")


# Interrupts and closed pipes


def long_run(made: ReadSet, folder: Path, *options: object) -> list[str]:
    """A run of a few seconds."""
    many = made.with_records(folder, repeated(made.records()[1], 60), index=False)
    return process_of("eventalign", *many.options(), "-K", 16, "--print-read-names", *options)


def test_closed_pipe_is_quiet(made: ReadSet, made_rows: bytes, tmp_path: Path):
    command = long_run(made, tmp_path)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == made_rows.splitlines(keepends=True)[0]
        process.stdout.close()
        messages = process.stderr.read().decode()
        assert process.wait(timeout=30) == 128 + signal.SIGPIPE
    assert all(line.startswith(("[init_cuda", "[meth_main::", "[pthread_")) for line in messages.splitlines())
    assert "ERROR" not in messages


@pytest.mark.parametrize("kind", ["file", "blocked pipe"])
def test_interrupt(made: ReadSet, made_rows: bytes, tmp_path: Path, kind: str):
    out = tmp_path / "rows.tsv"
    command = long_run(made, tmp_path, *(["-o", out, "--summary", tmp_path / "summary.tsv"] if kind == "file" else []))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for _ in range(3):
            while b"processed" not in process.stderr.readline() and kind == "file":
                assert process.poll() is None
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        watchdog = threading.Timer(60, process.kill)  # so that a lost interrupt is a failure
        watchdog.start()
        messages = process.stderr.read().decode()
        watchdog.cancel()
        assert process.wait(timeout=30) == 130
    assert "interrupted" in error_line(messages)
    if kind == "file":
        rows, output = made_rows[made_rows.index(b"\n") + 1 :], out.read_bytes()
        assert len(made_rows) <= len(output) < 59 * len(rows)
        assert output.endswith(b"\n")
        assert (made_rows + rows * 60).startswith(output)
        summary = (tmp_path / "summary.tsv").read_text()
        assert summary.endswith("\n")
        assert all(line.count("\t") == 13 for line in summary.splitlines())


def interrupted(process: subprocess.Popen) -> str:
    """Interrupt a process that must then end soon; return its messages."""
    process.send_signal(signal.SIGINT)
    try:
        messages = process.communicate(timeout=20)[1]
    finally:
        process.kill()
    assert process.returncode == 130
    return messages.decode()


def wait_until_stuck(reader: int, process: subprocess.Popen) -> None:
    """Wait until there is something in the pipe and it does not get more."""
    deadline = time.monotonic() + 60
    before, now = 0, 0
    while now == 0 or now != before:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.5)
        before = now
        (now,) = struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"\0" * 4))


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="needs Linux, to make a pipe small")
@pytest.mark.parametrize(
    ("stuck", "name", "options"),
    [
        ("output", "out.tsv", []),
        ("output", "out.tsv.gz", []),
        ("output", "out.bam", ["--sam"]),
        ("summary", "out.tsv", []),
        ("summary", "out.tsv.gz", []),
        ("summary", "out.bam", ["--sam"]),
        ("summary", "out.parquet", ["--output-format", "parquet"]),
    ],
)
def test_interrupt_while_the_writer_is_stuck(
    made: ReadSet, made_rows: bytes, tmp_path: Path, stuck: str, name: str, options: list[str]
):
    """In a pipe that nobody reads: nothing is closed beside it, and nothing unfinished stays after."""
    folder = tmp_path / "out"
    folder.mkdir()
    out, summary = folder / name, folder / "summary.tsv"
    pipe, other = (out, summary) if stuck == "output" else (summary, out)
    os.mkfifo(pipe)
    command = long_run(made, tmp_path, *options, "-o", out, "--summary", summary)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            wait_until_stuck(reader, process)
            unfinished = [path.name for path in folder.iterdir() if path not in (out, summary)]
            assert unfinished == [f".unfinished-{other.name}"]
            messages = interrupted(process)
    finally:
        os.close(reader)
    assert "interrupted" in error_line(messages)
    if other.suffix in (".bam", ".parquet"):
        assert list(folder.iterdir()) == [pipe]
        return
    assert set(folder.iterdir()) == {pipe, other}
    text = other.read_bytes()
    if stuck == "summary":
        text = gzip.decompress(text) if name.endswith(".gz") else text
        rows = made_rows[made_rows.index(b"\n") + 1 :]
        assert (made_rows + rows * 60).startswith(text)
        assert len(text) > 100_000
    if name != "out.tsv.gz":  # whose blocks end anywhere in a line
        assert text == b"" or text.endswith(b"\n")


# Odd text in alignment files


def with_text(made: ReadSet, folder: Path, comment: bytes, tag: bytes, name: bytes | None = None) -> ReadSet:
    """The made records as SAM with a comment in the header and a tag, and with another name of the first read."""
    header, records = made.records()
    lines = [record.to_string().encode() + b"\tXX:Z:" + tag for record in records]
    if name is not None:
        lines[0] = name + lines[0][lines[0].index(b"\t") :]
    path = folder / "changed.sam"
    path.write_bytes(str(header).encode() + b"@CO\t" + comment + b"\n" + b"\n".join([*lines, b""]))
    return replace(made, folder=folder, bam=path)


@pytest.mark.parametrize(
    "text", ["caf\xe9".encode("latin-1"), "caf\xe9".encode(), "a\x1cb\x85c\u2028d\x0ce".encode()], ids=ascii
)
@pytest.mark.parametrize("version", ["1", "2"])
def test_any_text_in_header_and_tags(made: ReadSet, tmp_path: Path, succeeds: Succeeds, text: bytes, version: str):
    """It is passed on byte by byte, to SAM and to BAM, and does not break lines."""
    options = ["--sam", "--sam-out-version", version]
    plain, _ = succeeds(with_text(made, tmp_path, b"comment", b"tag"), *options)
    odd = with_text(made, tmp_path, text, text)
    table, _ = succeeds(odd, *options)
    assert table == plain.replace(b"@CO\tcomment", b"@CO\t" + text).replace(b"XX:Z:tag", b"XX:Z:" + text)
    assert table.count(b"XX:Z:" + text) == (N_READS if version == "2" else 0)
    out = tmp_path / "out.bam"
    assert run_command("eventalign", *odd.options(), "-o", out, *options) == 0
    printed = run_process(["samtools", "view", "--no-PG", "-h", str(out)])
    assert printed.returncode == 0
    assert printed.stdout.split(b"\n") == table.split(b"\n")


def test_names_that_get_too_long_for_bam(made: ReadSet, tmp_path: Path, capfd):
    """Version 1 appends to them."""
    longest = "n" * 254
    records = made.records()[1]
    renamed = with_text(made, tmp_path, b"", b"", longest.encode())
    reads = tmp_path / "changed.fasta"
    reads.write_text(f">{longest}\n{made.sequence(records[0].query_name or '')}\n")
    signal_of_it = made.signals([records[0].query_name or ""])
    signal_of_it[0].name = longest
    index_slow5(str(reads), str(write_signals(tmp_path / "signals.blow5", signal_of_it)), threads=1)
    renamed = replace(renamed, reads=reads)
    out = tmp_path / "out" / "out.bam"
    out.parent.mkdir()
    assert run_command("eventalign", *renamed.options(), "-o", out, "--sam", "--sam-out-version", "1") == 1
    line = error_line(capfd.readouterr().err)
    assert f"the record of {longest}.template has a name of 263 bytes, but 254 are allowed; --sam-out-version 2" in line
    assert line.endswith("no BAM file was made")
    assert list(out.parent.iterdir()) == []
    assert run_command("eventalign", *renamed.options(), "-o", out, "--sam") == 0
    with pysam.AlignmentFile(str(out)) as file:
        assert [record.query_name for record in file] == [longest]


@pytest.mark.parametrize(
    ("name", "options", "left"),
    [
        ("out.tsv", [], "the output is incomplete"),
        ("out.sam", ["--sam"], "the output is incomplete"),
        ("out.bam", ["--sam"], "no BAM file was made"),
        ("out.parquet", ["--output-format", "parquet"], "no Parquet file was made"),
    ],
)
def test_an_error_says_what_there_is(
    made: ReadSet, tmp_path: Path, capfd, name: str, options: list[str], left: str
):
    _, records = made.records()
    records[-1].cigarstring = f"{len(records[-1].query_sequence or '')}M"
    records[-1].reference_start = 11_500
    odd = made.with_records(tmp_path, records, index=False)
    out = tmp_path / name
    assert run_command("eventalign", *odd.options(), "-o", out, "-K", 4, *options) == 1
    line = error_line(capfd.readouterr().err)
    assert line.endswith(f"extends past the end of contig simulated; map the reads again; {left}")
    assert out.exists() == (left == "the output is incomplete")
