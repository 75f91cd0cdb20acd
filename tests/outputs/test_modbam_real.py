"""modBAM of real reads: nanopolish's calls in today's tags, read by pysam and as the specification says."""

from __future__ import annotations

import csv
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pysam
import pytest

from f5py.compute.methylation import MethylationStage
from f5py.core.motifs import motif_named
from f5py.options.signal_commands import CallOptions
from f5py.outputs.calls.modbam import ModbamTags
from f5py.pipeline.inputs import open_inputs

from .made_modbam import modified_bases

pytestmark = pytest.mark.shared

#: exp() of less is zero in double precision.
UNDERFLOW = -745


class CalledReads:
    """Batches of an alignment file, called for a motif."""

    def __init__(self, bam: Path, reads: Path, genome: Path, motif: str, hard_clips: bool = True) -> None:
        self.options = options = CallOptions(
            reads=str(reads),
            bam=str(bam),
            genome=str(genome),
            threads=2,
            batchsize=50,
            methylation=motif,
            hard_clips=hard_clips,
            modbam="kept",  # what the writer needs stays in the batches then
        )
        self.motif = motif_named(motif)
        with ExitStack() as inputs:
            loader, chemistry = open_inputs(options, inputs, keep_records=True, keep_passed_over=True)
            self.header = loader.alignments.header
            caller = MethylationStage(options, chemistry)
            self.batches = list(loader.batches())
            for batch in self.batches:
                caller.check_batch(batch)
                caller.compute(batch)
                caller.count_batch(batch)
            caller.close()

    def write(self, path: Path, style: str = "read") -> list[pysam.AlignedSegment]:
        sink = ModbamTags(str(path), replace(self.options, modbam_style=style), self.header, [self.motif])
        sink.open()
        for batch in self.batches:
            sink.write(batch)
        sink.finish()
        subprocess.run(["samtools", "quickcheck", str(path)], check=True)
        return records_of(path)


def records_of(path: Path) -> list[pysam.AlignedSegment]:
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        return list(file.fetch(until_eof=True))


def with_todays_tag_names(record: pysam.AlignedSegment) -> pysam.AlignedSegment:
    for old, new in (("Mm", "MM"), ("Ml", "ML")):
        record.set_tag(new, record.get_tag(old))
        record.set_tag(old, None)
    return record


@pytest.fixture(scope="module")
def called_8(ecoli, indexed_ecoli) -> CalledReads:
    """Call the reads of nanopolish's files, with its rule for hard clips."""
    files = ecoli / "reads8.bam", indexed_ecoli / "reads.fasta", ecoli / "ref.fa"
    return CalledReads(*files, "cpg", hard_clips=False)


