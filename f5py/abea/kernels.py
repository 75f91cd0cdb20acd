"""The CUDA kernels: their source texts and their compiled module."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.abea._align_numba import BANDWIDTH, LN_INVERSE_SQRT_2PI, LP_SKIP, SQRT_HALF
from f5py.abea.align import F5C_LIMITS, AlignmentLimits
from f5py.pore_model.model import PoreModel

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


def compiler_options(bandwidth: int = BANDWIDTH, limits: AlignmentLimits = F5C_LIMITS) -> tuple[str, ...]:
    """What NVRTC is told: standard, width of the band, and limits that are not the sources' own."""
    options = ["-std=c++14", f"-DW={bandwidth}"]
    if limits.min_mean_emission != F5C_LIMITS.min_mean_emission:
        options.append(f"-DMIN_MEAN_EMISSION=({limits.min_mean_emission!r})")
    if limits.max_gap != F5C_LIMITS.max_gap:
        options.append(f"-DMAX_GAP={limits.max_gap}")
    return tuple(options)


@cache
def functions(bandwidth: int = BANDWIDTH, limits: AlignmentLimits = F5C_LIMITS) -> dict[str, Any]:
    """The three kernels as callable ``cupy.RawKernel`` objects, compiled once and cached on disk by cupy."""
    import cupy

    options = compiler_options(bandwidth, limits)
    return {name: cupy.RawModule(code=source(name), options=options).get_function(name) for name in NAMES}


def model_table(model: PoreModel) -> NDArray[np.float32]:
    """What the pre kernel reads for each rank: level, sqrt(1/2) / stdv, ln(1 / (stdv sqrt(2 pi))), unused; (n, 4)."""
    table = np.zeros((len(model.level_mean), 4), np.float32)
    table[:, 0] = model.level_mean
    table[:, 1] = SQRT_HALF / model.level_stdv
    table[:, 2] = LN_INVERSE_SQRT_2PI - model.ln_stdv
    return table


def transition_penalties(
    n_events: NDArray[np.int64], n_kmers: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Each read's log-probabilities of a step to the next k-mer and of staying: lp_step, lp_stay of the core kernel."""
    lp_stay = np.log(1.0 - 1.0 / (n_events / n_kmers + 1.0))
    lp_step = np.log(1.0 - math.exp(LP_SKIP) - np.exp(lp_stay))
    return lp_step.astype(np.float32), lp_stay.astype(np.float32)
