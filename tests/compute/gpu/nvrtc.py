"""NVIDIA's run-time compiler, as far as the tests need it; it needs no GPU and no driver."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

_DEPRECATED = re.compile(r"nvrtc: warning: Architectures prior to .* are deprecated.*")


@dataclass(frozen=True)
class Compiled:
    """Machine code of one kernel and what the assembler says of it."""

    cubin: bytes
    log: str

    @property
    def registers(self) -> int:
        return self._number(r"Used (\d+) registers")

    @property
    def spilled(self) -> int:
        """Bytes that a thread keeps in local memory: its stack frame, spill stores and spill loads."""
        numbers = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", self.log)
        assert numbers is not None, f"the compiler does not tell of spills:\n{self.log}"
        return sum(map(int, numbers.groups()))

    @property
    def shared(self) -> int:
        return self._number(r"(\d+) bytes smem") if "bytes smem" in self.log else 0

    @property
    def complaints(self) -> list[str]:
        """Warnings and remarks of the compiler, without the assembler's figures."""
        lines = (line.strip() for line in self.log.strip("\0").splitlines())
        return [line for line in lines if line and not re.match(r"ptxas (info)?\s*[:.]", line)]

    def _number(self, pattern: str) -> int:
        number = re.search(pattern, self.log)
        assert number is not None, f"no {pattern!r} in the compiler's log:\n{self.log}"
        return int(number[1])


class Nvrtc:
    """The compiler of the wheel nvidia-cuda-nvrtc-cu12."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(str(_library_path()))
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        self.version = self._version()
        self._folder = Path(tempfile.gettempdir()) / f"f5py-tests-{os.getuid()}-cubins"

    def architectures(self) -> list[int]:
        """Compute capabilities times ten for which this version makes machine code."""
        count = ctypes.c_int()
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", numbers)
        return list(numbers)

    def compile(self, name: str, source: str, *options: str) -> Compiled:
        """Compile to machine code; fails the test with the compiler's log if that does not work.

        What has compiled is kept for all test processes of this user: the same compiler makes the same of it.
        """
        made_of = "\0".join([name, source, *options, str(self.version), str(self._library._name)])
        kept = self._folder / hashlib.sha256(made_of.encode()).hexdigest()
        if not kept.is_file():
            compiled = self._compile(name, source, *options)
            self._folder.mkdir(exist_ok=True)
            unfinished = kept.with_suffix(f".{os.getpid()}")
            unfinished.write_bytes(compiled.log.encode() + b"\0" + compiled.cubin)
            unfinished.replace(kept)
        log, cubin = kept.read_bytes().split(b"\0", 1)
        return Compiled(cubin, log.decode())

    def _compile(self, name: str, source: str, *options: str) -> Compiled:
        program = ctypes.c_void_p()
        self._call(
            "nvrtcCreateProgram", ctypes.byref(program), source.encode(), name.encode(), 0, None, None
        )  # fmt: skip
        try:
            texts = [option.encode() for option in options]
            status = self._library.nvrtcCompileProgram(program, len(texts), (ctypes.c_char_p * len(texts))(*texts))
            log = _DEPRECATED.sub("", self._bytes(program, "ProgramLog").decode())
            assert status == 0, f"{name} {' '.join(options)}:\n{log}"
            return Compiled(self._bytes(program, "CUBIN"), log.replace("\0", ""))
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _version(self) -> tuple[int, int]:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def _bytes(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", program, text)
        return text.raw

    def _call(self, function: str, *arguments) -> None:
        status = getattr(self._library, function)(*arguments)
        assert status == 0, f"{function}: {self._library.nvrtcGetErrorString(status).decode()}"


def _library_path() -> Path:
    """Find the compiler inside its wheel; the test is skipped without it."""
    try:
        package = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        package = None
    if package is None or not package.submodule_search_locations:
        pytest.skip("needs the CUDA run-time compiler: pip install 'nvidia-cuda-nvrtc-cu12<13'")
    paths = [Path(folder) / "lib" / "libnvrtc.so.12" for folder in package.submodule_search_locations]
    found = [path for path in paths if path.is_file()]
    if not found:
        pytest.skip(f"no {paths[0]}: the kernels are compiled with nvidia-cuda-nvrtc-cu12 on Linux")
    return found[0]
