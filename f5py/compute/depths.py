"""Depth of the reads on the reference, and of the calls of sites, for the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.windows import Windows, sort_keys
from f5py.errors import DamagedValueError
from f5py.io.files.json_values import JsonObject

#: Stretches of equal length that the depth is summed in.
N_STRETCHES = 240
#: Positions whose sites are counted; of a longer reference they are chosen by a hash, alike in every run.
MOST_POSITIONS = 1 << 20
_HASH, _HASH_BITS = np.uint64(0x9E3779B97F4A7C15), 24
_MOST_PENDING = 1 << 18
_LIST = ("covered", "sites", "calls")


class Depths:
    """Sums over the run's windows, or all contigs, concatenated; memory does not grow with the run.

    Attributes
    ----------
    covered : int64, shape (n_stretches,)
        Aligned bases in each stretch of the reference.
    stretch : int
        Bases of a stretch; the last may be shorter.
    share : float
        Fraction of positions that are sampled for calls.
    """

    def __init__(self, contig_lengths: Sequence[int], windows: Windows | None = None) -> None:
        lengths = np.array(contig_lengths, np.int64)
        if windows is None:
            contig, start, end = np.arange(len(lengths)), np.zeros_like(lengths), lengths
        else:
            contig, start, end = windows.bounds()
            end = np.maximum(np.minimum(end, lengths[contig]), start)
        self._contig, self._start, self._length = contig, start, end - start
        self._places = sort_keys(contig, start)
        self._before = np.concatenate((np.zeros(1, np.int64), np.cumsum(self._length)))
        self.total = int(self._before[-1])
        self.stretch = max(-(-self.total // N_STRETCHES), 1)
        self.covered = np.zeros(max(-(-self.total // self.stretch), 1), np.int64)
        self.share = min(MOST_POSITIONS / max(self.total, 1), 1.0)
        self._limit = np.uint64(round(self.share * (1 << _HASH_BITS)))
        self._sites, self._calls = np.empty((2, 0), np.int64)
        self._pending: list[NDArray[np.int64]] = []
        self._n_pending = 0

    def add_alignments(self, contig: NDArray[np.integer], start: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        """Add alignments, 0-based and half-open."""
        low, high = self._along(contig, start), self._along(contig, end)
        first, last, n = low // self.stretch, high // self.stretch, len(self.covered) + 2
        # each end in its own stretch, and whole ones from the one after the first to the last
        parts = np.bincount(first, (first + 1) * self.stretch - low, n) - np.bincount(
            last, (last + 1) * self.stretch - high, n
        )
        whole = np.cumsum(np.bincount(first + 1, minlength=n) - np.bincount(last + 1, minlength=n))
        self.covered += (parts.astype(np.int64) + whole * self.stretch)[: len(self.covered)]

    def add_calls(self, contig: NDArray[np.integer], site: NDArray[np.int64]) -> None:
        """Add calls at 0-based positions."""
        places = sort_keys(contig, site)
        hashed = (places.view(np.uint64) * _HASH) >> np.uint64(64 - _HASH_BITS)
        self._pending.append(places[hashed < self._limit])
        self._n_pending += len(self._pending[-1])
        if self._n_pending > _MOST_PENDING:
            self._settle()

    def calls_of_sites(self) -> NDArray[np.int64]:
        """Return the number of calls of each sampled site with calls, in reference order."""
        self._settle()
        return self._calls

    def starts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return contig index and 0-based start of each stretch; empty for an empty reference."""
        along = np.arange(len(self.covered)) * self.stretch
        which = np.searchsorted(self._before, along[along < self.total], side="right") - 1
        return self._contig[which], self._start[which] + along[: len(which)] - self._before[which]

    def depth(self) -> NDArray[np.float64]:
        """Return the mean depth of each stretch."""
        edges = np.minimum(np.arange(len(self.covered) + 1) * self.stretch, max(self.total, 1))
        return self.covered / np.diff(edges)

    def join(self, other: Depths) -> None:
        """Add the sums of another part of the run."""
        other._settle()
        self.covered += other.covered
        self._settle()
        self._sites, self._calls = _summed(
            np.concatenate((self._sites, other._sites)), np.concatenate((self._calls, other._calls))
        )

    def as_json(self) -> dict[str, Any]:
        self._settle()
        return {"covered": self.covered.tolist(), "sites": self._sites.tolist(), "calls": self._calls.tolist()}

    def take_json(self, values: JsonObject) -> None:
        """Restore the sums of `as_json`. Raises `DamagedValueError` if they are of another reference."""
        values.check_names(_LIST)
        self.covered[...] = values.integers("covered", self.covered.shape)
        self._sites = values.integers("sites", (-1,))
        self._calls = values.integers("calls", self._sites.shape, 1)
        if (np.diff(self._sites) <= 0).any():
            raise DamagedValueError("the sites of a part's report are not in order")

    def _along(self, contig: NDArray[np.integer], position: NDArray[np.int64]) -> NDArray[np.int64]:
        """Convert positions to offsets in the concatenated windows."""
        if not self.total:
            return np.zeros(len(position), np.int64)
        window = np.searchsorted(self._places, sort_keys(contig, position), side="right") - 1
        inside = np.minimum(position - self._start[window], self._length[window])
        is_here = (window >= 0) & (self._contig[window] == contig)
        return np.where(is_here, self._before[window] + inside, self._before[window + 1])

    def _settle(self) -> None:
        """Count pending calls."""
        if self._pending:
            places = np.concatenate((self._sites, *self._pending))
            calls = np.concatenate((self._calls, np.ones(self._n_pending, np.int64)))
            self._sites, self._calls = _summed(places, calls)
            self._pending, self._n_pending = [], 0


def _summed(places: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort and deduplicate places, summing their counts."""
    order = np.argsort(places, kind="stable")
    places = places[order]
    first = np.flatnonzero(np.diff(places, prepend=-1))
    return places[first], np.add.reduceat(counts[order], first) if len(first) else counts[:0]
