"""Jitted loops over codes of columns; see `f5py.io.arrow.numbering`."""

from f5py.jit.kernel import kernel


@kernel
def renumber(indices, out, number_of, values):
    """Renumber the different `indices` in the order of their first occurrence; return how many there are.

    Parameters
    ----------
    indices : int32, shape (n,)
        Each is below `n_codes`.
    out : int32, shape (n,)
        Filled with the new number of every element.
    number_of : int32, shape (n_codes,)
        -1 at first; filled with the new number of every index that occurs.
    values : int32, with room for all that occur
        Filled with the index for every new number.
    """
    n_values = 0
    for i in range(indices.shape[0]):
        index = indices[i]
        if number_of[index] < 0:
            number_of[index] = n_values
            values[n_values] = index
            n_values += 1
        out[i] = number_of[index]
    return n_values
