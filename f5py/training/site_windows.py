"""Windows around single sites with their events, for scoring with any shifts of methylated k-mers.

A window has the 10 bases before and after the first base of a single-site group, and no other site. The windows of some
thousand groups take little memory, and their reads can be discarded.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import Alignments, BaseMap, BatchView, Events, ReadBatch, Scaling
from f5py.core.motifs import Motif
from f5py.core.names import Names
from f5py.core.noise import Noise
from f5py.core.offsets import concatenate_tuples, elements_of, offsets_of, used_elements
from f5py.core.windows import Windows
from f5py.methylation.calls import list_groups
from f5py.methylation.group_scores import Scores, score_groups
from f5py.methylation.groups import FLANK, GroupWindows
from f5py.methylation.hmm import noise_terms
from f5py.pore_model.model import NUCLEOTIDES_AND_M, PoreModel, Shifts
from f5py.threads.pool import WorkerPool

#: Bases of a window; its site begins after the flank, in the direction of the reference.
_BASES = 2 * FLANK + 1
#: Groups of a task.
_BLOCK = 128
_M = NUCLEOTIDES_AND_M.index("M")
#: By base before the methylated one: sign of `Shifts.pyrimidine_before`.
_SIGNS = np.array([-1.0 if base in "AG" else 1.0 for base in NUCLEOTIDES_AND_M])


class SingleSiteWindows(NamedTuple):
    """Windows of n single-site groups, one element per group."""

    # name, name_offsets: names of their reads
    name: NDArray[np.uint8]
    name_offsets: NDArray[np.int64]
    # contig, first: place of the site on the reference
    contig: NDArray[np.int64]
    first: NDArray[np.int64]
    reverse: NDArray[np.bool_]  # strand of the read
    bases: NDArray[np.uint8]  # shape (n, 21): letters of the reference
    # event, event_offsets: means of the events under the window, in the order of the signal
    event: NDArray[np.float32]
    event_offsets: NDArray[np.int64]
    is_backward: NDArray[np.bool_]  # the first event is that of the window's last base
    shift: NDArray[np.float32]
    scale: NDArray[np.float32]
    var: NDArray[np.float32]
    events_per_base: NDArray[np.float64]

    def select(self, chosen: NDArray[np.int64]) -> SingleSiteWindows:
        """Select some groups, in that order."""
        columns: dict[str, NDArray[Any]] = {}
        for name, values in self._asdict().items():
            if f"{name}_offsets" in self._fields:
                offsets = getattr(self, f"{name}_offsets")
                sizes = np.diff(offsets)[chosen]
                columns[name] = values[elements_of(offsets[chosen], sizes)]
                columns[f"{name}_offsets"] = offsets_of(sizes)
            elif not name.endswith("_offsets"):
                columns[name] = values[chosen]
        return SingleSiteWindows(**columns)

    @property
    def n(self) -> int:
        return len(self.first)

    @property
    def reads(self) -> list[str]:
        return list(Names(self.name, self.name_offsets))


def joined_windows(parts: list[SingleSiteWindows], most: int) -> SingleSiteWindows:
    """Join windows, sorted by read name and place, so that the order of the parts does not matter.

    Of more than `most` those with the smallest hashes of name and place are chosen.
    """
    windows = concatenate_tuples(parts)
    if windows.n > most:
        places = zip(windows.reads, windows.first.tolist(), strict=True)
        keys = [f"{name} {first}".encode("utf-8", "surrogateescape") for name, first in places]
        hashes = np.array([zlib.crc32(key) for key in keys])
        windows = windows.select(np.lexsort((windows.first, np.array(windows.reads), hashes))[:most])
    return windows.select(np.lexsort((windows.reverse, windows.first, windows.contig, np.array(windows.reads))))


def windows_of(
    batch: ReadBatch, motif: Motif, model: PoreModel, regions: Windows | None, pool: WorkerPool
) -> tuple[SingleSiteWindows, float]:
    """Extract the windows of a batch's single-site groups; also return the thread seconds."""
    listing, seconds = list_groups(batch, motif, model.k, pool)
    used = np.flatnonzero(used_elements(batch.calls.offsets, batch.calls.n))
    used = used[(batch.calls.sites[used] == 1) & (listing.n_bases[used] == _BASES)]
    read = np.searchsorted(batch.calls.offsets, used, side="right") - 1
    first = batch.calls.first[used]
    if regions is not None:
        inside = regions.contain(batch.contig[read], first, first)
        used, read, first = used[inside], read[inside], first[inside]
    begin, end = listing.begin[used].astype(np.int64), listing.end[used].astype(np.int64)
    sizes = np.abs(end - begin) + 1
    events = elements_of(batch.events.offsets[read] + np.minimum(begin, end), sizes)
    names = batch.names
    name_sizes = np.diff(names.offsets)[read]
    window = batch.reference_offsets[read] + listing.window[used]
    windows = SingleSiteWindows(
        names.text[elements_of(names.offsets[read], name_sizes)], offsets_of(name_sizes),
        batch.contig[read].astype(np.int64), first, batch.reverse[read],
        batch.reference[window[:, None] + np.arange(_BASES)], batch.events.mean[events], offsets_of(sizes), begin > end,
        batch.shift[read], batch.scale[read], batch.var[read], batch.events_per_base[read],
    )  # fmt: skip
    return windows, seconds


