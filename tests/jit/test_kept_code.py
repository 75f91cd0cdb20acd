"""Kept code: loaded without what only compilation needs, and still good for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

KERNELS = """
import numpy as np
from f5py.jit.kernel import kernel

@kernel
def squares(n):
    found = np.zeros(n, np.int64)
    for i in range(n):
        found[i] = i * i
    if n > 5:
        raise ValueError("too many squares")
    return found

@kernel
def last_square(n):
    return squares(n)[n - 1]
"""

PROGRAM = """
import os, sys
import kernels
squares = kernels.squares(5).tolist()
assert squares == [0, 1, 4, 9, 16], squares
n_kept = sum(kernels.squares.stats.cache_hits.values())
n_imported = "numba.np.arrayobj" in sys.modules
try:
    kernels.squares(6)
except ValueError as problem:
    assert str(problem) == "too many squares"
else:
    raise AssertionError("no error")
if sys.argv[1] == "more":
    assert kernels.last_square(4) == 9
    assert sum(kernels.last_square.stats.cache_hits.values()) == 0
print(n_kept, n_imported, flush=True)
os._exit(0)  # to take Numba apart takes a third of a second
"""


@pytest.fixture
def run(run_with_kernels: Callable[..., str]) -> Callable[[str], tuple[int, bool]]:
    """Return a function that runs the program with one cache: what was kept, and whether Numba was imported for it."""

    def run_program(what: str) -> tuple[int, bool]:
        n_kept, is_imported = run_with_kernels(KERNELS, PROGRAM, what).split()
        return int(n_kept), is_imported == "True"

    return run_program


def test_nothing_is_imported_to_load(run) -> None:
    assert run("") == (0, True)
    assert run("") == (1, False)


def test_loaded_code_is_put_into_other_kernels(run) -> None:
    """For that its intermediate code is needed after all."""
    assert run("") == (0, True)
    assert run("more") == (1, False)
    assert run("") == (1, False)


#: Says how often Numba's runtime was made; all arrays are given back, so that it counts well.
OF_RUNTIME = """
import os, sys
import numba.core.runtime.nrtdynmod as runtime
made, create = [], runtime.create_nrt_module
runtime.create_nrt_module = lambda context: made.append(1) or create(context)
import kernels
from numba.core.runtime import rtsys
for i in range(1000):
    kernels.squares(5)
if sys.argv[1] == "more":
    assert kernels.last_square(4) == 9
    assert sum(kernels.last_square.stats.cache_hits.values()) == 0
stats = rtsys.get_allocation_stats()
assert stats.alloc == stats.free >= 1000, stats
assert stats.mi_alloc == stats.mi_free >= 1000, stats
print(len(made), flush=True)
os._exit(0)
"""


def test_the_runtime_is_kept(run_with_kernels: Callable[..., str], tmp_path: Path) -> None:
    folder = tmp_path / "cache"

    def n_made(what: str = "") -> int:
        return int(run_with_kernels(KERNELS, OF_RUNTIME, what, NUMBA_NRT_STATS="1"))

    assert n_made() == 1
    (kept,) = folder.glob("numba-runtime-*")
    content = kept.read_bytes()
    assert n_made() == 0
    assert n_made("more") == 0  # it is put into what is compiled
    for damaged in (b"", content[:-1], content[:999] + bytes([content[999] ^ 1]) + content[1000:]):
        kept.write_bytes(damaged)
        assert n_made() == 1
        assert n_made() == 0
    kept.unlink()
    kept.mkdir()  # where nothing can be written
    assert n_made() == n_made() == 1
    assert [path for path in folder.iterdir() if path.name.startswith("tmp")] == []


def test_a_folder_is_looked_at_once_while_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core import caching

    looks: list[str] = []
    temporary_file = caching.tempfile.TemporaryFile

    def counted(**options):
        looks.append(options["dir"])
        return temporary_file(**options)

    class Locator(caching._CacheLocator):
        def get_cache_path(self) -> str:
            return str(tmp_path / "cache")

        get_source_stamp = get_disambiguator = None

    import f5py.jit.kept_code as kept_code

    kept_code.look_at_folders_once()
    monkeypatch.setattr(caching.tempfile, "TemporaryFile", counted)
    Locator().ensure_cache_path()
    Locator().ensure_cache_path()
    assert len(looks) == 1
    (tmp_path / "cache").rmdir()
    Locator().ensure_cache_path()
    assert len(looks) == 2
    assert (tmp_path / "cache").is_dir()


def test_the_processor_is_asked_for_once() -> None:
    import f5py.jit.kept_code as kept_code

    class Codegen:
        n_asked = 0

        def magic_tuple(self) -> tuple[str, str, str]:
            self.n_asked += 1
            return "x86_64-linux", "znver3", "+fma"

    codegen = Codegen()
    kept_code.ask_for_the_processor_once(codegen)
    kept_code.ask_for_the_processor_once(codegen)
    assert codegen.magic_tuple() == codegen.magic_tuple() == ("x86_64-linux", "znver3", "+fma")
    assert codegen.n_asked == 1
