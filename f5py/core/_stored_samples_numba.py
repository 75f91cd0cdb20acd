"""Kernels that expand stored samples, perhaps zigzag-coded differences in StreamVByte (svb-zd)."""

import numpy as np

from f5py.jit.c_memory import address_of_data, load_int64, load_uint8, load_uint16
from f5py.jit.instructions import intrinsic, ir, types
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.vectors import broadcast
from f5py.jit.work_queue import claimed_indices, work_counter

#: Bytes of the four values of a control byte.
BYTES_OF_CONTROL = np.array([4 + sum(code >> shift & 3 for shift in (0, 2, 4, 6)) for code in range(256)], np.uint8)
#: Lanes.
_N = 8
#: Code bits of numbers beyond two bytes, in two control bytes.
_MORE_THAN_TWO = 0xAAAA
_BYTES, _SHORTS, _WORDS = (ir.VectorType(ir.IntType(bits), _N) for bits in (8, 16, 64))


_SIZES = [[1 + (control >> shift & 3) for shift in (0, 2, 4, 6)] for control in range(256)]
#: By control byte of four numbers of one or two bytes: bit offsets (a byte each) and bit masks (two bytes each).
_FIRST_BITS = (
    np.array([[8 * sum(one[:lane]) & 63 for lane in range(4)] for one in _SIZES], np.uint8).view(np.uint32).ravel()
)
_ALL_BITS = np.array([[0xFF if size == 1 else 0xFFFF for size in one] for one in _SIZES], "<u2").view(np.int64).ravel()


def _lanes(builder, vector, places):
    """Select lanes of a vector; the lane number `_N` gives zero."""
    zeros = ir.Constant(vector.type, [0] * _N)
    return builder.shuffle_vector(vector, zeros, ir.Constant(ir.VectorType(ir.IntType(32), _N), places))


def _store_sums(context, builder, array_type, coded, array, index, before):
    """Store the running sums of eight zigzag-coded differences; return the last one, as int64."""
    ones, zeros = ir.Constant(_SHORTS, [1] * _N), ir.Constant(_SHORTS, [0] * _N)
    sums = builder.xor(builder.lshr(coded, ones), builder.sub(zeros, builder.and_(coded, ones)))
    for distance in (1, 2, 4):  # each lane has the sum of twice as many differences then
        order = [lane - distance if lane >= distance else _N for lane in range(_N)]
        sums = builder.add(sums, _lanes(builder, sums, order))
    # added separately, so that the next eight depend on this addition only
    last = builder.sext(builder.extract_element(sums, ir.Constant(ir.IntType(32), _N - 1)), ir.IntType(64))
    sums = builder.add(sums, broadcast(builder, builder.trunc(before, ir.IntType(16)), _SHORTS))
    view = context.make_array(array_type)(context, builder, array)
    store = builder.store(sums, builder.bitcast(builder.gep(view.data, [index]), _SHORTS.as_pointer()))
    store.align = 2
    return builder.add(before, last)


@intrinsic
def _sums_of_bytes(typingctx, address, out, index, before):
    """Store the running sums, from `before` on, of eight zigzag-coded bytes; return the last one."""

    def generate(context, builder, signature, arguments):
        address, *others = arguments
        coded = builder.load(builder.inttoptr(address, _BYTES.as_pointer()))
        coded.align = 1
        return _store_sums(context, builder, signature.args[1], builder.zext(coded, _SHORTS), *others)

    return types.int64(types.int64, out, types.intp, types.int64), generate


@intrinsic
def _sums_of_words(typingctx, words, first_bits, all_bits, out, index, before):
    """Store the running sums of eight zigzag-coded differences in two words; see `_sums_of_bytes`."""

    def generate(context, builder, signature, arguments):
        words, first_bits, all_bits, *others = arguments
        halves = [broadcast(builder, builder.extract_value(words, i), _WORDS) for i in range(2)]
        both = ir.Constant(ir.VectorType(ir.IntType(32), _N), [0, 0, 0, 0, _N, _N, _N, _N])
        coded = builder.shuffle_vector(*halves, both)
        coded = builder.trunc(builder.lshr(coded, builder.zext(_joined(builder, first_bits, _BYTES), _WORDS)), _SHORTS)
        coded = builder.and_(coded, _joined(builder, all_bits, _SHORTS))
        return _store_sums(context, builder, signature.args[3], coded, *others)

    return types.int64(words, first_bits, all_bits, out, types.intp, types.int64), generate


def _joined(builder, halves, kind):
    """Make a vector of two integers with four lanes each."""
    both = ir.Constant(ir.VectorType(halves.type.element, 2), ir.Undefined)
    for i in range(2):
        both = builder.insert_element(both, builder.extract_value(halves, i), ir.Constant(ir.IntType(32), i))
    return builder.bitcast(both, kind)


@exact_inner
def _expand_some(control, at, n, level, out, to):
    """Expand n numbers; return the address after them and the level."""
    for i in range(n):
        size = 1 + (np.int64(load_uint8(control + i // 4)) >> (2 * (i % 4)) & 3)
        coded = np.int64(0)
        for j in range(size):
            coded |= np.int64(load_uint8(at + j)) << (8 * j)
        level += (coded >> 1) ^ -(coded & 1)
        out[to + i] = np.int16(level)
        at += size
    return at, level


@exact_inner
def expand_svb_zd(address, out, to, n):
    """Expand n samples: zigzag-coded differences in StreamVByte of verified size."""
    control, at = address, address + (n + 3) // 4
    level = np.int64(0)
    i = 0
    while i + _N <= n:
        codes = load_uint16(control)
        if codes == 0:  # a byte each
            level = _sums_of_bytes(at, out, to + i, level)
            at += _N
        elif codes & _MORE_THAN_TWO == 0 and i + 2 * _N <= n:  # loads may reach into the next bytes
            first, last = codes & 255, codes >> 8
            behind = at + BYTES_OF_CONTROL[first]
            level = _sums_of_words(
                (load_int64(at), load_int64(behind)), (_FIRST_BITS[first], _FIRST_BITS[last]),
                (_ALL_BITS[first], _ALL_BITS[last]), out, to + i, level,
            )  # fmt: skip
            at = behind + BYTES_OF_CONTROL[last]
        else:
            at, level = _expand_some(control, at, _N, level, out, to + i)
        control += _N // 4
        i += _N
    _expand_some(control, at, n - i, level, out, to + i)


@exact_inner
def expand_pieces(stored, read, out, to):
    """Write the samples of a read to an array, from `to` on."""
    for piece in range(stored.pieces[read], stored.pieces[read + 1]):
        place, n = stored.places[piece], stored.n_samples[piece]
        if stored.is_packed[piece]:
            expand_svb_zd(address_of_data(stored.values) + place, out, to, n)
        else:
            for j in range(n):  # compiled ten times faster than an assignment to a slice
                out[to + j] = stored.values[place + j]
        to += n


@exact_kernel
def copy_samples(queue, reads, stored, places, samples):
    """Expand the samples of `reads` to their offsets in `samples`.

    Parameters
    ----------
    places : int64
        Offset of each of the `reads` in `samples`.
    """
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        expand_pieces(stored, reads[i], samples, places[i])
