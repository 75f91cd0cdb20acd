"""Alignment over introns with vectors of bytes against its definition, for any sequences."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.mapping.align._pair_alignment_numba import (
    EXTEND,
    EXTEND_BACKWARDS,
    GLOBAL,
    GLOBAL_WITH_DROPS,
    Stretch,
    new_room,
)
from f5py.mapping.align._spliced_alignment_numba import align_spliced
from f5py.mapping.index.packed_bases import pack
from f5py.mapping.settings import PRESETS, MapSettings, parameters

from ..examples import examples
from .plain_alignment import plain_signals, plain_spliced_alignment

_ONT = PRESETS["map-ont"]
_SCORES = {
    "splice": PRESETS["splice"],
    "splice:hq": PRESETS["splice:hq"],
    "map-ont -u": _ONT._replace(spliced=True),
    "map-ont -u -C 7": _ONT._replace(spliced=True, non_canonical=7, junction_bonus=3),
    "extension 2": PRESETS["splice"]._replace(mismatch=6, q=6, e=2, q2=40, junction_bonus=15),
}
_SITES = [[2, 3, 0], [2, 3, 1], [1, 0, 2], [0, 0, 2], [1, 3, 0], [1, 0, 1], [4, 2, 3]]


@st.composite
def stretches(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Draw a target with introns between exons, and the exons with errors."""
    target: list[int] = []
    query: list[int] = []
    for _ in range(draw(st.integers(1, 3))):
        exon = draw(st.lists(st.integers(0, 3), min_size=1, max_size=50))
        target += exon
        query += exon
        site = st.sampled_from(_SITES)
        target += draw(site) + draw(st.lists(st.integers(0, 4), max_size=60)) * draw(st.integers(0, 2)) + draw(site)
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, max(len(query) - 1, 0)))
        query[at : at + draw(st.integers(0, 3))] = draw(st.lists(st.integers(0, 4), max_size=6))
    begin = draw(st.integers(0, 10))
    return np.array(target[begin:] or [0], np.uint8), np.array(query or [1], np.uint8)


@settings(max_examples=examples(300), deadline=None)
@given(
    stretches(), st.sampled_from([EXTEND, EXTEND_BACKWARDS, GLOBAL, GLOBAL_WITH_DROPS]), st.sampled_from([0, 1, 2]),
    st.sampled_from([5, 20, 200]), st.sampled_from(sorted(_SCORES)),
    st.lists(st.tuples(st.integers(0, 150), st.integers(1, 150), st.sampled_from([1, -1])), max_size=4),
)  # fmt: skip
def test_vectors_give_what_the_definition_gives(pair, kind, direction, zdrop, name, drawn):
    target, query = pair
    scores: MapSettings = _SCORES[name]
    n = len(target)
    introns = [(first, first + length, strand) for first, length, strand in drawn]
    # the stretch does not begin with the reference, and an intron may begin or end outside of it
    before = 20
    table = np.array(sorted((before + first, before + end, strand) for first, end, strand in introns), np.int64)
    reference = np.concatenate([np.full(before, 4, np.uint8), target, np.full(7, 4, np.uint8)])
    ops, n_ops, *found = align_spliced(
        pack(reference), query, Stretch(before, n, 0, len(query), kind, 0, zdrop), direction, table.reshape(-1, 3),
        parameters(scores, 10).integers, np.empty(2, np.int64), 0, new_room(), np.empty(0, np.uint8),
    )  # fmt: skip
    backwards = kind == EXTEND_BACKWARDS
    if backwards:
        target, query = target[::-1], query[::-1]
    inside = [intron for intron in introns if intron[1] <= n]
    expected = plain_spliced_alignment(
        target, query, plain_signals(target, direction, backwards, inside, scores), scores,
        None if kind == GLOBAL else zdrop, backwards, kind in (GLOBAL, GLOBAL_WITH_DROPS),
    )  # fmt: skip
    cigar = [(int(op) >> 4, int(op) & 15) for op in ops[:n_ops]]
    if backwards:
        cigar.reverse()
    assert (*found, cigar) == expected
