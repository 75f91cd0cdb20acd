"""D-SOFT and GACT: vectors against the definition, and what they find on real reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.core.offsets import elements_of
from f5py.mapping.darwin import extensions as column
from f5py.mapping.darwin import gact
from f5py.mapping.darwin.darwin_settings import DarwinSettings, darwin_integers
from f5py.mapping.darwin.dsoft import find_candidates_of, strands_of
from f5py.mapping.darwin.extensions import Extensions, Targets
from f5py.mapping.darwin.gact import extend_all
from f5py.mapping.index.contigs import Contigs
from f5py.mapping.index.reference_index import codes_of, index_kmers
from f5py.threads.pool import WorkerPool

from ..compiled import compiled
from ..examples import SHARE, examples
from ..made_data import run_command
from .real_sets import joined, rows_of, sequences_of

ECOLI = ("ecoli_r94/ref.fa", "ecoli_r94/reads.fasta")
SCHEMES = [(1, -1, -1, -1), (2, -1, -2, -2), (1, -3, -1, -1), (5, -4, -10, -1)]


def plain_path(target: str, read: str, scores: tuple[int, int, int, int], from_best: bool, most: int):
    """Align a tile in plain Python: best score, bases used of both and columns, the last one first."""
    match, mismatch, opened, extended = scores
    n, m = len(target), len(read)
    low = -(10**6)
    both = np.zeros((n + 1, m + 1), int)
    up, left = np.full((n + 1, m + 1), low), np.full((n + 1, m + 1), low)
    total = np.zeros((n + 1, m + 1), int)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            same = target[i - 1] == read[j - 1] != "N"
            both[i, j] = max(0, total[i - 1, j - 1] + (match if same else mismatch))
            up[i, j] = max(both[i - 1, j] + opened, up[i - 1, j] + extended)
            left[i, j] = max(both[i, j - 1] + opened, left[i, j - 1] + extended)
            total[i, j] = max(both[i, j], up[i, j], left[i, j], 0)
    i, j = n, m
    best = int(total.max())
    if from_best:
        i, j = max((i, j) for i in range(n + 1) for j in range(m + 1) if total[i, j] == best)
    end = i, j
    columns = ""
    state = ""
    while i > 0 and j > 0 and end[0] - i < most and end[1] - j < most:
        if not state:
            if total[i, j] <= 0:
                break
            values = [both[i, j], up[i, j], left[i, j]]
            state = "MDI"[values.index(max(values))]
        columns += state
        if state == "M":
            i, j, state = i - 1, j - 1, ""
        elif state == "D":
            i -= 1
            state = "M" if up[i + 1, j] == both[i, j] + opened else "D"
        else:
            j -= 1
            state = "M" if left[i, j + 1] == both[i, j] + opened else "I"
    return best, end, columns


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Two sequences that have something in common."""
    letters = draw(st.sampled_from(["AC", "ACGT", "ACGTN"]))
    target = draw(st.text(letters, min_size=1, max_size=70))
    read = list(target)
    for _ in range(draw(st.integers(0, 12))):
        at = draw(st.integers(0, len(read)))
        read[at : at + draw(st.integers(0, 3))] = draw(st.text(letters, max_size=3))
    return target, "".join(read) or "A"


def tile_of(target: str, read: str, scores, from_best: bool, plain: bool):
    """Align a tile with compiled code."""
    integers = darwin_integers(DarwinSettings(), 14, scores, 0)
    t, q = (codes_of(np.frombuffer(one.encode(), np.uint8)) for one in (target, read))
    work = compiled(gact.new_work)()
    n, m = len(t), len(q)
    best, i, j = compiled(gact._fill)(t, q, n, n, m, m, False, from_best, plain, integers, work)
    state, ops = np.zeros(gact._N_STATE, np.int64), np.full(n + m, 9, np.uint8)
    on_target, on_read, at = compiled(gact._walk_back)(i, j, m, integers, work, state, ops, 0, 1)
    columns = "".join("MID"[op] for op in ops[:at])
    assert (columns.count("M") + columns.count("D"), columns.count("M") + columns.count("I")) == (on_target, on_read)
    return best, (i + 1, j + 1), columns


