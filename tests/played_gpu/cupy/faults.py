"""Faults of the played machine.

================  ====================================================================================================
import            cupy does not find the CUDA libraries when it is imported
broken            cupy does not fit the installed numpy
driver            the driver is too old
devices           there is no device
busy              a device does not let itself be used
nvrtc             the run-time compiler is not installed
compile           the compiler refuses the kernels
memory            there is no memory left
launch            a launch fails
lost              the device falls off the bus: waiting for it fails, and all that follows
free              giving memory back fails
================  ====================================================================================================
"""

from __future__ import annotations

import os
import threading


class Refused(Exception):
    """Complaint of the compiler."""


_lock = threading.Lock()
_passed: dict[str, int] = {}
_lost: set[int] = set()


def _planned() -> list[tuple[str, int, int | None]]:
    plans = []
    for text in filter(None, os.environ.get("F5PY_PLAYED_FAULT", "").split(",")):
        text, _, device = text.partition(":")
        kind, _, number = text.partition("@")
        plans.append((kind, int(number or 1), int(device) if device else None))
    return plans


def _is_due(kind: str, device: int | None) -> bool:
    due = False
    with _lock:
        for planned, number, on in _planned():
            if planned == kind and (on is None or on == device):
                _passed[kind] = _passed.get(kind, 0) + 1
                due = due or _passed[kind] >= number
    return due


def at_import() -> None:
    if _is_due("import", None):
        raise ImportError("libcudart.so.12: cannot open shared object file: No such file or directory")
    if _is_due("broken", None):
        raise AttributeError("module 'numpy' has no attribute 'bool8'")


def pass_by(kind: str) -> None:
    """Raise what is raised here on a machine that is broken in this way, or whose device has been lost."""
    from . import cuda

    device = cuda.current_device()
    runtime = cuda.runtime
    if device in _lost and kind not in ("driver", "devices"):  # counting does not touch a device
        raise runtime.CUDARuntimeError(719, "cudaErrorLaunchFailure: unspecified launch failure")
    if not _is_due(kind, device):
        return
    if kind == "driver":
        raise runtime.CUDARuntimeError(
            35, "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"
        )
    if kind == "devices":
        raise runtime.CUDARuntimeError(100, "cudaErrorNoDevice: no CUDA-capable device is detected")
    if kind == "busy":
        raise runtime.CUDARuntimeError(46, "cudaErrorDevicesUnavailable: CUDA-capable device(s) is/are busy")
    if kind == "nvrtc":
        raise RuntimeError('Failure finding "libnvrtc.so.13 or libnvrtc.so.12": No such file')
    if kind == "compile":
        raise Refused("events.cu(1): error: this does not compile")
    if kind == "memory":
        raise cuda.memory.OutOfMemoryError(1024, 0)
    if kind == "launch":
        raise cuda.driver.CUDADriverError(701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many resources requested")
    if kind in ("lost", "free"):
        _lost.add(device)
        raise runtime.CUDARuntimeError(719, "cudaErrorLaunchFailure: unspecified launch failure")
    raise AssertionError(kind)
