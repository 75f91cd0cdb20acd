"""Outputs of ``call-methylation``: text table, tags of alignments, and counts of sites."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pysam
from numpy.typing import NDArray

from f5py.core._read_view_numba import segment_of
from f5py.core.batch import ReadBatch
from f5py.core.motifs import Motif
from f5py.core.names import Names
from f5py.core.windows import Windows
from f5py.io.bam.indexed_output import indexed_output
from f5py.io.files.complete_file import complete_output
from f5py.io.files.output import TextOutput
from f5py.io.files.table_output import open_table
from f5py.jit.kernel import kernel
from f5py.options.signal_commands import CallOptions
from f5py.outputs.formatted_text import OrderedFormatter, StageTables
from f5py.outputs.sink import FinishedPart, PartFiles, Sink
from f5py.site_frequencies.site_counts import calls_inside
from f5py.text._format_numba import MINUS, NEWLINE, PLUS, TAB, append_bytes, append_fixed, append_int

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
def room_for_calls(texts, style, reads, alignments, calls, inside):
    """Bound the bytes of the rows of `format_calls`.

    Parameters
    ----------
    texts, style, reads, alignments, calls, inside
        See `format_calls`.
    """
    (_, contig_offsets), (_, name_offsets), _ = texts
    room = np.int64(0)
    for read in range(reads[0], reads[1]):
        contig = alignments.contig[read]
        of_read = contig_offsets[contig + 1] - contig_offsets[contig] + name_offsets[read + 1] - name_offsets[read]
        of_read += _FIXED_COLUMNS + 2 * style[1]
        for call in range(calls.offsets[read], calls.offsets[read] + calls.n[read]):
            if inside[call]:
                room += of_read + calls.last[call] - calls.first[call]
    return room


@kernel
def format_calls(out, texts, call_motif, style, reads, alignments, calls, inside):
    """Write one row per call in the mask `inside`; return the number of bytes.

    Parameters
    ----------
    out : uint8
        With room for all rows.
    texts : tuple
        Names of contigs, of the batch's reads, and of motifs, each as letters (uint8) and offsets (int64).
    call_motif : int8
        Index of each call's motif; empty for a single one.
    style : tuple
        Whether there is a column of strands, and k.
    reads : pair of int
        The first read, and the one after the last.
    alignments : f5py.core.batch.Alignments
    calls : f5py.core.batch.Calls
    """
    contigs, names, motifs = texts
    with_strand, k = style
    contig_text, contig_offsets = contigs
    name_text, name_offsets = names
    at = np.int64(0)
    for read in range(reads[0], reads[1]):
        contig = alignments.contig[read]
        contig_name = contig_text[contig_offsets[contig] : contig_offsets[contig + 1]]
        name = name_text[name_offsets[read] : name_offsets[read + 1]]
        segment = segment_of(alignments, read)
        for call in range(calls.offsets[read], calls.offsets[read] + calls.n[read]):
            if not inside[call]:
                continue
            at = append_bytes(out, at, contig_name)
            out[at] = TAB
            at += 1
            if with_strand:
                out[at] = MINUS if alignments.reverse[read] else PLUS
                out[at + 1] = TAB
                at += 2
            at = append_int(out, at, calls.first[call])
            out[at] = TAB
            at = append_int(out, at + 1, calls.last[call])
            out[at] = TAB
            at = append_bytes(out, at + 1, name)
            methylated, unmethylated = np.float64(calls.methylated[call]), np.float64(calls.unmethylated[call])
            for value in (methylated - unmethylated, methylated, unmethylated):
                out[at] = TAB
                at = append_fixed(out, at + 1, value, 2)
            out[at] = TAB
            out[at + 1] = _ONE
            out[at + 2] = TAB
            at = append_int(out, at + 3, np.int64(calls.sites[call]))
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
        return calls_inside(batch, self._windows)

    def _rows(self, batch: ReadBatch, inside: NDArray[np.bool_], first: int, end: int) -> NDArray[np.uint8]:
        """Format the rows of some reads of a batch, uint8."""
        names, contigs, motifs = batch.names, self._contigs, self._motifs
        texts = ((contigs.text, contigs.offsets), (names.text, names.offsets), (motifs.text, motifs.offsets))
        style, reads = (self._with_strand, self._k), (first, end)
        rows = np.empty(room_for_calls(texts, style, reads, batch.alignments, batch.calls, inside), np.uint8)
        size = format_calls(rows, texts, batch.call_motif, style, reads, batch.alignments, batch.calls, inside)
        return rows[:size].copy()  # without the room that was not needed: many pieces may wait to be written


class CallsTable(Sink):
    """Text table of calls.

    Parameters
    ----------
    layout : tuple
        Contigs, k, windows and motifs; see `f5py.outputs.calls.calls_sinks.CallsWriter`.
    stopping : threading.Event
        Stops the writer before its next piece.
    """

    def __init__(
        self,
        path: str,
        options: CallOptions,
        layout: tuple[list[str], int, Windows | None, list[str]],
        stopping: threading.Event,
    ) -> None:
        super().__init__(path)
        self._stopping = stopping
        self._options = options
        self._is_csv = options.output_format == "csv"
        self.can_be_renamed = not self._is_csv  # the rows of parts have tabs
        self._layout = layout

    def _open(self, part: PartFiles | None) -> None:
        options = self._options
        out: TextOutput = (
            self.files.enter_context(open_table(self.path, options.threads, self._is_csv))
            if part is None
            else part.text
        )
        self._out = out
        formatter = OrderedFormatter(options.threads, self._stopping)
        self.files.callback(formatter.close)
        self._calls = CallsWriter(out, options.meth_out_version, *self._layout, formatter=formatter)
        self._calls.write_header()
        self._stages = StageTables(out, options.print_events, options.print_banded_aln, options.print_scaling)

    def write(self, batch: ReadBatch) -> None:
        self._stages.write(batch)
        self._calls.write(batch)
        self._out.flush()  # whatever happens later, these rows are out, and whole

    def append(self, part: FinishedPart) -> None:
        part.append_rows(self._out)


class ModbamTags(Sink):
    """Alignments with MM and ML tags; skipped records are included.

    Parameters
    ----------
    header : pysam.AlignmentHeader
        With the @PG line of the run.
    reference : str
        Path of the reference.
    calibration : float
        Factor of the ratios; see `f5py.core.noise.CALIBRATION`.
    """

    part_name = "modbam.bam"
    accepts_empty = True

    def __init__(
        self,
        path: str,
        options: CallOptions,
        header: pysam.AlignmentHeader,
        motifs: list[Motif],
        windows: Windows | None,
        reference: str,
        calibration: float,
    ) -> None:
        super().__init__(path)
        self._options = options
        self._calibration = calibration
        self._header = header
        self._motifs = motifs
        self._windows = windows
        self._reference = reference

    def _open(self, part: PartFiles | None) -> None:
        from f5py.outputs.calls.modbam import ModbamWriter, TagOptions

        options = self._options
        tags = TagOptions(
            style=options.modbam_style,
            others="replace" if options.replace_tags else "merge" if options.merge_tags else "keep",
            prior=0.5 if options.prior is None else options.prior,
            calibration=self._calibration,
            windows=self._windows,
        )
        file = self.files.enter_context(
            indexed_output(self.path, self._header, options.threads) if part is None else complete_output(self.path)
        )
        self._records = self.files.enter_context(
            ModbamWriter(file, self.path, self._header, self._motifs, tags, options.threads, self._reference)
        )

    def write(self, batch: ReadBatch) -> None:
        self._records.write(batch)

    def append(self, part: FinishedPart) -> None:
        with part.open(self.part_name) as file:
            self._records.append(file)


class SitesOfCalls(Sink):
    """Counts of sites as bedMethyl, bedGraph or bigWig, written at the end; a part stores its counts.

    Parameters
    ----------
    contigs : dict of str to int
        Names and lengths.
    partitions : list of str or None
        See `f5py.outputs.sites.bedmethyl.BedMethylOutput`.
    """

    part_name = "sites.npz"

    def __init__(
        self,
        path: str,
        options: CallOptions,
        motif: Motif,
        contigs: dict[str, int],
        partitions: list[str] | None,
        windows: Windows | None,
    ) -> None:
        super().__init__(path)
        self._options = options
        self._of_counts = motif, contigs
        self._partitions = partitions
        self._windows = windows

    def _open(self, part: PartFiles | None) -> None:
        from f5py.outputs.sites.bedmethyl import BedMethylOutput
        from f5py.site_frequencies.site_counts import SiteCounts

        options = self._options
        counts = SiteCounts(options.threshold, options.threshold_per_site, options.combine_strands)
        sites = BedMethylOutput(
            self.path, *self._of_counts, counts, self._partitions, self._windows, options.threads
        )  # fmt: skip

        def complete(kind: type[BaseException] | None, *_: object) -> None:
            if kind is None and part is not None:
                sites.save(self.path)
            elif kind is None:
                sites.finish()

        self.files.push(complete)
        self._sites = sites

    def write(self, batch: ReadBatch) -> None:
        self._sites.write(batch)

    def append(self, part: FinishedPart) -> None:
        with part.open(self.part_name) as file:
            self._sites.join(file)
