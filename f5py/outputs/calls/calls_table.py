"""Text table of methylation calls."""

import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from f5py.core._read_view_numba import segment_of
from f5py.core.batch import ReadBatch
from f5py.core.names import Names
from f5py.core.windows import Windows
from f5py.jit.kernel import kernel
from f5py.options.signal_commands import CallOptions
from f5py.outputs.formatted_text import FormattedText, append_cell
from f5py.site_frequencies.site_counts import calls_inside
from f5py.text._format_numba import MINUS, NEWLINE, PLUS, TAB, append_bytes, append_fixed

_HEADERS = {
    1: "chromosome\tstart\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
    "num_calling_strands\tnum_cpgs\tsequence\n",
    2: "chromosome\tstrand\tstart\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
    "num_calling_strands\tnum_motifs\tsequence\n",
}
_ONE = np.uint8(ord("1"))
#: More than a row's fixed columns and separators can need.
_FIXED_COLUMNS = 9 * 32


@kernel
def format_calls(out, texts, call_motif, style, alignments, calls, inside):
    """Write one row per call in the mask `inside`; return the number of bytes.

    Parameters
    ----------
    texts : tuple
        Names of contigs, of the batch's reads, and of motifs, each as letters (uint8) and offsets (int64).
    call_motif, style : int8, tuple
        Index of each call's motif, empty for a single one; whether there is a column of strands, and k.
    """
    contigs, names, motifs = texts
    with_strand, k = style
    contig_text, contig_offsets = contigs
    name_text, name_offsets = names
    at = np.int64(0)
    for read in range(calls.n.shape[0]):
        contig = alignments.contig[read]
        contig_name = contig_text[contig_offsets[contig] : contig_offsets[contig + 1]]
        name = name_text[name_offsets[read] : name_offsets[read + 1]]
        segment = segment_of(alignments, read)
        for call in range(calls.offsets[read], calls.offsets[read] + calls.n[read]):
            if not inside[call]:
                continue
            at = append_bytes(out, at, contig_name)
            if with_strand:
                out[at] = TAB
                out[at + 1] = MINUS if alignments.reverse[read] else PLUS
                at += 2
            at = append_cell(out, append_cell(out, at, calls.first[call]), calls.last[call])
            out[at] = TAB
            at = append_bytes(out, at + 1, name)
            methylated, unmethylated = np.float64(calls.methylated[call]), np.float64(calls.unmethylated[call])
            for value in (methylated - unmethylated, methylated, unmethylated):
                out[at] = TAB
                at = append_fixed(out, at + 1, value, 2)
            out[at] = TAB
            out[at + 1] = _ONE
            at = append_cell(out, at + 2, np.int64(calls.sites[call]))
            out[at] = TAB
            begin = max(calls.first[call] - alignments.start[read] - k + 1, 0)
            end = calls.last[call] - alignments.start[read] + k
            at = append_bytes(out, at + 1, segment[begin:end])
            if call_motif.shape[0] > 0:
                out[at] = TAB
                which = call_motif[call]
                at = append_bytes(out, at + 1, motifs[0][motifs[1][which] : motifs[1][which + 1]])
            out[at] = NEWLINE
            at += 1
    return at


class CallsText:
    """Format the calls of batches as tab-separated rows; thread-safe.

    Version 2 has a strand column and names the count ``num_motifs``, 1 has neither. A row has k - 1 bases on both sides
    of its group.
    """

    def __init__(
        self, version: int, contigs: list[str], k: int, windows: Windows | None = None, motifs: Sequence[str] = ()
    ) -> None:
        self._style = version == 2, k
        self._contigs = Names.of(contigs)
        self._windows = windows
        self._motifs = Names.of(list(motifs))
        self._header = _HEADERS[version] if not motifs else _HEADERS[version].replace("\n", "\tmotif\n")

    def header(self) -> bytes:
        return self._header.encode()

    def format(self, batch: ReadBatch, first: int, end: int) -> NDArray[np.uint8]:
        """Format the rows of the reads from `first` up to `end`, uint8."""
        n = batch.calls.n.copy()
        n[:first] = n[end:] = 0
        batch = replace(batch, calls=batch.calls._replace(n=n))
        inside = calls_inside(batch, self._windows)
        all_names = self._contigs, batch.names, self._motifs
        longest = sum(int(np.diff(names.offsets).max(initial=0)) for names in all_names)
        spans = int((batch.calls.last - batch.calls.first)[inside].sum())
        room = spans + int(inside.sum()) * (longest + _FIXED_COLUMNS + 2 * self._style[1])
        rows = np.empty(room, np.uint8)  # unused pages take no memory
        texts = tuple((names.text, names.offsets) for names in all_names)
        size = format_calls(rows, texts, batch.call_motif, self._style, batch.alignments, batch.calls, inside)
        return rows[:size].copy()  # many pieces may wait to be written


def calls_table(
    path: str, options: CallOptions, layout: tuple[list[str], int, Windows | None, list[str]], stopping: threading.Event
) -> FormattedText:
    """Make the text table of calls; `layout` has contigs, k, windows and motifs, see `CallsText`."""
    text, is_csv = CallsText(options.meth_out_version, *layout), options.output_format == "csv"
    return FormattedText(path, options, text, lambda batch: batch.calls.n, stopping, is_csv)
