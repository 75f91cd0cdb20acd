"""The CUDA kernels: their source texts and their compiled module."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from f5py.abea._cpu_numba import BANDWIDTH

#: The kernels in the order in which they run.
NAMES = ("abea_pre", "abea_core", "abea_post")


def source_folder() -> Path:
    """Where the ``.cu`` files are: inside the installed package, or beside it in a checkout."""
    packaged = Path(__file__).parents[1] / "kernels"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "kernels"


def source(name: str) -> str:
    """One kernel as a single text, its header put in place of the include line.

    Compilers cache by the text; an included file could change without the cache noticing.
    """
    folder = source_folder()
    header = (folder / "abea.cuh").read_text().replace("#pragma once\n", "")
    return (folder / f"{name}.cu").read_text().replace('#include "abea.cuh"\n', header)


@cache
def functions(bandwidth: int = BANDWIDTH) -> dict[str, Any]:
    """The three kernels as callable ``cupy.RawKernel`` objects, compiled once and cached on disk by cupy."""
    import cupy

    options = ("-std=c++14", f"-DW={bandwidth}")
    return {name: cupy.RawModule(code=source(name), options=options).get_function(name) for name in NAMES}
