"""Columns of the table of hits, one int64 row a hit.

``FIRST`` and ``COUNT`` say which anchors of the read a hit has, ``OPS`` and ``N_OPS`` which operations of its CIGAR
strings. Coordinates are 0-based and half-open; those of the query are on the read as it was sequenced. ``DIVERGENCE``
is a fixed-point number with `DIVERGENCE_BITS` bits after the point, which holds every float32 between 0 and 1 exactly.
"""

CONTIG, REVERSE, QS, QE, RS, RE, FIRST, COUNT, SCORE, SCORE0, HASH = range(11)
ID, PARENT, SUBSC, N_SUB, MLEN, BLEN = range(11, 17)
SPLIT, SPLIT_INV, INVERSION, RETAINED, DIVERGENCE = range(17, 22)
ALIGNED, DP_SCORE, DP_MAX, DP_MAX2, N_AMBI, OPS, N_OPS, N_GAP, N_GAPOPEN, MAPQ, PRIMARY, READ = range(22, 34)
N_FIELDS = 34

DIVERGENCE_BITS = 60
#: Parent of a hit without one: dropped, or to be its own when hits are numbered again.
NO_PARENT = -1
OWN_PARENT = -2
