"""Compiled code for tests of functions that only kernels call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from f5py.jit.kernel import exact_kernel


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that calls a function of `f5py.jit.kernel.inner`, which Python would run uncompiled."""

    @exact_kernel
    def call(*arguments):
        return function(*arguments)

    return call
