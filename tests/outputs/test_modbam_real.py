"""modBAM of real reads: nanopolish's calls in today's tags, read by pysam and as the specification says."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pysam
import pytest

pytestmark = pytest.mark.shared

#: exp() of less is zero in double precision.
UNDERFLOW = -745


def records_of(path: Path) -> list[pysam.AlignedSegment]:
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        return list(file.fetch(until_eof=True))


def with_todays_tag_names(record: pysam.AlignedSegment) -> pysam.AlignedSegment:
    for old, new in (("Mm", "MM"), ("Ml", "ML")):
        record.set_tag(new, record.get_tag(old))
        record.set_tag(old, None)
    return record


@pytest.fixture
def call_8(call_ecoli, tmp_path) -> Callable[..., list[pysam.AlignedSegment]]:
    """Return a function that calls the reads of nanopolish's files, with its rule for hard clips."""

    def call(*options: str) -> list[pysam.AlignedSegment]:
        out = tmp_path / "out.bam"
        call_ecoli("reads8.bam", "--hard-clips=no", "--modbam", str(out), *options)
        return records_of(out)

    return call


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


def test_read_style_has_nanopolishs_calls(ecoli, call_8, underflows):
    """Positions and strands equal, probabilities within 3 wherever nanopolish's does not underflow."""
    theirs = [with_todays_tag_names(r) for r in records_of(ecoli / "expected" / "nanopolish" / "cpg_read_style.bam")]
    ours = call_8()
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


def test_reference_style_has_nanopolishs_calls(ecoli, call_8, underflows):
    """Forward records as they are; on reverse ones nanopolish marks the forward C of each site."""
    theirs = [
        with_todays_tag_names(r) for r in records_of(ecoli / "expected" / "nanopolish" / "cpg_reference_style.bam")
    ]
    ours = call_8("--modbam-style", "reference")
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
