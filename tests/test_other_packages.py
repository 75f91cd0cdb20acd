"""Other packages are used by their public interfaces: nothing of them is replaced, hidden or reached into."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "f5py"
TREES = {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
#: Python's documented hooks and settings, and a function that is documented under a private name.
OF_PYTHON = {"sys.excepthook", "sys.unraisablehook", "tempfile.tempdir", "os._exit"}
#: h5py's way to keep HDF5 from printing on standard error in other threads than the first; there is no public one.
OF_H5PY = {"_errors"}
#: Methods of named tuples, and the documented way to end an intrinsic of Numba.
DOCUMENTED = {"_asdict", "_fields", "_getvalue", "_make", "_replace"}
IMPORT_MACHINERY = {"sys.meta_path", "sys.path_hooks", "sys.path_importer_cache"}


def foreign_names(tree: ast.Module) -> dict[str, str]:
    """Return what names that a module imports from other packages stand for."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.split(".")[0]
                names[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return {name: whole for name, whole in names.items() if whole.split(".")[0] != "f5py"}


def dotted(node: ast.expr, names: dict[str, str]) -> str:
    """Return the full name of an attribute of another package; empty for anything else."""
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute) and (owner := dotted(node.value, names)):
        return f"{owner}.{node.attr}"
    return ""


def own_private_names() -> set[str]:
    """Return all names with an underscore that the package defines itself."""
    found = set()
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return {name for name in found if is_private(name)}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign | ast.Delete):
        return node.targets
    return [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else []


def reaches(tree: ast.Module, own: set[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that replace, hide or reach into a part of another package, and which."""
    names = foreign_names(tree)
    for node in ast.walk(tree):
        for target in targets(node):
            at = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(target, ast.Attribute) and dotted(target, names):
                yield node.lineno, f"replaces {dotted(target, names)}"
            if dotted(at, names) == "sys.modules":
                yield node.lineno, "changes sys.modules"
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if called in ("setattr", "delattr") and (owner := dotted(node.args[0], names)):
            yield node.lineno, f"replaces a part of {owner}"
        if called == "getattr":
            name = node.args[1]
            if isinstance(name, ast.Constant) and is_private(str(name.value)) and name.value not in own:
                yield node.lineno, f"reads {name.value}"
        if isinstance(node, ast.Attribute):
            whole = dotted(node, names)
            is_code = node.attr == "co_code" or (node.attr == "__code__" and isinstance(node.ctx, ast.Store))
            if whole in IMPORT_MACHINERY or is_code:
                yield node.lineno, f"uses {whole or node.attr}"
            if is_private(node.attr) and (whole or node.attr not in own | DOCUMENTED):
                yield node.lineno, f"reads {whole or node.attr}"
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] != "f5py":
            for part in [*(node.module or "").split("."), *(alias.name for alias in node.names)]:
                if is_private(part):
                    yield node.lineno, f"imports {part}"


def test_other_packages_are_neither_replaced_nor_reached_into():
    own = own_private_names()
    found = [
        f"{path}, line {line}: {what}"
        for path, tree in TREES.items()
        for line, what in reaches(tree, own)
        if what.split()[-1] not in OF_PYTHON | OF_H5PY
    ]
    assert found == []


def test_what_is_refused():
    code = (
        "import sys, numba.core.config as settings\n"
        "from numba.core import dispatcher\n"
        "from llvmlite.binding import _hidden\n"
        "dispatcher.Dispatcher.compile = print\n"
        "settings.CACHE_DIR = ''\n"
        "setattr(dispatcher, 'compile', print)\n"
        "sys.modules['cffi'] = None\n"
        "sys.meta_path.insert(0, None)\n"
        "function.__code__ = None\n"
        "dispatcher._private\n"
        "kernel._cache\n"
        "getattr(kernel, '_cache')\n"
    )
    lines = sorted({line for line, _ in reaches(ast.parse(code), {"_own"})})
    assert lines == [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]


def test_numba_is_imported_after_its_cache_is_chosen():
    """That is, by modules of `f5py.jit`, whose import chooses it."""
    others = [
        path
        for path, tree in TREES.items()
        if not path.startswith("jit/")
        for whole in foreign_names(tree).values()
        if whole.split(".")[0] in ("numba", "llvmlite")
    ]
    assert others == []
