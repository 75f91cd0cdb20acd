"""Calls of single sites, from batches and from the table of calls."""

from __future__ import annotations

import io
import re
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.core.batch import Alignments, Calls
from f5py.core.motifs import motif_named, parse_motif
from f5py.core.windows import Windows
from f5py.errors import F5pyError, InputFileError
from f5py.site_frequencies.frequency import methylation_frequency, site_counts
from f5py.site_frequencies.site_counts import SingleSiteCalls, SiteCounts, SiteTotals, calls_inside, expand_calls

_HEADER = (
    "chromosome\tstrand\tstart\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
    "num_calling_strands\tnum_motifs\tsequence\n"
)


def _row(chromosome="chr1", strand="+", start=5, end=5, ratio="3.00", number=1, sequence="AAAAACGTTTT") -> str:
    return f"{chromosome}\t{strand}\t{start}\t{end}\tread\t{ratio}\t-1.00\t-4.00\t1\t{number}\t{sequence}\n"


def _sites(totals: SiteTotals) -> list[tuple[int, ...]]:
    for rest in (totals.other, totals.deleted, totals.different, totals.missing):
        assert not rest.any()  # they are in tags only
    return list(zip(*(column.tolist() for column in totals[:6]), strict=True))


def _count(text: str, motif: str = "cpg", chunk_size: int = 1 << 16, **options: Any) -> list[tuple]:
    chosen = parse_motif(motif) if ":" in motif else motif_named(motif)
    counts, names = site_counts(io.BytesIO(text.encode()), chosen, name="calls", chunk_size=chunk_size, **options)
    totals = counts.totals(names, (chosen.offset_forward, chosen.offset_reverse))
    return [(names[site[0]].decode(), *site[1:]) for site in _sites(totals)]


_calls = st.tuples(
    st.integers(0, 2), st.integers(0, 5), st.booleans(), st.sampled_from([-9.0, -2.5, -2.49, 0.0, 2.5, 5.0, np.nan]),
    st.integers(-1, 1), st.integers(1, 3),
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.lists(_calls, max_size=30), max_size=4), st.booleans(), st.booleans())
def test_any_calls_equal_plain_counting(batches: list, per_site: bool, combine: bool) -> None:
    counts = SiteCounts(2.5, per_site, combine)
    expected: dict = {}
    for calls in batches:
        columns = list(zip(*calls, strict=True)) or [()] * 6
        types = (np.int32, np.int64, np.bool_, np.float64, np.int32, np.int32)
        contig, position, reverse, llr, partition, size = map(np.array, columns, types)
        counts.add(SingleSiteCalls(contig, position, reverse, llr, size, size.astype(np.int64)), partition)
        for c, p, r, ratio, part, n in calls:
            key = part, c, p, r and not combine
            failed = abs(ratio) < 2.5 * (n if per_site else 1)
            expected.setdefault(key, [0, 0, 0])[2 if failed else 0 if ratio > 0 else 1] += 1
    names = [b"b", b"a", b"c"]
    assert len(counts) == len(expected)
    assert counts.partitions() == sorted({key[0] for key in expected})
    for part in (-1, 0, 1, 2):
        rows = [(*key[1:], *value) for key, value in expected.items() if key[0] == part]
        assert _sites(counts.totals(names, partition=part)) == sorted(rows, key=lambda row: (names[row[0]], *row[1:3]))


def test_many_sites_outgrow_the_first_table() -> None:
    rng = np.random.default_rng(2)
    contig = rng.integers(0, 3, 100_000).astype(np.int32)
    position = rng.integers(2**31 - 30_000, 2**31, 100_000)
    reverse = rng.integers(0, 2, 100_000).astype(np.bool_)
    llr = rng.choice([-3.0, 1.0, 3.0], 100_000)
    counts = SiteCounts()
    for part in range(0, 100_000, 7_000):
        piece = slice(part, part + 7_000)
        size = np.ones(len(llr[piece]), np.int64)
        columns = (one[piece] for one in (contig, position, reverse, llr))
        counts.add(SingleSiteCalls(*columns, size.astype(np.int32), size))
    expected = Counter(zip(contig.tolist(), position.tolist(), reverse.tolist(), llr.tolist(), strict=True))
    sites = sorted({key[:3] for key in expected})
    assert _sites(counts.totals([b"a", b"b", b"c"])) == [
        (*site, *(expected[(*site, ratio)] for ratio in (3.0, -3.0, 1.0))) for site in sites
    ]


