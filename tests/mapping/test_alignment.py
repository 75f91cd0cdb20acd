"""Alignment with vectors of bytes against its definition, for any sequences."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.mapping.align._pair_alignment_numba import EXTEND, EXTEND_BACKWARDS, GLOBAL, GLOBAL_WITH_DROPS, align_pair
from f5py.mapping.align.base_alignment import plain_alignment
from f5py.mapping.settings import PRESETS, parameters

from ..examples import examples
from .real_sets import nothing_made


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A sequence with repeats and unknown bases, and another that comes from it."""
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
        target, 0, len(target), query, 0, len(query), kind, band, zdrop, parameters(scores, 10).integers,
        np.empty(2, np.int64), 0, nothing_made(),
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
