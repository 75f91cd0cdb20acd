"""Seeds that are maximal exact matches: against plain searches, and what mapping with them gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from f5py.core.offsets import offsets_of
from f5py.mapping.index.reference_index import codes_of
from f5py.mapping.mem.fm_index import FmIndex, build_fm_index, sorted_suffixes
from f5py.mapping.mem.mem_seeds import SHORTEST, SPAN, MemSearch, find_mem_anchors, find_mems, write_strand
from f5py.mapping.settings import PRESETS, parameters
from f5py.threads.pool import WorkerPool

from ..compiled import compiled
from ..examples import examples
from ..made_data import run_command
from .real_sets import batch_of, text_of

find_mems, write_strand = map(compiled, (find_mems, write_strand))

COMPLEMENT = str.maketrans("ACGT", "TGCA")
#: First base, end and places of a match.
Match = tuple[int, int, list[int]]


def codes(letters: str) -> np.ndarray:
    return codes_of(np.frombuffer(bytearray(letters, "ascii"), np.uint8))


def index_of(contigs: list[str], pool: WorkerPool, min_length: int = 17) -> tuple[FmIndex, np.ndarray]:
    offsets = offsets_of([len(contig) for contig in contigs])
    return build_fm_index(codes("".join(contigs)), offsets, pool, min_length), offsets


def found(index: FmIndex, read: str, reverse: bool, min_length: int) -> list[Match]:
    n = len(read)
    pattern, mems = np.empty(n, np.uint8), np.empty((n, 4), np.int32)
    write_strand(codes(read), 0, n, reverse, pattern)
    n_mems = find_mems(pattern, n, min_length, index, np.empty(n, np.int32), mems, 0)
    return [
        (last + 1 - length, last + 1, sorted(index.places[row : row + count].tolist()))
        for last, length, row, count in mems[:n_mems].tolist()
    ]


def places_of(word: str, contigs: list[str]) -> list[int]:
    first, places = 0, []
    for contig in contigs:
        places += [first + i for i in range(len(contig) - len(word) + 1) if contig[i : i + len(word)] == word]
        first += len(contig)
    return places


def searched(contigs: list[str], read: str, min_length: int) -> list[Match]:
    """Find the matches of a strand by plain search; contigs and read have N for unknown bases."""
    longest: list[Match] = []
    for end in range(1, len(read) + 1):
        start = next((s for s in range(end) if "N" not in read[s:end] and places_of(read[s:end], contigs)), end)
        longest.append((start, end, places_of(read[start:end], contigs) if end - start >= min_length else []))
    chosen = []
    for (start, end, places), after in zip(longest, [*longest[1:], (-1, 0, [])], strict=False):
        if places and not (after[0] == start and len(after[2]) == len(places)):
            chosen.append((start, end, places))
    return chosen


def reverse_complement(read: str) -> str:
    return read[::-1].translate(COMPLEMENT)


@st.composite
def contigs_and_reads(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Contigs with repeats and unknown bases; reads that are pieces of them with changes, or anything."""
    letters = draw(st.sampled_from(["A", "AC", "ACGT", "ACGT" * 5 + "N", "ACN"]))
    contigs = draw(st.lists(st.text(letters, max_size=60), min_size=1, max_size=4))
    if draw(st.booleans()):
        contigs = [contig * draw(st.integers(1, 4)) for contig in contigs]
    text = "".join(contigs)
    reads = [draw(st.text("ACGTN", max_size=40))]
    for _ in range(draw(st.integers(0, 3))):
        begin = draw(st.integers(0, len(text)))
        piece = text[begin : begin + draw(st.integers(0, 70))]
        at = draw(st.integers(0, len(piece)))
        piece = piece[:at] + draw(st.text("ACGT", max_size=1)) + piece[at + 1 :]
        reads.append(reverse_complement(piece) if draw(st.booleans()) else piece)
    return contigs, reads


