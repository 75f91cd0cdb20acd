"""Table of hits, one int64 row a hit.

``FIRST`` and ``COUNT`` say which anchors of the read a hit has, ``OPS`` and ``N_OPS`` which operations of its CIGAR
strings. Coordinates are 0-based and half-open; those of the query are on the read as it was sequenced. ``DIVERGENCE``
is a fixed-point number with `DIVERGENCE_BITS` bits after the point, which holds every float32 between 0 and 1 exactly.
"""

import numpy as np

from f5py.jit.kernel import exact_inner

CONTIG, REVERSE, QS, QE, RS, RE, FIRST, COUNT, SCORE, SCORE0, HASH = range(11)
ID, PARENT, SUBSC, N_SUB, MLEN, BLEN = range(11, 17)
SPLIT, SPLIT_INV, INVERSION, RETAINED, DIVERGENCE = range(17, 22)
ALIGNED, DP_SCORE, DP_MAX, DP_MAX2, N_AMBI, OPS, N_OPS, N_GAP, N_GAPOPEN, MAPQ, PRIMARY, READ = range(22, 34)
#: 1 if the read has its transcript's strand, 2 if the other one, 0 if that is not known.
TRANSCRIPT = 34
N_FIELDS = 35

DIVERGENCE_BITS = 60
#: Parent of a hit without one: dropped, or to be its own when hits are numbered again.
NO_PARENT = -1
OWN_PARENT = -2

_LOW = np.uint64(0xFFFFFFFF)
_STRAND = np.uint64(63)


@exact_inner
def set_coordinates(hit, x, y, read_length):
    """Set strand, coordinates and lengths of a hit from its anchors."""
    first = hit[FIRST]
    last = first + hit[COUNT] - 1
    span = (y[first] >> 32) & 0xFF
    hit[REVERSE] = np.int64(x[first] >> _STRAND)
    hit[CONTIG] = np.int64((x[first] >> np.uint64(32)) & np.uint64(0x7FFFFFFF))
    hit[RS] = max(0, np.int64(x[first] & _LOW) + 1 - span)
    hit[RE] = np.int64(x[last] & _LOW) + 1
    begin = (y[first] & 0xFFFFFFFF) + 1 - span
    end = (y[last] & 0xFFFFFFFF) + 1
    if hit[REVERSE]:
        hit[QS] = read_length - end
        hit[QE] = read_length - begin
    else:
        hit[QS] = begin
        hit[QE] = end
    mlen = span
    blen = span
    for i in range(first + 1, last + 1):
        span = (y[i] >> 32) & 0xFF
        t = np.int64(x[i] & _LOW) - np.int64(x[i - 1] & _LOW)
        q = (y[i] & 0xFFFFFFFF) - (y[i - 1] & 0xFFFFFFFF)
        blen += max(t, q)
        mlen += span if t > span and q > span else min(t, q)
    hit[MLEN] = mlen
    hit[BLEN] = blen


@exact_inner
def copy_hit(hits, to, source):
    """Overwrite a row."""
    if to != source:
        for field in range(N_FIELDS):
            hits[to, field] = hits[source, field]