@pytest.fixture(scope="module")
def underflows(ecoli) -> set[tuple[str, int]]:
    """(read, position of the site) where nanopolish's probability is 0/0, which it stores as 0."""
    genome = pysam.FastaFile(str(ecoli / "ref.fa"))
    found = set()
    with (ecoli / "expected" / "nanopolish" / "cpg.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if max(float(row["log_lik_methylated"]), float(row["log_lik_unmethylated"])) < UNDERFLOW:
                first, last = int(row["start"]), int(row["end"])
                bases = genome.fetch(row["chromosome"], first, last + 2).upper()
                found |= {(row["read_name"], first + i) for i in range(len(bases)) if bases[i : i + 2] == "CG"}
    return found


def calls_by_base(record: pysam.AlignedSegment) -> dict[int, int]:
    """pysam's reading: position in SEQ -> probability, of 5-methylcytosine on the record's strand."""
    modified = record.modified_bases
    assert set(modified) == {("C", int(record.is_reverse), "m")}
    ((_, calls),) = modified.items()
    assert len(dict(calls)) == len(calls)
    return dict(calls)


def test_read_style_has_nanopolishs_calls(ecoli, called_8, underflows, tmp_path):
    """Positions and strands equal, probabilities within 3 wherever nanopolish's does not underflow."""
    theirs = [with_todays_tag_names(r) for r in records_of(ecoli / "expected" / "nanopolish" / "cpg_read_style.bam")]
    ours = called_8.write(tmp_path / "out.bam")
    assert len(ours) == len(theirs) == 9
    n_calls = n_underflows = 0
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.query_name == other.query_name
        expected, found = calls_by_base(other), calls_by_base(mine)
        assert set(found) == set(expected)
        reference_of = dict(mine.get_aligned_pairs(matches_only=True))
        for position, probability in expected.items():
            site = (mine.query_name, reference_of[position] - mine.is_reverse)
            if site in underflows:
                assert probability == 0
                n_underflows += 1
            else:
                assert abs(found[position] - probability) <= 3
                n_calls += 1
    assert (n_calls, n_underflows) == (4648, 23)


def test_records_are_the_inputs_with_three_more_tags(ecoli, called_8, tmp_path):
    ours = called_8.write(tmp_path / "out.bam")
    for mine, original in zip(ours, records_of(ecoli / "reads8.bam"), strict=True):
        fields = mine.to_string().split("\t")
        assert fields[:-3] == original.to_string().split("\t")
        assert [field[:5] for field in fields[-3:]] == ["MM:Z:", "ML:B:", "MN:i:"]


def test_reference_style_has_nanopolishs_calls(ecoli, called_8, underflows, tmp_path):
    """Forward records as they are; on reverse ones nanopolish marks the forward C of each site."""
    theirs = [
        with_todays_tag_names(r) for r in records_of(ecoli / "expected" / "nanopolish" / "cpg_reference_style.bam")
    ]
    ours = called_8.write(tmp_path / "out.bam", "reference")
    genome = pysam.FastaFile(str(ecoli / "ref.fa"))
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.query_sequence == genome.fetch(mine.reference_name, mine.reference_start, mine.reference_end)
        assert mine.cigarstring == f"{len(mine.query_sequence)}M"
        assert len(other.query_sequence) == len(mine.query_sequence) + 1
        expected = {at + mine.is_reverse: p for at, p in calls_by_base(other).items()}
        found = calls_by_base(mine)
        assert set(found) == {at for at in expected if at < len(mine.query_sequence)}
        for at in found:
            site = (mine.query_name, mine.reference_start + at - mine.is_reverse)
            assert site in underflows or abs(found[at] - expected[at]) <= 3


@pytest.mark.parametrize("motif", ["gpc", "dam", "dcm"])
def test_other_motifs_mark_their_own_base(ecoli, indexed_ecoli, tmp_path, motif):
    """Every called base is the modified base of a site that nanopolish has a call for."""
    called = CalledReads(ecoli / "reads8.bam", indexed_ecoli / "reads.fasta", ecoli / "ref.fa", motif)
    with (ecoli / "expected" / "nanopolish" / f"{motif}.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    spans = {}
    for row in rows:
        spans.setdefault(row["read_name"], []).append((int(row["start"]), int(row["end"])))
    n_called = 0
    for record in called.write(tmp_path / "out.bam"):
        bases = modified_bases(record)
        assert {(base.base, base.code) for base in bases} == {("A", "a") if motif == "dam" else ("C", "m")}
        offset = called.motif.offset_reverse if record.is_reverse else called.motif.offset_forward
        reference_of = dict(record.get_aligned_pairs(matches_only=True))
        sites = np.array([reference_of[base.position] - offset for base in bases])
        starts, ends = np.array(sorted(spans[record.query_name])).T
        group = np.searchsorted(starts, sites, side="right") - 1
        assert (sites <= ends[group]).all()
        n_called += len(bases)
    n_sites = sum(int(row["num_motifs"]) for row in rows)
    assert 0.7 * n_sites < n_called <= n_sites


def test_all_records_of_a_run_stay(ecoli, indexed_ecoli, tmp_path):
    """115 records in order; hard-clipped ones have tags that fit their own sequence; filtered ones none."""
    records = records_of(ecoli / "reads.bam")
    records[5].mapping_quality = 3
    records[40].flag |= 4
    records[60].flag |= 256
    records[-1].mapping_quality = 0
    bam = tmp_path / "changed.bam"
    with pysam.AlignmentFile(str(ecoli / "reads.bam")) as template:
        header = template.header
    with pysam.AlignmentFile(str(bam), "wb", header=header) as file:
        for record in records:
            file.write(record)
    called = CalledReads(bam, indexed_ecoli / "reads.fasta", ecoli / "ref.fa", "cpg")
    ours = called.write(tmp_path / "out.bam")
    records = records_of(bam)
    assert len(ours) == len(records) == 115
    n_clipped = 0
    for i, (mine, original) in enumerate(zip(ours, records, strict=True)):
        assert mine.to_string().startswith(original.to_string())
        bases = modified_bases(mine)
        assert not (bases and i in (5, 40, 60, 114))
        if "H" in (mine.cigarstring or ""):
            n_clipped += bool(bases)
            # E. coli has no CpG methylation
            assert np.mean([base.probability for base in bases]) < 128
    assert n_clipped == 3