def test_groups_are_split_and_strands_told_apart() -> None:
    text = _HEADER + _row(strand="-", start=100, end=108, ratio="-3.00", number=3, sequence="TTCGCGAAAACGTT")
    text += _row(start=102, end=102) + _row(start=102, end=102, ratio="2.49") + _row("chr0", start=7, end=7)
    assert _count(text) == [
        ("chr0", 7, False, 1, 0, 0),
        ("chr1", 101, True, 0, 1, 0),
        ("chr1", 102, False, 1, 0, 1),
        ("chr1", 103, True, 0, 1, 0),
        ("chr1", 109, True, 0, 1, 0),
    ]
    assert _count(text, combine_strands=True)[2] == ("chr1", 102, False, 1, 1, 1)


def test_the_threshold_per_site_grows_with_the_group() -> None:
    text = _HEADER + _row(start=1, end=3, ratio="4.99", number=2, sequence="CGCG") + _row(start=1, end=1, ratio="2.5")
    assert _count(text, threshold_per_site=True) == [("chr1", 1, False, 1, 0, 1), ("chr1", 3, False, 0, 0, 1)]


@pytest.mark.parametrize(
    ("motif", "sequence", "forward", "reverse"),
    [("gpc", "TTGCTT", 51, 50), ("dam", "TTGATCTT", 51, 52), ("dcm", "TTCCTGGTT", 51, 53), ("CHG:0", "", 50, 52)],
)
def test_positions_are_those_of_the_modified_base(motif: str, sequence: str, forward: int, reverse: int) -> None:
    text = _HEADER + _row(start=50, end=50, sequence=sequence or "TTCAGTT")
    text += _row(strand="-", start=50, end=50, sequence=sequence or "TTCTGTT")
    assert sorted(_count(text, motif)) == sorted([("chr1", forward, False, 1, 0, 0), ("chr1", reverse, True, 1, 0, 0)])


def test_neighbours_that_were_called_on_their_own_are_no_fault() -> None:
    text = _HEADER + _row(start=5, end=5, sequence="AACGACGACGA") + _row(start=8, end=8, sequence="GACGACGAAAA")
    assert [site[1] for site in _count(text)] == [5, 8]


def test_a_last_motif_that_the_sequence_cuts_off_is_where_the_row_ends() -> None:
    # k = 6: the sequence reaches 5 bases after the start of the last motif, which is 7 long
    group = _row(start=50, end=58, number=2, sequence="TTTTT" + "GGATTCC" + "A" + "GGATTC")
    assert [site[1] for site in _count(_HEADER + group, "GGATTCC:2")] == [52, 60]
    single = _row(start=50, end=50, sequence="TTTTT" + "GGATTC")
    assert [site[1] for site in _count(_HEADER + single, "GGATTCC:2")] == [52]


@pytest.mark.parametrize("strand", "+-")
def test_splitting_at_a_motif_longer_than_k_loses_no_site(strand: str) -> None:
    """Every site of -s equals the sum of bedMethyl's rows."""
    motif = "GGATTCAN:2"
    site, last = ("GGATTCAT", "GGATTC") if strand == "+" else ("ATGAATCC", "ATGAAT")
    two = _row(strand=strand, start=50, end=59, number=2, sequence="TTTTT" + site + "A" + last)
    three = _row(strand=strand, start=41, end=59, ratio="-9", number=3, sequence="TTTTT" + (site + "A") * 2 + last)
    text = _HEADER + two + three + two
    for chunk_size in (1, 1 << 16):
        split = methylation_frequency(
            io.BytesIO(text.encode()), split_groups=True, motif=parse_motif(motif), chunk_size=chunk_size
        )
        assert split.odd_groups == 0
        columns = split.columns()
        rows = list(zip(columns.start.tolist(), columns.called.tolist(), columns.methylated.tolist(), strict=True))
        assert rows == [(41, 1, 0), (50, 3, 2), (59, 3, 2)]
        offset = 2 if strand == "+" else 5
        sites = _count(text, motif, chunk_size)
        assert [(start - offset, n + m, n) for _, start, _, n, m, _ in sites] == rows


