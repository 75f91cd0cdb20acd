from __future__ import annotations

import numpy as np
import pytest

from f5py.core.sparse import sparse_array


@pytest.mark.parametrize("kind", [np.int32, np.float32])
@pytest.mark.parametrize("n", [0, 1, 1000])
def test_an_array_of_zeros_that_can_be_written(kind: type, n: int):
    array = sparse_array(n, kind)
    assert (array.shape, array.dtype) == ((n,), kind)
    assert not array.any()
    array[:] = 7
    assert (array == 7).all()


def test_memory_is_only_taken_where_it_is_touched():
    def in_use() -> int:
        with open("/proc/self/statm") as file:
            return 4096 * int(file.read().split()[1])

    before = in_use()
    array = sparse_array(1 << 28, np.float32)
    array[:1000] = 1
    assert in_use() - before < 1 << 28
