"""Scores of the site groups of a batch's reads on a GPU."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.results.part_results import PartResults, put_segments
from f5py.core.batch import Calls, ReadBatch
from f5py.core.motifs import MotifCodes
from f5py.jit.kernel import inner, kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.methylation.groups import GroupWindows
from f5py.methylation.hmm import (
    BLOCK,
    LANES,
    MAX_MOTIF,
    NoiseTerms,
    constants,
    log_score,
    motif_table,
    numbers_of_reads,
    single_precision,
)
from f5py.pore_model.model import PoreModel
from f5py.threads.pool import CallingThread

#: Groups of a warp: two problems each.
GROUPS = LANES // 2
_BITS = 11
_SLOT = (1 << 32) - 1
BUCKETS = 1 << _BITS
_NO_ROOM = np.empty(0, np.int32)
#: What a thread takes at a time, of warps and of what comes back.
WARPS_OF_PIECE, SLOTS_OF_PIECE = 512, 8192


class GroupOrder(NamedTuple):
    """Sorted groups, and the sizes of each warp of `GROUPS` of them."""

    n: NDArray[np.int64]  # shape (1,): number of groups; the arrays have room for more
    # shape (m,): where the batch has each group's calls, the number of the slot, which is below 2 ** 32; plus 2
    # ** 32 times the read, as the part counts them
    places: NDArray[np.int64]
    groups: NDArray[np.int32]  # shape (m, 5): the read and the fields of `GroupWindows`
    # columns, rows: shape (m // GROUPS + 1,): largest numbers of k-mers and events of each warp
    columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    work: NDArray[np.int64]  # shape (m // GROUPS + 2,): offsets of the warps' scratch memory, in elements


def empty_order(most: int, room: NDArray[np.int32] = _NO_ROOM) -> GroupOrder:
    """Allocate an order for up to `most` groups, described in `room` if it is large enough."""
    n_warps = most // GROUPS + 1
    return GroupOrder(
        np.zeros(1, np.int64),
        np.empty(most, np.int64),
        (room[: 5 * most] if 5 * most <= len(room) else np.empty(5 * most, np.int32)).reshape(most, 5),
        np.empty(n_warps, np.int32),
        np.empty(n_warps, np.int32),
        np.zeros(n_warps + 1, np.int64),
    )


@inner
def _rows_of(listing, slot):
    return np.int64(abs(listing.end[slot] - listing.begin[slot])) + 1


@inner
def _columns_of(listing, slot, k):
    return np.int64(listing.n_bases[slot]) - k + 1


@inner
def work_elements(columns, rows):
    """Return the floats of scratch memory of a warp with up to that many k-mers and events.

    A problem has six numbers a k-mer, two a block of k-mers and two an event.
    """
    return LANES * (6 * columns + 2 * ((columns + BLOCK - 1) // BLOCK) + 2 * rows)


@kernel
def order_groups(queue, one, at, calls, listing, limits, order, given_back):
    """Sort the groups of reads by descending k-mers, then events; `describe_groups` does the rest.

    Parameters
    ----------
    at : int64, shape (n,)
        Reads, numbered within the part.
    calls, limits : tuple of int64, tuple of int
        The batch's number of each read of the part; offset and number of the calls of the batch's reads. k, and scratch
        memory of a warp, in elements.
    given_back : bool
        Set for reads of the batch with a group too large for that; the order has none of theirs.
    """
    aligned, offsets, n_calls = calls
    k, room = limits
    for _ in claimed_indices(work_counter(queue), one.shape[0]):
        keys = np.empty(order.places.shape[0], np.int32)
        most_columns = most_rows = np.int64(0)
        n = 0
        for i in range(at.shape[0]):
            read = aligned[at[i]]
            begin = n
            needed = np.int64(0)
            for slot in range(offsets[read], offsets[read] + n_calls[read]):
                columns, rows = _columns_of(listing, slot, k), _rows_of(listing, slot)
                needed = max(needed, work_elements(columns, rows))
                columns, rows = min(columns, BUCKETS - 1), min(rows, BUCKETS - 1)
                most_columns, most_rows = max(most_columns, columns), max(most_rows, rows)
                keys[n] = columns << _BITS | rows
                n += 1
            given_back[read] = needed > room // 2  # the widest and the longest group of a warp may be two
            if given_back[read]:
                n = begin
        order.n[0] = n

        # by both at once: there are fewer pairs of them than groups
        width = most_rows + 1
        begins = np.zeros((most_columns + 1) * width + 1, np.int32)
        for i in range(n):
            keys[i] = (most_columns - (keys[i] >> _BITS)) * width + most_rows - (keys[i] & BUCKETS - 1)
            begins[keys[i] + 1] += 1
        for key in range(1, begins.shape[0]):
            begins[key] += begins[key - 1]
        n = 0
        for i in range(at.shape[0]):
            read = aligned[at[i]]
            if given_back[read]:
                continue
            for slot in range(offsets[read], offsets[read] + n_calls[read]):
                order.places[begins[keys[n]]] = at[i] << 32 | slot
                begins[keys[n]] += 1
                n += 1


@kernel
def describe_groups(queue, pieces, listing, k, order):
    """Fill the descriptions of the groups, and of the warps except the sums of their work.

    Parameters
    ----------
    pieces
        Piece i has `WARPS_OF_PIECE` warps from ``i * WARPS_OF_PIECE``; see `f5py.threads.pool`.
    """
    n = order.n[0]
    n_warps = (n + GROUPS - 1) // GROUPS
    for i in claimed_indices(work_counter(queue), pieces.shape[0]):
        first_warp = pieces[i] * WARPS_OF_PIECE
        for warp in range(first_warp, min(first_warp + WARPS_OF_PIECE, n_warps)):
            widest = longest = np.int64(0)
            for j in range(warp * GROUPS, min(warp * GROUPS + GROUPS, n)):
                slot = order.places[j] & _SLOT
                order.groups[j, 0] = order.places[j] >> 32
                order.groups[j, 1] = listing.window[slot]
                order.groups[j, 2] = listing.n_bases[slot]
                order.groups[j, 3] = listing.begin[slot]
                order.groups[j, 4] = listing.end[slot]
                widest = max(widest, _columns_of(listing, slot, k))
                longest = max(longest, _rows_of(listing, slot))
            order.columns[warp], order.rows[warp] = widest, longest
            order.work[warp + 1] = work_elements(widest, longest)


@kernel
def put_back(queue, pieces, places, scores, calls):
    """Convert the scores of sorted groups to log-likelihoods in `calls`.

    Parameters
    ----------
    pieces, scores : int64, float32, shape (>= 4 * n,)
        Piece i has `SLOTS_OF_PIECE` groups. Arguments of `log_score` for each, methylated and unmethylated.
    """
    for piece in claimed_indices(work_counter(queue), pieces.shape[0]):
        first = pieces[piece] * SLOTS_OF_PIECE
        for i in range(first, min(first + SLOTS_OF_PIECE, places.shape[0])):
            slot = places[i] & _SLOT
            calls.methylated[slot] = log_score(scores[4 * i], scores[4 * i + 1])
            calls.unmethylated[slot] = log_score(scores[4 * i + 2], scores[4 * i + 3])


class GpuScores(PartResults):
    """Groups of one motif.

    `scoring` of the latest `begin` are `DeviceTables.levels`, `f5py.methylation.hmm.motif_table`, k and noise.
    """

    def begin(
        self,
        batch: ReadBatch,
        reads: NDArray[np.bool_],
        model: PoreModel,
        motifs: tuple[MotifCodes, MotifCodes],
        listing: GroupWindows,
        noise: NoiseTerms | None,
    ) -> NDArray[np.bool_]:
        """Queue the scoring of the groups of `reads`; `fetch` queues those that do not fit at once.

        Return the mask of reads with a group of too many events.
        """
        self._put_numbers(batch, noise)
        strands = motif_table(motifs)
        on_device = self._tables.cached(strands.tobytes(), lambda: strands)
        self.scoring = self._tables.levels(model), on_device, model.k, noise
        self._places = len(motifs[0].masks), motifs[0].offset, motifs[1].offset
        at = np.flatnonzero(reads[self._aligned])
        given_back = np.zeros(len(batch), np.bool_)
        most, room = int(batch.calls.n[self._aligned[at]].sum()), self._part.size.groups
        self._order = order = empty_order(most, self._part.host["groups"][: 5 * room])
        self._is_described_there = most <= room
        CallingThread().run(  # as the pool's may be busy for longer
            order_groups, np.zeros(1, np.int64), at, (self._aligned, batch.calls.offsets, batch.calls.n), listing,
            (model.k, self._part.size.trace_words), order, given_back,
        )  # fmt: skip
        self._n = int(order.n[0])
        pieces = np.arange(-(-self._n // (GROUPS * WARPS_OF_PIECE)))
        self._pool.run(describe_groups, pieces, listing, model.k, order)
        np.cumsum(order.work, out=order.work)
        self._next = 0
        self._queue_chunk()
        return given_back

    @property
    def groups(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Sorted groups: the slots of their calls, and their descriptions; see `GroupOrder`."""
        return self._order.places[: self._n] & _SLOT, self._order.groups[: self._n]

    def fetch(self, calls: Calls) -> float:
        """Wait, and fill the log-likelihoods of the groups; return the thread seconds."""
        host, seconds = self._part.host["found"], 0.0
        while True:
            self._part.wait()
            first, end = self._chunk
            places = self._order.places[first:end]
            seconds += self._pool.run(put_back, np.arange(-(-len(places) // SLOTS_OF_PIECE)), places, host, calls)
            if self._next == self._n:
                return seconds
            self._queue_chunk()

    def put_reads(self, batch: ReadBatch, reads: NDArray[np.bool_]) -> None:
        """Upload reference segments and strands of reads; may precede `begin` by far."""
        part, aligned = self._part, self._aligned
        with part.stream:
            put_segments(part, "reference", batch, aligned, reads, self._pool)
            part.put("is_reverse", batch.reverse[aligned])

    def _put_numbers(self, batch: ReadBatch, noise: NoiseTerms | None) -> None:
        """Upload the scaling of reads, which depends on the noise."""
        aligned = self._aligned
        numbers = np.empty((len(aligned), 3), np.float32)
        weights = (1.0, 1.0) if noise is None else (noise.stay_weight, noise.step_weight)
        numbers_of_reads(batch.events_per_base[aligned], batch.var[aligned], *weights, numbers)
        with self._part.stream:
            self._part.put("numbers", numbers.reshape(-1))

    def _queue_chunk(self) -> None:
        """Queue as many of the remaining groups as fit."""
        part, order, first = self._part, self._order, self._next
        warp = first // GROUPS
        all_warps = -(-self._n // GROUPS)
        work = order.work[: all_warps + 1]
        room = int(np.searchsorted(work, work[warp] + part.size.trace_words, "right")) - 1 - warp
        n_warps = min(room, part.size.groups // GROUPS)
        end = min(first + n_warps * GROUPS, self._n)
        self._chunk, self._next = (first, end), end
        n = end - first
        warps = slice(warp, warp + -(-n // GROUPS))
        model, motifs, k, terms = self.scoring
        with part.stream:
            if self._is_described_there and first == 0:
                part.upload("groups", 5 * n)
            else:
                part.put("groups", order.groups[first:end].reshape(-1))
            part.put_together(
                work_offsets=work[warps] - work[warp], warp_columns=order.columns[warps], warp_rows=order.rows[warps]
            )
            if n:
                name: str = "hmm_forward"
                more: tuple[Any, ...] = ()
                if terms is not None:
                    noise = single_precision(terms)
                    name, more = "hmm_correlated", (self._tables.cached(noise.tobytes(), lambda: noise),)
                part.launch(
                    self._functions[name], -(-n // GROUPS), LANES, "event_mean", "q", "reference", "reference_offsets",
                    motifs, *self._places, k, model, "fit_shift", "fit_scale", "fit_var", "numbers", "is_reverse",
                    self._tables.cached("constants", constants), "groups", n, "work_offsets", "warp_columns",
                    "warp_rows", "work", "found", *more,
                )  # fmt: skip
            part.download("found", 4 * n)


def can_be_scored(motifs: tuple[MotifCodes, MotifCodes], per_site: bool) -> bool:
    """Return whether the kernels support the motif.

    Of overlapping sites they score the first; on the CPU each of them is a call of `per_site`.
    """
    return len(motifs[0].masks) <= MAX_MOTIF and not (per_site and any(_may_overlap(codes) for codes in motifs))


def _may_overlap(motif: MotifCodes) -> bool:
    """Return whether occurrences of the motif can overlap."""
    masks = motif.masks
    return any(bool((masks[i:] & masks[:-i]).all()) for i in range(1, len(masks)))
