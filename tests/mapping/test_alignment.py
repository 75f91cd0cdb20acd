"""Alignment with vectors of bytes against its definition, for any sequences."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from f5py.mapping.align._pair_alignment_numba import (
    EXTEND,
    EXTEND_BACKWARDS,
    GLOBAL,
    GLOBAL_WITH_DROPS,
    Stretch,
    align_pair,
    new_room,
)
from f5py.mapping.index.packed_bases import pack
from f5py.mapping.settings import PRESETS, parameters

from ..examples import examples
from .plain_alignment import plain_alignment
from .real_sets import nothing_made


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Draw a sequence with repeats and unknown bases, and another that comes from it."""
    unit = draw(st.lists(st.integers(0, 4), min_size=1, max_size=60))
    target = (unit * draw(st.integers(1, 4)))[: draw(st.integers(1, 120))]
    query = list(target)
    for _ in range(draw(st.integers(0, 8))):
        at = draw(st.integers(0, max(len(query) - 1, 0)))
        what = draw(st.integers(0, 3))
        if what == 0:
            query[at:at] = draw(st.lists(st.integers(0, 3), max_size=40))
        elif what == 1:
            del query[at : at + draw(st.integers(0, 40))]
        else:
            query[at : at + 1] = [draw(st.integers(0, 4))]
    return np.array(target, np.uint8), np.array(query, np.uint8)


@settings(max_examples=examples(300), deadline=None)
@given(
    pairs(), st.sampled_from([EXTEND, EXTEND_BACKWARDS, GLOBAL, GLOBAL_WITH_DROPS]),
    st.sampled_from([3, 10, 40, 751]), st.sampled_from([5, 20, 400]), st.sampled_from(["map-ont", "map-hifi"]),
)  # fmt: skip
def test_vectors_give_what_the_definition_gives(pair, kind, band, zdrop, preset):
    target, query = pair
    scores = PRESETS[preset]
    ops, n_ops, *found = align_pair(
        pack(target), query, Stretch(0, len(target), 0, len(query), kind, band, zdrop), parameters(scores, 10).integers,
        np.empty(2, np.int64), 0, nothing_made(), new_room(),
    )  # fmt: skip
    if len(query) == 0:
        assert (n_ops, *found) == (0, -(1 << 30), 0, -1, -1, False)
        return
    if kind == EXTEND_BACKWARDS:
        target, query = target[::-1], query[::-1]
    expected = plain_alignment(
        target, query, band, scores, None if kind == GLOBAL else zdrop, kind == EXTEND_BACKWARDS,
        kind in (GLOBAL, GLOBAL_WITH_DROPS),
    )  # fmt: skip
    cigar = [(int(op) >> 4, int(op) & 15) for op in ops[:n_ops]]
    if kind == EXTEND_BACKWARDS:
        cigar.reverse()
    assert (*found, cigar) == expected


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 1 << 32), st.integers(1, 700), st.sampled_from([0.0, 0.02, 0.1, 0.3, 0.75]),
    st.sampled_from([1, 2, 3, 40, 700]), st.integers(-150, 150), st.integers(0, 150),
    st.sampled_from(["map-ont", "map-hifi"]),
)  # fmt: skip
@example(11737, 178, 0.75, 700, -57, 0, "map-ont")  # 63 bases less: the corner is in the last lane of the vector
@example(11737, 177, 0.75, 700, -56, 0, "map-ont")
def test_a_narrow_band_gives_the_path_of_all_cells(seed, n, errors, period, gap, swap, preset):
    """Stretches with repeats, unknown bases, a long gap, and an insertion before a deletion as long.

    Where a path may drop, but none does, all cells are computed.
    """
    rng = np.random.default_rng(seed)
    target = np.resize(rng.integers(0, 4, period), n)
    target = np.where(rng.random(n) < errors / 4, rng.integers(0, 5, n), target).astype(np.uint8)
    copies = np.where(rng.random(n) < errors / 3, 0, np.where(rng.random(n) < errors / 3, 2, 1))
    query = np.repeat(target, copies)
    query = np.where(rng.random(len(query)) < errors / 3, rng.integers(0, 5, len(query)), query).astype(np.uint8)
    at = int(rng.integers(0, len(query) + 1))
    query = np.concatenate([query[:at], rng.integers(0, 4, max(gap, 0), np.uint8), query[at + max(-gap, 0) :]])
    query = np.concatenate([query[:at], rng.integers(0, 4, swap, np.uint8), query[at:]])[: max(len(query), 1)]
    if len(query) == 0:
        return
    integers, room = parameters(PRESETS[preset], 10).integers, new_room()
    room.lost[0] = int(rng.integers(0, 257))
    found, expected = (
        align_pair(
            pack(target), query, Stretch(0, n, 0, len(query), kind, 30001, -1), integers, np.empty(2, np.int64), 0,
            nothing_made(), room,
        )
        for kind in (GLOBAL, GLOBAL_WITH_DROPS)
    )  # fmt: skip
    assert found[0][: found[1]].tolist() == expected[0][: expected[1]].tolist()
    assert found[2] == expected[2]
