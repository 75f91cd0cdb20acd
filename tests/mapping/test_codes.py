"""Codes of letters, as reads and references have them."""

from __future__ import annotations

import numpy as np
import pytest

from f5py.mapping.index.reference_index import codes_of


@pytest.mark.parametrize("writeable", [True, False])
def test_all_bytes(writeable: bool):
    letters = np.arange(256, dtype=np.uint8)
    letters.flags.writeable = writeable
    codes = dict(zip(b"ACGTUacgtu", [0, 1, 2, 3, 3] * 2, strict=True))
    assert codes_of(letters).tolist() == [codes.get(letter, 4) for letter in range(256)]
    assert letters.tolist() == list(range(256))


def test_every_second_letter_and_none():
    assert codes_of(np.frombuffer(b"AxCxGxTx", np.uint8)[::2]).tolist() == [0, 1, 2, 3]
    assert codes_of(np.empty(0, np.uint8)).tolist() == []
