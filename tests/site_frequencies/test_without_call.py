"""Reads without a call at a site, as bedMethyl counts them: against a recount of what pysam says of alignments."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing
from pathlib import Path

import pysam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from f5py.core.motifs import Motif, motif_named, parse_motif
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.modifications.modified_sites import SiteSelection
from f5py.site_frequencies.site_counts import SiteCounts, count_modbam

from ..made_data import ReadSet, run_command
from .test_modbam_counts import _LENGTH, _OPPOSITE, HEADER, _matches, tagged_record

_KINDS = ("modified", "canonical", "failed", "other", "deleted", "different", "missing")


@pytest.fixture(scope="module")
def genome(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("genome") / "ref.fa"
    made = random.Random(5)
    path.write_text("".join(f">{name}\n{''.join(made.choices('ACGGCT', k=_LENGTH))}\n" for name in ("one", "two")))
    return path


def _counted(path: Path, records: list, motif: Motif, genome: Path, threads: int = 1) -> Counter:
    with pysam.AlignmentFile(str(path), "wb", header=HEADER) as out:
        for record in records:
            out.write(record)
    counts, contigs = SiteCounts(), dict[str, int]()
    wanted = SiteSelection(motif, 1.0, without_call=True)
    with closing(AlignmentFile(str(path), None, 0, False)) as alignments:
        count_modbam(alignments, counts, contigs, wanted, str(genome), threads)
    totals = counts.totals([name.encode() for name in contigs])
    found: Counter = Counter()
    for contig, position, reverse, *kinds in zip(*(column.tolist() for column in totals), strict=True):
        for kind, count in zip(_KINDS, kinds, strict=True):
            found[contig, position, reverse, kind] += count
    return +found


def _expected(record: pysam.AlignedSegment, motif: Motif, genome: Path, called: set[tuple[int, bool]]) -> Counter:
    """Count the sites on the record's strand of which it has no call."""
    found: Counter = Counter()
    if record.flag & (256 | 4):
        return found
    with pysam.FastaFile(str(genome)) as fasta:
        reference = fasta.fetch(HEADER.references[record.reference_id])
    reverse = record.is_reverse
    opposite = {"H": "D", "D": "H", **_OPPOSITE}
    pattern = "".join(opposite[one] for one in reversed(motif.pattern)) if reverse else motif.pattern
    offset = motif.offset_reverse if reverse else motif.offset_forward
    canonical = _OPPOSITE[motif.canonical] if reverse else motif.canonical
    for here, there, operation in record.get_aligned_pairs(with_cigar=True):
        if there is None or operation == pysam.CREF_SKIP:
            continue
        first = there - offset
        if not _matches(reference, first, pattern) or (first, reverse) in called:
            continue
        kind = "deleted" if here is None else "different"
        if here is not None and record.query_sequence[here] == canonical:
            kind = "missing"
        found[record.reference_id, first, reverse, kind] += 1
    return found


@pytest.mark.parametrize("name", ["cpg", "gpc", "CHG:0"])
@given(records=st.lists(tagged_record(), min_size=1, max_size=4))
def test_any_records_equal_a_plain_recount(
    name: str, records: list, genome: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    motif = parse_motif(name) if ":" in name else motif_named(name)
    folder = tmp_path_factory.mktemp("records")
    records = [one for one in records if one.reference_end is None or one.reference_end <= _LENGTH]
    expected: Counter = Counter()
    for record in records:
        calls = _counted(folder / "one.bam", [record], motif, genome)
        called = {key[1:3] for key in calls if key[3] in _KINDS[:4]}
        of_record = _expected(record, motif, genome, called)
        assert {key: n for key, n in calls.items() if key[3] in _KINDS[4:]} == of_record
        expected += calls
    assert _counted(folder / "all.bam", records, motif, genome, 3) == expected


def test_the_columns_of_bedmethyl(made: ReadSet, tmp_path: Path) -> None:
    """Of real alignments with deletions and other bases; and they survive another round and a merge."""
    tags, sites, again, both = (tmp_path / name for name in ("calls.bam", "sites.bed", "again.bed", "both.bed"))
    assert run_command("call-methylation", *made.options(), "--modbam", tags, "--output-format", "none") == 0
    assert run_command("meth-freq", tags, "-g", made.genome, "-o", sites) == 0
    rows = [line.split("\t") for line in sites.read_text().splitlines()]
    totals = [sum(int(row[i]) for row in rows) for i in (14, 16, 17)]
    assert min(totals) > 0
    with pysam.AlignmentFile(str(tags)) as file, pysam.FastaFile(str(made.genome)) as fasta:
        depth: Counter = Counter()
        for record in file:
            bases = fasta.fetch(record.reference_name)
            for _, there, operation in record.get_aligned_pairs(with_cigar=True):
                if there is not None and operation != pysam.CREF_SKIP:
                    first = there - record.is_reverse
                    depth[there, "-" if record.is_reverse else "+"] += bases[max(first, 0) : first + 2] == "CG"
    for row in rows:  # every read that lies over the base is in one column
        assert sum(int(row[i]) for i in (9, 14, 15, 16, 17)) == depth[int(row[1]), row[5]]
    assert run_command("meth-freq", sites, "-o", again) == 0
    assert again.read_bytes() == sites.read_bytes()
    assert run_command("merge", sites, sites, "-o", both) == 0
    for one, twice in zip(rows, both.read_text().splitlines(), strict=True):
        assert [2 * int(one[i]) for i in (9, 11, 12, 13, 14, 15, 16, 17)] == [
            int(twice.split("\t")[i]) for i in (9, 11, 12, 13, 14, 15, 16, 17)
        ]
    assert run_command("meth-freq", tags, "-o", again) == 0  # without the reference nothing is known of them
    assert {tuple(line.split("\t")[i] for i in (14, 16, 17)) for line in again.read_text().splitlines()} == {("0",) * 3}