def test_a_cut_off_motif_must_begin_as_the_motif_does() -> None:
    row = _row(start=50, end=59, number=2, sequence="TTTTT" + "GGATTCAT" + "A" + "GGATAC")
    with pytest.raises(InputFileError, match="the sequence does not hold the sites of GGATTCAN:2"):
        _count(_HEADER + row, "GGATTCAN:2")
    split = methylation_frequency(
        io.BytesIO((_HEADER + row).encode()), split_groups=True, motif=parse_motif("GGATTCAN:2")
    )
    assert (split.columns().start.tolist(), split.odd_groups) == ([50], 1)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (_row(strand="x"), "strand is 'x', neither + nor -"),
        (_row(sequence="AAAAAGCTTTT"), "the sequence does not hold the sites of cpg"),
        (_row(number=2, end=8), "the sequence does not hold the sites of cpg"),
        (_row(number=2, end=9, sequence="AACGTCGA"), "the sequence does not hold the sites of cpg"),
        (_row(end=6), "the sequence does not hold the sites of cpg"),
        (_row(ratio="1e1", sequence="AAAAAGCTTTT"), "the sequence does not hold"),
        (_row(ratio="x"), "log_lik_ratio is 'x', which is not a number"),
        (_row(start=2147483647, end=2147483647), "the group reaches beyond position"),
    ],
)
def test_wrong_rows_are_named(row: str, message: str) -> None:
    for chunk_size in (5, 1 << 16):
        with pytest.raises(InputFileError, match=re.escape(f"calls, line 4: {message}")):
            _count(_HEADER + _row() + _HEADER + row + _row(), chunk_size=chunk_size)


def test_odd_ratios_and_chunks_make_no_difference() -> None:
    text = _HEADER + (_row(ratio="1e1") + _row(strand="-", ratio="nan") + _row("chr2", ratio="-inf")) * 3
    expected = [("chr1", 5, False, 3, 0, 0), ("chr1", 6, True, 0, 3, 0), ("chr2", 5, False, 0, 3, 0)]
    for chunk_size in (1, 50, 1 << 16):
        assert _count(text, chunk_size=chunk_size) == expected


def test_strands_are_needed_or_must_be_alike() -> None:
    text = (_HEADER + _row()).replace("strand\t", "", 1).replace("\t+\t", "\t")
    assert _count(text, combine_strands=True) == [("chr1", 5, False, 1, 0, 0)]
    with pytest.raises(InputFileError, match="line 1: no column of strands"):
        _count(text)
    with pytest.raises(F5pyError, match="they cannot be combined"):
        _count(text, "CHG:0", combine_strands=True)


def test_rows_and_names_outgrow_the_first_lists() -> None:
    rows = [_row(f"contig_{i:05}", start=i, end=i) for i in range(3000)] * 30
    rows.append(_row(start=7, end=7 + 2 * 69_999, number=70_000, sequence="CG" * 70_000))
    sites = _count(_HEADER + "".join(rows))
    assert sites[:70_000] == [("chr1", 7 + 2 * i, False, 1, 0, 0) for i in range(70_000)]
    assert sites[70_000:] == [(f"contig_{i:05}", i, False, 30, 0, 0) for i in range(3000)]


