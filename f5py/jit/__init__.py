"""Compilation: decorators, vectors, and the code cache, which is set up before Numba is imported."""

from f5py.jit.code_cache import code_folder

code_folder()
