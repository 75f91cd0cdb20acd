"""Memory that compiled code uses without counting its users."""

from __future__ import annotations

import numpy as np

from f5py.jit.c_memory import borrow_array
from f5py.jit.kernel import kernel


@kernel
def _double(array):
    view = borrow_array(array)
    for i in range(view.shape[0]):
        view[i] *= 2.0
    return view[1:].sum()


def test_an_array_without_owner_is_the_same_memory():
    array = np.arange(5.0)
    owner = array.base
    assert _double(array) == 20.0
    np.testing.assert_array_equal(array, [0.0, 2.0, 4.0, 6.0, 8.0])
    assert array.base is owner
