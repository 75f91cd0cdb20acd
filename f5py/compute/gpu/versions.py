"""Versions of CuPy and CUDA."""

from __future__ import annotations

from collections.abc import Callable


def versions() -> dict[str, str]:
    """Return the versions of CuPy, the driver, CUDA's run-time library and NVRTC, or the error of each."""
    import cupy
    from cupy.cuda import nvrtc, runtime

    return {
        "CuPy": str(cupy.__version__),
        "CUDA of the driver": _told(lambda: _dotted(runtime.driverGetVersion())),
        "CUDA of the run-time library": _told(lambda: _dotted(runtime.runtimeGetVersion())),
        "NVRTC": _told(lambda: ".".join(map(str, nvrtc.getVersion()))),
    }


def _told(version: Callable[[], str]) -> str:
    try:
        return version()
    except Exception as problem:  # what cannot be used is said where it is tried
        return f"cannot be told ({(str(problem).strip() or type(problem).__name__).splitlines()[0]})"


def _dotted(number: int) -> str:
    """Format CUDA's 12060 as 12.6."""
    return f"{number // 1000}.{number % 1000 // 10}"
