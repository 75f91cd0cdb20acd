"""Kernel for the ranks of successive k-mers."""

from f5py.jit.kernel import exact_inner


@exact_inner
def next_rank(rank, code, n_letters, highest, reverse):
    """Return the rank of the next k-mer on the reference, which adds a base of that code.

    `highest` is ``n_letters ** (k - 1)``. On the reverse strand the base, as its complement, comes first.
    """
    return rank // n_letters + code * highest if reverse else rank % highest * n_letters + code
