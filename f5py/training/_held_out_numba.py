"""Kernels of held-out data; see `f5py.training.held_out`."""

import numpy as np

from f5py.jit.kernel import kernel

#: A letter of a site whose state is not known.
_UNKNOWN = ord("a")


@kernel
def held_out(text, offsets, share, chosen):
    """Mark the held-out fraction of names in `chosen`, reproducibly by a hash.

    Parameters
    ----------
    text, offsets : uint8, int64, shape (offsets[-1],), (n + 1,)
        Names.
    share : float
        From 0 to 1.
    chosen : bool, shape (n,)
        Filled.
    """
    limit = np.uint64(share * 2.0**32)
    for i in range(chosen.shape[0]):
        value = np.uint32(2166136261)
        for at in range(offsets[i], offsets[i + 1]):
            value = np.uint32((np.uint32(value ^ np.uint32(text[at]))) * np.uint32(16777619))
        # the last bits of similar names are mixed into the first ones
        value = np.uint32(value ^ (value >> np.uint32(15))) * np.uint32(0x2C1B3C6D)
        value = np.uint32(value) ^ (np.uint32(value) >> np.uint32(12))
        chosen[i] = np.uint64(np.uint32(value)) < limit


@kernel
def fill_uses(alignments, numbers, block_bases, first_block, is_pile, is_tested, read_is_tested, uses):
    """Fill `uses` with the use of every base of the reference segments; see `f5py.training.held_out`.

    Parameters
    ----------
    alignments
        Arrays of a `ReadBatch`.
    numbers : int64, shape (n_contigs,)
        Numbers of the contigs in `first_block`, or -1.
    block_bases : int
        Bases of a block.
    first_block : int64
        Of each contig.
    is_pile, is_tested : bool
        Of each block.
    read_is_tested : bool, shape (n,)
        For bases outside of piles.
    uses : uint8
        0 for training, 1 for testing.
    """
    for read in range(read_is_tested.shape[0]):
        offset, stop = alignments.reference_offsets[read], alignments.reference_offsets[read + 1]
        contig = alignments.contig[read]
        number = numbers[contig] if contig >= 0 else -1
        for at in range(offset, stop):
            tested = read_is_tested[read]
            if number >= 0:
                block = first_block[number] + (alignments.start[read] + at - offset) // block_bases
                if block < first_block[number + 1] and is_pile[block]:
                    tested = is_tested[block]
            uses[at] = 1 if tested else 0


@kernel
def hide(reference, uses, use, shown):
    """Copy the reference to `shown`, masking bases of other uses as sites of unknown state.

    Parameters
    ----------
    reference : uint8, shape (n,)
        Letters.
    uses : uint8, shape (n,)
        See `fill_uses`.
    use : int
        The visible one.
    shown : uint8, shape (n,)
        Filled.
    """
    for at in range(reference.shape[0]):
        shown[at] = reference[at] if uses[at] == use else _UNKNOWN
