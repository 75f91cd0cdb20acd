"""Depth along the reference and calls of sites: what a plain count gives."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from f5py.compute import statistics as depths_module
from f5py.compute.statistics import MOST_POSITIONS, Depths
from f5py.core.windows import Windows
from f5py.errors import DamagedValueError
from f5py.io.files.json_values import JsonObject

_PLACE = st.tuples(st.integers(0, 2), st.integers(0, 400))
_LENGTHS = [300, 0, 500]


def _windows(pairs: list[tuple[tuple[int, int], int]]) -> Windows | None:
    return Windows([(contig, start, start + length) for (contig, start), length in pairs]) if pairs else None


@given(
    st.lists(st.tuples(_PLACE, st.integers(1, 150)), max_size=4),
    st.lists(st.tuples(_PLACE, st.integers(0, 200)), max_size=8),
    st.lists(_PLACE, max_size=12),
    st.integers(0, 8),
)
def test_sums_are_those_of_a_plain_count(
    windows: list[tuple[tuple[int, int], int]],
    reads: list[tuple[tuple[int, int], int]],
    calls: list[tuple[int, int]],
    cut: int,
) -> None:
    inside = [np.zeros(length, bool) for length in _LENGTHS]
    over = [np.zeros(length, int) for length in _LENGTHS]
    for contig in range(3):
        inside[contig][:] = not windows
    for (contig, start), length in windows:
        inside[contig][start : start + length] = True
    for (contig, start), length in reads:
        over[contig][start : start + length] += 1
    one, other = Depths(_LENGTHS, _windows(windows)), Depths(_LENGTHS, _windows(windows))
    for part, some, called in ((one, reads[:cut], calls[:cut]), (other, reads[cut:], calls[cut:])):
        contig, start, length = np.array([(c, s, n) for (c, s), n in some], np.int64).reshape(-1, 3).T
        end = np.minimum(start + length, np.array(_LENGTHS)[contig])
        part.add_alignments(contig.astype(np.int32), np.minimum(start, end), end)
        places = np.array(called, np.int64).reshape(-1, 2).T
        part.add_calls(places[0].astype(np.int32), places[1].copy())
    kept = Depths(_LENGTHS, _windows(windows))
    kept.take_json(JsonObject(json.loads(json.dumps(other.as_json()))))
    one.join(kept)

    depth = np.concatenate([over[i][inside[i]] for i in range(3)])
    assert one.total == len(depth)
    cuts = np.arange(one.stretch, max(len(depth), 1), one.stretch)
    assert one.covered.tolist() == [int(part.sum()) for part in np.split(depth, cuts)]
    where = np.concatenate([np.stack((np.full(n, i), np.arange(n)))[:, inside[i]] for i, n in enumerate(_LENGTHS)], 1)
    contig, start = one.starts()
    assert list(zip(contig.tolist(), start.tolist(), strict=True)) == [
        tuple(where[:, i].tolist()) for i in range(0, len(depth), one.stretch)
    ]
    assert (
        one.calls_of_sites().tolist()
        == np.unique(np.array(calls).reshape(-1, 2), axis=0, return_counts=True)[1].tolist()
    )


def test_of_a_long_reference_the_same_sites_are_counted_whatever_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depths_module, "_MOST_PENDING", 100)
    length = 20 * MOST_POSITIONS
    sites = np.arange(0, length, 500)
    seen = []
    for order in (sites, sites[::-1]):
        depths = Depths([length])
        for repeat in range(3):
            depths.add_calls(np.zeros(len(order) >> repeat, np.int32), order[: len(order) >> repeat].copy())
        seen.append(depths.as_json())
    some = len(seen[0]["sites"])
    assert some == pytest.approx(len(sites) / 20, rel=0.1)
    assert some == len(seen[1]["sites"])
    assert seen[0]["sites"] == seen[1]["sites"]
    assert seen[0]["calls"] == seen[1]["calls"][::-1] or set(seen[0]["calls"]) == {1, 2, 3}


def test_sites_out_of_order_are_damage() -> None:
    depths = Depths([100])
    values = {**depths.as_json(), "sites": [5, 5], "calls": [1, 1]}
    with pytest.raises(DamagedValueError, match="not in order"):
        depths.take_json(JsonObject(values))
