"""``f5py gpu-check``: whether GPUs can be used, and compute what the CPU does."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.machine_commands import GpuCheckOptions


@options.command(
    "gpu-check",
    GpuCheckOptions,
    examples=("f5py gpu-check", "f5py gpu-check --cuda-dev-id 0"),
)
def command(**given: Any) -> None:
    """Show the GPUs, and check that they compute what the CPU does.

    Prints each GPU with its compute capability and memory, and the versions of CuPy, of CUDA's driver and of its
    run-time compiler (NVRTC). Every kernel is compiled, and computes a small made-up batch whose results must be the
    CPU's to the last bit. The status is 1 if there is no GPU, or if one cannot be used.
    """
    from f5py.commands.gpu_check import run

    run(GpuCheckOptions(**given))
