"""Settings of the mapper: minimap2's presets, and the same numbers as arrays for compiled code.

The meaning and the defaults are those of minimap2 2.24 (Li, Bioinformatics 34:3094, 2018, and 37:4572, 2021).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.mapping.darwin.darwin_settings import DarwinSettings

# Places in the array of integers that compiled code gets.
K, W, HPC, MAX_MAX_OCC, OCC_DIST, MAX_GAP, BW, BW_LONG, MIN_CNT, MIN_SC = range(10)
BEST_N, MAX_SKIP, MAX_ITER, MATCH, MISMATCH, Q, E, Q2, E2, ZDROP, ZDROP_INV, MIN_DP_MAX = range(10, 22)
AVA, EQX, MID_OCC = range(22, 25)
SPLICED, DIRECTIONS, SPLICE_FLANK, NON_CANONICAL, JUNCTION_BONUS, MAX_CELLS, END_SEED_PENALTY, TRIM_ENDS = range(25, 33)
REACH_T, REACH_Q, STRANDS = range(33, 36)
N_INTEGERS = 36
# Directions of transcription: the read has the strand of its transcript, the other strand, or either.
FORWARD, BACKWARD, BOTH = 1, 2, 3
# Places in the array of float32 numbers.
Q_OCC_FRAC, PRI_RATIO, MASK, GAP_PENALTY = range(4)

#: What minimap2 offers no option for, or what nobody changes.
MIN_DP_LEN = 200
RESCUE_BASES = 1000
RESCUE_RATIO = 0.1
INNER_DISTANCE = 1000
RMQ_CAPACITY = 100_000
MAX_MATRIX_CELLS = 100_000_000
RANK_MIN_LENGTH = 500
RANK_FRACTION = 0.9
NAME_SEED = 11
N_SCORE = -1


class MapSettings(NamedTuple):
    """Parameters of mapping; the defaults are minimap2's ``-x map-ont``."""

    # k, w, hpc: minimizers: length, window, homopolymer compression
    k: int = 15
    w: int = 10
    hpc: bool = False
    # fraction of the most frequent minimizers that are passed over (``-f``); 1 or more is the threshold itself
    mid_occ_frac: float = 2e-4
    # min_mid_occ, max_mid_occ: bounds of that threshold (``-U``)
    min_mid_occ: int = 10
    max_mid_occ: int = 1_000_000
    # max_max_occ, occ_dist, q_occ_frac: rescue of frequent minimizers, one every `occ_dist` bases (``-e``); filter of
    # those frequent in the read
    max_max_occ: int = 4095
    occ_dist: int = 500
    q_occ_frac: float = 0.01
    # max_gap, bw, bw_long, min_cnt, min_sc, pri_ratio, best_n, mask: ``-g -r -n -m -p -N -M``
    max_gap: int = 5000
    bw: int = 500
    bw_long: int = 20000
    min_cnt: int = 3
    min_sc: int = 40
    pri_ratio: float = 0.8
    best_n: int = 5
    mask: float = 0.5
    # max_skip, max_iter: limits of the search for a predecessor in chaining
    max_skip: int = 25
    max_iter: int = 5000
    # match, mismatch, q, e, q2, e2, zdrop, zdrop_inv, min_dp_max: ``-A -B -O -E -z -s``
    match: int = 2
    mismatch: int = 4
    q: int = 4
    e: int = 2
    q2: int = 24
    e2: int = 1
    zdrop: int = 400
    zdrop_inv: int = 200
    min_dp_max: int = 80
    strands: int = 0  # of the reference: 0 for both, 1 for the forward one (``--for-only``), 2 for the other one
    min_mem: int = 0  # shortest exact match that is a seed; 0: seeds are minimizers
    ava: bool = False  # overlaps of reads: all chains, no alignment to oneself, each pair once
    eqx: bool = False
    # spliced: introns are aligned (``--splice``); directions: bits `FORWARD` and `BACKWARD` (``-u``)
    spliced: bool = False
    directions: int = 0
    splice_flank: bool = False  # a purine or pyrimidine beside GT..AG counts
    # max_gap_ref, non_canonical, junction_bonus: ``-G -C --junc-bonus``; 0 for `max_gap`
    max_gap_ref: int = 0
    non_canonical: int = 0
    junction_bonus: int = 0
    # max_cells: largest matrix of an alignment, 0 for any; end_seed_penalty, trim_ends: ``--end-seed-pen``,
    # ``--no-end-flt``
    max_cells: int = MAX_MATRIX_CELLS
    end_seed_penalty: int = 6
    trim_ends: bool = True
    # candidates and tiles in the place of minimizers and chains; a gap of l bases costs ``q + l * e``
    darwin: DarwinSettings | None = None


