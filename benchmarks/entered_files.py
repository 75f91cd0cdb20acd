"""Count the files of f5py that a default run of call-methylation enters.

    python benchmarks/entered_files.py ../shared/data/ecoli_r94
    python benchmarks/entered_files.py FOLDER --list

A file is entered if a function in it runs after its import, in any thread, or if a kernel that such a function names
can reach a function in it. Needs alignments, reference, reads and BLOW5 in one folder.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1] / "f5py"
OPTIMIZED = 1  # CO_OPTIMIZED: of functions, not of modules and classes
DECORATORS = {"kernel", "exact_kernel", "inner", "exact_inner"}


class Trace(threading.local):
    """Code of executed functions; those that run during imports are left out."""

    def __init__(self) -> None:
        self.imports = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if code.co_name == "<module>":
            self.imports += (event == "call") - (event == "return")
        elif event == "call" and not self.imports and code.co_flags & OPTIMIZED:
            CODES.add(code)


CODES: set[CodeType] = set()


@cache
def module_of(name: str) -> tuple[Path, ast.Module] | None:
    """Parse a module of the package by its dotted name."""
    base = PACKAGE.parent / Path(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path, ast.parse(path.read_text())
    return None


def imports_of(tree: ast.AST) -> dict[str, tuple[str, str | None]]:
    """Map names to the modules, and their attributes, that they are imported from."""
    found: dict[str, tuple[str, str | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("f5py"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found[alias.asname or alias.name] = (full, None) if module_of(full) else (str(node.module), alias.name)
    return found


def named_functions(node: ast.AST, module: str) -> Iterator[tuple[str, str]]:
    """Yield module and name of the package's functions that a function names."""
    loaded = module_of(module)
    assert loaded is not None
    imports = imports_of(loaded[1])
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
            of, attribute = imports.get(one.value.id, (None, None))
            if of is not None and attribute is None:
                yield of, one.attr
        elif isinstance(one, ast.Name):
            of, attribute = imports.get(one.id, (module, one.id))
            if attribute is not None:
                yield of, attribute


def function_of(module: str, name: str) -> ast.FunctionDef | None:
    """Find a function of a module."""
    loaded = module_of(module)
    nodes = [] if loaded is None else loaded[1].body
    return next((node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == name), None)


def is_kernel(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(one).split("(")[0] in DECORATORS for one in node.decorator_list)


def entered(codes: set[CodeType]) -> set[Path]:
    """Return the files of executed functions, and of all that the kernels named in them reach."""
    files: set[Path] = set()
    queue: list[tuple[str, str]] = []
    for code in codes:
        path = Path(code.co_filename)
        if not path.is_relative_to(PACKAGE):
            continue
        files.add(path)
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        loaded = module_of(module)
        assert loaded is not None
        for node in ast.walk(loaded[1]):
            if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                if first == code.co_firstlineno:
                    names = set(named_functions(node, module))
                    queue += [one for one in names if (found := function_of(*one)) and is_kernel(found)]
    done: set[tuple[str, str]] = set()
    while queue:
        module, name = queue.pop()
        found = function_of(module, name)
        if (module, name) in done or found is None:
            continue
        done.add((module, name))
        loaded = module_of(module)
        assert loaded is not None
        files.add(loaded[0])
        queue += named_functions(found, module)
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with reads.bam, ref.fa, reads.fast[aq] and reads.blow5")
    parser.add_argument("--list", action="store_true", help="list the files")
    arguments = parser.parse_args()
    folder = arguments.folder
    reads = next(path for path in sorted(folder.glob("reads.fast[aq]*")) if path.suffix in (".fasta", ".fastq", ".gz"))
    with tempfile.TemporaryDirectory() as out:
        command = [
            "call-methylation", "-b", str(folder / "reads.bam"), "-g", str(folder / "ref.fa"), "-r", str(reads),
            "--slow5", str(next(folder.rglob("reads.blow5"))), "-o", f"{out}/calls.tsv",
        ]  # fmt: skip
        sys.argv = ["f5py", *command]
        trace = Trace()
        threading.setprofile(trace)
        sys.setprofile(trace)
        try:
            from f5py.cli import main as run

            run()
        except SystemExit as end:
            if end.code:
                raise
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
    files = entered(CODES)
    if arguments.list:
        for path in sorted(files):
            print(path.relative_to(PACKAGE))
    rooms = {path.relative_to(PACKAGE).parts[0] for path in files}
    lines = sum(len(path.read_text().splitlines()) for path in files)
    n_functions = len([code for code in CODES if Path(code.co_filename).is_relative_to(PACKAGE)])
    print(f"files: {len(files)}; lines: {lines}; executed functions: {n_functions}; rooms: {len(rooms)}")


if __name__ == "__main__":
    main()
