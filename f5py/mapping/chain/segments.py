"""Segments: stretches of a read's anchors that no chain enters or leaves, to be scored on their own.

They end where the next anchor is on another contig or strand, or out of reach. Scores and predecessors within a segment
do not depend on anything outside of it, so that segments can be scored in any order and place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from f5py.jit.kernel import exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping.batch import Anchors
from f5py.mapping.chain.chaining import score_anchors
from f5py.mapping.settings import BW, MAX_GAP, MAX_ITER, MAX_SKIP, REACH_T, Parameters
from f5py.threads.pool import WorkerPool, longest_first, threads_for

#: Segments with fewer anchors are scored where they are found: that takes no longer than to copy them.
SMALLEST = 8
#: So many anchors are divided and copied before workers would have come.
_FEW_ANCHORS = 1 << 20
#: What positions on the contig and on the read take in a GPU's buffers.
MOST_REACH = 1 << 30
MOST_READ_LENGTH = 1 << 24
_HIGH = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
#: Columns of the table of segments.
BEGIN, END, FIRST, WORK, IS_CUT = range(5)
N_COLUMNS = 5
#: Segments that a thread takes at a time.
AT_A_TIME = 16
#: Bits of a position on the read in what the GPU gets; above them is the span.
SPAN_SHIFT = 24


@exact_kernel
def segment_reads(queue, reads, anchors, offsets, parameters, smallest, scores, table):
    """Divide reads into segments; score those with fewer anchors than `smallest` at once.

    Parameters
    ----------
    offsets : int64, shape (n_reads + 1,)
    table : int64, shape (n, N_COLUMNS)
        Zero; filled from row ``offsets[read] // smallest`` on with the read's other segments: their anchors, the read's
        first one, the number of pairs within reach, and whether MAX_ITER leaves some of these out.
    """
    x = anchors[0]
    integers, gap_penalty = parameters.integers, parameters.gap_penalty
    max_iter = integers[MAX_ITER]
    reach = np.uint64(integers[REACH_T])
    marks = np.empty(smallest, np.int32)
    for i in claimed_indices(work_counter(queue), reads.shape[0]):
        first = offsets[reads[i]]
        last = offsets[reads[i] + 1]
        row = first // smallest
        begin = first
        st = first
        work = np.int64(0)
        is_cut = 0
        for at in range(first + 1, last + 1):
            if at == last or x[at] >> _HIGH != x[at - 1] >> _HIGH or x[at] > x[at - 1] + reach:
                if at - begin < smallest:
                    score_anchors(anchors, first, begin, at, integers, gap_penalty, scores, marks)
                else:
                    table[row, BEGIN] = begin
                    table[row, END] = at
                    table[row, FIRST] = first
                    table[row, WORK] = work
                    table[row, IS_CUT] = is_cut
                    row += 1
                begin = at
                st = at
                work = np.int64(0)
                is_cut = 0
                continue
            while x[at] > x[st] + reach:
                st += 1
            if at - st > max_iter:
                is_cut = 1
                work += max_iter
            else:
                work += at - st


@exact_kernel
def score_segments(queue, order, table, anchors, integers, gap_penalty, scores):
    """`score_anchors` of segments.

    Parameters
    ----------
    order : int64
        Rows of `table`.
    """
    marks = np.empty(0, np.int32)
    for i in claimed_indices(work_counter(queue), order.shape[0]):
        begin = table[order[i], BEGIN]
        end = table[order[i], END]
        if marks.shape[0] < end - begin:
            marks = np.empty(2 * (end - begin), np.int32)
        score_anchors(anchors, table[order[i], FIRST], begin, end, integers, gap_penalty, scores, marks)


@exact_kernel
def pack_segments(queue, tasks, order, table, places, x, y, anchors):
    """Copy the anchors of segments to where they stand one segment after another.

    Parameters
    ----------
    tasks : int64
        `AT_A_TIME` segments each.
    places : int64, shape (len(order) + 1,)
    anchors : int32, shape (places[-1], 2)
        Filled: last base on the contig; span << SPAN_SHIFT | last base on the read.
    """
    for t in claimed_indices(work_counter(queue), tasks.shape[0]):
        for i in range(AT_A_TIME * tasks[t], min(AT_A_TIME * (tasks[t] + 1), order.shape[0])):
            begin = table[order[i], BEGIN]
            for k in range(table[order[i], END] - begin):
                span = (y[begin + k] >> 32) & 0xFF
                anchors[places[i] + k, 0] = x[begin + k] & _LOW
                anchors[places[i] + k, 1] = np.int32(np.uint32(span << SPAN_SHIFT | (y[begin + k] & 0xFFFFFFFF)))


@exact_kernel
def unpack_segments(queue, tasks, order, table, places, chains, f, p):
    """Fill the scores and predecessors of segments.

    Parameters
    ----------
    chains : int32, shape (places[-1], 2)
        Scores, and predecessors from the segment's first anchor on, or -1; one segment after another.
    """
    for t in claimed_indices(work_counter(queue), tasks.shape[0]):
        for i in range(AT_A_TIME * tasks[t], min(AT_A_TIME * (tasks[t] + 1), order.shape[0])):
            begin = table[order[i], BEGIN]
            offset = begin - table[order[i], FIRST]
            for k in range(table[order[i], END] - begin):
                parent = chains[places[i] + k, 1]
                f[begin + k] = chains[places[i] + k, 0]
                p[begin + k] = parent + offset if parent >= 0 else -1


def reach_of(parameters: Parameters) -> int:
    """Largest distance between neighbours in a chain, on contig and read."""
    return int(max(parameters.integers[MAX_GAP], parameters.integers[BW]))


def nothing_stops(parameters: Parameters) -> bool:
    """Return whether the search for a predecessor always goes through all anchors that `MAX_ITER` leaves."""
    return bool(parameters.integers[MAX_SKIP] >= parameters.integers[MAX_ITER])


@dataclass
class Segments:
    """Segments of a batch that are yet to be scored."""

    anchors: Anchors
    table: NDArray[np.int64]  # shape (n, N_COLUMNS): columns: `f5py.mapping.chain.segments`
    # f, p: scores and predecessors of all anchors of the batch; those of small segments are there
    f: NDArray[np.int32]
    p: NDArray[np.int32]
    parameters: Parameters
    pool: WorkerPool
    number: int  # of the batch
    seconds: float = 0.0  # what all threads together have worked

    @classmethod
    def of(
        cls, anchors: Anchors, parameters: Parameters, pool: WorkerPool, number: int, smallest: int = SMALLEST
    ) -> Segments:
        """Divide the reads of a batch, and score small segments."""
        n = len(anchors.x)
        f, p = np.empty(n, np.int32), np.empty(n, np.int32)
        table = np.zeros((n // smallest, N_COLUMNS), np.int64)
        n_anchors = np.diff(anchors.offsets)
        seconds = threads_for(pool, n, _FEW_ANCHORS).run(
            segment_reads, longest_first(n_anchors, n_anchors > 0), (anchors.x, anchors.y), anchors.offsets,
            parameters, smallest, (f, p), table, order=number,
        )  # fmt: skip
        return cls(anchors, table[table[:, END] > 0], f, p, parameters, pool, number, seconds)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Numbers of anchors."""
        return self.table[:, END] - self.table[:, BEGIN]

    @property
    def work(self) -> NDArray[np.int64]:
        """Numbers of pairs within reach."""
        return self.table[:, WORK]

    @property
    def is_cut(self) -> NDArray[np.bool_]:
        """Whether the largest number of anchors that are tried leaves pairs out."""
        return self.table[:, IS_CUT] != 0

    def score(self, chosen: NDArray[np.int64]) -> None:
        """Score segments on the CPU threads."""
        anchors, parameters = self.anchors, self.parameters
        self.seconds += self.pool.run(
            score_segments, chosen, self.table, (anchors.x, anchors.y), parameters.integers,
            parameters.gap_penalty, (self.f, self.p), order=self.number,
        )  # fmt: skip

    def pack(self, chosen: NDArray[np.int64], places: NDArray[np.int64], packed: NDArray[np.int32]) -> None:
        """Copy anchors of segments as a GPU takes them; see `pack_segments`."""
        self.seconds += threads_for(self.pool, int(places[-1]), _FEW_ANCHORS).run(
            pack_segments, _turns(chosen), chosen, self.table, places, self.anchors.x, self.anchors.y, packed,
            order=self.number,
        )  # fmt: skip

    def unpack(self, chosen: NDArray[np.int64], places: NDArray[np.int64], packed: NDArray[np.int32]) -> None:
        """Copy scores and predecessors of segments back."""
        self.seconds += threads_for(self.pool, int(places[-1]), _FEW_ANCHORS).run(
            unpack_segments, _turns(chosen), chosen, self.table, places, packed, self.f, self.p, order=self.number
        )


def _turns(chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.arange(-(-len(chosen) // AT_A_TIME))
