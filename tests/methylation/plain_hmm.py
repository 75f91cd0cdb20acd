"""The hidden Markov model in double precision and log space, step by step and path by path."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from f5py.core.noise import FREEDOM_LESS_TWO, INDEPENDENT, STUDENT, STUDENT_PEAK, Noise

P_SKIP, P_BAD, P_FROM_BAD, P_SKIP_SELF, P_FROM_SKIP = 0.0025, 0.001, (1 - 0.001) / 3, 0.3, 0.7
ln = math.log


def p_stay_of(events_per_base: float) -> float:
    return max(1 - 1 / events_per_base, 1e-3)


def background(count: int) -> float:
    if count == 0:
        return ln(0.5)
    return ln(0.5) - 3 + ln(0.1) + (count - 1) * (ln(0.9) - 3)


def ln_density(noise: Noise, z: Any, before: Any = None, rho: float = 0.0) -> Any:
    """Natural logarithm of the density of residuals `z`, after the residuals `before` if these are known."""
    spread = 1.0
    if before is not None:
        spread = math.sqrt(1.0 - rho**2)
        z = (z - rho * before) / spread
    if noise.tails == STUDENT:
        return ln(STUDENT_PEAK) - 4.0 * np.log1p(z * z / FREEDOM_LESS_TWO) - ln(spread)
    return -0.5 * ln(2 * math.pi) - 0.5 * z * z - ln(spread)


def emission(events, mean, stdv, i: int, j: int, left: int | None, noise: Noise) -> float:
    """Logarithm of the density of event i in k-mer j; `left` is the k-mer whose match state has event i - 1, if any."""
    z = (events[i] - mean[j]) / stdv[j]
    if left is None:
        return ln_density(noise, z) - ln(stdv[j])
    before = (events[i - 1] - mean[left]) / stdv[left]
    return ln_density(noise, z, before, noise.stay if left == j else noise.step) - ln(stdv[j])


def plain_forward(events, mean, stdv, events_per_base: float, noise: Noise = INDEPENDENT) -> float:
    """Log-likelihood by the textbook recursion; states M, B and K of each k-mer."""
    p_stay = p_stay_of(events_per_base)
    p_step = 1 - p_stay - P_SKIP - P_BAD
    n, m = len(events), len(mean)
    steps = np.arange(m - 1) * ln(P_SKIP_SELF)
    residuals = (np.asarray(events)[:, None] - mean) / stdv
    M = np.full((n + 1, m), -np.inf)
    B, K = M.copy(), M.copy()
    total = -np.inf
    for i in range(1, n + 1):
        z = residuals[i - 1]
        free = np.full(m, background(i - 1))
        free[1:] = np.logaddexp(B[i - 1, :-1] + ln(P_FROM_BAD), K[i - 1, :-1] + ln(P_FROM_SKIP))
        free = np.logaddexp(free, B[i - 1] + ln(P_FROM_BAD))
        M[i] = free + ln_density(noise, z)
        if i > 1:
            before = residuals[i - 2]
            M[i] = np.logaddexp(M[i], M[i - 1] + ln(p_stay) + ln_density(noise, z, before, noise.stay))
            after_step = M[i - 1, :-1] + ln(p_step) + ln_density(noise, z[1:], before[:-1], noise.step)
            M[i, 1:] = np.logaddexp(M[i, 1:], after_step)
        M[i] -= np.log(stdv)
        B[i] = np.logaddexp(M[i - 1], B[i - 1]) + ln(P_BAD)
        begun = np.logaddexp(M[i, :-1] + ln(P_SKIP), B[i, :-1] + ln(P_FROM_BAD))
        K[i, 1:] = np.logaddexp.accumulate(begun - steps) + steps  # skips go on and on
        last = np.logaddexp.reduce([M[i, -1], B[i, -1], K[i, -1]])
        total = np.logaddexp(total, last + background(n - i))
    return float(total)


def all_paths(events, mean, stdv, events_per_base: float, noise: Noise = INDEPENDENT) -> Iterator[float]:
    """Yield the probability of every path from the entry to the last k-mer; for tiny windows only."""
    p_stay = p_stay_of(events_per_base)
    p_step = 1 - p_stay - P_SKIP - P_BAD
    n, m = len(events), len(mean)

    def density(i: int, j: int, left: int | None) -> float:
        return math.exp(emission(events, mean, stdv, i, j, left, noise))

    def onward(state: str, i: int, j: int, p: float) -> Iterator[float]:
        """Paths that have left `state` of k-mer j with event i, on which lies the probability p so far."""
        if j == m - 1:
            yield p * math.exp(background(n - 1 - i))
        if j + 1 < m:  # a skip is silent
            yield from onward("K", i, j + 1, p * {"M": P_SKIP, "B": P_FROM_BAD, "K": P_SKIP_SELF}[state])
        if i + 1 == n:
            return
        if state != "K":
            yield from onward("B", i + 1, j, p * P_BAD)
            to_same = p_stay if state == "M" else P_FROM_BAD
            yield from onward("M", i + 1, j, p * to_same * density(i + 1, j, j if state == "M" else None))
        if j + 1 < m:
            to_next = {"M": p_step, "B": P_FROM_BAD, "K": P_FROM_SKIP}[state]
            yield from onward("M", i + 1, j + 1, p * to_next * density(i + 1, j + 1, j if state == "M" else None))

    for i in range(n):
        yield from onward("M", i, 0, math.exp(background(i)) * density(i, 0, None))
