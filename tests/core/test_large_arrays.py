"""Arrays in the memory of those that have gone."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from f5py.core.large_arrays import recycled_array, recycling

LARGE = 1 << 20


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _in_use() -> int:
    with open("/proc/self/statm") as file:
        return 4096 * int(file.read().split()[1])


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.float32])
@pytest.mark.parametrize("n", [0, 1, 1000, LARGE])
@pytest.mark.parametrize("is_run", [True, False])
def test_an_array_that_can_be_written(kind: type, n: int, is_run: bool):
    if is_run:
        with recycling():
            array = recycled_array(n, kind)
    else:
        array = recycled_array(n, kind)
    assert (array.shape, array.dtype) == ((n,), kind)
    array[:] = 7
    assert (array == 7).all()


def test_memory_comes_back_only_when_nothing_of_the_array_is_left():
    with recycling():
        array = recycled_array(LARGE, np.int16)
        array[:] = 1
        address, part = _address(array), array[10:20].view(np.uint16)
        del array
        other = recycled_array(LARGE, np.int16)
        other[:] = 2
        assert _address(other) != address
        assert (part == 1).all()
        del part
        assert _address(recycled_array(LARGE // 2, np.float32)) == address


def test_the_smallest_that_fits_is_taken():
    with recycling():
        arrays = [recycled_array(n * LARGE, np.int16) for n in (32, 8, 16)]
        addresses = [_address(array) for array in arrays]
        del arrays
        gc.collect()
        assert _address(recycled_array(8 * LARGE, np.int16)) == addresses[1]


def test_no_more_is_held_than_arrays_have_had_at_the_same_time():
    before = _in_use()
    with recycling():
        for n in range(8, 80, 8):
            array = recycled_array(n * LARGE, np.uint8)
            array[:] = 1
            del array
        assert _in_use() - before < 100 * LARGE


def test_what_has_not_been_needed_of_late_is_given_back():
    before = _in_use()
    with recycling():
        arrays = [recycled_array(40 * LARGE, np.uint8) for _ in range(3)]
        for array in arrays:
            array[:] = 1
        del arrays, array
        for _ in range(20):
            recycled_array(8 * LARGE, np.uint8)[:] = 1
        assert _in_use() - before < 70 * LARGE


def test_threads_never_share_memory():
    wrong = []

    def work(number: int) -> None:
        for _ in range(200):
            array = recycled_array(LARGE, np.int8)
            array[::4096] = number
            wrong.extend(array[::4096][array[::4096] != number].tolist())

    with recycling():
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_nothing_is_kept_after_the_run():
    before = _in_use()
    with recycling():
        array = recycled_array(64 * LARGE, np.int16)
        array[:] = 1
        del array
        assert _in_use() - before > 64 * LARGE
    assert _in_use() - before < 32 * LARGE
