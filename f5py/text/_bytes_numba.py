"""Intrinsics for bytes at addresses, and for finding characters.

Functions with a branch count references to their arrays, which is slower than writing a number; addresses avoid that.
An address holds no reference: the array must be an argument of the kernel or be used later in it. Bounds are not
checked and no alignment is needed.
"""

from f5py.jit.instructions import cgutils, intrinsic, ir, types
from f5py.jit.vectors import broadcast, emits

#: Bytes of `copy_block`.
BLOCK = 16
#: Characters of `where_is`.
LANES = 64
#: Upper bound of the characters of a double.
_LONGEST = 400

_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)
_BLOCK_VECTOR = ir.VectorType(_BYTE, BLOCK)
_CHARACTERS = ir.VectorType(_BYTE, LANES)


def _is_bytes(array) -> bool:
    return isinstance(array, types.Array) and array.dtype == types.uint8 and array.ndim == 1 and array.layout == "C"


def _element(context, builder, array_type, array, index):
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


def _copy(builder, to, begin) -> None:
    pointer = _BLOCK_VECTOR.as_pointer()
    block = builder.load(builder.bitcast(begin, pointer))
    block.align = 1
    builder.store(block, builder.inttoptr(to, pointer)).align = 1


def _store(kind, element):
    """Make the intrinsic ``store(address, value)``; lowest byte first."""

    @emits(types.void, types.intp, kind)
    def store(builder, to, value):
        builder.store(value, builder.inttoptr(to, element.as_pointer())).align = 1

    return store


store_byte = _store(types.uint8, _BYTE)
store_word = _store(types.uint64, _WORD)


@intrinsic
def copy_block(typingctx, to, source, begin):
    """Copy ``source[begin : begin + 16]`` to an address."""
    if not _is_bytes(source):
        return None
    signature = types.void(types.intp, source, types.intp)

    def generate(context, builder, signature, arguments):
        to, source, begin = arguments
        _copy(builder, to, _element(context, builder, signature.args[1], source, begin))
        return context.get_dummy_value()

    return signature, generate


@emits(types.void, types.intp, types.intp, types.intp)
def copy_padded(builder, to, begin, n):
    """Copy `n` bytes between addresses, rounded up to blocks."""
    zero, step = ir.Constant(_WORD, 0), ir.Constant(_WORD, BLOCK)
    with cgutils.for_range_slice(builder, zero, n, step) as (i, _):
        _copy(builder, builder.add(to, i), builder.inttoptr(builder.add(begin, i), _BYTE.as_pointer()))


@intrinsic
def copy_bytes(typingctx, to, source, n):
    """Copy ``source[:n]`` to an address."""
    if not _is_bytes(source):
        return None
    signature = types.void(types.intp, source, types.intp)

    def generate(context, builder, signature, arguments):
        to, source, n = arguments
        begin = context.make_array(signature.args[1])(context, builder, source).data
        cgutils.raw_memcpy(builder, builder.inttoptr(to, _BYTE.as_pointer()), begin, n, 1)
        return context.get_dummy_value()

    return signature, generate


@emits(types.uint64, types.float64)
def bits_of(builder, value):
    """Return the bits of a double as a uint64."""
    return builder.bitcast(value, _WORD)


def _print(context, builder, to, form: str, *arguments):
    """Call snprintf; return the address of the terminating zero."""
    text, size = _BYTE.as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(size, [text, _WORD, text], var_arg=True)
    function = cgutils.get_or_insert_function(builder.module, kind, "snprintf")
    target = builder.inttoptr(to, text)
    room = ir.Constant(_WORD, _LONGEST)
    count = builder.call(function, [target, room, context.insert_const_string(builder.module, form), *arguments])
    return builder.add(to, builder.sext(count, _WORD))


@intrinsic
def print_fixed(typingctx, to, decimals, value):
    """Write a double as ``%.{decimals}f``."""

    def generate(context, builder, signature, arguments):
        to, decimals, value = arguments
        return _print(context, builder, to, "%.*f", builder.trunc(decimals, ir.IntType(32)), value)

    return types.intp(types.intp, types.intp, types.float64), generate


@intrinsic
def print_general(typingctx, to, value):
    """Write a double as ``%g``."""

    def generate(context, builder, signature, arguments):
        return _print(context, builder, arguments[0], "%g", arguments[1])

    return types.intp(types.intp, types.float64), generate


@intrinsic
def where_is(typingctx, text, at, character):
    """Return the bit mask (uint64) of `character` in ``text[at : at + 64]``."""
    if not _is_bytes(text):
        return None
    signature = types.uint64(text, types.intp, types.uint8)

    def generate(context, builder, signature, arguments):
        array, index, wanted = arguments
        element = _element(context, builder, signature.args[0], array, index)
        pointer = builder.bitcast(element, _CHARACTERS.as_pointer())
        characters = builder.load(pointer)
        characters.align = 1
        everywhere = broadcast(builder, wanted, _CHARACTERS)
        return builder.bitcast(builder.icmp_unsigned("==", characters, everywhere), _WORD)

    return signature, generate
