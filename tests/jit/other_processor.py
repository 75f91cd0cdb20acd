"""Compile all kernels for another processor than this one, whose LLVM knows how; nothing of it is run.

As a program: ``record FILE COMMANDS`` runs command lines (JSON, a list of lists) and writes the argument types of every
kernel that they called; ``compile FILE`` compiles these kernels for 64-bit ARM and prints one line of JSON.
"""

from __future__ import annotations

import importlib
import json
import pickle
import platform
import sys
from pathlib import Path
from typing import Any

TRIPLE = "aarch64-unknown-linux-gnu"
PACKAGE = Path(__file__).resolve().parents[2] / "f5py"


def kernel_modules() -> list[str]:
    import f5py

    package = Path(f5py.__file__).parent
    paths = sorted(path for path in package.rglob("*.py") if "from f5py.jit.kernel import" in path.read_text())
    return [".".join(path.relative_to(package.parent).with_suffix("").parts) for path in paths]


def kernels_of(module: Any) -> dict[str, Any]:
    """Find the kernels that a module defines, by name."""
    from numba.core.dispatcher import Dispatcher

    return {
        name: found
        for name, found in vars(module).items()
        if isinstance(found, Dispatcher) and found.py_func.__module__ == module.__name__
    }


def record(file: Path, commands: list[list[str]]) -> None:
    """Run command lines in this process and keep the argument types of the kernels that Python called."""
    from f5py.cli import main

    for arguments in commands:
        try:
            main(arguments)
        except SystemExit as stop:
            if stop.code:
                raise SystemExit(f"{' '.join(arguments)}: status {stop.code}") from None
    called = {
        (name, kernel): list(dispatcher.overloads)
        for name in kernel_modules()
        if name in sys.modules
        for kernel, dispatcher in kernels_of(sys.modules[name]).items()
    }
    file.write_bytes(pickle.dumps({name: types for name, types in called.items() if types}))


class _NoFeatures(dict):
    def flatten(self, *_: object) -> str:
        return ""


def _be_the_other_processor() -> None:
    """Before Numba is imported: let it take this machine for a 64-bit ARM one."""
    from llvmlite import binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.get_process_triple = binding.get_default_triple = lambda: TRIPLE
    binding.get_host_cpu_name = lambda: "generic"
    binding.get_host_cpu_features = _NoFeatures
    platform.machine = lambda: "aarch64"


def compile_all(file: Path) -> None:
    """Compile what was recorded; print how many kernels and how much machine code that were."""
    _be_the_other_processor()
    n_kernels = n_lines = 0
    flushes = []
    for (module, name), signatures in pickle.loads(file.read_bytes()).items():
        kernel = getattr(importlib.import_module(module), name)
        for arguments in signatures:
            kernel.compile(arguments)
            code = kernel.overloads[arguments].library.get_asm_str()
            n_kernels += 1
            n_lines += code.count("\n")
            if "FPCR" in code:
                flushes.append(f"{module}.{name}")
    print(json.dumps({"kernels": n_kernels, "lines": n_lines, "flush": sorted(set(flushes))}))


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(Path(sys.argv[2]), json.loads(sys.argv[3]))
    else:
        compile_all(Path(sys.argv[2]))
