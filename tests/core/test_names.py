"""Names as bytes with offsets, and the table that finds them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from f5py.core._name_table_numba import fill_table, find_names
from f5py.core.names import Names

raw_names = st.lists(st.binary(max_size=40).map(lambda raw: raw.decode("utf-8", "surrogateescape")), max_size=30)


@given(raw_names)
def test_a_sequence_of_text(names: list[str]):
    packed = Names.of(names)
    assert list(packed) == names
    assert packed == names
    assert len(packed) == len(names)
    assert packed[1:] == names[1:]
    assert [packed[i] for i in range(-len(names), 0)] == names
    assert Names.of(packed) is packed
    with pytest.raises(IndexError):
        packed[len(names)]


@given(raw_names, raw_names)
def test_names_are_found_where_they_first_stand(known: list[str], wanted: list[str]):
    wanted = wanted + known[::-1]
    names, asked = Names.of(known), Names.of(wanted)
    table = np.full(1 << (2 * len(known) + 1).bit_length(), -1, np.int64)
    place = names.text, names.offsets[:-1].copy(), names.offsets[1:].copy(), table
    fill_table(*place)
    rows = np.empty(len(wanted), np.int64)
    find_names(asked.text, asked.offsets, *place, rows)
    assert rows.tolist() == [known.index(name) if name in known else -1 for name in wanted]


@given(st.lists(st.text(st.sampled_from("ab\0é\udce9"), max_size=4), max_size=8))
def test_any_names(names):
    """Also those with zeros in them, and none at all."""
    made = Names.of(iter(names))
    assert list(made) == names
    assert made.offsets.dtype == np.int64
    assert made.text.dtype == np.uint8