any_reads = settings(
    max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@any_reads
@given(made=contigs_and_reads(), min_length=st.integers(1, 20))
def test_matches_are_those_of_a_plain_search(pool, made, min_length):
    contigs, reads = made
    index, _ = index_of(contigs, pool, min_length)
    for read in reads:
        assert found(index, read, False, min_length) == searched(contigs, read, min_length)
        assert found(index, read, True, min_length) == searched(contigs, reverse_complement(read), min_length)


@any_reads
@given(st.text("#ACGT", max_size=150), st.integers(1, 6), st.integers(2, 9))
def test_order_of_suffixes(pool, monkeypatch, piece, times, n_symbols):
    monkeypatch.setattr("f5py.mapping.mem.fm_index._FEW_SYMBOLS", n_symbols % 7 + 1)
    text = piece * times + "#"
    order = sorted_suffixes(np.array(["#ACGT".index(letter) for letter in text], np.uint8), pool)

    def key(i: int) -> tuple[str, int]:  # separators are different, the earlier one smaller
        end = text.index("#", i)
        return text[i : end + 1], end

    assert order.tolist() == sorted(range(len(text)), key=key)


def expected_anchors(
    contigs: list[str], read: str, min_length: int, limit: int
) -> tuple[list[tuple[int, int]], list[int], int]:
    """Anchors and seeds of the matches with at most `limit` places, and the bases that the others cover."""
    starts = offsets_of([len(contig) for contig in contigs])
    anchors, seeds, covered = [], [], set()
    for reverse, pattern in enumerate((read, reverse_complement(read))):
        taken: set[tuple[int, int]] = set()
        for start, end, places in reversed(searched(contigs, pattern, min_length)):
            if len(places) > limit:
                covered |= {len(read) - 1 - i if reverse else i for i in range(start, end)}
                continue
            pieces = list(range(end, start, -SPAN))
            while len(pieces) > 1 and pieces[-1] - start < SHORTEST:
                pieces.pop()
            for number, last in enumerate(pieces):
                first = start if number + 1 == len(pieces) else last - SPAN
                seeds.append(((last - first) << 32) | (len(read) - 1 - first if reverse else last - 1))
                for place in places:
                    if (start, place) not in taken:
                        contig = int(np.searchsorted(starts, place, side="right")) - 1
                        x = reverse << 63 | contig << 32 | (place + last - start - 1 - int(starts[contig]))
                        anchors.append((x, (last - first) << 32 | (last - 1)))
            taken |= {(start, place) for place in places}
    return anchors, seeds, len(covered)


@any_reads
@given(made=contigs_and_reads(), min_length=st.integers(1, 20), limit=st.sampled_from([1, 2, 1000]))
def test_anchors(pool, made, min_length, limit):
    contigs, reads = made
    index, offsets = index_of(contigs, pool, min_length)
    numbers = parameters(PRESETS["map-ont"]._replace(occ_dist=0), limit)
    batch = batch_of([(f"r{i}", read) for i, read in enumerate(reads)])
    find_mem_anchors(batch, MemSearch(index, offsets, min_length, numbers), pool)
    anchors = batch.anchors
    assert anchors is not None
    for i, read in enumerate(reads):
        expected, seeds, covered = expected_anchors(contigs, read, min_length, limit)
        these = slice(anchors.offsets[i], anchors.offsets[i + 1])
        x = anchors.x[these].tolist()
        assert x == sorted(x)
        assert sorted(zip(x, anchors.y[these].tolist(), strict=True)) == sorted(expected)
        used = anchors.seeds[anchors.seed_offsets[i] : anchors.seed_offsets[i + 1]].tolist()
        assert sorted(used) == sorted(seeds)
        assert [seed & 0xFFFFFFFF for seed in used] == sorted(seed & 0xFFFFFFFF for seed in seeds)
        assert anchors.rep_len[i] == covered


SETS = {
    "mems17": ("ecoli_r94/ref.fa", "ecoli_r94/reads.fasta"),
    "mems17_stress": ("map_ecoli/stress_ref.fa.gz", "map_ecoli/stress_reads.fa.gz"),
}


def primary_places(paf: str) -> dict[str, tuple[str, str, int, int]]:
    """Strand, contig and ends of the first primary hit of each read."""
    places: dict[str, tuple[str, str, int, int]] = {}
    for line in paf.splitlines():
        row = line.split("\t")
        if "tp:A:P" in row:
            places.setdefault(row[0], (row[4], row[5], int(row[7]), int(row[8])))
    return places


@pytest.mark.shared
@pytest.mark.parametrize(("name", "n_reads"), [("ecoli", 112), ("stress", 75)])
def test_reads_are_where_minimap2_has_them(name: str, n_reads: int, shared_data: Path, tmp_path: Path):
    reference, reads = SETS["mems17" if name == "ecoli" else "mems17_stress"]
    inputs = shared_data / reference, shared_data / reads
    outputs = []
    for threads, batch in ((1, "200M"), (2, "150K"), (3, "40K")):
        output = tmp_path / f"{threads}.paf"
        options = ["--seeds", "mem", "--gpu", "off", "-t", threads, "-K", batch]
        assert run_command("map", *options, *inputs, "-o", output) == 0
        outputs.append(output.read_text())
    assert outputs[1:] == outputs[:1] * 2
    ours = primary_places(outputs[0])
    theirs = primary_places(text_of(shared_data / "map_ecoli" / f"{name}.paf.gz"))
    assert len(theirs) == n_reads
    for read, (strand, contig, begin, end) in theirs.items():
        assert ours[read][:2] == (strand, contig)
        assert min(ours[read][3], end) - max(ours[read][2], begin) > 0.5 * (end - begin)


def test_a_reference_of_unknown_bases_has_no_matches(pool):
    index, _ = index_of(["N" * 50, "", "NN"], pool)
    assert found(index, "ACGT" * 10, False, 17) == []
