"""Compile the CUDA kernels by NVRTC and cache the machine code.

`cupy.RawModule` adds ``-ftz=true``, which flushes numbers below 2 ** -126 to zero: the variance of equal samples is
such a number, and events would differ from the CPU's.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress

from f5py.compute.gpu.device import GpuUnavailableError
from f5py.jit.cache_folder import cache_folder, load_cached, save_cached


def machine_code(source: str, options: tuple[str, ...], capability: str) -> bytes:
    """Compile kernels for a GPU, or load the cached code, for `cupy.cuda.function.Module.load`.

    Raises `GpuUnavailableError` with the compiler's first message.

    Parameters
    ----------
    source : str
        With all includes expanded, as it is the key of the cache.
    options : tuple of str
        For NVRTC.
    capability : str
        Compute capability, such as ``"90"``.
    """
    from cupy.cuda import nvrtc

    known = [number for number in nvrtc.getSupportedArchs() if number <= int(capability)]
    is_known = int(capability) in known
    # A GPU that is newer than the compiler gets code that its driver translates.
    target = f"-arch={'sm' if is_known else 'compute'}_{capability if is_known else max(known, default=75)}"
    key = "\0".join([source, *options, target, str(nvrtc.getVersion())])
    path = os.path.join(cache_folder(), "f5py", "kernels", hashlib.sha256(key.encode()).hexdigest()[:40])
    if (made := load_cached(path)) is not None:
        return made
    code = _compiled(source, (*options, target), is_known)
    with suppress(OSError):  # then the next run compiles again
        save_cached(path, code)
    return code


def _compiled(source: str, options: tuple[str, ...], is_final: bool) -> bytes:
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(source, "f5py.cu", (), ())
    try:
        nvrtc.compileProgram(program, options)
        return nvrtc.getCUBIN(program) if is_final else nvrtc.getPTX(program)
    except nvrtc.NVRTCError as problem:
        complaints = nvrtc.getProgramLog(program).strip() or str(problem)
        raise GpuUnavailableError(f"the kernels do not compile: {complaints.splitlines()[0]}") from problem
    finally:
        nvrtc.destroyProgram(program)
