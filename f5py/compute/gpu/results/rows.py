"""Alignment of a batch's events to the reference on a GPU."""

import numpy as np
from numpy.typing import NDArray

from f5py.compute.gpu.buffers import scatter_reads
from f5py.compute.gpu.results.part_results import PartResults, put_segments
from f5py.core.batch import ReadBatch
from f5py.core.hmm import LN_INVERSE_SQRT_2PI
from f5py.core.kmers import strand_codes
from f5py.event_alignment.viterbi import LN_START
from f5py.pore_model.model import PoreModel

_WARP = 32
_ROWS = ("row_event", "row_position", "row_state")


class GpuRows(PartResults):
    """Rows of the events of reads."""

    def begin(
        self,
        batch: ReadBatch,
        reads: NDArray[np.bool_],
        model: PoreModel,
        ln_var: NDArray[np.float32],
        log_transitions: NDArray[np.float32],
    ) -> None:
        """Queue the alignment of `reads`, a mask."""
        part, aligned = self._part, self._aligned
        self._at = np.flatnonzero(reads[aligned])
        work = (batch.n_events + batch.read_length)[aligned[self._at]]
        codes = strand_codes(model.alphabet)
        both = self._tables.cached(model.alphabet, lambda: np.concatenate([codes.forward, codes.reverse]))
        levels = self._tables.levels(model)
        n = len(self._at)
        with part.stream:
            for name in ("reference", "cigar"):
                put_segments(part, name, batch, aligned, reads, self._pool)
            part.put("reference_start", batch.reference_start[aligned])
            part.put("is_reverse", batch.reverse[aligned])
            part.put("ln_var", ln_var[aligned])
            part.put("transitions", log_transitions[aligned].reshape(-1))
            part.put("order", self._at[np.argsort(-work, kind="stable")])
            part.launch(
                self._functions["viterbi_rows"], n, _WARP, "event_mean", "first_event", "kmers", "trace", "p", "q",
                "order", n, model.k, codes.n_letters, both, levels, "fit_shift", "fit_scale", "fit_var", "ln_var",
                "transitions", LN_START, np.float32(LN_INVERSE_SQRT_2PI), "reference", "reference_offsets",
                "reference_start", "cigar", "cigar_offsets", "is_reverse", *_ROWS, "n_rows",
            )  # fmt: skip
            for name in _ROWS:
                part.download(name, int(part.host["q"][len(aligned)]))
            part.download("n_rows", len(aligned))

    def fetch(self, batch: ReadBatch) -> NDArray[np.bool_]:
        """Wait, and fill the rows; return the mask of reads left to the CPU."""
        host = self._part.host
        self._part.wait()
        reads, n_rows = self._aligned[self._at], host["n_rows"][self._at]
        failed = np.zeros(len(batch), np.bool_)
        failed[reads[n_rows < 0]] = True
        batch.rows.n[reads] = np.maximum(n_rows, 0)
        for name in _ROWS:
            values = getattr(batch.rows, name.removeprefix("row_"))
            scatter_reads(host[name], host["q"][self._at], reads, values, batch.events.offsets, self._pool)
        return failed
