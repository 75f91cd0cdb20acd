"""The one place where Numba is configured.

Modules with jitted loops (``_*_numba.py``) take their decorator from here. Importing this module imports
Numba, so it must only be imported by those modules, and those only from inside functions.
"""

from __future__ import annotations

import numba

from f5py import console

#: Allowed fast-math: contraction into fused multiply-add and reciprocals. Never ``nnan`` or ``ninf``:
#: scores use minus infinity for "impossible".
FASTMATH = {"contract", "arcp", "nsz"}


def kernel(function):
    """Compile `function` without the GIL, cached on disk, with C's rules for division by zero."""
    return _compiled(function, FASTMATH)


def exact_kernel(function):
    """Compile `function` like `kernel` but with every IEEE operation as written.

    For code whose results must equal the reference's to the last bit, such as event detection.
    """
    return _compiled(function, False)


def _compiled(function, fastmath):
    try:
        return numba.njit(nogil=True, cache=_can_cache, error_model="numpy", fastmath=fastmath)(function)
    except RuntimeError as problem:  # neither the package's folder nor the user's cache can be written
        _do_without_cache(str(problem))
        return numba.njit(nogil=True, error_model="numpy", fastmath=fastmath)(function)


_can_cache = True


def _do_without_cache(problem: str) -> None:
    global _can_cache
    if _can_cache:
        console.warning(
            "accelerate",
            f"compiled code cannot be kept ({problem}), so every run compiles anew; "
            "set NUMBA_CACHE_DIR to a folder that can be written",
        )
    _can_cache = False
