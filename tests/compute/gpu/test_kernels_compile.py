"""The CUDA kernels compile for every supported GPU, without a warning and, for the usual band, without spills."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

from f5py.abea.align import BANDWIDTH, AlignmentLimits, macros
from f5py.compute.gpu import sources

from .nvrtc import Nvrtc

#: Jetson Xavier, Turing, A100, consumer Ampere, Jetson Orin, Ada, Hopper, Blackwell of data centres and of desktops.
ARCHITECTURES = (72, 75, 80, 86, 87, 89, 90, 100, 120)
_MOST_SHARED_BYTES = 48 * 1024  # of a block, on all of them without asking


@pytest.fixture(scope="module")
def nvrtc() -> Nvrtc:
    return Nvrtc()


@cache
def _compile(nvrtc: Nvrtc, name: str, architecture: int, bandwidth: int):
    return nvrtc.compile(
        f"{name}.cu", sources.source(name), *sources.compiler_options(name), *macros(bandwidth),
        f"--gpu-architecture=sm_{architecture}", "--ptxas-options=-v",
    )  # fmt: skip


@pytest.mark.parametrize("name", sources.KERNELS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_usual_band(nvrtc, architecture, name):
    compiled = _compile(nvrtc, name, architecture, BANDWIDTH)
    print(f"sm_{architecture} {name}: {compiled.registers} registers, {compiled.shared} bytes of shared memory")
    assert all(kernel.encode() in compiled.cubin for kernel in sources.KERNELS[name])
    assert compiled.complaints == []
    # on some architectures the rare cases of a division are a function, with a few bytes of stack
    # on Blackwell the compiler rather keeps six numbers of correlated noise there than in a 73rd register
    assert compiled.spilled <= ({100: 96}.get(architecture, 24) if name in ("hmm", "site_hmm") else 0)
    assert compiled.registers <= 128, "fewer than sixteen warps would fit on an SM"
    assert compiled.shared <= _MOST_SHARED_BYTES


# one and three words of directions a band, several bands a word, and the widest, which takes long to compile
@pytest.mark.parametrize(
    ("architecture", "bandwidth"),
    [*product((min(ARCHITECTURES), max(ARCHITECTURES)), (32, 101, 200)), (max(ARCHITECTURES), 1024)],
)
@pytest.mark.parametrize("name", [name for name in sources.KERNELS if name.startswith("abea")])
def test_other_bands(nvrtc, architecture, name, bandwidth):
    compiled = _compile(nvrtc, name, architecture, bandwidth)
    assert compiled.complaints == []
    assert compiled.shared <= _MOST_SHARED_BYTES


@pytest.mark.parametrize("limits", [AlignmentLimits(), AlignmentLimits(20.0, -4.25, 80)])
def test_limits_of_the_users_own(nvrtc, limits):
    """They are compiled into the kernel; without them it is the text as it stands."""
    assert (len(macros(limits=limits)) == 1) == (limits == AlignmentLimits())
    usual, own = (
        nvrtc.compile(
            "abea_post.cu", sources.source("abea_post"), *sources.compiler_options("abea_post"), *defined, "-arch=sm_80"
        )
        for defined in (macros(), macros(limits=limits))
    )
    assert own.complaints == []
    assert (own.cubin == usual.cubin) == (limits == AlignmentLimits())


def test_the_compiler_knows_all_architectures(nvrtc):
    assert set(ARCHITECTURES) <= set(nvrtc.architectures())
