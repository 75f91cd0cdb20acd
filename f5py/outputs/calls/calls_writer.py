"""Text table of methylation calls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.names import Names
from f5py.core.windows import Windows
from f5py.io.files.output import TextOutput
from f5py.outputs.formatting import OrderedFormatter

_HEADERS = {
    1: "chromosome\tstart\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
    "num_calling_strands\tnum_cpgs\tsequence\n",
    2: "chromosome\tstrand\tstart\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
    "num_calling_strands\tnum_motifs\tsequence\n",
}


class CallsWriter:
    """Write the calls of batches as tab-separated rows.

    Parameters
    ----------
    version : {1, 2}
        Layout: 2 has a strand column and names the count ``num_motifs``, 1 has neither.
    k : int
        k-mer size; a row has k - 1 bases on both sides of its group.
    windows : Windows or None
        Write only groups inside of a window.
    motifs : sequence of str
        Names for the motif column; empty for a single motif.
    formatter : OrderedFormatter, optional
        Threads that format the rows.
    """

    def __init__(
        self,
        out: TextOutput,
        version: int,
        contigs: list[str],
        k: int,
        windows: Windows | None = None,
        motifs: Sequence[str] = (),
        formatter: OrderedFormatter | None = None,
    ) -> None:
        self._out = out
        self._with_strand = version == 2
        self._contigs = Names.of(contigs)
        self._k = k
        self._windows = windows
        self._formatter = formatter
        self._motifs = Names.of(list(motifs))
        self._header = _HEADERS[version] if not motifs else _HEADERS[version].replace("\n", "\tmotif\n")

    def write_header(self) -> None:
        self._out.write(self._header.encode())

    def write(self, batch: ReadBatch) -> None:
        """Write the rows of a batch in read order."""
        if self._formatter is None:
            self._out.write(self.format(batch).data)
            return
        inside = self._inside(batch)
        self._formatter.write(
            self._out, batch, lambda batch, first, end: self._rows(batch, inside, first, end).data, batch.calls.n
        )

    def format(self, batch: ReadBatch) -> NDArray[np.uint8]:
        """Format the rows of a batch, uint8."""
        return self._rows(batch, self._inside(batch), 0, len(batch))

    def _inside(self, batch: ReadBatch) -> NDArray[np.bool_]:
        """Return the mask of the calls to write."""
        from f5py.site_frequencies.site_counts import calls_inside

        return calls_inside(batch, self._windows)

    def _rows(self, batch: ReadBatch, inside: NDArray[np.bool_], first: int, end: int) -> NDArray[np.uint8]:
        """Format the rows of some reads of a batch, uint8."""
        from f5py.outputs.calls._calls_writer_numba import CallTableStyle, CallTableTexts, format_calls, room_for_calls

        names, contigs, motifs = batch.names, self._contigs, self._motifs
        texts = CallTableTexts(
            (contigs.text, contigs.offsets), (names.text, names.offsets), (motifs.text, motifs.offsets)
        )
        style, reads = CallTableStyle(self._with_strand, self._k), (first, end)
        rows = np.empty(room_for_calls(texts, style, reads, batch.alignments, batch.calls, inside), np.uint8)
        size = format_calls(rows, texts, batch.call_motif, style, reads, batch.alignments, batch.calls, inside)
        return rows[:size].copy()  # without the room that was not needed: many pieces may wait to be written
