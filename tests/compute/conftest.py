"""Devices and threads for the tests of what is computed."""

from __future__ import annotations

import pytest

from f5py.compute.gpu.device import GpuDevice, GpuUnavailableError, open_device


@pytest.fixture(params=["played", pytest.param("real", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> GpuDevice:
    """Return a GPU that is played on the CPU, and one that is there."""
    if request.param == "played":
        request.getfixturevalue("played_gpu")
    pytest.importorskip("cupy", reason="needs cupy")
    try:
        return open_device(0)
    except GpuUnavailableError as problem:
        pytest.skip(f"needs a CUDA device: {problem}")
