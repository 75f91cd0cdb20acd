"""The table of methylation calls, formatted many rows at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.names import Names
from f5py.core.windows import Windows
from f5py.io.files.output import TextOutput

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
    motifs : sequence of str
        Names of the motifs if there are several: then each row ends with its own.
    """

    def __init__(
        self,
        out: TextOutput,
        version: int,
        contigs: list[str],
        k: int,
        windows: Windows | None = None,
        motifs: Sequence[str] = (),
    ) -> None:
        self._out = out
        self._with_strand = version == 2
        self._contigs = Names.of(contigs)
        self._k = k
        self._windows = windows
        self._motifs = Names.of(list(motifs))
        header = _HEADERS[version] if not motifs else _HEADERS[version].replace("\n", "\tmotif\n")
        out.write(header.encode())

    def write(self, batch: ReadBatch) -> None:
        """Write the rows of one batch, in the order of its reads."""
        self._out.write(self.format(batch).data)

    def format(self, batch: ReadBatch) -> NDArray[np.uint8]:
        """The rows of one batch, uint8."""
        from f5py.outputs._calls_writer_numba import format_calls
        from f5py.site_frequencies.site_counts import calls_inside

        calls = calls_inside(batch, self._windows)
        read = np.repeat(np.arange(len(batch)), np.diff(batch.call_offsets))[calls]
        names, contigs = batch.names, self._contigs
        bases = batch.call_last[calls] - batch.call_first[calls] + 2 * self._k
        texts = np.diff(names.offsets)[read] + np.diff(contigs.offsets)[batch.contig[read]]
        rows = np.empty(int((bases + texts + _FIXED_COLUMNS).sum()), np.uint8)
        size = format_calls(
            rows, (contigs.text, contigs.offsets), (names.text, names.offsets),
            (self._motifs.text, self._motifs.offsets), batch.call_motif, self._with_strand, self._k, batch.alignments,
            batch.calls, calls,
        )  # fmt: skip
        return rows[:size]
