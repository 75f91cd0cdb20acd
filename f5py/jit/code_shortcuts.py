"""Shortcuts to less intermediate code: what LLVM would find to be without use is not written.

A third of what Numba writes takes tuples of arrays apart to count references that numbers do not have, loads what is
overwritten, or computes with strides of one. That has to be written, parsed and taken out again. What is left becomes
the same machine code. `f5py.jit.shortcuts` puts these functions in the place of Numba's.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

Place = tuple[Any, str, Any]


def of_references() -> list[Place]:
    """Take apart only what has references to memory in it."""
    context = import_module("numba.core.runtime.context").NRTContext
    _ = context.get_meminfos

    def get_meminfos(self: Any, builder: Any, kind: Any, value: Any) -> list[tuple[Any, Any]]:
        models = self._context.data_model_manager
        if not _has_references(models, kind):
            return []
        model = models[kind]
        found = [(kind, model.get_nrt_meminfo(builder, value))] if model.has_nrt_meminfo() else []
        for member, getter in model.traverse(builder):
            if _has_references(models, member):
                found += get_meminfos(self, builder, member, getter(value))
        return found

    return [(context, "get_meminfos", get_meminfos)]


@cache
def _has_references(models: Any, kind: Any) -> bool:
    return models[kind].contains_nrt_meminfo()


def of_plain_variables() -> list[Place]:
    """Do not load the old value of a number before a new one is stored, nor clear it at the end of its life."""
    lower = import_module("numba.core.lowering").Lower
    store, delete = lower.storevar, lower.delvar
    _ = lower._disable_sroa_like_opt, lower._alloca_var, lower.getvar

    def is_plain(self: Any, name: str) -> bool:
        kept_in_memory = not self._disable_sroa_like_opt and name not in self._singly_assigned_vars
        return kept_in_memory and not _has_references(self.context.data_model_manager, self.typeof(name))

    def storevar(self: Any, value: Any, name: str, argidx: int | None = None) -> None:
        if argidx is not None or not is_plain(self, name):
            store(self, value, name, argidx)
            return
        self._alloca_var(name, self.typeof(name))
        self.builder.store(value, self.getvar(name))

    def delvar(self: Any, name: str) -> None:
        if name in self._blk_local_varmap or not is_plain(self, name):
            delete(self, name)
        else:
            self._alloca_var(name, self.typeof(name))

    return [(lower, "storevar", storevar), (lower, "delvar", delvar)]


def of_arrays() -> list[Place]:
    """Find the elements of arrays of one dimension by their number alone, and describe each type of array once."""
    arrays, types = import_module("numba.np.arrayobj"), import_module("numba.core.types")
    index_as_numba_does, describe_as_numba_does = arrays.basic_indexing, arrays.make_array
    fix_index, mark_positive = arrays.fix_integer_index, arrays.mark_positive
    zero = import_module("llvmlite.ir").IntType(32)(0)

    @cache
    def make_array(kind: Any) -> Any:
        made = describe_as_numba_does(kind)
        if type(kind) is types.Array and "_make_refs" in vars(made):
            del made._make_refs  # which would ask each time if it has a way of its own to be an array
        return made

    def basic_indexing(
        context: Any, builder: Any, kind: Any, array: Any, index_types: Any, indices: Any, boundscheck: Any = None
    ) -> Any:
        is_plain = type(kind) is types.Array and kind.layout == "C" and not boundscheck
        if not is_plain or not kind.ndim == len(indices) == 1 or not isinstance(index_types[0], types.Integer):
            return index_as_numba_does(context, builder, kind, array, index_types, indices, boundscheck)
        length = None
        if index_types[0].signed:  # it may count from the end
            length = builder.load(builder.gep(array._get_ptr_by_name("shape"), [zero, zero], inbounds=True))
            mark_positive(builder, length)
        return builder.gep(array.data, [fix_index(context, builder, index_types[0], indices[0], length)]), [], []

    return [(arrays, "make_array", make_array), (arrays, "basic_indexing", basic_indexing)]


def of_entries() -> list[Place]:
    """Leave the entries for Python as they are written: half of the code of most kernels, which runs once in a call."""
    wrapper = import_module("numba.core.callwrapper").PyCallWrapper
    build_as_numba_does = wrapper.build

    def build(self: Any) -> Any:
        built = build_as_numba_does(self)
        attributes = built[0].attributes
        for attribute in ("noinline", "optnone"):
            attributes.add(attribute)
        return built

    return [(wrapper, "build", build)]


def of_sizes() -> list[Place]:
    """Ask LLVM once for the size of each type, for which llvmlite writes and parses a module."""
    context = import_module("numba.core.base").BaseContext
    size_as_numba_does = context.get_abi_sizeof
    sizes: dict[tuple[Any, str], int] = {}

    def get_abi_sizeof(self: Any, kind: Any) -> int:
        text = str(kind)
        if "%" in text:  # a name, and not what is in it
            return size_as_numba_does(self, kind)
        key = self.target_data, text
        if key not in sizes:
            sizes[key] = size_as_numba_does(self, kind)
        return sizes[key]

    return [(context, "get_abi_sizeof", get_abi_sizeof)]
