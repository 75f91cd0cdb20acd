"""Objects that go through shared memory."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Pipe
from typing import Any

import numpy as np
import pytest

from f5py.core.names import Names
from f5py.io.shared_objects import ObjectChannel


@pytest.fixture
def ends() -> Iterator[tuple[ObjectChannel, ObjectChannel]]:
    """Two ends of a channel, which the two processes would have."""
    one, other = Pipe()
    with one, other:
        yield ObjectChannel(one), ObjectChannel(other)


def _passed(source: ObjectChannel, target: ObjectChannel, value: Any) -> Any:
    """Send from another thread: what is not in shared memory may be more than the connection holds."""
    sender = threading.Thread(target=source.send, args=(value,))
    sender.start()
    found = target.recv()
    sender.join()
    return found


def _n_memories() -> int:
    """Count the shared memories that this process has, in which both ends are."""
    links = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            links.append(os.readlink(f"/proc/self/fd/{number}"))
    return sum("f5py-batch" in link for link in links) // 2


def _value(n: int) -> dict[str, Any]:
    random = np.random.default_rng(n)
    return {
        "large": random.integers(0, 255, n, np.uint8),
        "floats": random.random((n // 8, 2)).astype(np.float32),
        "small": np.arange(5),
        "none": np.empty(0, np.int64),
        "strided": np.arange(n)[::3],
        "names": Names.of([f"read-{i}" for i in range(n // 100)]),
        "number": n,
    }


def _assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, np.ndarray):
            assert found[name].dtype == value.dtype
            assert np.array_equal(found[name], value), name
        elif isinstance(value, Names):
            assert list(found[name]) == list(value)
        else:
            assert found[name] == value


def test_objects_arrive_as_they_were(ends: tuple[ObjectChannel, ObjectChannel]) -> None:
    here, there = ends
    for n in (0, 10, 5_000, 1_000_000, 300_000):
        for source, target in ((here, there), (there, here)):
            _assert_same(_passed(source, target, _value(n)), _value(n))


def test_large_arrays_can_be_written_to(ends: tuple[ObjectChannel, ObjectChannel]) -> None:
    here, there = ends
    found = _passed(here, there, np.zeros(100_000, np.int32))
    found[3] = 7
    assert found.sum() == 7


def test_memory_is_used_again_only_when_nothing_of_it_is_in_use(ends: tuple[ObjectChannel, ObjectChannel]) -> None:
    here, there = ends

    def pass_one(value: int) -> np.ndarray:
        found = _passed(here, there, np.full(1_000_000, value, np.int32))
        _passed(there, here, "which takes along what is free")
        return found

    kept = pass_one(1)[10:20]
    later = [pass_one(value) for value in range(2, 5)]
    assert _n_memories() == 4  # a part of the first keeps all of it
    assert kept.tolist() == [1] * 10
    assert [int(one[-1]) for one in later] == [2, 3, 4]
    del kept, later
    gc.collect()
    _passed(there, here, None)
    for value in range(5, 9):
        assert int(pass_one(value)[0]) == value
    assert _n_memories() == 4


def test_the_end_of_the_other_process_is_told() -> None:
    one, other = Pipe()
    with one:
        other.close()
        with pytest.raises(EOFError):
            ObjectChannel(one).recv()
