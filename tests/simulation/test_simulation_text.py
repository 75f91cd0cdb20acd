"""Columns of numbers and words to text."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from f5py.simulation.outputs import decimal_cells, integer_cells, rows, text_cells


@given(
    st.lists(
        st.tuples(st.integers(0, 10**12), st.floats(0, 1), st.sampled_from(["a", "chromosome", "NC_000913.3", "é"])),
        min_size=1,
    )
)
def test_rows_are_those_of_python_formatting(table):
    integers, numbers, words = zip(*table, strict=True)
    vocabulary = sorted(set(words))
    text = rows(
        [
            text_cells(vocabulary, np.array([vocabulary.index(word) for word in words])),
            integer_cells(np.array(integers)),
            decimal_cells(np.array(numbers), 4),
        ]
    )
    expected = [f"{w}\t{i}\t{np.rint(x * 1e4) / 1e4:.4f}\n" for i, x, w in table]
    assert text.decode() == "".join(expected)


def test_zero_and_leading_zeros():
    assert rows([integer_cells(np.array([0, 7, 10]))]) == b"0\n7\n10\n"
    assert rows([decimal_cells(np.array([0.0, 0.05, 12.5]), 2)]) == b"0.00\n0.05\n12.50\n"
