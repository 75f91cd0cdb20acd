"""The stages of mapping against dumps of minimap2 2.24's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from f5py.mapping._sorting_numba import SORT_SCRATCH
from f5py.mapping.align._pair_alignment_numba import (
    EXTEND,
    EXTEND_BACKWARDS,
    GLOBAL,
    GLOBAL_WITH_DROPS,
    Stretch,
    align_pair,
    new_room,
)
from f5py.mapping.chain._chains_numba import Chains
from f5py.mapping.chain.chaining import score_chains
from f5py.mapping.chain.joins import made_room
from f5py.mapping.hits.hits import chains_of_read
from f5py.mapping.index._sketch_numba import Minimizers, Scheme, sketch
from f5py.mapping.index.packed_bases import pack
from f5py.mapping.index.reference_index import codes_of
from f5py.mapping.index.seeds import find_anchors
from f5py.mapping.settings import PRESETS, parameters
from f5py.threads.pool import WorkerPool

from ..compiled import compiled
from .real_sets import batch_of, cigar_of, index_of, nothing_made, rows_of, sequences_of

chains_of_read = compiled(chains_of_read)
sketch = compiled(sketch)

pytestmark = pytest.mark.shared
ONT = PRESETS["map-ont"]
KINDS = {194: EXTEND_BACKWARDS, 64: EXTEND, 8: GLOBAL, 0: GLOBAL_WITH_DROPS}


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(2)
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def map_data(shared_data: Path) -> Path:
    return shared_data / "map_ecoli"


@pytest.fixture(scope="module")
def bases(shared_data: Path, map_data: Path) -> dict[str, str]:
    return dict(sequences_of(shared_data / "ecoli_r94" / "reads.fasta")) | dict(
        sequences_of(map_data / "stress_reads.fa.gz")
    )


def codes(letters: str) -> np.ndarray:
    return codes_of(np.frombuffer(letters.encode(), np.uint8))


def test_minimizers(map_data: Path, bases: dict[str, str]):
    expected = defaultdict(list)
    for read, *values in rows_of(map_data / "dump_minimizers.tsv.gz"):
        expected[read].append(tuple(map(int, values)))
    for _, read, *_ in rows_of(map_data / "dump_reads.tsv.gz"):
        sequence = codes(bases[read])
        key, place = np.empty(len(sequence), np.uint64), np.empty(len(sequence), np.int64)
        n = sketch(
            sequence, 0, len(sequence), Scheme(ONT.k, ONT.w, 0), 0, np.empty(35, np.uint64), Minimizers(key, place), 0
        )
        found = [(int(k) >> 8, int(k) & 255, int(p) >> 1, int(p) & 1) for k, p in zip(key[:n], place[:n], strict=True)]
        assert found == expected[read]


@pytest.mark.parametrize("max_skip", [25, 1_000_000])
@pytest.mark.parametrize("which", ["ecoli", "stress", "stress -f2000"])
def test_anchors_and_chains(
    which: str, max_skip: int, shared_data: Path, map_data: Path, bases: dict[str, str], pool: WorkerPool
):
    settings = ONT._replace(max_skip=max_skip)
    if which == "stress -f2000":
        settings = settings._replace(mid_occ_frac=2000.0)
    reference = shared_data / "ecoli_r94" / "ref.fa" if which == "ecoli" else map_data / "stress_ref.fa.gz"
    index = index_of(sequences_of(reference), settings, pool)
    rows = [row for row in rows_of(map_data / "dump_reads.tsv.gz") if row[0] == which]
    batch = batch_of([(row[1], bases[row[1]]) for row in rows])
    numbers = parameters(settings, index.mid_occ(settings))
    find_anchors(batch, index, numbers, pool)
    score_chains(batch, numbers, pool)
    anchors = batch.anchors
    assert anchors is not None
    assert anchors.rep_len.tolist() == [int(row[5]) for row in rows]

    expected = defaultdict(list)
    scores = slice(5, 7) if max_skip == 25 else slice(7, 9)
    for read, *values in rows_of(map_data / "dump_anchors.tsv.gz"):
        expected[read].append([*values[:5], *values[scores]])
    chains = defaultdict(list)
    for read, skip, *values in rows_of(map_data / "dump_chains.tsv.gz"):
        chains[read, int(skip)].append(values)

    def shown(x: np.ndarray, y: np.ndarray) -> list[list[str]]:
        return [
            [index.names[(int(a) >> 32) & 0x7FFFFFFF], str(int(a) & 0xFFFFFFFF), "+-"[int(a) >> 63],
             str(int(b) & 0xFFFFFFFF), str((int(b) >> 32) & 255)]
            for a, b in zip(x, y, strict=True)
        ]  # fmt: skip

    for i, (_, read, length, *_) in enumerate(rows):
        begin, end = anchors.offsets[i], anchors.offsets[i + 1]
        found = shown(anchors.x[begin:end], anchors.y[begin:end])
        scored = [[str(f), str(p)] for f, p in zip(anchors.f[begin:end], anchors.p[begin:end], strict=True)]
        assert [a + b for a, b in zip(found, scored, strict=True)] == expected[read]

        wanted = chains.get((read, max_skip)) or chains[read, 25]
        n = int(end - begin)
        out_x, out_y, sums = np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(n, np.int64)
        n_chains, n_chained = chains_of_read(
            i, anchors, int(length), numbers, made_room(0, anchors), Chains(out_x, out_y, sums),
            np.empty(SORT_SCRATCH, np.int64),
        )  # fmt: skip
        counts = (sums[:n_chains] & 0xFFFFFFFF).tolist()
        places = np.cumsum([0, *counts])
        assert places[-1] == n_chained
        found = shown(out_x[:n_chained], out_y[:n_chained])
        ours = sorted(found[places[c] : places[c + 1]] for c in range(n_chains))
        theirs = defaultdict(list)
        for number, *values in wanted:
            theirs[number].append([values[0], values[1], values[2], values[3], values[4]])
        assert ours == sorted(theirs.values())


def test_alignments(map_data: Path):
    numbers = parameters(ONT, 10)
    for row in rows_of(map_data / "dump_alignments.tsv.gz"):
        band, flags, score, cigar = int(row[1]), int(row[2]), int(row[3]), row[4]
        target, query = codes(row[5]), codes(row[6])
        kind = KINDS[flags]
        if kind == EXTEND_BACKWARDS:
            target, query = target[::-1].copy(), query[::-1].copy()
        found = []
        for zdrop in (400, 200):  # which one it was, the dump does not say
            ops, n_ops, corner, *_ = align_pair(
                pack(target), query, Stretch(0, len(target), 0, len(query), kind, band, zdrop), numbers.integers,
                np.empty(4, np.int64), 0, nothing_made(), new_room(),
            )  # fmt: skip
            found.append((corner, cigar_of(ops[:n_ops])))
        assert (score, cigar) in found, row[0]
