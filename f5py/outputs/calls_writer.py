"""The table of methylation calls, formatted many rows at a time."""

from __future__ import annotations

import numpy as np

from f5py.core.batch import ReadBatch
from f5py.core.windows import Windows
from f5py.io.output import TextOutput
from f5py.text.encoding import encoded

_HEADERS = {
    1: "chromosome\tstart\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
    "num_calling_strands\tnum_cpgs\tsequence\n",
    2: "chromosome\tstrand\tstart\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
    "num_calling_strands\tnum_motifs\tsequence\n",
}
#: More than a row's fixed columns and separators can need.
_FIXED_COLUMNS = 9 * 32


class CallsWriter:
    """Writes the calls of batches as tab-separated rows.

    Parameters
    ----------
    out : TextOutput
    version : {1, 2}
        Layout: 2 has a strand column and names the count ``num_motifs``, 1 has neither.
    contigs : list of str
        Names by contig index.
    k : int
        k-mer size; a row shows k - 1 bases on both sides of its group.
    windows : Windows or None
        Only groups inside of a window are written.
    """

    def __init__(
        self, out: TextOutput, version: int, contigs: list[str], k: int, windows: Windows | None = None
    ) -> None:
        self._out = out
        self._with_strand = version == 2
        self._contigs = [np.frombuffer(encoded(name), np.uint8) for name in contigs]
        self._k = k
        self._windows = windows
        out.write(_HEADERS[version].encode())

    def write(self, batch: ReadBatch) -> None:
        """Write the rows of one batch, in the order of its reads."""
        from f5py.frequencies.site_counts import calls_inside
        from f5py.outputs._calls_writer_numba import format_calls

        inside = calls_inside(batch, self._windows)
        for read in np.flatnonzero(batch.n_calls).tolist():
            n_calls = batch.n_calls[read]
            first = batch.call_offsets[read]
            calls = slice(first, first + n_calls)
            contig = self._contigs[batch.contig[read]]
            name = np.frombuffer(encoded(batch.names[read]), np.uint8)
            call_first, call_last = batch.call_first[calls], batch.call_last[calls]
            sequences = int((call_last - call_first).sum()) + n_calls * 2 * self._k
            rows = np.empty(sequences + n_calls * (len(contig) + len(name) + _FIXED_COLUMNS), np.uint8)
            size = format_calls(
                rows,
                contig,
                name,
                bool(batch.reverse[read]),
                self._with_strand,
                self._k,
                batch.reference[batch.reference_offsets[read] : batch.reference_offsets[read + 1]],
                batch.reference_start[read],
                inside[calls],
                call_first,
                call_last,
                batch.call_sites[calls],
                batch.call_methylated[calls],
                batch.call_unmethylated[calls],
            )
            self._out.write(rows[:size].data)
