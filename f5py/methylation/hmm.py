"""Scoring events under a sequence: the forward algorithm over the model of `f5py.core.hmm`.

The score of events 1 to n under k-mers 1 to m is the natural logarithm of the probability of all paths together. A path
enters the match state of the first k-mer with some event, and ends in any state of the last k-mer after any event. A
background explains the events before the entry and after the end. No background event has probability
`P_NO_BACKGROUND`, the first one `P_FIRST_BACKGROUND`, and every further one `P_MORE_BACKGROUND`. Each has a density of
exp(`LN_BACKGROUND_DENSITY`). With b(i) for the probability of i background events::

    b(0) = 1/2
    b(i) = 1/2 * 1/10 * exp(-3) * (9/10 * exp(-3)) ** (i - 1)

    M(i, 1) = emission(i, 1) * (b(i - 1) + terms from row i - 1)
    score = ln sum over i of (M(i, m) + B(i, m) + K(i, m)) * b(n - i)

A group's log-likelihood ratio is the difference of its events' scores with all sites methylated and with none
(`f5py.methylation.calls`).

Loops: `f5py.methylation._hmm_numba`. Source: `src/hmm.c` of f5c.
"""

P_NO_BACKGROUND = 0.5
P_FIRST_BACKGROUND = 0.5 * 0.1
P_MORE_BACKGROUND = 0.9
LN_BACKGROUND_DENSITY = -3.0
