"""Everything about Numba: kernels, their cache, inner functions, vector code, atomics, C memory."""
