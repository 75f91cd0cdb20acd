"""Names as bytes with offsets, and the table that finds them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from f5py.core.names import Names, NameTable

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
    table = NameTable.of(known)
    assert table.rows_of(Names.of(wanted)).tolist() == [known.index(name) if name in known else -1 for name in wanted]
    assert table.n_distinct == len(set(known))
    assert list(map(table.name, range(len(table)))) == known


@given(st.lists(st.text(st.sampled_from("ab\0é\udce9"), max_size=4), max_size=8))
def test_any_names(names):
    """Also those with zeros in them, and none at all."""
    made = Names.of(iter(names))
    assert list(made) == names
    assert made.offsets.dtype == np.int64
    assert made.text.dtype == np.uint8
