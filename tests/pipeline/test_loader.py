"""Parts of the alignment file that the loader keeps besides what is computed with."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pysam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.core.batch import Cause, ReadBatch, ReadStatus
from f5py.io.bam._bam_numba import DUPLICATE, KEPT, SECONDARY, ULTRA, UNMAPPED
from f5py.io.bam.bam_records import encode_chunks
from f5py.options.signal_commands import CallOptions
from f5py.pipeline.inputs import open_inputs
from f5py.pipeline.loader import Loader
from f5py.pipeline.record_filter import BatchLimits, SeenRecords, cut

from ..index_files import index_quietly
from ..made_data import ReadSet, run_main


def load(
    made: ReadSet, batch_size: int, estimates_total: bool = False, **settings: object
) -> tuple[Loader, list[ReadBatch]]:
    options = CallOptions(reads=str(made.reads), bam=str(made.bam), genome=str(made.genome), batchsize=batch_size)
    with ExitStack() as inputs:
        loader, _ = open_inputs(options, inputs, **settings)
        return loader, list(loader.batches(estimates_total=estimates_total))


@pytest.fixture(scope="module")
def with_left_out_records(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> ReadSet:
    """Every third record has a low mapping quality, and an unmapped one is the last."""
    _, records = made.records()
    for record in records[::3]:
        record.mapping_quality = 3
    unmapped = pysam.AlignedSegment(records[0].header)
    unmapped.query_name, unmapped.flag, unmapped.query_sequence = "unmapped", 4, "ACGT"
    return made.with_records(tmp_path_factory.mktemp("left_out"), [*records, unmapped], index=False)


@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_all_records_can_be_put_together_again(with_left_out_records: ReadSet, batch_size: int):
    _, batches = load(with_left_out_records, batch_size, keep_records=True, keep_passed_over=True)
    header, expected = with_left_out_records.records()
    found = []
    for batch in batches:
        segments = batch.records.segments(header)
        used = [(i, read) for i, read in enumerate(batch.records.read.tolist()) if read >= 0]
        assert [read for _, read in used] == list(range(len(batch)))
        assert [segments[i].query_name for i, _ in used] == list(batch.names)
        found += segments
    assert [record.to_string() for record in found] == [record.to_string() for record in expected]


def test_many_left_out_records_are_not_collected(made: ReadSet, tmp_path: Path):
    """Unmapped reads stand at the end of a sorted file, and may be more than all others."""
    _, records = made.records()
    unmapped = pysam.AlignedSegment(records[0].header)
    unmapped.query_name, unmapped.flag, unmapped.query_sequence = "unmapped", 4, "ACGT"
    changed = made.with_records(tmp_path, [*records, *[unmapped] * 1000], index=False)
    _, batches = load(changed, 5, keep_records=True, keep_passed_over=True)
    left_out = [int((batch.records.read < 0).sum()) for batch in batches]
    assert max(left_out) <= 5
    assert sum(left_out) == 1000
    out, tagged = tmp_path / "calls.tsv", tmp_path / "tagged.bam"
    assert run_main(*changed.options(), "-K", "5", "-o", out, "--modbam", tagged) == 0
    with pysam.AlignmentFile(str(tagged), check_sq=False) as file:
        names = [record.query_name for record in file.fetch(until_eof=True)]
    assert names == [*made.names, *["unmapped"] * 1000]


def test_records_are_not_kept_unless_asked_for(with_left_out_records: ReadSet):
    _, batches = load(with_left_out_records, 4)
    assert all(batch.records is None and (batch.partition == -1).all() for batch in batches)


def test_batches_tell_which_share_of_the_input_they_end(made: ReadSet):
    _, batches = load(made, 4, estimates_total=True)
    ends = np.cumsum([len(batch) for batch in batches])
    assert [batch.share_of_input for batch in batches] == (ends / ends[-1]).tolist()


def test_reads_are_told_apart_by_a_tag(made: ReadSet, tmp_path: Path):
    _, records = made.records()
    values = ["2", None, "1"] * len(records)
    for record, value in zip(records, values, strict=False):
        record.set_tag("HP", None if value is None else int(value))
    loader, batches = load(made.with_records(tmp_path, records), 5, partition_tag="HP")
    numbers = np.concatenate([batch.partition for batch in batches])
    assert loader.partitions == ["2", "1"]
    assert [None if i < 0 else loader.partitions[i] for i in numbers.tolist()] == values[: len(records)]


@pytest.mark.parametrize("n_ahead", [1, 3])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_batches_loaded_at_the_same_time_come_in_order(made: ReadSet, n_ahead: int, batch_size: int):
    _, expected = load(made, 100)
    _, batches = load(made, batch_size, n_ahead=n_ahead)
    assert [batch.number for batch in batches] == list(range(len(batches)))
    assert [name for batch in batches for name in batch.names] == list(expected[0].names)
    for field in ("samples", "bases", "reference", "read_index", "cigar", "unit"):
        assert np.array_equal(np.concatenate([getattr(batch, field) for batch in batches]), getattr(expected[0], field))


def other_bases(batches: list[ReadBatch]) -> list[bool]:
    return [cause == Cause.OTHER_BASES for batch in batches for cause in batch.cause.tolist()]


def records_of_all_kinds(made: ReadSet) -> list[pysam.AlignedSegment]:
    """Hard clips on either side, no sequence, "=" in the place of bases, and codes of several bases."""
    _, records = made.records()
    for at, (record, kind) in enumerate(zip(records, ("left", "right", "both", "empty", "=", "N") * 2, strict=False)):
        sequence = record.query_sequence or ""
        (first, n_first), *middle, (last, n_last) = record.cigartuples
        left, right = 7 * (kind in ("left", "both")), 5 * (kind in ("right", "both"))
        clipped = [(5, left), (first, n_first - left), *middle, (last, n_last - right), (5, right)]
        letters = sequence[left : len(sequence) - right]
        if kind in "=N":
            letters = letters[:-3] + kind * 2 + letters[-1]
        record.query_sequence = None if kind == "empty" else letters
        record.cigartuples = [(operation, n) for operation, n in clipped if n]
        assert record.is_reverse or at != 0  # both strands are there
    return records


@pytest.mark.parametrize("hard_clips", [False, True])
@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_reads_are_those_of_all_kinds_of_records(made: ReadSet, tmp_path: Path, batch_size: int, hard_clips: bool):
    """Whatever the case of the letters, and with U for T."""
    _, expected = load(made, 100)
    text = made.reads.read_text()
    lines = [line if ">" in line else line.lower().replace("t", "u") for line in text.splitlines()]
    small = made.with_text_of_reads(tmp_path / "small.fasta", "\n".join([*lines, ""]))
    changed = made.with_records(tmp_path, records_of_all_kinds(made))
    for reads, letters in ((made.reads, expected[0].bases), (small.reads, None)):
        _, batches = load(replace(changed, reads=reads), batch_size, hard_clips=hard_clips)
        assert not any(other_bases(batches))
        bases = np.concatenate([batch.bases for batch in batches])
        if letters is None:
            assert set(bases.tolist()) == set(b"acgu")
        else:
            assert np.array_equal(bases, letters)


@pytest.mark.parametrize("place", [0, 6, 7, 600, -6, -5, -1])
def test_one_other_base_is_seen_where_the_record_has_it(made: ReadSet, tmp_path: Path, place: int):
    changed = made.with_records(tmp_path, records_of_all_kinds(made))
    sequences = {}
    for name in made.names:
        letters = list(made.sequence(name))
        letters[place] = {"A": "C", "C": "G", "G": "T", "T": "A"}[letters[place]]
        sequences[name] = "".join(letters)
    _, batches = load(replace(made.with_reads(tmp_path, sequences), bam=changed.bam), 5)
    _, records = changed.records()
    seen = []
    for record in records:
        sequence = record.query_sequence or ""
        n_bases = record.infer_read_length()
        at = n_bases - 1 - place % n_bases if record.is_reverse else place % n_bases
        at -= record.cigartuples[0][1] * (record.cigartuples[0][0] == 5)
        seen.append(0 <= at < len(sequence) and sequence[at] not in "=N")
    assert other_bases(batches) == seen
    assert any(seen)


def test_a_read_that_is_absent_has_no_bases(made: ReadSet, tmp_path: Path):
    records = made.reads.read_text().split(">")[1:]
    few = made.with_text_of_reads(tmp_path / "few.fasta", "".join(f">{one}" for one in records[:6]))
    known = {one.split()[0] for one in records[:6]}
    _, (batch,) = load(few, 100)
    assert (batch.read_length > 0).tolist() == [name in known for name in made.names]
    assert not other_bases([batch])[0]


def test_every_one_of_many_reads_is_compared(made: ReadSet, tmp_path: Path):
    """Also of a large index."""
    others = "".join(f">other{i}\nACGT\n" for i in range(4096))
    sequences = {name: made.sequence(name) for name in made.names}

    def causes(changed: dict[str, str]) -> list[bool]:
        own = "".join(f">{name}\n{letters}\n" for name, letters in (sequences | changed).items())
        _, (batch,) = load(made.with_text_of_reads(tmp_path / "many.fasta", others + own), 100)
        assert batch.is_compared.all()
        return other_bases([batch])

    assert not any(causes({name: letters[:-1] + "N" for name, letters in sequences.items()}))  # N may be any base
    for name, letters in sequences.items():
        assert causes({name: "A" * len(letters)}) == [one == name for one in made.names]


@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_reads_of_another_length_are_seen(made: ReadSet, tmp_path: Path, batch_size: int):
    changed = made.with_records(tmp_path, records_of_all_kinds(made))
    cut = made.names[::2]
    reads = made.with_reads(tmp_path, {name: made.sequence(name)[:-1] for name in cut})
    _, batches = load(replace(reads, bam=changed.bam), batch_size)
    assert other_bases(batches) == [name in cut for name in made.names]
    assert all((batch.status[batch.cause == Cause.OTHER_BASES] == ReadStatus.BAD_READ).all() for batch in batches)


def test_columns_of_alignments_are_counted(made: ReadSet, tmp_path: Path):
    """Of both strands; the reference's A, which unknown bases become, and reads with other bases are left out."""
    _, (batch,) = load(made, 100)
    _, records = made.records()
    genome = made.genome.read_text().split("\n", 1)[1].replace("\n", "")
    for record, (n, n_equal) in zip(records, batch.columns.tolist(), strict=True):
        sequence = record.query_sequence or ""
        pairs = [(genome[at], sequence[place]) for place, at in record.get_aligned_pairs(matches_only=True)]
        assert n == sum(base != "A" for base, _ in pairs)
        assert n_equal == sum(base != "A" and base == other for base, other in pairs) > 0.85 * n
    masked = "".join(base if i % 5 == 0 else "N" for i, base in enumerate(genome))
    name = made.genome.read_text().split("\n", 1)[0]
    _, (batch,) = load(made.with_genome(tmp_path, f"{name}\n{masked}\n"), 100)
    n, n_equal = batch.columns.sum(axis=0).tolist()
    assert 0 < 0.9 * n < n_equal
    other = made.with_reads(tmp_path, {name: made.sequence(name)[1:] for name in made.names[:3]})
    _, (batch,) = load(other, 100)
    assert batch.columns[:3].tolist() == [[0, 0]] * 3
    assert batch.columns[3:].all()


