"""Decorators of compiled functions: kernels for Python, and inner functions for kernels.

Importing this module imports Numba, so modules with kernels are imported by commands that run.
"""

import resource
from functools import wraps
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.extending import overload

from f5py.errors import F5pyError
from f5py.jit.code_cache import CodeGuard, code_folder

#: Allowed fast-math: contraction into fused multiply-add and reciprocals. Never ``nnan`` or ``ninf``:
#: scores use minus infinity for "impossible".
FASTMATH = {"contract", "arcp", "nsz"}
#: Compilation is a tenth faster without the unused C wrapper.
_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
#: Memory of LLVM for the largest function.
_COMPILER_BYTES = 300 << 20


def kernel(function):
    """Compile `function` without the GIL, cached on disk, with C's rules for division by zero."""
    return numba.njit(cache=_IS_CACHED, fastmath=FASTMATH, **_OPTIONS)(function)


def exact_kernel(function):
    """Compile `function` like `kernel` but with every IEEE operation as written.

    Results equal f5c's to the last bit.
    """
    return numba.njit(cache=_IS_CACHED, fastmath=False, **_OPTIONS)(function)


def inner(function):
    """Compile `function` like `kernel` for calls from kernels, as part of their code.

    It is compiled once for all constant arguments, unless types depend on them. In Python it stays as written.
    """
    return _inner(function, FASTMATH)


def exact_inner(function):
    """Compile `function` like `inner` but with every IEEE operation as written."""
    return _inner(function, False)


def _inner(function, fastmath):
    """Register a function as its own overload, which has neither an entry point nor a cache of its own."""

    @wraps(function)
    def implementation(*arguments, **keywords):
        return function

    overload(function, jit_options={"fastmath": fastmath, "no_cpython_wrapper": True, **_OPTIONS})(implementation)
    return function


class _CompilationListener(event.Listener):
    """Check the memory before a compilation, and lock the code folder after it."""

    def on_start(self, event: Any) -> None:
        _check_memory()

    def on_end(self, event: Any) -> None:
        if _guard is not None:
            _guard.begin_saving(event.data["dispatcher"])


class _SaveListener(event.Listener):
    """Unlock the code folder."""

    def on_start(self, event: Any) -> None:
        """Do nothing."""

    def on_end(self, event: Any) -> None:
        if _guard is not None:
            _guard.end_saving()


def _check_memory() -> None:
    """Raise `F5pyError` if the memory limit is too low for LLVM, which would abort."""
    try:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return
    left = limit - pages * resource.getpagesize()
    if left < _COMPILER_BYTES:
        raise F5pyError(
            f"the limit on memory (ulimit -v) leaves {max(left, 0) >> 20} MB, too little to compile for this "
            "processor; raise it, or run once without it: compiled code is kept"
        )


numba.config.reload_config()  # it may have been imported before `f5py.jit`
if numba.config.DISABLE_JIT:
    raise F5pyError("NUMBA_DISABLE_JIT is set, but f5py computes in compiled code only; unset it")
_folder = code_folder()
_IS_CACHED = _folder is not None
_guard = None if _folder is None else CodeGuard(_folder)
event.register("numba:compile", _CompilationListener())
event.register("numba:compiler_lock", _SaveListener())
