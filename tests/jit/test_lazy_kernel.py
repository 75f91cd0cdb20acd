"""Kernels are prepared for Numba when they are called, and once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from f5py.jit.lazy_kernel import LazyKernel

_KERNELS = """
from f5py.jit.kernel import kernel, shared_kernel

@kernel
def half(x):
    "Half of it."
    return x / 2

@shared_kernel
def third(x):
    return x / 3

@kernel
def sixth(x):
    return third(half(x))
"""
_PROGRAM = """
import os
import kernels
assert kernels.half._dispatcher is kernels.third._dispatcher is kernels.sixth._dispatcher is None
assert kernels.sixth(12.0) == 2.0
n_kept = sum(kernels.sixth.stats.cache_hits.values())
print(n_kept, *(kernel._dispatcher is not None for kernel in (kernels.half, kernels.third, kernels.sixth)), flush=True)
assert kernels.half(3.0) == 1.5 and kernels.third(3.0) == 1.0
assert getattr(kernels.third, "is_shared", False) and not getattr(kernels.half, "is_shared", False)
assert kernels.half.__name__ == "half" and kernels.half.__doc__ == "Half of it."
os._exit(0)
"""


def test_what_only_others_call_is_prepared_where_these_are_compiled(run_with_kernels: Callable[..., str]) -> None:
    def run() -> str:
        return run_with_kernels(_KERNELS, _PROGRAM)

    assert run() == "0 True True True"
    assert run() == "1 False False True"


def test_threads_that_call_at_the_same_time_prepare_once() -> None:
    prepared = []

    def prepare(function):
        prepared.append(function)
        time.sleep(0.05)
        return function

    def twice(x):
        return 2 * x

    kernel = LazyKernel(twice, prepare)
    found: list[int] = []
    threads = [threading.Thread(target=lambda i=i: found.append(kernel(i))) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 2, 4, 6]
    assert prepared == [twice]