def test_reads_with_the_letter_u_keep_it(made: ReadSet, tmp_path: Path):
    """Alignment records have T instead, and whether the reads are RNA is told by their letters."""
    reads = tmp_path / "rna.fasta"
    reads.write_text(
        "\n".join(line if ">" in line else line.replace("T", "U") for line in made.reads.read_text().split())
    )
    index_quietly(reads, made.folder / "fast5")
    _, batches = load(replace(made, reads=reads), 100)
    assert set(batches[0].bases.tolist()) == set(b"ACGU")


@settings(deadline=None)
@given(
    reads=st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=40),
    batch_size=st.integers(1, 6),
    max_bases=st.integers(1, 120),
    threshold=st.integers(-1, 40),
    counts_left_out=st.booleans(),
)
def test_batches_are_cut_as_a_loop_would(reads, batch_size, max_bases, threshold, counts_left_out):
    kinds = np.array([KEPT if kept else UNMAPPED for kept, _ in reads], np.uint8)
    lengths = np.array([length for _, length in reads], np.int64)
    ends, n_reads, n_left_out, n_bases = [], 0, 0, 0
    expected_kinds = kinds.tolist()
    for i, (kept, length) in enumerate(reads):
        if kept and 0 <= threshold < length:
            expected_kinds[i] = ULTRA
            kept = False
        n_reads, n_bases = (n_reads + 1, n_bases + length) if kept else (n_reads, n_bases)
        n_left_out += not kept and counts_left_out
        if max(n_reads, n_left_out) >= batch_size or n_bases >= max_bases:
            ends.append(i + 1)
            n_reads = n_left_out = n_bases = 0
    found, first = [], 0
    while first < len(reads):
        state = np.zeros(4, np.int64)
        first = cut(
            kinds, lengths, first, len(reads), BatchLimits(batch_size, max_bases, threshold, counts_left_out), state
        )
        if state[3]:
            found.append(first)
    assert found == ends
    assert kinds.tolist() == expected_kinds


