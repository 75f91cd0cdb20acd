"""Compiles kernels that only other kernels call without what a call from Python needs.

Numba gives every function that compiled code calls a wrapper for Python, machine code of its own and a place in the
cache, although the caller takes in its code and never looks at the rest; and it optimises that code before the caller
does so again: a third of the time of a first run. The same goes for the functions of NumPy that kernels use.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.types.misc import unliteral

from f5py.jit.frame_stack import with_wide_stack
from f5py.jit.shortcuts import load_without_scipy, shortcuts

_is_compiling = False


class _NoEntry:
    """Stands for the function that Python would call: by that Numba knows what it has compiled."""


def leave_inner_entries_out(kernel: Any) -> None:
    """Compile without entries for Python what a kernel calls and what has not been compiled before.

    A kernel that was compiled in that way is compiled again when Python calls it.
    """
    compile_as_numba_does = kernel.compile

    def compile_(signature: Any) -> Any:
        with global_compiler_lock:
            if _is_compiling:
                return compile_as_numba_does(signature)
            for types, result in list(kernel.overloads.items()):
                if isinstance(result.entry_point, _NoEntry):
                    del kernel.overloads[types]
            with _inner_without_entries():
                return with_wide_stack(compile_as_numba_does, signature)

    kernel.compile = compile_
    _take_shortcuts(kernel._compiler)


def _take_shortcuts(compiler_of_kernel: Any) -> None:
    """Compile with shortcuts what is not kept."""
    compile_as_numba_does = compiler_of_kernel.compile

    def compile_(arguments: Any, return_type: Any) -> Any:
        load_without_scipy()
        with shortcuts():
            return compile_as_numba_does(arguments, return_type)

    compiler_of_kernel.compile = compile_


@contextmanager
def _inner_without_entries() -> Iterator[None]:
    """Take the place of Numba's way to ask for a function that is called, for one compilation under Numba's lock."""
    global _is_compiling
    dispatchers: Any = Dispatcher
    ask_as_numba_does = dispatchers.get_call_template

    def get_call_template(self: Any, arguments: Any, keywords: Any) -> Any:
        if getattr(self, "is_shared", False):  # see `f5py.jit.kernel.shared_kernel`
            arguments = tuple(unliteral(argument) for argument in arguments)
            keywords = {name: unliteral(argument) for name, argument in keywords.items()}
        types = tuple(self._compiler.fold_argument_types(arguments, keywords)[1])
        if types not in self.overloads:
            with self._compiling_counter:
                _compile_inner(self, types)
        return ask_as_numba_does(self, arguments, keywords)

    collects_garbage = gc.isenabled()
    gc.disable()  # a tenth of the time, for nearly all that a compilation makes is needed until its end
    _is_compiling = True
    dispatchers.get_call_template = get_call_template
    try:
        yield
    finally:
        dispatchers.get_call_template = ask_as_numba_does
        _is_compiling = False
        if collects_garbage:
            gc.enable()


def _compile_inner(function: Any, types: tuple[Any, ...]) -> None:
    flags = compiler.Flags()
    function.targetdescr.options.parse_as_flags(flags, function.targetoptions)
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
    library = _library_for_callers(function.targetctx.codegen(), function.py_func.__qualname__)
    result = compiler.compile_extra(
        function.typingctx, function.targetctx, function.py_func, types, None, flags, function.locals, library,
        pipeline_class=function._compiler.pipeline_class,
    )._replace(entry_point=_NoEntry())  # fmt: skip
    function.overloads[tuple(result.signature.args)] = result
    function.targetctx.insert_user_function(result.entry_point, result.fndesc, [library])


def _library_for_callers(codegen: Any, name: str) -> Any:
    """Make a library whose functions are only tidied up: a caller that takes them in optimises them with its own.

    Left as they are made they would be inlined in other places, and calls would take a tenth more time.
    """
    library = codegen.create_library(name)

    def finalize() -> None:
        """End what is done with the code before callers take it in, without making machine code."""
        library._finalize_dynamic_globals()
        library._verify_declare_only_symbols()
        library._finalized = True

    library._optimize_final_module = lambda: None
    library._finalize_final_module = finalize
    return library
