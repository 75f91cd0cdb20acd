from __future__ import annotations

import pytest

from f5py.io.signals.lru_cache import LruCache


def test_what_was_used_last_stays():
    made, gone = [], []

    def make(key: int) -> str:
        made.append(key)
        return f"value {key}"

    table = LruCache(make, 3, gone.append)
    assert [table.get(key) for key in (1, 2, 3, 1, 4, 1, 2)] == [f"value {key}" for key in (1, 2, 3, 1, 4, 1, 2)]
    assert made == [1, 2, 3, 4, 2]
    assert gone == ["value 2", "value 3"]
    assert len(table) == 3
    table.clear()
    table.clear()
    assert gone == ["value 2", "value 3", "value 4", "value 1", "value 2"]
    assert len(table) == 0


def test_a_value_that_cannot_be_made_is_asked_for_again():
    tries = []

    def make(key: str) -> str:
        tries.append(key)
        if len(tries) == 1:
            raise ZeroDivisionError
        return key

    table = LruCache(make, 2)
    with pytest.raises(ZeroDivisionError):
        table.get("a")
    assert len(table) == 0
    assert table.get("a") == "a"
    assert tries == ["a", "a"]
