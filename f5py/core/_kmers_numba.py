"""The jitted step from one k-mer to the next."""

from f5py.jit.kernel import exact_inner


@exact_inner
def next_rank(rank, code, n_letters, highest, reverse):
    """Rank of the k-mer one position further on the reference, which adds a base of that code.

    `highest` is ``n_letters ** (k - 1)``. On the reverse strand the base, as its complement, is the k-mer's first one.
    """
    return rank // n_letters + code * highest if reverse else rank % highest * n_letters + code
