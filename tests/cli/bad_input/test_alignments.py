"""Alignments, reference and regions that cannot be used, or not as they are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pysam
import pytest

from ...made_data import N_READS, ReadSet
from .commands import MAPPED, SignalCommand, without_header
from .conftest import Fails, Stops, Succeeds

pytestmark = pytest.mark.parametrize("command", MAPPED, ids=lambda command: command.name, indirect=True)


def test_damage_in_mid_file_keeps_the_rows_before_it(
    command: SignalCommand, made: ReadSet, table: bytes, tmp_path: Path, stops: Stops
) -> None:
    many = command.many(made, tmp_path, 4)
    bam = many.bam.read_bytes()
    middle = int(len(bam) * 0.8)
    for damaged in (bam[:middle] + os.urandom(200) + bam[middle + 200 :], bam[:middle] + bam[-28:]):
        line, output = stops(many.with_bam(tmp_path, damaged), "-K", 3)
        assert f"{tmp_path}/changed.bam: truncated or damaged after " in line
        assert line.endswith("the output is incomplete")
        assert len(output) > len(table)
        assert (table + without_header(table) * 3).startswith(output)


def test_windows_need_an_index_and_the_whole_file_does_not(
    made: ReadSet, table: bytes, tmp_path: Path, fails: Fails, succeeds: Succeeds
) -> None:
    unindexed = made.with_records(tmp_path, made.records()[1], index=False)
    assert "-w needs an index; run: samtools index" in fails(unindexed, "-w", "simulated:1-5000")
    assert succeeds(unindexed)[0] == table
    header = made.records()[0].to_dict()
    for order, how in (("queryname", "by name"), ("unsorted", "as its header says: unsorted")):
        header["HD"]["SO"] = order
        other = made.with_records(tmp_path, made.records()[1], header, index=False)
        line = fails(other, "-w", "simulated:1-5000")
        assert f"sorted by position, these are sorted {how}; run: samtools sort --write-index -o sorted.bam" in line
    made.with_records(tmp_path, made.records()[1], index=False)
    (tmp_path / "changed.bam.bai").write_bytes(b"no index at all")
    assert "changed.bam.bai: is damaged or not the index of" in fails(unindexed, "-w", "simulated:1-5000")
    assert succeeds(unindexed)[0] == table


def test_an_empty_window_is_a_success(made: ReadSet, tmp_path: Path, succeeds: Succeeds) -> None:
    early = [record for record in made.records()[1] if (record.reference_end or 0) < 9000]
    output, told = succeeds(made.with_records(tmp_path, early), "-w", "simulated:11001-12000")
    assert "in simulated:11001-12000 was used; the results are empty" in told
    assert output.count(b"\n") <= 1


def test_contigs_that_the_reference_lacks(
    made: ReadSet, table: bytes, tmp_path: Path, fails: Fails, stops: Stops, succeeds: Succeeds
) -> None:
    """They are listed, once; it is an error if a read lies on one, or if -w names one."""
    header, records = made.records()
    names = ["alpha", "beta", "gamma", "delta"]
    lengths = [*header.lengths, *([12_000] * len(names))]
    longer = {"SQ": [{"SN": n, "LN": x} for n, x in zip([*header.references, *names], lengths, strict=True)]}
    output, told = succeeds(made.with_records(tmp_path, records, longer))
    (line,) = [line for line in told.splitlines() if "WARNING" in line]
    assert f"{made.genome}: the reference lacks 4 of the BAM file's 5 contigs (alpha, beta, gamma, ...)" in line
    assert output == table
    assert f"{made.genome}: the reference lacks contig beta, which -w names" in fails(
        made.with_records(tmp_path, records, longer), "-w", "beta:1-100"
    )
    texts = [record.to_string().replace("\tsimulated\t", "\tbeta\t", i == 5) for i, record in enumerate(records)]
    moved = [pysam.AlignedSegment.fromstring(text, pysam.AlignmentHeader.from_dict(longer)) for text in texts]
    line, _ = stops(made.with_records(tmp_path, moved, longer, index=False))
    assert f"{made.genome}: the reference lacks contig beta, on which reads lie" in line


def test_alignment_that_extends_past_the_end_of_its_contig(
    command: SignalCommand, made: ReadSet, table: bytes, tmp_path: Path, stops: Stops
) -> None:
    reads = made.with_last_read_past_the_end(tmp_path)
    line, output = stops(reads, "-K", 4)
    assert f"{tmp_path}/changed.bam: the alignment of read {made.names[-1]} extends past the end of contig" in line
    assert table.startswith(output)
    assert list(command.by_read(output)) == made.names[:12]


def test_mapped_record_without_an_alignment_has_no_rows(
    command: SignalCommand, made: ReadSet, table: bytes, tmp_path: Path, succeeds: Succeeds
) -> None:
    _, records = made.records()
    records[3].cigarstring = None
    expected = command.by_read(table)
    del expected[records[3].query_name or ""]
    output, told = succeeds(made.with_records(tmp_path, records, index=False))
    assert command.by_read(output) == expected
    assert "skipped unmapped: 1," in told


def test_alignments_of_other_reads(
    command: SignalCommand, made: ReadSet, table: bytes, tmp_path: Path, stops: Stops, succeeds: Succeeds
) -> None:
    """Some are bad reads, also in the first batch, however small; all are an error."""
    _, records = made.records()
    expected = command.by_read(table)
    del expected[records[0].query_name or ""]
    records[0].query_name = "unknown"
    output, told = succeeds(made.with_records(tmp_path, records), "-K", 1)
    assert command.by_read(output) == expected
    assert "no alignment: 0, bad reads: 1\n" in told
    for i, record in enumerate(records):
        record.query_name = f"other{i}"
    line, output = stops(made.with_records(tmp_path, records), "-K", 5)
    assert f"{made.reads}: none of the {N_READS} aligned reads, such as other15, is among the reads" in line
    assert output.count(b"\n") <= 1


def test_ambiguity_codes_and_case_of_the_reference(
    made: ReadSet, table: bytes, tmp_path: Path, succeeds: Succeeds
) -> None:
    """Codes stand for their alphabetically first base, so writing them for that base changes nothing."""
    rng = np.random.default_rng(2)
    header, bases = made.genome.read_text().split("\n", 1)
    codes = {"A": "MRWVHDN", "C": "SYB", "G": "K", "T": "T"}
    letters = [
        codes[base][rng.integers(len(codes[base]))] if rng.random() < 0.1 else base
        for base in bases.upper().replace("\n", "")
    ]
    letters = [letter.lower() if rng.random() < 0.5 else letter for letter in letters]
    assert succeeds(made.with_genome(tmp_path, f"{header}\n{''.join(letters)}\n"))[0] == table