HEADER = pysam.AlignmentHeader.from_references(["a", "b"], [10_000, 10_000])
#: Name, contig, position, strand, CIGAR, other flags, whether a filter has left it out.
RECORDS = st.tuples(
    st.sampled_from(["r", "rr", "s"]), st.integers(0, 1), st.sampled_from([0, 1, 256]), st.booleans(),
    st.sampled_from(["4M", "2M1D2M", "4="]), st.sampled_from([0, 256, 1024, 2048]), st.booleans(),
)  # fmt: skip


def record(name, contig, start, reverse, cigar, flags):
    made = pysam.AlignedSegment(HEADER)
    made.query_name, made.reference_id, made.reference_start = name, contig, start
    made.flag, made.cigarstring, made.query_sequence = flags | 16 * reverse, cigar, "ACGT"
    return made


@settings(deadline=None)
@given(records=st.lists(RECORDS, min_size=1, max_size=60), at_most=st.integers(1, 20))
def test_those_that_were_seen(records, at_most):
    seen, expected_seen, at = SeenRecords(), set(), 0
    for data, starts, n in encode_chunks([record(*one[:6]) for one in records], HEADER, at_most):
        kinds = np.array([SECONDARY if one[6] else KEPT for one in records[at : at + n]], np.uint8)
        expected = kinds.copy()
        for i, (*key, flags, is_left_out) in enumerate(records[at : at + n]):
            if is_left_out:
                continue
            if flags == 1024 or tuple(key) in expected_seen:
                expected[i] = DUPLICATE
            else:
                expected_seen.add(tuple(key))
        seen.mark(data, starts, n, kinds)
        assert kinds.tolist() == expected.tolist()
        at += n


def test_many():
    """The set grows, and forgets nothing."""
    seen = SeenRecords()
    made = [record(f"read{i}", 0, i % 9, False, "4M", 0) for i in range(6000)]
    for wanted in (KEPT, DUPLICATE):
        for data, starts, n in encode_chunks(made, HEADER, 700):
            kinds = np.full(n, KEPT, np.uint8)
            seen.mark(data, starts, n, kinds)
            assert set(kinds.tolist()) == {wanted}
