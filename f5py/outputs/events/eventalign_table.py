"""Event table as text.

Columns, precision and order are those of f5c's ``eventalign``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.kmers import base_codes
from f5py.core.offsets import offsets_of
from f5py.outputs.events.table_layout import TableLayout
from f5py.pore_model.model import PoreModel
from f5py.text.encoding import encoded

_COLUMNS = (
    "event_index",
    "event_level_mean",
    "event_stdv",
    "event_length",
    "model_kmer",
    "model_mean",
    "model_stdv",
    "standardized_level",
)
_INDEX_COLUMNS = ("start_idx", "end_idx")
_M6ANET_COLUMNS = ("event_level_mean", "event_stdv", "event_length", "")
#: Bytes of a row's numbers and separators, and of a sample, that are usual; a buffer that is too small is doubled.
_USUAL_FIXED = 100
_USUAL_SAMPLE = 10


class EventalignTable:
    """Format the rows of batches as tab-separated text; thread-safe.

    Batches need their events, reference segments and, for `samples` and `collapse_events`, their samples.
    """

    def __init__(
        self,
        contigs: list[str],
        model: PoreModel,
        layout: TableLayout = TableLayout(),  # noqa: B008 - immutable
    ) -> None:
        self._model = model
        self._read_names = layout.print_read_names
        self._scaled = layout.scale_events
        self._samples = layout.samples and not layout.m6anet
        self._index = layout.signal_index
        self._collapsed = layout.collapse_events and not layout.m6anet
        self._m6anet = layout.m6anet
        self._marks = layout.mark_kmers and not layout.m6anet
        self._trim = layout.trimmed(model.k)
        self._codes = base_codes()
        self._contigs, self._contig_ends = _joined(contigs, "\t")

    def header(self) -> bytes:
        """Return the header line."""
        names = ["contig", "position", "reference_kmer", "read_name" if self._read_names else "read_index"]
        names += _M6ANET_COLUMNS if self._m6anet else ("strand", *_COLUMNS)
        if self._index:
            names += _INDEX_COLUMNS
        if self._samples:
            names.append("samples")
        if self._marks:
            names.append("kmer_mark")
        return "\t".join(names).encode() + b"\n"

    def format(self, batch: ReadBatch, first: int, end: int) -> NDArray[np.uint8]:
        """Format the rows of reads `first` to `end` - 1 as whole lines; uint8."""
        from f5py.outputs.events._eventalign_table_numba import MAX_FIXED, TOO_SMALL

        n_rows = batch.rows.n[first:end]
        if not n_rows.any():
            return np.empty(0, np.uint8)
        reads: Iterable = batch.names[first:end] if self._read_names else batch.read_index[first:end].tolist()
        names, name_ends = _joined(reads, "" if self._m6anet else "\tt\t")
        texts = np.diff(self._contig_ends)[batch.contig[first:end]] + np.diff(name_ends)
        size = int((n_rows * (texts + 2 * self._model.k + _USUAL_FIXED)).sum()) + int(texts.max()) + MAX_FIXED
        if self._samples:
            size += _USUAL_SAMPLE * int(batch.n_samples[first:end].sum())
        while True:
            out = np.empty(size, np.uint8)  # what is not needed is never touched, so never given memory
            used = self._fill(out, batch, first, end, names, name_ends)
            if used != TOO_SMALL:
                return out[:used]
            size *= 2

    def compile(self, batch: ReadBatch) -> None:
        """Compile the kernel for batches of this type; reads are not needed."""
        self._fill(np.empty(1, np.uint8), batch, 0, 0, *_joined([], ""))

    def _fill(self, out: NDArray, batch: ReadBatch, first: int, end: int, names: NDArray, name_ends: NDArray) -> int:
        from f5py.outputs.events._eventalign_rows_numba import TableInputs
        from f5py.outputs.events._eventalign_table_numba import EventTableStyle, EventTableTexts, format_table

        model = (self._model.k, self._trim, self._codes, self._model.level_mean, self._model.level_stdv)
        marks = batch.kmer_marks if self._marks else batch.kmer_marks[:0]
        return format_table(
            out, (first, end), EventTableTexts(self._contigs, self._contig_ends, names, name_ends),
            TableInputs(batch.rows, batch.events, batch.alignments, batch.signals, batch.scaling, marks), model,
            EventTableStyle(self._scaled, self._collapsed, self._index), self._m6anet or None, self._samples or None,
        )  # fmt: skip


def _joined(texts: Iterable, suffix: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Join texts, each followed by `suffix`, with padding at the end; return offsets too."""
    from f5py.text._bytes_numba import BLOCK

    pieces = [encoded(f"{text}{suffix}") for text in texts]
    joined = np.frombuffer(b"".join(pieces) + bytes(BLOCK), np.uint8)
    return joined, offsets_of(np.fromiter(map(len, pieces), np.int64, len(pieces)))
