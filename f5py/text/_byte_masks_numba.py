"""Finding characters 64 at a time in Numba kernels.

``where_is(text, at, character)`` returns a uint64 whose bit i says whether ``text[at + i]`` is the character; the
array must reach 64 bytes beyond `at`. LLVM turns the comparison into whatever vector instructions the processor has.
"""

from __future__ import annotations

from f5py.jit.instructions import intrinsic, ir, types

#: Its calls take one argument less than the functions that it decorates, which type checkers cannot know.

#: Characters per mask.
LANES = 64

_BYTE = ir.IntType(8)
_MASK = ir.IntType(LANES)
_VECTOR = ir.VectorType(_BYTE, LANES)


@intrinsic
def where_is(typingctx, text, at, character):
    """Mark the places in ``text[at : at + 64]`` that hold `character`."""
    if not isinstance(text, types.Array) or text.dtype != types.uint8 or text.ndim != 1:
        return None
    signature = types.uint64(text, types.intp, types.uint8)

    def generate(context, builder, signature, arguments):
        array, index, wanted = arguments
        view = context.make_array(signature.args[0])(context, builder, array)
        pointer = builder.bitcast(builder.gep(view.data, [index]), _VECTOR.as_pointer())
        characters = builder.load(pointer)
        characters.align = 1
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(undefined, wanted, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        everywhere = builder.shuffle_vector(first, undefined, zeros)
        return builder.bitcast(builder.icmp_unsigned("==", characters, everywhere), _MASK)

    return signature, generate
