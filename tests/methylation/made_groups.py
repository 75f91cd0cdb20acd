"""Made groups of many sites whose events stray from their window, and their scores in double precision."""

# ruff: noqa: NPY002 (in compiled code, NumPy's global generator is one of Numba's own, which is seeded here)
from __future__ import annotations

import math

import numba
import numpy as np

from f5py.methylation.hmm import NEVER, Emissions, ForwardScratch, forward_lanes, work_size
from f5py.pore_model import builtin

from ..compiled import compiled

forward_lanes, work_size = map(compiled, (forward_lanes, work_size))

LANES = 16
#: What may happen to the events, any of them together: pores that stall, steps back and forth over several bases,
#: events from elsewhere in between, and outliers, alone and in a row.
STALLS, JUMPS, INSERTED, OUTLIERS = 1, 2, 4, 8
_K = 6
_MAX_BASES = 10 + 200 + 11
_MAX_EVENTS = 4000
_EVENTS_PER_BASE = 1.8
_LOG2_E = math.log2(math.e)


@numba.njit
def _make_window(codes):
    """Fill both rows of `codes` with a window of 8 to 30 sites, methylated and not; return its length."""
    for i in range(codes.shape[1]):
        codes[:, i] = (0, 1, 2, 4)[np.random.randint(0, 4)]
    nearest = np.random.randint(2, 10)
    position = last = 10
    for _ in range(np.random.randint(8, 31)):
        if position > 210:
            break
        codes[:, position] = 1
        codes[:, position + 1] = 2
        last = position
        position += np.random.randint(nearest, 11)
    for i in range(last + 10):
        if codes[1, i] == 1 and codes[1, i + 1] == 2:
            codes[0, i] = 3
    return last + 11


@numba.njit
def _rank(codes, j):
    rank = 0
    for i in range(_K):
        rank = rank * 5 + codes[j + i]
    return rank


@numba.njit
def _make_events(codes, n_kmers, kind, var, level_mean, level_stdv, events):
    """Fill `events` with those of the k-mers in `codes`; return their number."""
    noise = var * np.random.uniform(0.7, 1.6)
    staying = np.random.uniform(0.3, 0.8)
    count = 0
    j = 0
    while j < n_kmers and count < 1500:
        repeats = 0
        if np.random.random() < 0.85:
            repeats = 1
            while np.random.random() < staying and repeats < 60:
                repeats += 1
        if kind & STALLS and np.random.random() < 0.01:
            repeats = np.random.randint(10, 80)
        rank = _rank(codes, j)
        for _ in range(repeats):
            events[count] = level_mean[rank] + noise * level_stdv[rank] * np.random.normal()
            count += 1
        if kind & JUMPS and np.random.random() < 0.02:
            j = max(0, j + np.random.randint(-12, 13))
        if kind & INSERTED and np.random.random() < 0.01:
            for _ in range(np.random.randint(5, 60)):
                events[count] = np.random.uniform(60.0, 120.0)
                count += 1
        j += 1
    while count < 12:
        events[count] = 90.0
        count += 1
    if kind & OUTLIERS:
        share = (0.01, 0.05, 0.2, 0.5)[np.random.randint(0, 4)]
        lowest, highest = (20.0, 400.0) if np.random.random() < 0.5 else (50.0, 140.0)
        i = 0
        while i < count:
            if np.random.random() < share:
                n = 1 if np.random.random() < 0.7 else np.random.randint(1, 40)
                for at in range(i, min(count, i + n)):
                    events[at] = np.random.uniform(lowest, highest)
                i += n
            i += 1
    return count


@numba.njit
def _log2_background(count):
    density = -3.0 * _LOG2_E
    return -1.0 if count == 0 else -1.0 + math.log2(0.1) + density + (count - 1) * (math.log2(0.9) + density)


