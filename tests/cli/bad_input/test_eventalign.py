"""Bad input that only ``f5py eventalign`` can meet: splicing, other layouts, and text that is passed on."""

from __future__ import annotations

import gzip
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pysam
import pytest

from ...index_files import index_quietly
from ...made_data import N_READS, ReadSet, refused, run_command, run_process, signals_of, write_signals
from .commands import EVENTALIGN, SignalCommand
from .conftest import Fails, Succeeds


@pytest.fixture
def command() -> SignalCommand:
    return EVENTALIGN


def rows_by_read(table: bytes) -> dict[str, list[list[bytes]]]:
    return {name: [row.split(b"\t") for row in rows] for name, rows in EVENTALIGN.by_read(table).items()}


@pytest.mark.shared
def test_rna_in_the_letters_of_dna_and_signals_that_do_not_say(
    slow5_set, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Then only the pore model can tell; with the option it is the same as with the metadata."""
    from f5py.io.signals import open_any

    folder = slow5_set("rna002_sequin")
    with pysam.FastxFile(str(folder / "reads.fastq")) as file:
        reads = [(read.name or "", (read.sequence or "").replace("U", "T")) for read in file]
    source = open_any([str(folder / "signals.blow5")])
    signals = signals_of(source, [name for name, _ in reads])
    source.close()
    write_signals(tmp_path / "signals.blow5", signals)
    (tmp_path / "reads.fasta").write_text("".join(f">{name}\n{bases}\n" for name, bases in reads))
    assert run_command("index", "--slow5", tmp_path / "signals.blow5", tmp_path / "reads.fasta") == 0
    inputs = ["-b", folder / "reads.bam", "-g", folder / "ref.fa", "--min-mapq", 0, "-t", 2]
    out = tmp_path / "out.tsv"
    line = refused(capfd, "eventalign", "-r", tmp_path / "reads.fasta", *inputs, "-o", out)
    assert "all 20 reads failed (no alignment: " in line
    assert "(--pore, --rna)" in line
    assert not out.exists()
    assert run_command("eventalign", "-r", tmp_path / "reads.fasta", *inputs, "-o", out, "--rna") == 0
    labelled = tmp_path / "labelled.tsv"
    assert run_command("eventalign", "-r", folder / "reads.fastq", *inputs, "-o", labelled) == 0
    assert out.read_bytes() == labelled.read_bytes()
    assert out.read_bytes().count(b"\n") > 40_000


def with_intron(made: ReadSet, folder: Path, at: int, length: int) -> tuple[ReadSet, str, int]:
    """Put bases into the genome under one read; return the read set, the read's name, and where they are."""
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


def test_spliced_records_have_the_rows_of_their_exons(
    made: ReadSet, table: bytes, tmp_path: Path, succeeds: Succeeds
) -> None:
    length = 700
    spliced, name, cut = with_intron(made, tmp_path, 500, length)
    output, _ = succeeds(spliced)
    rows = rows_by_read(output)[name]
    positions = np.array([int(row[1]) for row in rows])
    assert not ((positions > cut) & (positions < cut + length - 6)).any()
    assert (positions <= cut).sum() > 800
    assert (positions >= cut + length).sum() > 800
    keys = {(int(row[1]) - (length if int(row[1]) >= cut + length else 0), *row[2:]) for row in rows}
    unspliced = {(int(row[1]), *row[2:]) for row in rows_by_read(table)[name]}
    near = {row for row in keys ^ unspliced if abs(row[0] - cut) <= 110}  # the last block before the cut differs
    assert keys ^ unspliced == near
    assert len(keys & unspliced) > 0.85 * len(unspliced)


@pytest.mark.parametrize(("option", "version"), [("--paf", ""), ("--sam", "1"), ("--sam", "2")])
def test_spliced_records_in_other_layouts(
    made: ReadSet, tmp_path: Path, succeeds: Succeeds, option: str, version: str
) -> None:
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


def test_summary_needs_no_nm_tag(made: ReadSet, table: bytes, tmp_path: Path, succeeds: Succeeds) -> None:
    _, records = made.records()
    summaries = []
    for nm in (7, None):
        for record in records:
            record.set_tag("NM", nm)
        path = tmp_path / "summary.tsv"
        output, _ = succeeds(made.with_records(tmp_path, records, index=False), "--summary", path)
        assert output == table
        summaries.append(path.read_bytes())
    assert summaries[0] == summaries[1]
    assert [line.split(b"\t")[1].decode() for line in summaries[0].splitlines()[1:]] == made.names


def test_region_over_the_end_of_the_contig(made: ReadSet, table: bytes, tmp_path: Path, succeeds: Succeeds) -> None:
    output, _ = succeeds(made, "-w", "simulated:9001-99999")
    expected = {row for row in table.splitlines()[1:] if int(row.split(b"\t")[1]) >= 9000}
    rows = set(output.splitlines()[1:])
    assert all(int(row.split(b"\t")[1]) >= 9000 for row in rows)
    assert len(rows) > 5000
    assert len(rows ^ expected) < 0.02 * len(expected)  # segments begin at other places, so that blocks differ
    (tmp_path / "some.bed").write_text("simulated\t9000\t99999\nsimulated\t50000\t60000\n")
    assert succeeds(made, "-w", tmp_path / "some.bed")[0] == output


def test_names_that_are_cut(made: ReadSet, table: bytes, tmp_path: Path, succeeds: Succeeds, fails: Fails) -> None:
    header, text = made.records()[0].to_dict(), made.genome.read_text()
    header["SQ"][0]["SN"] = "simulated|gene|"
    long = made.with_records(tmp_path, made.records()[1], header)
    long = long.with_genome(tmp_path, text.replace(">simulated", ">simulated|gene|"))
    assert succeeds(long)[0] == table.replace(b"simulated\t", b"simulated|gene|\t")
    assert succeeds(long, "--cut-names")[0] == table
    header["SQ"].append({"SN": "simulated|other", "LN": 9})
    both = long.with_records(tmp_path, made.records()[1], header)
    both = both.with_genome(tmp_path, f"{long.genome.read_text()}\n>simulated|other\nACGTACGTA\n")
    (tmp_path / "changed.fa.fai").unlink()
    line = fails(both, "--cut-names")
    assert "contigs simulated|gene| and simulated|other would both be called simulated" in line


def test_parquet_without_its_package(made: ReadSet, fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install" in fails(made, "--output-format", "parquet")


def with_text(made: ReadSet, folder: Path, comment: bytes, tag: bytes, name: bytes | None = None) -> ReadSet:
    """Write the records as SAM with a comment in the header and a tag, and with another name of the first read."""
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
def test_any_text_in_header_and_tags(
    made: ReadSet, tmp_path: Path, succeeds: Succeeds, text: bytes, version: str
) -> None:
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
    lines = printed.stdout.split(b"\n")
    assert [line for line in lines if not line.startswith(b"@PG\tID:f5py.1\t")] == table.split(b"\n")
    assert len(lines) == len(table.split(b"\n")) + 1


def test_names_that_get_too_long_for_bam(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Version 1 appends to them."""
    longest = "n" * 254
    records = made.records()[1]
    renamed = with_text(made, tmp_path, b"", b"", longest.encode())
    reads = tmp_path / "changed.fasta"
    reads.write_text(f">{longest}\n{made.sequence(records[0].query_name or '')}\n")
    signal_of_it = made.signals([records[0].query_name or ""])
    signal_of_it[0].name = longest
    index_quietly(reads, slow5=(str(write_signals(tmp_path / "signals.blow5", signal_of_it)),))
    renamed = replace(renamed, reads=reads)
    out = tmp_path / "out" / "out.bam"
    out.parent.mkdir()
    line = refused(capfd, "eventalign", *renamed.options(), "-o", out, "--sam", "--sam-out-version", "1")
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
        ("out.tsv.gz", [], "the output is incomplete"),
        ("out.sam", ["--sam"], "the output is incomplete"),
        ("out.bam", ["--sam"], "no BAM file was made"),
        ("out.parquet", ["--output-format", "parquet"], "no Parquet file was made"),
    ],
)
def test_what_is_left_of_a_run_that_stopped(
    made: ReadSet,
    table: bytes,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    name: str,
    options: list[str],
    left: str,
) -> None:
    """No BAM or Parquet file at all, and a whole compressed file of whole lines; the message says so."""
    odd = made.with_last_read_past_the_end(tmp_path)
    before = set(tmp_path.iterdir())
    out = tmp_path / name
    line = refused(capfd, *EVENTALIGN.arguments(odd, "-o", out, "-K", 4, *options))
    unfinished = out.with_name(f".unfinished-{name}")
    kept = f"; the rows until then are in {unfinished}" if left == "the output is incomplete" else ""
    assert line.endswith(f"extends past the end of contig simulated; map the reads again; {left}{kept}")
    assert set(tmp_path.iterdir()) == before | ({unfinished} if kept else set())
    if name == "out.tsv.gz":
        text = gzip.decompress(unfinished.read_bytes())
        assert table.startswith(text)
        assert list(EVENTALIGN.by_read(text)) == made.names[:12]
