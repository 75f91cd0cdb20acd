"""With a Numba that is different inside, everything is compiled as Numba does by itself, and one warning says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from .numba_forks import NumbaForks

_MODULE = """
from f5py.jit.kernel import exact_kernel, kernel


@exact_kernel
def square(x):
    return x * x


@kernel
def sum_of_squares(values):
    total = 0.0
    for value in values:
        total += square(value)
    return total
"""
_PROGRAM = """
import numba, numpy as np
from numba.core import codegen, compiler, dispatcher, caching
import numba.core.runtime
{fake}
from kernels import square, sum_of_squares
print(sum_of_squares(np.array([1.0, 2.0])), square(3.0), sum_of_squares(np.array([2], np.float32)), square(2))
"""
#: What another version might lack or do differently, by where that shows.
_FAKES = {
    "an import": "del numba.core.runtime.rtsys",
    "an option": """
njit = numba.njit
def strict(*function, **options):
    if "no_cfunc_wrapper" in options:
        raise KeyError("Unrecognized options")
    return njit(*function, **options)
numba.njit = strict""",
    "the cache": "dispatcher.FunctionCache = None",
    "how the cache loads": "del caching.Cache._load_overload",
    "the cache's files": "del caching.IndexDataCacheFile._data_path",
    "how a function that is called is compiled": """
compile_extra = compiler.compile_extra
def with_less(typing, target, function, **more):
    return compile_extra(typing, target, function, **more)
compiler.compile_extra = with_less""",
    "a library": """
def set_attribute(self, name, value):
    if name == "_optimize_final_module":
        raise AttributeError(name)
    object.__setattr__(self, name, value)
codegen.CPUCodeLibrary.__setattr__ = set_attribute""",
}


@pytest.mark.parametrize("fake", _FAKES.values(), ids=_FAKES)
def test_a_numba_that_is_different_inside_compiles_by_itself(numba_forks: NumbaForks, tmp_path: Path, fake: str):
    (tmp_path / "kernels.py").write_text(_MODULE)
    done = numba_forks.run(_PROGRAM.format(fake=fake), tmp_path, {"NUMBA_CACHE_DIR": str(tmp_path / "cache")})
    assert done.stdout.split() == ["5.0", "9.0", "4.0", "4"], done.stderr
    assert done.stderr.count("differs inside from the versions") == 1
    assert len(done.stderr.splitlines()) == 1