_HIFI = MapSettings(
    k=19, w=19, max_gap=10000, min_mid_occ=50, max_mid_occ=500, match=1, mismatch=4, q=6, e=2, q2=26, e2=1,
    min_dp_max=200,
)  # fmt: skip
_ONT = MapSettings()
_SPLICE = _ONT._replace(
    w=5, max_gap=2000, max_gap_ref=200_000, bw=200_000, bw_long=200_000, match=1, mismatch=2, q=2, e=1, q2=32, e2=0,
    zdrop=200, zdrop_inv=100, max_cells=0, spliced=True, directions=BOTH, splice_flank=True, non_canonical=9,
    junction_bonus=9,
)  # fmt: skip
_DARWIN = _ONT._replace(k=14, w=1, match=1, mismatch=1, q=0, e=1, q2=0, e2=1, darwin=DarwinSettings())
#: minimap2's presets by their names, and Darwin's: with what f5py has mended, and as published.
PRESETS = {
    "map-ont": _ONT,
    "map-pb": _ONT._replace(k=19, hpc=True),
    "map-hifi": _HIFI,
    "lr:hq": _HIFI._replace(match=2, mismatch=4, q=4, e=2, q2=24, e2=1, min_dp_max=80),
    "rna": _ONT._replace(k=14),
    "ava-ont": _ONT._replace(w=5, min_sc=100, pri_ratio=0.0, bw=2000, bw_long=2000, occ_dist=0, ava=True),
    "splice": _SPLICE,
    "splice:hq": _SPLICE._replace(mismatch=4, q=6, q2=24, junction_bonus=5),
    "cdna": _SPLICE,
    "darwin": _DARWIN,
    "darwin-paper": _DARWIN._replace(darwin=DarwinSettings(after_seed=False, spread=False)),
}


class Parameters(NamedTuple):
    """`MapSettings` as arrays."""

    integers: NDArray[np.int64]  # shape (N_INTEGERS,)
    floats: NDArray[np.float32]  # shape (4,)
    # shape (n,): what a chain pays where the distances on read and reference differ by ``index``, if the span does not
    # limit it; of spliced reads shape (2 * n,), the second half where the distance on the reference is the longer one
    gap_penalty: NDArray[np.int32]


def log2_approximation(values: NDArray) -> NDArray[np.float32]:
    """Approximate binary logarithm of positive integers, bit for bit that of minimap2."""
    pattern = np.asarray(values).astype(np.float32).view(np.int32)
    exponent = ((pattern >> 23) & 255).astype(np.float32) - np.float32(128)
    z = ((pattern & ~(255 << 23)) + (127 << 23)).view(np.float32)
    first = np.float32(-0.34484843) * z + np.float32(2.02466578)
    return exponent + (first * z - np.float32(0.67487759))


def gap_penalties(settings: MapSettings) -> NDArray[np.int32]:
    """Penalty of a chain for every difference of distances up to the largest bandwidth."""
    n = max(settings.bw, settings.bw_long) + 1
    difference = np.arange(n)
    per_base = np.float32(np.float64(np.float32(0.8)) * 0.01 * settings.k)
    logarithm = log2_approximation(difference + 1)
    logarithm[0] = 0
    linear = per_base * difference.astype(np.float32)
    penalties = (linear + np.float32(0.5) * logarithm).astype(np.int32)
    if settings.spliced:
        penalties = np.concatenate([penalties, np.minimum(linear, logarithm).astype(np.int32)])
    return penalties


def parameters(settings: MapSettings, mid_occ: int) -> Parameters:
    """Arrays for compiled code.

    Parameters
    ----------
    mid_occ : int
        Largest number of places of a minimizer that is always used.
    """
    s = settings
    reach_t = max(s.max_gap_ref or s.max_gap, s.bw)
    reach_q = s.max_gap if s.spliced else reach_t
    integers = np.array(
        [s.k, s.w, s.hpc, s.max_max_occ, s.occ_dist, s.max_gap, s.bw, s.bw_long, s.min_cnt, s.min_sc, s.best_n,
         s.max_skip, s.max_iter, s.match, s.mismatch, s.q, s.e, s.q2, s.e2, s.zdrop, s.zdrop_inv, s.min_dp_max,
         s.ava, s.eqx, mid_occ, s.spliced, s.directions, s.splice_flank, s.non_canonical, s.junction_bonus,
         s.max_cells, s.end_seed_penalty, s.trim_ends, reach_t, reach_q, s.strands],
        np.int64,
    )  # fmt: skip
    per_base = np.float32(np.float64(np.float32(0.8)) * 0.01 * s.k)
    floats = np.array([s.q_occ_frac, s.pri_ratio, s.mask, per_base], np.float32)
    return Parameters(integers, floats, gap_penalties(s))
