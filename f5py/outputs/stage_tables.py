"""Developer output: intermediate results of the stages, as text."""

from __future__ import annotations

import numpy as np

from f5py.core.batch import ReadBatch, ReadStatus
from f5py.io.files.output import TextOutput
from f5py.jit.kernel import kernel
from f5py.text._format_numba import COMMA, MAX_NUMBER, NEWLINE, TAB, append_fixed, append_int
from f5py.text.encoding import encoded

_OPEN = np.uint8(ord("{"))
_CLOSE = np.uint8(ord("}"))
_DECIMALS = 6


@kernel
def format_events(start, length, mean, stdv):
    """Format events as ``{start,length,mean,stdv}`` and a tab each, then a newline; uint8.

    Parameters
    ----------
    start, length : int32, shape (n,)
        In samples.
    mean, stdv : float32, shape (n,)
        In pA.
    """
    out = np.empty(start.shape[0] * 4 * MAX_NUMBER + 1, np.uint8)
    at = 0
    for e in range(start.shape[0]):
        out[at] = _OPEN
        at = append_int(out, at + 1, start[e])
        out[at] = COMMA
        at = append_fixed(out, at + 1, np.float64(length[e]), _DECIMALS)
        out[at] = COMMA
        at = append_fixed(out, at + 1, np.float64(mean[e]), _DECIMALS)
        out[at] = COMMA
        at = append_fixed(out, at + 1, np.float64(stdv[e]), _DECIMALS)
        out[at] = _CLOSE
        out[at + 1] = TAB
        at += 2
    out[at] = NEWLINE
    return out[: at + 1]


@kernel
def format_pairs(pairs):
    """Format pairs as ``{k-mer,event}`` and a tab each, then a newline; uint8.

    Parameters
    ----------
    pairs : int32, shape (n, 2)
        0-based numbers of k-mer and event in the read.
    """
    out = np.empty(pairs.shape[0] * 2 * MAX_NUMBER + 1, np.uint8)
    at = 0
    for p in range(pairs.shape[0]):
        out[at] = _OPEN
        at = append_int(out, at + 1, pairs[p, 0])
        out[at] = COMMA
        at = append_int(out, at + 1, pairs[p, 1])
        out[at] = _CLOSE
        out[at + 1] = TAB
        at += 2
    out[at] = NEWLINE
    return out[: at + 1]


class StageTables:
    """Print events, aligned pairs or scaling of each batch before its normal rows."""

    def __init__(self, out: TextOutput, events: bool, pairs: bool, scaling: bool) -> None:
        self._out = out
        self._events = events
        self._pairs = pairs
        self._scaling = scaling
        self._wrote_header = False

    def write(self, batch: ReadBatch) -> None:
        if self._events:
            self._write_events(batch)
        if self._pairs:
            self._write_pairs(batch)
        if self._scaling:
            self._write_scaling(batch)

    def _write_events(self, batch: ReadBatch) -> None:
        for read in np.flatnonzero(batch.n_events).tolist():
            events = slice(batch.events.offsets[read], batch.events.offsets[read + 1])
            count = events.stop - events.start
            self._out.write(encoded(f">{batch.names[read]}\tLN:{count}\tEVENTSTART:0\tEVENTEND:{count}\n"))
            text = format_events(
                batch.events.start[events],
                batch.events.length[events],
                batch.events.mean[events],
                batch.events.stdv[events],
            )
            self._out.write(text)

    def _write_pairs(self, batch: ReadBatch) -> None:
        for read in np.flatnonzero(batch.n_pairs).tolist():
            count = batch.n_pairs[read]
            self._out.write(encoded(f">{batch.names[read]}\tN_ALGN_PAIR:{count}\t{{ref_pos,read_pos}}\n"))
            end = batch.pair_offsets[read + 1]
            self._out.write(format_pairs(batch.aligned_pairs[end - count : end]))

    def _write_scaling(self, batch: ReadBatch) -> None:
        if not self._wrote_header:
            self._out.write(b"read\tshift\tscale\tvar\n")
            self._wrote_header = True
        usable = (batch.status == ReadStatus.OK) | (batch.status == ReadStatus.QC_FAIL)
        lines = [
            f"{batch.names[read]}\t{batch.shift[read]:.2f}\t{batch.scale[read]:.2f}\t{batch.var[read]:.2f}\n"
            for read in np.flatnonzero(usable).tolist()
        ]
        self._out.write(encoded("".join(lines)))
