"""Compilation: decorators, vectors, and the cache of compiled code, which is chosen before Numba is imported."""

from f5py.jit.code_cache import code_folder

code_folder()