def _batch() -> Any:
    """Two reads: the second is on the reverse strand and has room for a call that was not made."""
    text = [b"TTTTTTCGACGTTTTTCGTTT", b"AACGTTTTTTTTCGAA"]
    contig = np.array([1, 0], np.int32)
    return SimpleNamespace(
        calls=Calls(
            np.array([0, 2, 4]),
            np.array([2, 1]),
            np.array([106, 116, 12, 999]),
            np.array([109, 116, 12, 999]),
            np.array([2, 1, 1, 77], np.int32),
            np.array([-10, -20.004, -3, 0], np.float32),
            np.array([-12.504, -20, -8, 0], np.float32),
        ),
        contig=contig,
        alignments=Alignments(
            contig, start=np.array([100, 0]), reverse=np.array([False, True]), cigar=np.empty(0, np.uint32),
            cigar_offsets=np.zeros(3, np.int64), reference=np.frombuffer(b"".join(text), np.uint8),
            reference_offsets=np.array([0, len(text[0]), len(text[0] + text[1])]),
        ),
    )  # fmt: skip


def test_calls_of_a_batch_are_expanded_and_rounded_as_printed() -> None:
    sites = expand_calls(_batch(), motif_named("cpg"))
    assert sites.contig.tolist() == [1, 1, 1, 0]
    assert sites.position.tolist() == [106, 109, 116, 12]
    assert sites.reverse.tolist() == [False, False, False, True]
    assert sites.llr.tolist() == [2.5, 2.5, -0.0, 5.0]
    assert sites.size.tolist() == [2, 2, 1, 1]
    assert sites.read.tolist() == [0, 0, 0, 1]


def test_only_calls_inside_of_windows_are_expanded() -> None:
    windows = Windows([(1, 100, 109), (1, 110, 120), (0, 12, 13)])
    assert expand_calls(_batch(), motif_named("cpg"), windows).position.tolist() == [106, 109, 116, 12]
    windows = Windows([(1, 100, 109), (1, 110, 120), (0, 12, 13)], clips_groups=True)
    assert expand_calls(_batch(), motif_named("cpg"), windows).position.tolist() == [116, 12]


@settings(deadline=None)
@given(st.data())
def test_windows_hold_the_calls_that_start_or_lie_in_one_of_them(data: st.DataObject) -> None:
    position = st.integers(0, 40)
    intervals = data.draw(st.lists(st.tuples(st.integers(0, 3), position, position), max_size=8))
    clips = data.draw(st.booleans())
    windows = Windows([(contig, min(a, b), max(a, b) + 1) for contig, a, b in intervals], clips_groups=clips)
    n_calls = np.array(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=6)))
    capacity = n_calls + data.draw(st.integers(0, 2))
    contig = np.array([data.draw(st.integers(0, 3)) for _ in n_calls], np.int32)
    first = np.array([data.draw(position) for _ in range(capacity.sum())], np.int64)
    last = first + np.array([data.draw(st.integers(0, 5)) for _ in first], np.int64)
    offsets = np.concatenate(([0], np.cumsum(capacity)))
    batch: Any = SimpleNamespace(
        calls=Calls.none()._replace(offsets=offsets, n=n_calls, first=first, last=last), contig=contig
    )
    expected = np.zeros(len(first), np.bool_)
    for read, n in enumerate(n_calls.tolist()):
        for call in range(offsets[read], offsets[read] + n):
            expected[call] = any(
                on == contig[read] and start <= first[call] < end and (last[call] < end or not clips)
                for on, start, end in zip(*windows.bounds(), strict=True)
            )
    np.testing.assert_array_equal(calls_inside(batch, windows), expected)


def test_calls_of_another_motif_are_refused() -> None:
    with pytest.raises(F5pyError, match="0 sites of dam where 4 were called"):
        expand_calls(_batch(), motif_named("dam"))
    batch = _batch()
    batch.calls.sites[0] = 1
    with pytest.raises(F5pyError, match="4 sites of cpg where 3 were called"):
        expand_calls(batch, motif_named("cpg"))


def test_ambiguous_motifs_are_expanded_on_both_strands() -> None:
    batch = _batch()
    batch.calls.first[:3] = batch.calls.last[:3] = (106, 116, 11)
    batch.calls.sites[:3] = 1
    assert expand_calls(batch, parse_motif("CGW:0")).position.tolist() == [106, 116, 11]
