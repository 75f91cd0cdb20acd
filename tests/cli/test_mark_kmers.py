"""``f5py eventalign --mark-kmers``: against the alignments base by base, as pysam reads them."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow.parquet
import pysam
import pytest

from f5py.core.batch import ReadBatch
from f5py.event_alignment.kmer_marks import compare_kmers
from f5py.threads.pool import WorkerPool

from ..made_data import ReadSet, last_of_each, run_command

COMPLEMENT = str.maketrans("ACGTUN", "TGCAAN")


class Slow:
    """A record, whose k-mers are compared one base after the other."""

    def __init__(self, record: pysam.AlignedSegment) -> None:
        self.pairs = record.get_aligned_pairs()
        self.at = {there: i for i, (_, there) in enumerate(self.pairs) if there is not None}
        self.bases = (record.query_sequence or "").upper()
        self.introns, place = set[int](), record.reference_start
        for operation, size in record.cigartuples or []:
            if operation == pysam.CREF_SKIP:
                self.introns |= set(range(place, place + size))
            if operation in (pysam.CMATCH, pysam.CDEL, pysam.CREF_SKIP, pysam.CEQUAL, pysam.CDIFF):
                place += size

    def mark(self, reference: str, first: int, k: int) -> str:
        """Compare the k-mer at a place of the reference."""
        pairs, at, places = self.pairs, self.at, range(first, first + k)
        if any(there not in at or there in self.introns for there in places):
            return "."
        if any(pairs[at[there]][0] is None for there in places):
            return "D"
        if any(at[there + 1] - at[there] > 1 for there in places[:-1]):
            return "I"
        return "=" if all(self.bases[pairs[at[there]][0]] == reference[there] for there in places) else "X"


def aligned(inputs: list[Any], out: Path, *options: Any) -> bytes:
    assert run_command("eventalign", *last_of_each([*inputs, *options]), "-o", out) == 0
    return out.read_bytes()


@pytest.fixture(scope="module", params=["made", "ecoli"])
def inputs(request: pytest.FixtureRequest, made: ReadSet) -> dict[str, Any]:
    if request.param == "made":
        return {"-r": made.reads, "-b": made.bam, "-g": made.genome, "--iop": 1}
    ecoli = request.getfixturevalue("ecoli")
    return {"-b": ecoli / "reads8.bam", "-g": ecoli / "ref.fa", "--pod5": ecoli / "formats" / "reads.pod5"}


def words(inputs: dict[str, Any]) -> list[Any]:
    return [word for pair in inputs.items() for word in pair]


@pytest.mark.parametrize("options", [(), ("--mark-deletions", "--samples", "--signal-index"), ("--kmer-view", "4")])
def test_every_row_has_its_mark(inputs: dict[str, Any], tmp_path: Path, options: tuple[str, ...]) -> None:
    given = [*words(inputs), *options]
    plain = aligned(given, tmp_path / "plain.tsv").decode().splitlines()
    rows = [
        line.rpartition("\t") for line in aligned(given, tmp_path / "marked.tsv", "--mark-kmers").decode().splitlines()
    ]
    assert [row for row, _, _ in rows] == plain
    assert rows[0][2] == "kmer_mark"
    reference = pysam.FastaFile(str(inputs["-g"]))
    contigs = {name: reference.fetch(name).upper() for name in reference.references}
    with pysam.AlignmentFile(str(inputs["-b"])) as file:
        records = [Slow(record) for record in file]
    known: dict[tuple[str, ...], str] = {}
    for row, _, mark in rows[1:]:
        contig, place, kmer, record, _ = row.split("\t", 4)
        if (record, place) not in known:
            known[record, place] = records[int(record)].mark(contigs[contig], int(place), len(kmer))
        assert mark == known[record, place], row
    counts = Counter(known.values())
    assert min(counts[mark] for mark in "=XID") > 20


def test_parquet_csv_and_parts_have_the_same(made: ReadSet, tmp_path: Path) -> None:
    given = [*made.options(), "--mark-kmers", "--mark-deletions", "--collapse-events"]
    text = aligned(given, tmp_path / "e.tsv").decode()
    marks = pandas.read_csv(io.StringIO(text), sep="\t")["kmer_mark"].tolist()
    assert set(marks) == set("=XID")
    aligned(given, tmp_path / "e.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "e.parquet").to_pandas()["kmer_mark"].tolist() == marks
    rows = list(csv.reader(io.StringIO(aligned(given, tmp_path / "e.csv").decode())))
    assert rows == [line.split("\t") for line in text.splitlines()]
    parts = aligned([*given, "--plan", tmp_path / "plan"], tmp_path / "parts.tsv", "-K", "3", "-t", "1")
    assert parts.decode() == text
    assert run_command("merge", tmp_path / "e.parquet", tmp_path / "e.parquet", "-o", tmp_path / "both.parquet") == 0
    assert pyarrow.parquet.read_table(tmp_path / "both.parquet")["kmer_mark"].to_pylist() == 2 * marks
    assert run_command("compare", tmp_path / "e.tsv", tmp_path / "e.tsv", "--by", "kmer", "-o", tmp_path / "c.tsv") == 0


def test_any_alignments_equal_plain_search(pool: WorkerPool) -> None:
    """Random CIGARs, with clips, introns and operations of no length, of either strand, and cut reads."""
    chance = np.random.default_rng(7)
    letters = np.frombuffer(b"ACGT", np.uint8)
    seen: Counter[str] = Counter()
    for _ in range(300):
        genome = bytes(letters[chance.integers(0, 4, 120)]).decode()
        start = int(chance.integers(0, 20))
        record = pysam.AlignedSegment(pysam.AlignmentHeader.from_references(["c"], [1000]))
        record.reference_id, record.reference_start = 0, start
        middle = [(int(chance.choice([0, 0, 0, 0, 7, 8, 1, 2, 3])), int(chance.integers(0, 9))) for _ in range(8)]
        record.cigartuples = [(5, 2), (4, 3), (0, 6), *middle, (0, 4), (4, 2)]
        n_reference = sum(size for operation, size in record.cigartuples if operation in (0, 2, 3, 7, 8))
        n_bases = sum(size for operation, size in record.cigartuples if operation in (0, 1, 4, 7, 8))
        bases = list(bytes(letters[chance.integers(0, 4, n_bases)]).decode())
        record.query_sequence = "".join(bases)
        for here, there in record.get_aligned_pairs(matches_only=True):
            if chance.random() < 0.9:
                bases[here] = genome[there - start] if there - start < len(genome) else "A"
        record.query_sequence = "".join(bases)
        reverse, k, trim = bool(chance.integers(2)), int(chance.integers(4, 8)), int(chance.integers(0, 2))
        whole = "AC" + record.query_sequence  # with the bases that are clipped off the record
        sequenced = whole.translate(COMPLEMENT)[::-1] if reverse else whole
        sequenced = sequenced.lower().replace("t", "u") if chance.random() < 0.3 else sequenced
        segment = genome[: n_reference + 1]
        none = np.empty(0, np.float32)
        batch = ReadBatch(
            number=0, read_index=np.zeros(1, np.int64), samples=np.empty(0, np.int16), sample_offsets=np.zeros(2, int),
            offset=none, unit=none, sampling_rate=none, names=["read"], status=np.zeros(1, np.uint8),
            contig=np.zeros(1, np.int32), reference_start=np.array([start]),
            reference_end=np.array([start + n_reference]),
            reverse=np.array([reverse]),
            cigar=np.array([size << 4 | operation for operation, size in record.cigartuples], np.uint32),
            cigar_offsets=np.array([0, len(record.cigartuples)]), reference=np.frombuffer(segment.encode(), np.uint8),
            reference_offsets=np.array([0, len(segment)]), bases=np.frombuffer(sequenced.encode(), np.uint8),
            base_offsets=np.array([0, len(sequenced)]),
        )  # fmt: skip
        compare_kmers(batch, k, pool, trim)
        found = batch.kmer_marks.tobytes().decode()
        genome_at = "?" * start + genome + "?" * 200
        slow = Slow(record)
        for place in range(len(segment) - k + 1):
            expected = slow.mark(genome_at, start + place + trim, k - 2 * trim)
            assert found[place] == expected, (record.cigarstring, place)
            seen[expected] += 1
    assert set(seen) == set("=XID.")
    assert min(seen.values()) > 100
