"""Shortcuts around Numba's passes: those that make a function's code are run, and nothing is measured or made again.

See `f5py.jit.shortcuts`, which puts these functions in the place of Numba's.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from f5py.jit.code_shortcuts import Place


def of_passes() -> list[Place]:
    """Run passes without measuring each, and find out once in which order those of a pipeline depend on each other."""
    machinery, utilities = import_module("numba.core.compiler_machinery"), import_module("numba.core.ir_utils")
    manager, registry, of_functions = machinery.PassManager, machinery._pass_registry, machinery.FunctionPass
    run_as_numba_does, analyse = manager._runPass, manager.dependency_analysis
    process, error = machinery.PostProcessor, import_module("numba.core.errors").CompilerError
    canonical = machinery.transforms.canonicalize_cfg
    without_deletions, is_in_one_scope = utilities.enforce_no_dels, utilities.legalize_single_scope
    dependencies: dict[tuple[Any, ...], Any] = {}

    def run_pass(self: Any, index: int, step: Any, state: Any) -> None:
        if self._print_before or self._print_after or self._print_wrap or not self._ENFORCING:
            run_as_numba_does(self, index, step, state)
            return
        step.analysis = self._analysis
        is_changed = step.run_initialization(state)
        is_changed |= step.run_pass(state)
        is_changed |= step.run_finalizer(state)
        function = state.func_ir
        if isinstance(step, of_functions):
            without_deletions(function)
        if registry.get(type(step)).mutates_CFG:
            if is_changed:
                process(function).run()
            else:
                function.blocks = canonical(function.blocks)
        if not is_in_one_scope(function.blocks):
            raise error(f"multiple scope in func_ir detected in {step}")

    def dependency_analysis(self: Any) -> Any:
        steps = tuple(step for step, _ in self.passes)
        if steps not in dependencies:
            dependencies[steps] = analyse(self)
        return dependencies[steps]

    return [(manager, "_runPass", run_pass), (manager, "dependency_analysis", dependency_analysis)]


def of_options() -> list[Place]:
    """Compare the options of two functions by those that are set, if that settles it."""
    options = import_module("numba.core.targetconfig").TargetConfig
    compare, number = options.__eq__, options.__hash__

    def equals(self: Any, other: Any) -> Any:
        return (type(self) is type(other) and self._values == other._values) or compare(self, other)

    numbers: dict[Any, int] = {}

    def number_of_kind(self: Any) -> int:
        if type(self) not in numbers:
            numbers[type(self)] = number(self)  # Numba's own goes by the names of options alone
        return numbers[type(self)]

    return [(options, "__eq__", equals), (options, "__hash__", number_of_kind)]
