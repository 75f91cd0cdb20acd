"""The aligner as a plain program over a full table of bands: slow, obvious, and exact where f5c is.

Or exact where the fast aligners are: they add up the small terms first, all in single precision, with multiplications
and additions fused. The two ways differ in the last digit of a score, which decides between paths that tie.
"""

import math

import numpy as np

_DIAGONAL, _UP, _LEFT = range(3)


def _fused(a, b, c):
    """Compute a * b + c of floats, rounded once: the product is exact in double precision."""
    return np.float32(np.float64(a) * np.float64(b) + np.float64(c))


def align(event_mean, kmer_rank, model, shift, scale, bandwidth=100, single=False):
    """Aligned pairs in order as an array (n, 2), and None or the reason why the alignment is rejected.

    With `single`, scores have the rounding of the fast aligners.
    """
    n, m, half = len(event_mean), len(kmer_rank), bandwidth // 2
    f = np.float32
    epk = n / m
    lp_skip = math.log(1e-10)
    lp_stay = math.log(1 - 1 / (epk + 1))
    lp_step = math.log(1 - math.exp(lp_skip) - math.exp(lp_stay))
    lp_trim = math.log(0.01)
    level = (f(scale) * model.level_mean[kmer_rank] + f(shift)).astype(f)
    stdv, ln_stdv = model.level_stdv[kmer_rank], model.ln_stdv[kmer_rank]

    if single:
        level = _fused(f(scale), model.level_mean[kmer_rank], f(shift))
        inverse = f(math.sqrt(0.5)) / stdv
        constant = f(-0.918938) - ln_stdv
        lp_skip, lp_stay, lp_step, lp_trim = f(lp_skip), f(lp_stay), f(lp_step), f(lp_trim)

    event_mean = np.asarray(event_mean, f)

    def emission(e, j):
        if single:
            z = (event_mean[e] - level[j]) * inverse[j]
            return _fused(-z, z, constant[j])
        z = (event_mean[e] - level[j]) / stdv[j]
        return (f(-0.918938) - ln_stdv[j]) - (f(0.5) * z) * z

    missing = f(-np.inf)
    score = np.full((n + 1, m + 1), missing)  # of event e and k-mer j at [e + 1, j + 1]
    score[0, 0], score[1, 0] = 0, lp_trim
    direction = np.empty((n, m), np.int8)
    corner = (half, -1 - half)
    corners = {0: (half - 1, -1 - half), 1: corner}

    def cell(e, j):
        return score[e + 1, j + 1] if -1 <= e < n and -1 <= j < m else missing

    def at(band, e, j):
        """Scores of cells that lie in that band."""
        offset = j - corners[band][1]
        return np.where((offset >= 0) & (offset < bandwidth), score[e + 1, j + 1], missing)

    for band in range(2, n + m + 2):
        e0, j0 = corner
        lower_left, upper_right = cell(e0, j0), cell(e0 - bandwidth + 1, j0 + bandwidth - 1)
        right = band % 2 == 1 if lower_left == upper_right == missing else lower_left < upper_right
        corner = (e0, j0 + 1) if right else (e0 + 1, j0)
        corners[band] = corner
        offsets = np.arange(bandwidth)
        e, j = corner[0] - offsets, corner[1] + offsets
        before_all = e[(j == -1) & (e >= 0) & (e < n)]
        score[before_all + 1, 0] = f(lp_trim) * f(before_all + 1) if single else lp_trim * (before_all + 1)
        inside = (e >= 0) & (e < n) & (j >= 0) & (j < m)
        e, j = e[inside], j[inside]
        from_diagonal, from_up, from_left = at(band - 2, e - 1, j - 1), at(band - 1, e - 1, j), at(band - 1, e, j - 1)
        lp = emission(e, j)
        if single:
            diagonal, up, left = from_diagonal + (lp_step + lp), from_up + (lp_stay + lp), from_left + lp_skip
        else:
            d = np.float64
            diagonal = f(d(from_diagonal) + lp_step + d(lp))
            up = f(d(from_up) + lp_stay + d(lp))
            left = f(d(from_left) + lp_skip)
        best = np.maximum(np.maximum(diagonal, up), left)
        score[e + 1, j + 1] = best
        direction[e, j] = np.where(left == best, _LEFT, np.where(up == best, _UP, _DIAGONAL))

    best, e = missing, -1
    for event in range(n):
        s = at(event + m + 1, event, m - 1)
        s = _fused(f(n - event), f(lp_trim), s) if single else f(float(s) + (n - event) * lp_trim)
        if s > best:
            best, e = s, event
    j = m - 1
    pairs, gap, longest = [], 0, 0
    while e >= 0 and j >= 0:
        pairs.append((j, e))
        came = direction[e, j]
        gap = gap + 1 if came == _LEFT else 0
        longest = max(longest, gap)
        if came != _UP:
            j -= 1
        if came != _LEFT:
            e -= 1
    pairs.reverse()
    if not pairs or pairs[0][0] != 0:
        return pairs, "not spanning"
    if np.mean([emission(e, j) for j, e in pairs]) < -5:
        return pairs, "low emission"
    if longest > 50:
        return pairs, "long gap"
    return pairs, None