class ShiftScorer:
    """Log-likelihood ratios of single sites for any shifts of methylated k-mers.

    Of the methylated k-mers of the model, over ACGMT, only the standard deviations are used.
    """

    def __init__(
        self, windows: SingleSiteWindows, motif: Motif, model: PoreModel, noise: Noise | None, pool: WorkerPool
    ) -> None:
        n = windows.n
        each, nothing = np.arange(n), np.empty(0, np.int32)
        self._scores = Scores(np.empty(n, np.float32), np.empty(n, np.float32))
        last_event = (np.diff(windows.event_offsets) - 1).astype(np.int32)
        begin = np.where(windows.is_backward, last_event, np.int32(0))
        listed = GroupWindows(np.zeros(n, np.int32), np.full(n, _BASES, np.int32), begin, last_event - begin)
        no_cigar = np.empty(0, np.uint32), np.zeros(n + 1, np.int64)
        place = windows.contig.astype(np.int32), windows.first, windows.reverse
        self._view = BatchView(
            Alignments(*place, *no_cigar, windows.bases.ravel(), np.arange(n + 1) * _BASES),
            Events(windows.event_offsets, nothing, nothing, windows.event, np.empty(0, np.float32)),
            BaseMap(np.zeros(n + 1, np.int64), nothing, nothing),
            Scaling(windows.shift, windows.scale, windows.var),
            windows.events_per_base,
        )
        self._groups = each, each, listed, self._scores
        self._motifs = motif.codes(False), motif.codes(True)
        self._noise = noise_terms(noise)
        self._pool = pool
        kmers, self._place, self._sign = _methylated_kmers(windows, motif, model.k)
        self._kmers, self._plain = kmers[0], model.level_mean[kmers[1]].astype(np.float64)
        self._levels = model.levels._replace(level_mean=model.level_mean.copy())
        #: Number of calls.
        self.n_scorings = 0

    def __call__(self, shifts: Shifts) -> NDArray[np.float64]:
        """Score all groups; natural logarithms, above zero if methylation is likelier."""
        by_place, pyrimidine_before = np.array(shifts)
        level = self._plain + by_place[self._place] + self._sign * pyrimidine_before[self._place]
        self._levels.level_mean[self._kmers] = level.astype(np.float32)
        self._pool.run(
            score_groups, np.arange(0, len(self._scores.methylated), _BLOCK), _BLOCK, self._view, self._levels,
            self._motifs, self._noise, False, *self._groups,
        )  # fmt: skip
        self.n_scorings += 1
        return self._scores.methylated.astype(np.float64) - self._scores.unmethylated


def _methylated_kmers(
    windows: SingleSiteWindows, motif: Motif, k: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Find the k-mers with the methylated base in all windows.

    Return the ranks of them and of the plain ones, shape (2, n); the place of the methylated base; and the sign of the
    base before it, 0 if outside of the k-mer.
    """
    found = []
    for reverse in (False, True):
        codes = motif.codes(reverse)
        plain = codes.letter_codes[windows.bases[windows.reverse == reverse]]
        at = FLANK + codes.offset
        if reverse:
            plain, at = codes.complement[plain][:, ::-1], _BASES - 1 - at
        methylated = plain.copy()
        methylated[:, at] = _M
        for place in range(k):
            part = slice(at - place, at - place + k)
            both = [kmers[:, part] @ 5 ** np.arange(k)[::-1] for kmers in (methylated, plain)]
            sign = _SIGNS[plain[:, at - 1]] if place else np.zeros(len(plain))
            found.append((*both, np.full(len(plain), place), sign))
    ranks, plain_ranks, places, signs = (np.concatenate(column) for column in zip(*found, strict=True))
    _, chosen = np.unique(ranks, return_index=True)
    return np.stack([ranks[chosen], plain_ranks[chosen]]), places[chosen], signs[chosen]
