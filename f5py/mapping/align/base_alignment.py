r"""Base alignment of hits: the stretches between their anchors, and the ends of the read.

Scores are those of two affine gaps (Li, Bioinformatics 34:3094, 2018): a gap of l bases costs
:math:`\min(q + e l, q_2 + e_2 l)`. With H the score at a cell, i on the target and j on the query,

.. math::
    D_k(i, j) &= \max(H(i-1, j) - q_k, D_k(i-1, j)) - e_k \\
    I_k(i, j) &= \max(H(i, j-1) - q_k, I_k(i, j-1)) - e_k \\
    H(i, j) &= \max(H(i-1, j-1) + s(i, j), D_1, I_1, D_2, I_2)

Of equal values the first of this list is taken in gaps and right ends, the last in left ends, which are aligned
backwards. Only cells with :math:`|i - j|` up to the band are computed. The ends of a read go as far as the best cell,
or until the score has dropped.

Spliced reads have no band, one affine gap, and introns J of any length, which begin behind a donor and end at an
acceptor:

.. math::
    J(i, j) &= \max(H(i-1, j) + donor(i-1) - q_2, J(i-1, j)) \\
    H(i, j) &= \max(H(i-1, j-1) + s(i, j), D, I, J + acceptor(i))

Both are 0 at GT..AG, or at CT..AC for a transcript on the other strand, and negative elsewhere; annotated introns get a
bonus. Hits are aligned for both strands of the transcript, and the better alignment stays.

`_alignment_numba` and `_spliced_alignment_numba` compute this with vectors of bytes; tests/mapping/plain_alignment.py
has it cell by cell.
"""
