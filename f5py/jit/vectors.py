"""Foundations of vector types: memory layout and operations by lane."""

import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic, models, overload, register_model

CONTRACT = ("contract",)

#: LLVM types by name, as Numba's types are pickled.
_LLVM_TYPES: dict[str, ir.VectorType] = {}


class Vector(types.Type):
    """Numba type of a vector or mask; see `vector_type`."""


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _LLVM_TYPES[fe_type.name])


def emits(result: types.Type, *kinds: types.Type):
    """Make intrinsics of values of these types from functions that emit their code by an IR builder."""

    def decorate(emit):
        def generate(context, builder, signature, arguments):
            value = emit(builder, *arguments)
            return context.get_dummy_value() if result == types.void else value

        made = result(*kinds), generate
        typings = (
            lambda typingctx: made,
            lambda typingctx, a: made,
            lambda typingctx, a, b: made,
            lambda typingctx, a, b, c: made,
            lambda typingctx, a, b, c, d: made,
            lambda typingctx, a, b, c, d, e: made,
            lambda typingctx, a, b, c, d, e, f: made,
        )
        return intrinsic(typings[len(kinds)])

    return decorate


def vector_type(name: str, llvm_type: ir.VectorType) -> Vector:
    """Make a Numba type of LLVM vectors."""
    _LLVM_TYPES[name] = llvm_type
    return Vector(name=name)


def constant(llvm_type: ir.VectorType, value: float) -> ir.Constant:
    """Make a constant vector with a number in all lanes."""
    return ir.Constant(llvm_type, [value] * llvm_type.count)


def broadcast(builder, scalar, llvm_type: ir.VectorType):
    """Copy a scalar to all lanes."""
    undefined, number = ir.Constant(llvm_type, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(undefined, scalar, ir.Constant(number, 0))
    return builder.shuffle_vector(first, undefined, constant(ir.VectorType(number, llvm_type.count), 0))


def splat_intrinsic(kind: Vector, scalar: types.Type):
    """Make the function that copies a scalar to all lanes; integers are truncated."""
    llvm_type = _LLVM_TYPES[kind.name]

    @emits(kind, scalar)
    def splat(builder, number):
        is_whole = isinstance(scalar, types.Integer)
        return broadcast(builder, builder.trunc(number, llvm_type.element) if is_whole else number, llvm_type)

    return splat


def call(builder, name: str, *arguments):
    """Call an LLVM intrinsic of float or double vectors."""
    kinds = [argument.type for argument in arguments]
    bits = 32 if kinds[0].element == ir.FloatType() else 64
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kinds[0], kinds), f"llvm.{name}.v{kinds[0].count}f{bits}"
    )
    return builder.call(function, arguments)


def pointer(context, builder, array_type, array, index, llvm_type: ir.VectorType):
    """Return the address of a vector in an array; raise `IndexError` beyond it if bounds are checked."""
    view = context.make_array(array_type)(context, builder, array)
    if config.BOUNDSCHECK:
        (length,) = cgutils.unpack_tuple(builder, view.shape, 1)
        last = builder.sub(length, ir.Constant(length.type, llvm_type.count))
        wrong = builder.or_(
            builder.icmp_signed("<", index, ir.Constant(index.type, 0)), builder.icmp_signed(">", index, last)
        )
        with builder.if_then(wrong, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("a vector lies beyond its array",))
    return builder.bitcast(builder.gep(view.data, [index]), llvm_type.as_pointer())


def _is_line_of(array, dtypes: Collection[types.Type]) -> bool:
    return isinstance(array, types.Array) and array.dtype in dtypes and array.ndim == 1


def load_intrinsic(
    kind: types.Type,
    llvm_type: ir.VectorType,
    dtypes: Collection[types.Type],
    alignment: int,
    made: Callable[[Any, Any], Any] = lambda builder, value: value,
):
    """Make the function that loads vectors from one-dimensional arrays of these types.

    `made`, called with an IR builder and a vector of `llvm_type`, makes the vector of the kind.
    """

    @intrinsic
    def load(typingctx, array, index):
        if not _is_line_of(array, dtypes):
            return None

        def generate(context, builder, signature, arguments):
            array, index = arguments
            value = builder.load(pointer(context, builder, signature.args[0], array, index, llvm_type))
            value.align = alignment
            return made(builder, value)

        return kind(array, types.intp), generate

    return load