class TestTiles:
    @pytest.mark.parametrize("scores", SCHEMES)
    @pytest.mark.parametrize("from_best", [True, False])
    @settings(max_examples=examples(60), deadline=None)
    @given(pair=pairs())
    def test_vectors_and_cells_are_as_defined(self, scores, from_best: bool, pair):
        expected = plain_path(*pair, scores, from_best, 200)
        for plain in (True, False):
            best, end, columns = tile_of(*pair, scores, from_best, plain)
            if from_best and expected[0] == 0:
                assert best == 0
                continue
            assert (end, columns) == expected[1:]
            if from_best:
                assert best == expected[0]

    @settings(max_examples=examples(40), deadline=None)
    @given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 320), m=st.integers(1, 320))
    def test_vectors_are_cells_in_whole_tiles(self, seed: int, n: int, m: int):
        rng = np.random.default_rng(seed)
        target = "".join(rng.choice(list("ACGT"), n))
        read = ("".join(letter for letter in target if rng.random() > 0.1) + "A" * m)[:m]
        for from_best in (True, False):
            found = [tile_of(target, read, (1, -1, -1, -1), from_best, plain) for plain in (True, False)]
            assert found[0] == found[1]
            assert len(found[0][2]) <= 400


def candidates_plainly(read: str, targets: list[str], s: DarwinSettings, k: int, most: int) -> list[tuple[int, ...]]:
    """D-SOFT of one strand, in plain Python."""
    text = "".join(targets)
    ends = np.cumsum([len(target) for target in targets])
    places: dict[str, list[int]] = {}
    at = 0
    for target in targets:
        for i in range(len(target) - k + 1):
            places.setdefault(target[i : i + k], []).append(at + i)
        at += len(target)
    assert len(text) == at
    n = len(read) - k + 1
    offsets = list(range(n))
    if s.spread and n > s.n_seeds:
        offsets = sorted({j * (n - 1) // (s.n_seeds - 1) for j in range(s.n_seeds)})
    bins: dict[int, tuple[int, int]] = {}
    found, used = [], 0
    for o in offsets:
        kmer = read[o : o + k]
        where = places.get(kmer, [])
        if "N" in kmer or not 0 < len(where) <= most or (not s.spread and used == s.n_seeds):
            continue
        used += 1
        for place in where:
            b = (place - o + len(read)) // s.bin_bases
            count, last = bins.get(b, (0, 0))
            if count < 0:
                continue
            count += k if count == 0 else min(k, o - last)
            bins[b] = count, o
            if count >= s.seed_bases:
                bins[b] = -1, o
                target = int(np.searchsorted(ends, place, side="right"))
                found.append((target, place - int(ends[target]) + len(targets[target]), o))
    return found


@pytest.mark.parametrize("spread", [True, False])
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_candidates_are_as_defined(spread: bool, data: st.DataObject):
    pool = WorkerPool(1)
    text = data.draw(st.text("ACGTN", min_size=40, max_size=200))
    cut = data.draw(st.integers(1, 39))
    targets = [text[:cut], text[cut:], text[10:60]]
    read = text[data.draw(st.integers(0, 30)) :] + data.draw(st.text("ACGT", max_size=30))
    these = DarwinSettings(n_seeds=25, seed_bases=7, bin_bases=8, spread=spread)
    letters, offsets = joined([(str(i), target) for i, target in enumerate(targets)])
    index = index_kmers(Contigs.of_codes(["a", "b", "c"], codes_of(letters), offsets), 5, pool)
    integers = darwin_integers(these, 5, (1, -1, -1, -1), len(letters))
    read_letters, read_offsets = joined([("r", read)])
    strands = strands_of(codes_of(read_letters), read_offsets)
    found = find_candidates_of(strands, read_offsets, np.array([-1]), index, integers, pool, 0)
    other = read[::-1].translate(str.maketrans("ACGT", "TGCA"))
    expected = [
        (0, reverse, *one)
        for reverse, strand in enumerate((read, other))
        for one in candidates_plainly(strand, targets, these, 5, 32)
    ]
    assert [tuple(row) for row in found.tolist()] == expected
    pool.close()


@pytest.mark.shared
def test_scores_of_pairs_are_exact(shared_data: Path, pool: WorkerPool):
    """With all k-mers as seeds, the best candidate's score is that of the whole matrix for nearly all pairs."""
    reads = dict(sequences_of(shared_data / ECOLI[1]))
    n_equal = []
    for after_seed in (True, False):
        equal = 0
        for query, target, strand, *numbers in rows_of(shared_data / "map_ecoli" / "exact_scores.tsv")[:40]:
            letters, offsets = joined([(target, reads[target])])
            targets = Targets(codes_of(letters), offsets)
            index = index_kmers(Contigs.of_codes([target], *targets), 14, pool)
            these = DarwinSettings(n_seeds=1 << 40, after_seed=after_seed)
            integers = darwin_integers(these, 14, SCHEMES[0], len(letters))
            letters, offsets = joined([(query, reads[query])])
            strands = strands_of(codes_of(letters), offsets)
            table = find_candidates_of(strands, offsets, np.array([-1]), index, integers, pool, 0)
            table = table[table[:, column.REVERSE] == (strand == "-")]
            extensions = Extensions.of(strands, offsets, table.copy())
            extend_all(extensions, targets, integers, pool)
            best = extensions.results[:, column.SCORE].max(initial=0)
            assert best <= int(numbers[2])
            equal += best == int(numbers[2])
        n_equal.append(equal)
    assert n_equal[0] >= 36
    assert n_equal[1] < 36  # as published


def pairs_of(rows: list[list[str]]) -> list[tuple[str, str]]:
    return [(min(row[0], row[5]), max(row[0], row[5])) for row in rows]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("preset", "least", "most", "precision"), [("darwin", 0.95, 1.0, 0.995), ("darwin-paper", 0.6, 0.8, 0.99)]
)
def test_overlaps_of_reads(preset: str, least: float, most: float, precision: float, shared_data: Path, tmp_path: Path):
    """Of a third of the reads, or all; a pair is right if it is among minimap2's or overlaps on the reference."""
    output, reads = tmp_path / "out.paf", tmp_path / "some.fasta"
    chosen = dict(list(sequences_of(shared_data / ECOLI[1]))[:: 1 if SHARE >= 1 else 3])
    reads.write_text("".join(f">{name}\n{bases}\n" for name, bases in chosen.items()))
    assert run_command("map", "-t", 2, "-K", "300K", "-x", preset, reads, reads, "-o", output) == 0
    rows = rows_of(output)
    found = pairs_of(rows)
    assert len(found) == len(set(found))
    expected = {
        pair for pair in pairs_of(rows_of(shared_data / "map_ecoli" / "ava.paf.gz")) if chosen.keys() >= {*pair}
    }
    assert len(expected) > (1000 if SHARE >= 1 else 250)
    places: dict[str, list[tuple[int, int]]] = {}
    for row in rows_of(shared_data / "map_ecoli" / "ecoli.paf.gz"):
        places.setdefault(row[0], []).append((int(row[7]), int(row[8])))
    right = [
        pair in expected
        or any(min(a[1], b[1]) > max(a[0], b[0]) for a in places.get(pair[0], []) for b in places.get(pair[1], []))
        for pair in found
    ]
    assert least <= len(expected & set(found)) / len(expected) <= most
    assert np.mean(right) >= precision
    check_lines(rows, chosen, chosen)


def check_lines(rows: list[list[str]], reads: dict[str, str], targets: dict[str, str]) -> None:
    """Check that the columns of PAF lines follow from their CIGAR strings and the bases."""
    import re

    for row in rows:
        tags = {tag[:2]: tag[5:] for tag in row[12:]}
        assert set(tags) == {"NM", "AS", "nn", "tp", "de", "cg"}
        read = reads[row[0]][int(row[2]) : int(row[3])]
        if row[4] == "-":
            read = read[::-1].translate(str.maketrans("ACGT", "TGCA"))
        target = targets[row[5]][int(row[7]) : int(row[8])]
        parts = re.findall(r"(\d+)([MID])", tags["cg"])
        n, op = np.array([int(length) for length, _ in parts]), np.array([op for _, op in parts])
        of_read, of_target = np.where(op != "D", n, 0), np.where(op != "I", n, 0)
        assert (of_read.sum(), of_target.sum()) == (len(read), len(target))
        pairs = op == "M"
        there = elements_of((np.cumsum(of_target) - of_target)[pairs], n[pairs])
        here = elements_of((np.cumsum(of_read) - of_read)[pairs], n[pairs])
        letters = (np.frombuffer(text.encode(), np.uint8) for text in (read, target))
        equal, columns = np.count_nonzero(next(letters)[here] == next(letters)[there]), n.sum()
        assert [equal, columns] == [int(row[9]), int(row[10])]
        assert int(tags["NM"]) == columns - equal
        assert int(tags["AS"]) == 2 * equal - columns
        assert columns >= 300
        assert 100 * equal >= 70 * columns


@pytest.fixture(scope="module")
def few(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reads") / "few.fa"
    path.write_text("".join(f">{name}\n{bases}\n" for name, bases in sequences_of(shared_data / ECOLI[1])[::7]))
    return path


@pytest.mark.shared
@pytest.mark.parametrize("kind", ["overlaps", "paf", "sam"])
def test_bytes_do_not_depend_on_threads_and_batches(kind: str, few: Path, shared_data: Path, tmp_path: Path):
    reference = few if kind == "overlaps" else shared_data / ECOLI[0]
    output = tmp_path / ("out.sam" if kind == "sam" else "out.paf")
    found = []
    for options in (("-t", 1), ("-t", 5, "-K", 1), ("-t", 2, "-K", "30K")):
        assert run_command("map", "-x", "darwin", *options, reference, few, "-o", output) == 0
        found.append([line for line in output.read_text().splitlines() if not line.startswith("@PG")])
    assert len(found[0]) > 10
    assert found[0] == found[1] == found[2]


@pytest.mark.shared
def test_reads_are_where_minimap2_has_them(shared_data: Path, tmp_path: Path):
    output = tmp_path / "out.paf"
    assert run_command("map", "-t", 2, "-x", "darwin", *(shared_data / name for name in ECOLI), "-o", output) == 0
    rows = rows_of(output)
    found = {row[0]: row for row in reversed(rows)}  # the first one of each read
    n = 0
    for row in rows_of(shared_data / "map_ecoli" / "ecoli.paf.gz"):
        ours = found.get(row[0])
        if "tp:A:P" in row and ours is not None and ours[4] == row[4]:
            n += 2 * (min(int(ours[8]), int(row[8])) - max(int(ours[7]), int(row[7]))) > int(row[8]) - int(row[7])
    assert n >= 111  # one read has 232 bases on the reference, fewer than an alignment in tiles must have
    assert sum(int(row[11]) >= 20 for row in found.values()) >= 105
    check_lines(rows, dict(sequences_of(shared_data / ECOLI[1])), dict(sequences_of(shared_data / ECOLI[0])))


@pytest.mark.shared
def test_bam_with_all_kinds_of_records(shared_data: Path, tmp_path: Path):
    import pysam

    output = tmp_path / "out.bam"
    assert run_command("map", "-t", 2, "-x", "darwin", *(shared_data / name for name in ECOLI), "-o", output) == 0
    pysam.quickcheck(str(output))
    reference = dict(sequences_of(shared_data / ECOLI[0]))
    with pysam.AlignmentFile(str(output)) as file:
        records = list(file.fetch(until_eof=True))
    assert len({record.query_name for record in records}) == 112
    assert sum(record.is_unmapped for record in records) == 1
    for record in records:
        if not record.is_unmapped and not record.is_secondary:
            bases = record.get_reference_sequence().upper()  # from MD
            assert bases == reference[record.reference_name][record.reference_start : record.reference_end]
            assert not record.has_tag("cm")


def test_reads_that_are_empty_short_or_unknown(tmp_path: Path):
    rng = np.random.default_rng(1)
    long = "".join(rng.choice(list("ACGT"), 400))
    reference, reads = tmp_path / "ref.fa", tmp_path / "reads.fq"
    reference.write_text(f">a\n{long}\n>b\nACGTN\n>c\n{'N' * 500}\n>d\n{long[::-1][:30]}\n")
    others = ["", "ACGTTGCAAGCTT", "N" * 400, long]
    reads.write_text("".join(f"@r{i}\n{bases}\n+\n{'I' * len(bases)}\n" for i, bases in enumerate(others)))
    output = tmp_path / "out.paf"
    assert run_command("map", "-t", 2, "-x", "darwin", reference, reads, "-o", output) == 0
    (row,) = rows_of(output)
    assert row[:12] == ["r3", "400", "0", "400", "+", "a", "400", "0", "400", "400", "400", "60"]
    assert row[-1] == "cg:Z:400M"
    assert run_command("map", "-t", 2, "-x", "darwin", reference, reference, "-o", output) == 0
    assert output.read_text() == ""
