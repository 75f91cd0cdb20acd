"""Shortcuts through Numba's compiler: the same machine code in three quarters of the time.

Most of a compilation is Python, and much of that comes to what is known already: operators of numbers are looked up
anew each time, variables are listed after every pass, events are sent to nobody. What takes the place of Numba's
functions here gives their results. It does so only while a kernel of this package is compiled, under Numba's lock.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any

from f5py.jit.code_cache import code_folder
from f5py.jit.code_shortcuts import Place, of_arrays, of_entries, of_plain_variables, of_references, of_sizes
from f5py.jit.pass_shortcuts import of_options, of_passes


@contextmanager
def shortcuts() -> Iterator[None]:
    """Let Numba take all shortcuts that fit this version of it, for one compilation under its lock."""
    places = _places()
    before = [getattr(owner, name) for owner, name, _ in places]
    for owner, name, shortcut in places:
        setattr(owner, name, shortcut)
    try:
        yield
    finally:
        for (owner, name, _), function in zip(places, before, strict=True):
            setattr(owner, name, function)


@cache
def _places() -> list[Place]:
    """List whose attribute of which name has which function instead, of what this version of Numba has."""
    places: list[Place] = []
    for find in (
        _of_events, _of_variables, _of_signatures, _of_optimisation, _of_implementations,
        of_references, of_plain_variables, of_arrays, of_entries, of_sizes, of_passes, of_options,
    ):  # fmt: skip
        with suppress(AttributeError, ImportError):  # then that takes longer
            places += find()
    return places


def _of_events() -> list[Place]:
    """Send no events: every call of LLVM makes four, for listeners that measure times."""
    event, config = import_module("numba.core.event"), import_module("numba.core.config")
    lock = import_module("llvmlite.binding.ffi").lib._lock
    if getattr(config, "CHROME_TRACE", ""):
        return []
    nothing = nullcontext()
    return [
        (_having(event, "start_event"), "start_event", lambda kind, data=None: None),
        (_having(event, "end_event"), "end_event", lambda kind, data=None, exc_details=None: None),
        (_having(event, "trigger_event"), "trigger_event", lambda kind, data=None: nothing),
        (_having(lock, "_cblist"), "_cblist", []),
    ]


def _of_variables() -> list[Place]:
    """List the variables of a statement without a call for each constant, and find out what lives where when asked."""
    ir, postproc = import_module("numba.core.ir"), import_module("numba.core.postproc")
    canonical = import_module("numba.core.transforms").canonicalize_cfg
    variable, instruction, lifetime = ir.Var, ir.Inst, postproc.VariableLifetime
    without = {str, int, float, bool, type(None), ir.Loc}

    def variables_of(self: Any, value: Any) -> list[Any]:
        if isinstance(value, dict):
            value = value.values()
        elif isinstance(value, variable):
            return [value]
        elif isinstance(value, instruction):
            return value.list_vars()
        elif not isinstance(value, (list, tuple)):
            return []
        found: list[Any] = []
        for part in value:
            kind = type(part)
            if kind is variable:
                found.append(part)
            elif kind not in without:
                found += variables_of(self, part)
        return found

    process_as_numba_does = postproc.PostProcessor.run

    def process(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        function = self.func_ir
        if function.is_generator:  # only these look at what lives at the beginning of blocks
            process_as_numba_does(self, emit_dels, extend_lifetimes)
            return
        function.blocks = canonical(function.blocks)
        function.variable_lifetime = lifetime(function.blocks)
        function.generator_info = None
        if emit_dels:
            self._insert_var_dels(extend_lifetimes=extend_lifetimes)

    return [
        (_having(instruction, "_rec_list_vars"), "_rec_list_vars", variables_of),
        (postproc.PostProcessor, "run", process),
    ]


def _of_signatures() -> list[Place]:
    """Look up once what a function of Numba's own returns for the same types."""
    functions = import_module("numba.core.types.functions").BaseFunction
    resolve = functions.get_call_type
    known: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def get_call_type(self: Any, context: Any, arguments: Any, keywords: Any) -> Any:
        if keywords:
            return resolve(self, context, arguments, keywords)
        key = id(self), id(context), tuple(arguments)
        if key in known:
            return known[key][0]
        found = resolve(self, context, arguments, keywords)
        # those that are compiled depend on the options of the caller
        if found is not None and not any(
            found.args in getattr(template, "_compiled_overloads", ()) for template in self.templates
        ):
            known[key] = found, self, context  # which keeps the numbers from being given to others
        return found

    return [(functions, "get_call_type", get_call_type)]


def _of_optimisation() -> list[Place]:
    """Set up LLVM's passes once for the functions of a module, and not for those that are only declared."""
    codegen = import_module("numba.core.codegen")
    if list(signature(codegen.CPUCodegen._function_pass_manager).parameters) != ["self", "kwargs"]:  # before Numba .62
        return []

    def optimize_functions(self: Any, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        manager, builder = self._codegen._function_pass_manager()
        for function in module.functions:
            if not function.is_declaration:
                manager.run(function, builder)

    return [(_having(codegen.CPUCodeLibrary, "_optimize_functions"), "_optimize_functions", optimize_functions)]


def _of_implementations() -> list[Place]:
    """Look at the parameters of what generates code once."""
    base = import_module("numba.core.base")
    return [(base, "_has_loc", cache(base._has_loc))]


def _having(owner: Any, name: str) -> Any:
    """Return the owner if it has that attribute; `AttributeError` otherwise."""
    getattr(owner, name)
    return owner


@cache
def load_without_scipy() -> None:
    """Load what Numba compiles functions of NumPy with, without SciPy, which it imports only to see if it is there.

    That would take a third of a second. Whoever compiles linear algebra imports it then.
    """
    with suppress(AttributeError, ImportError):
        linalg: Any = import_module("numba.np.linalg")
        ensure = linalg.ensure_blas
        if find_spec("scipy") is None:
            return
        linalg.ensure_blas = lambda: None
        try:
            arrays: Any = import_module("numba.np.arraymath")
        finally:
            linalg.ensure_blas = ensure
        arrays.ensure_blas = ensure


class _Hidden:
    """Finds no module of some names for the thread that made it; others find all that is installed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._thread = threading.get_ident()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """See `importlib.abc.MetaPathFinder`."""
        if name in self._names and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is not needed", name=name)


def import_numba() -> Any:
    """Import Numba without SciPy, whose version it looks at, and YAML, in which its settings may be written.

    Where these are installed, they would take a fifth of the time.
    """
    code_folder()
    hidden: Any = _Hidden(("scipy",) if os.path.exists(".numba_config.yaml") else ("scipy", "yaml"))
    sys.meta_path.insert(0, hidden)
    try:
        numba = import_module("numba")
    finally:
        sys.meta_path.remove(hidden)
    numba.config.reload_config()  # it may have been imported before
    return numba


def load_compiler() -> None:
    """Load all that the first compilation would load."""
    target = import_module("numba.core.registry").cpu_target
    load_without_scipy()
    with import_module("numba.core.compiler_lock").global_compiler_lock:
        target.target_context.refresh()