def memory_intrinsics(kind: types.Type, llvm_type: ir.VectorType, dtypes: Collection[types.Type], alignment: int):
    """Make the functions that load and store vectors in one-dimensional arrays of these types."""

    @intrinsic
    def store(typingctx, array, index, value):
        if not _is_line_of(array, dtypes):
            return None

        def generate(context, builder, signature, arguments):
            array, index, value = arguments
            instruction = builder.store(value, pointer(context, builder, signature.args[0], array, index, llvm_type))
            instruction.align = alignment
            return context.get_dummy_value()

        return types.void(array, types.intp, kind), generate

    return load_intrinsic(kind, llvm_type, dtypes, alignment), store


def comparison_intrinsic(masks: Mapping[types.Type, types.Type], emit: Callable[..., Any]):
    """Make an operation of two vectors of one kind with a mask result."""

    @intrinsic
    def compare(typingctx, a, b):
        if a is not b or a not in masks:
            return None
        return masks[a](a, a), lambda context, builder, signature, arguments: emit(builder, *arguments)

    return compare


def binary_intrinsic(kinds: Collection[types.Type], emit: Callable[..., Any]):
    """Make an operation of two vectors of one kind with a vector result."""
    return comparison_intrinsic({kind: kind for kind in kinds}, emit)


def overload_arithmetic(kind: types.Type) -> None:
    """Define ``+ - * /`` by lane for float or double vectors."""

    def emit(name: str, **flags: Any):
        return lambda builder, a, b: getattr(builder, name)(a, b, **flags)

    for operation, emitted in (
        (operator.add, emit("fadd", flags=CONTRACT)),
        (operator.sub, emit("fsub", flags=CONTRACT)),
        (operator.mul, emit("fmul", flags=CONTRACT)),
        (operator.truediv, emit("fdiv")),
    ):
        overload_operator(kind, operation, binary_intrinsic((kind,), emitted))


def lanes_by_bits(mask: types.Type, n_lanes: int):
    """Make the function that converts an integer's bits to a mask."""

    @emits(mask, types.int64)
    def lanes_of(builder, number):
        return builder.bitcast(builder.trunc(number, ir.IntType(n_lanes)), ir.VectorType(ir.IntType(1), n_lanes))

    return lanes_of


def select_intrinsic(masks: Mapping[types.Type, types.Type]):
    """Make the function that selects lanes by a mask."""

    @intrinsic
    def select(typingctx, lanes, a, b):
        if a is not b or a not in masks:
            return None
        return a(masks[a], a, a), lambda context, builder, signature, arguments: builder.select(*arguments)

    return select


def call_intrinsic(kind: types.Type, name: str, n_arguments: int):
    """Make the function that calls an LLVM intrinsic of vectors."""
    return emits(kind, *[kind] * n_arguments)(lambda builder, *arguments: call(builder, name, *arguments))


def overload_operator(kind: types.Type, python_operator: Callable[..., Any], operation: Callable[..., Any]) -> None:
    """Define an operator of two vectors."""

    @overload(python_operator)
    def implementation(a, b):
        if a is kind and b is kind:
            return lambda a, b: operation(a, b)
        return None


def exp2_of(builder, value, whole, power, coefficients):
    """Return 2 ** value: a polynomial of the fraction, times `power` if given."""
    part = builder.fsub(value, whole, flags=CONTRACT)
    result = constant(value.type, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = call(builder, "fmuladd", result, part, constant(value.type, coefficient))
    return result if power is None else builder.fmul(result, power, flags=CONTRACT)


def at_least(builder, value, least: float):
    """Return the maximum of each lane and a number."""
    limit = constant(value.type, least)
    return builder.select(builder.fcmp_ordered(">", value, limit), value, limit)
