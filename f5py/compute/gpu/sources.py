"""The CUDA kernels: their source texts and their compiled modules."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

#: The files of the kernels and what is in each, in the order in which they run.
KERNELS = {
    "events": ("events_find", "events_place"),
    "scaling": ("scaling_moments", "scaling_fit"),
    "abea_pre": ("abea_pre",),
    "abea_core": ("abea_core",),
    "abea_post": ("abea_post",),
    "hmm": ("hmm_forward",),
    "viterbi": ("viterbi_rows",),
}
#: Their products and sums are rounded one by one but where they say fmaf, as on the CPU.
_UNFUSED = ("events", "scaling", "hmm", "viterbi")
#: Numbers below 2 ** -126 are zero, as on the CPU there.
_FLUSHED = ("hmm",)
_INCLUDE = re.compile(r'#include "([\w.]+)"\n')


def source_folder() -> Path:
    """Where the ``.cu`` files are: inside the installed package, or beside it in a checkout."""
    packaged = Path(__file__).parents[2] / "kernels"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "kernels"


def source(name: str) -> str:
    """One file of kernels as a single text, the headers put in place of the lines that include them.

    Compilers cache by the text; an included file could change without the cache noticing.
    """
    seen: set[str] = set()

    def text_of(file: str) -> str:
        if file in seen:
            return ""
        seen.add(file)
        text = (source_folder() / file).read_text().replace("#pragma once\n", "")
        return _INCLUDE.sub(lambda found: text_of(found[1]), text)

    return text_of(f"{name}.cu")


def compiler_options(name: str) -> tuple[str, ...]:
    """What NVRTC is told of that file, besides its macros."""
    return (
        "-std=c++14",
        *(["--fmad=false"] if name in _UNFUSED else []),
        *(["-ftz=true"] if name in _FLUSHED else []),
    )


@cache
def functions(macros: tuple[str, ...] = ()) -> dict[str, Any]:
    """All kernels as callable ``cupy.RawKernel`` objects, compiled when they are first called and kept on disk by cupy.

    Parameters
    ----------
    macros : tuple of str
        Definitions for the compiler, such as ``-DW=100``.
    """
    import cupy

    found: dict[str, Any] = {}
    for file, names in KERNELS.items():
        module = cupy.RawModule(code=source(file), options=(*compiler_options(file), *macros))
        found |= {name: module.get_function(name) for name in names}
    return found
