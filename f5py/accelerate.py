"""The one place where Numba is configured.

Modules with jitted loops (``_*_numba.py``) take their decorator from here. Importing this module imports
Numba, so it must only be imported by those modules, and those only from inside functions.
"""

from __future__ import annotations

import numba

#: Allowed fast-math: contraction into fused multiply-add and reciprocals. Never ``nnan`` or ``ninf``:
#: scores use minus infinity for "impossible".
FASTMATH = {"contract", "arcp", "nsz"}


def kernel(function):
    """Compile `function` without the GIL, cached on disk, with C's rules for division by zero."""
    return numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=FASTMATH)(function)


def exact_kernel(function):
    """Compile `function` like `kernel` but with every IEEE operation as written.

    For code whose results must equal the reference's to the last bit, such as event detection.
    """
    return numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=False)(function)


def inline_kernel(function):
    """Compile a small helper that is only called from other kernels and inlined there."""
    return numba.njit(nogil=True, error_model="numpy", fastmath=FASTMATH, inline="never")(function)
