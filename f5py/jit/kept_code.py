"""Loads kept code without what only compilation needs, looks at each cache folder once, and keeps Numba's runtime.

All threads wait for the code of a kernel in turn. Numba parses its intermediate code each time, of which there is use
only where it is put into another kernel, and imports the modules of all functions inside, which takes as long as the
code of ten kernels. When a kernel is decorated, it makes a file to see if the cache folder can be written.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pickle
import sys
from contextlib import suppress
from typing import Any

from f5py.jit.cache_folder import cache_folder, keep, kept
from f5py.jit.code_cache import code_folder


def load_without_intermediate_code(codegen: Any) -> None:
    """Let the libraries that a code generator loads parse their intermediate code when it is put into another one."""
    from llvmlite import binding

    if getattr(codegen, "loads_late", False):
        return
    unserialize = codegen.unserialize_library

    def unserialize_library(state: Any) -> Any:
        name, kind, data = state
        if kind != "object":
            return unserialize(state)
        machine_code, intermediate_code = data
        library = codegen.create_library(name)
        library.enable_object_caching()
        library._set_compiled_object(machine_code)
        library._finalize_final_module()
        engine = codegen._engine
        module_for_linking, pointer_to_function = library._get_module_for_linking, library.get_pointer_to_function

        def pointer_to_found(function: str) -> Any:
            if function.encode() in machine_code:  # the table of its symbols; LLVM ends the process for others
                engine._defined_symbols.add(function)
            return pointer_to_function(function)

        def parsed_for_linking() -> Any:
            if library._shared_module is None:
                library._shared_module = binding.parse_bitcode(intermediate_code)
                engine._load_defined_symbols(library._shared_module)
            return module_for_linking()

        library._get_module_for_linking, library.get_pointer_to_function = parsed_for_linking, pointer_to_found
        return library

    codegen.unserialize_library, codegen.loads_late = unserialize_library, True


def ask_for_the_processor_once(codegen: Any) -> None:
    """Let a code generator remember which processor it generates for.

    It asks that for every kernel that is loaded. In a virtual machine the answer takes a millisecond.
    """
    if getattr(codegen, "asks_once", False):
        return
    found = codegen.magic_tuple()
    codegen.magic_tuple, codegen.asks_once = lambda: found, True


def load_without_imports() -> None:
    """Let the constants of kept functions of Numba's own be loaded without the modules that these are in.

    Compiled code takes its constants from there, and never looks at the names of the module.
    """
    from numba.core import environment

    rebuild_as_numba_does: Any = environment._rebuild_env
    if getattr(rebuild_as_numba_does, "imports_nothing", False):
        return

    def _rebuild_env(module: str, constants: list[Any], name: str) -> Any:
        if module in sys.modules or not module.startswith("numba."):
            return rebuild_as_numba_does(module, constants, name)
        found = environment.lookup_environment(name)
        if found is None:
            found = environment.Environment({"__name__": module})
            found.consts[:] = constants
            found.env_name = name
            environment.Environment._memo[name] = found
        return found

    # kept code names it by these
    _rebuild_env.__module__, _rebuild_env.__qualname__ = environment.__name__, rebuild_as_numba_does.__qualname__
    _rebuild_env.imports_nothing = True  # type: ignore[attr-defined]
    environment._rebuild_env = _rebuild_env


def look_at_folders_once() -> None:
    """Let a cache folder that could be written for one kernel be taken as one that can be for the others."""
    locators: Any = importlib.import_module("numba.core.caching")._CacheLocator
    if getattr(locators, "looks_once", False):
        return
    ensure = locators.ensure_cache_path
    written: set[str] = set()

    def ensure_cache_path(locator: Any) -> None:
        folder = locator.get_cache_path()
        if folder not in written or not os.path.isdir(folder):
            ensure(locator)
            written.add(folder)

    locators.ensure_cache_path, locators.looks_once = ensure_cache_path, True


def keep_runtime() -> None:
    """Let the functions that count the users of arrays be kept as kernels are.

    Numba compiles them in every process, a thirtieth of the time before the first batch.
    """
    runtime: Any = importlib.import_module("numba.core.runtime.nrtdynmod")
    if getattr(runtime, "is_kept", False):
        return
    compile_as_numba_does, create = runtime.compile_nrt_functions, runtime.create_nrt_module

    def compile_nrt_functions(context: Any) -> Any:
        codegen = context.codegen()
        path = _runtime_path(codegen)
        if (code := kept(path)) is not None:
            with suppress(Exception):  # another version of Numba
                return codegen.unserialize_library(pickle.loads(code))
        try:
            module, library = create(context)
            library.enable_object_caching()
            library.add_ir_module(module)
            library.finalize()
            code = pickle.dumps(library.serialize_using_object_code())
        except Exception:  # another version of Numba
            return compile_as_numba_does(context)
        with suppress(OSError):  # then it is not kept
            keep(path, code)
        return library

    runtime.compile_nrt_functions, runtime.is_kept = compile_nrt_functions, True


def _runtime_path(codegen: Any) -> str:
    """Return where the runtime is kept for this version of Numba and this processor."""
    import llvmlite
    import numba

    made_by = numba.__version__, llvmlite.__version__, codegen.magic_tuple(), numba.config.DEBUG_NRT, numba.config.OPT
    name = hashlib.sha256(repr(made_by).encode()).hexdigest()[:16]
    return os.path.join(code_folder() or os.path.join(cache_folder(), "f5py"), f"numba-runtime-{name}.nbc")