@numba.njit
def _score_in_doubles(events, mean, stdv, events_per_base):
    """Log-likelihood by the forward algorithm in double precision, with one scale a row."""
    p_stay = max(1.0 - 1.0 / events_per_base, 1e-3)
    p_step = 1.0 - p_stay - 0.0025 - 0.001
    n_kmers = mean.shape[0]
    match, wrong, skipped = np.zeros(n_kmers), np.zeros(n_kmers), np.zeros(n_kmers)
    scale, greatest, score = 0.0, 1.0, -np.inf
    peak = (-0.918938 - np.log(stdv)) * _LOG2_E
    stretch = math.sqrt(0.5 * _LOG2_E) / stdv
    for row in range(events.shape[0]):
        exponent = peak - ((events[row] - mean) * stretch) ** 2
        entry = exponent[0] + _log2_background(row)
        new_scale = entry if row == 0 else max(scale + math.log2(greatest), entry)
        change = 0.0 if row == 0 else 2.0 ** (scale - new_scale)
        scale, greatest = new_scale, 0.0
        entered = 2.0 ** (entry - scale)
        match_before = wrong_before = skipped_before = match_left = wrong_left = skipped_left = 0.0
        for j in range(n_kmers):
            into = p_stay * match[j] + p_step * match_before + 0.333 * (wrong[j] + wrong_before) + 0.7 * skipped_before
            skipped_left = 0.0025 * match_left + 0.333 * wrong_left + 0.3 * skipped_left
            # an event that fits so badly is a bad one on some better path
            emission = math.exp(exponent[j] / _LOG2_E) if exponent[j] > -150.0 else 0.0
            match_left = emission * change * into + entered
            wrong_left = 0.001 * change * (match[j] + wrong[j])
            match_before, wrong_before, skipped_before = match[j], wrong[j], skipped[j]
            match[j], wrong[j], skipped[j] = match_left, wrong_left, skipped_left
            greatest = max(greatest, match_left + wrong_left)
            entered = 0.0
        end = match_left + wrong_left + skipped_left
        if end > 0.0:
            end = math.log2(end) + scale + _log2_background(events.shape[0] - 1 - row)
            score = max(score, end) + math.log2(1.0 + 2.0 ** -abs(score - end))
    return score / _LOG2_E


@numba.njit(nogil=True, cache=True)
def _compare(first_seed, kind, level_mean, level_stdv, events, arrays, n_events, n_kmers, in_doubles):
    """Make the eight groups of a pack, fill what `forward_lanes` takes, and score both hypotheses in doubles."""
    inverse, offset, constant = arrays
    codes = np.empty((2, _MAX_BASES), np.uint8)
    values = np.empty(_MAX_EVENTS, np.float32)
    events[:] = 0.0
    inverse[:] = 0.0
    offset[:] = 0.0
    constant[:] = NEVER
    for group in range(LANES // 2):
        np.random.seed(first_seed + group)
        kmers = _make_window(codes) - _K + 1
        var = np.random.uniform(0.8, 1.8)
        count = _make_events(codes[np.random.randint(0, 2)], kmers, kind, var, level_mean, level_stdv, values)
        for hypothesis in range(2):
            lane = 2 * group + hypothesis
            n_events[lane], n_kmers[lane] = count, kmers
            mean, stdv = np.empty(kmers), np.empty(kmers)
            for j in range(kmers):
                rank = _rank(codes[hypothesis], j)
                mean[j], stdv[j] = level_mean[rank], level_stdv[rank] * var
                inverse[LANES * j + lane] = math.sqrt(0.5 * _LOG2_E) / stdv[j]
                offset[LANES * j + lane] = -mean[j] * math.sqrt(0.5 * _LOG2_E) / stdv[j]
                constant[LANES * j + lane] = (-0.918938 - math.log(stdv[j])) * _LOG2_E
            for i in range(count):
                events[LANES * i + lane] = values[i]
            in_doubles[lane] = _score_in_doubles(values[:count], mean, stdv, _EVENTS_PER_BASE)


def compare_ratios(first_seed: int, n_packs: int, kind: int) -> tuple[np.ndarray, np.ndarray]:
    """Ratios of ``8 * n_packs`` made groups by `forward_lanes`, and in double precision."""
    model = builtin("r9.4_450bps.cpg.6mer")
    levels = model.level_mean.astype(np.float64), model.level_stdv.astype(np.float64)
    events = np.empty(_MAX_EVENTS * LANES, np.float32)
    arrays = tuple(np.empty(_MAX_BASES * LANES, np.float32) for _ in range(3))
    n_events, n_kmers = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    work, scores = np.empty(work_size(_MAX_BASES), np.float32), np.empty(LANES, np.float32)
    ends, scales = np.empty_like(events), np.empty_like(events)
    events_per_base = np.full(LANES, _EVENTS_PER_BASE)
    in_doubles = np.empty(LANES)
    found = np.empty((2, n_packs, LANES // 2))
    for pack in range(n_packs):
        seed = first_seed + 8 * pack
        _compare(seed, kind, *levels, events, arrays, n_events, n_kmers, in_doubles)
        scratch = ForwardScratch(work, ends, scales)
        forward_lanes(events, Emissions(*arrays), n_events, n_kmers, events_per_base, None, scratch, scores)
        for of, values in zip(found[:, pack], (scores.astype(np.float64), in_doubles), strict=True):
            of[:] = values[0::2] - values[1::2]
    return found[0].ravel(), found[1].ravel()
