"""Kernels: their source, built by g++ for the CPU, as NVRTC and the driver's modules would be asked for it."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import gxx
import numpy as np

from . import cuda, faults

#: `cuda_on_cpu.h` and what it includes.
_PLAYER = sorted((Path(__file__).resolve().parents[2] / "abea" / "cuda_on_cpu").glob("*.h"))
_HEADER = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\s*\(([^)]*)\)')
_PARAMETER = re.compile(r"(.*?)\s*(?:__restrict__)?\s*(\w+)$", re.DOTALL)
#: The player keeps one grid at a time.
_playing = threading.Lock()


class NVRTCError(RuntimeError):
    """As in `cupy.cuda.nvrtc`."""


class _Program:
    def __init__(self, source: str) -> None:
        self.source, self.code, self.log = source, b"", ""


def create_program(source: str, name: str, headers: tuple, names: tuple) -> _Program:
    return _Program(source)


def compile_program(program: _Program, options: tuple[str, ...]) -> None:
    try:
        faults.pass_by("compile")
    except faults.Refused as problem:
        program.log = f"{problem}\n1 error detected\n"
        raise NVRTCError("NVRTC_ERROR_COMPILATION (6)") from None
    program.code = _built(program.source, tuple(options)).read_bytes()


def architectures() -> tuple[int, ...]:
    faults.pass_by("nvrtc")
    return 75, 80, 90


def version() -> tuple[int, int]:
    """Return the player's version, for what is kept; a compiler that refuses the kernels is another one."""
    texts = [path.read_bytes() for path in (Path(__file__), *_PLAYER)]
    broken = b"compile" in os.environ.get("F5PY_PLAYED_FAULT", "").encode()
    return int(broken), int(hashlib.sha256(b"".join(texts)).hexdigest()[:8], 16)


nvrtc = SimpleNamespace(
    NVRTCError=NVRTCError, createProgram=create_program, compileProgram=compile_program, getVersion=version,
    getSupportedArchs=architectures, getCUBIN=lambda program: program.code, getProgramLog=lambda program: program.log,
    destroyProgram=lambda program: None,
)  # fmt: skip


class Module:
    """As `cupy.cuda.function.Module`; every one is a library of its own."""

    def load(self, code: bytes) -> None:
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(code)
            file.flush()
            self._library = ctypes.CDLL(file.name)

    def get_function(self, name: str) -> _Kernel:
        return _Kernel(getattr(self._library, f"play_{name}"))


class _Kernel:
    def __init__(self, function) -> None:
        function.restype = ctypes.c_char_p
        self._function = function

    def __call__(self, grid, block, arguments) -> None:
        cuda.current_stream().queue(lambda: self._play(grid, block, arguments), "launch")

    def _play(self, grid, block, arguments) -> None:
        values = []
        for argument in arguments:
            if hasattr(argument, "played"):
                assert argument.played.flags.c_contiguous
                values.append(np.array([argument.played.ctypes.data], np.uintp))
            else:
                assert isinstance(argument, np.generic), "a number without a size of its own"
                values.append(np.array([argument]))
        addresses = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        descending = os.environ.get("F5PY_PLAYED_LANES") == "descending"
        with _playing:
            mistake = self._function(int(grid[0]), int(block[0]), int(descending), addresses)
        if mistake is not None:
            raise AssertionError(mistake.decode())


def _built(code: str, options: tuple[str, ...]) -> Path:
    flushed = "-ftz=true" in options
    launchers = "".join(_launcher(name, parameters, flushed) for name, parameters in _HEADER.findall(code))
    text = '#include <xmmintrin.h>\n#include "cuda_on_cpu.h"\n' + code + launchers
    defines = [option for option in options if option.startswith("-D")]
    return gxx.build(text, ["-w", *defines], _PLAYER)


def _launcher(name: str, parameters: str, flushed: bool) -> str:
    """Write a function for ctypes that takes the addresses of a kernel's arguments."""
    kinds = [_PARAMETER.match(one.strip())[1] for one in parameters.split(",")]  # type: ignore[index]
    taken = ", ".join(f"*(std::remove_const_t<{kind}>*)a[{i}]" for i, kind in enumerate(kinds))
    return (
        f'\nextern "C" const char* play_{name}(unsigned blocks, unsigned threads, int descending, void** a) {{\n'
        "    const unsigned mode = _mm_getcsr();\n"
        f"    _mm_setcsr(mode | {'0x8040' if flushed else '0'});  // flush-to-zero and denormals-are-zero\n"
        f"    const char* mistake = cuda_on_cpu::try_launch(blocks, threads, descending != 0, {name}, {taken});\n"
        "    _mm_setcsr(mode);\n"
        "    return mistake;\n}\n"
    )
