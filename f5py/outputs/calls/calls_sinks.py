"""Outputs of ``call-methylation``: a table as text or Parquet, tags of alignments, and counts of sites."""

from __future__ import annotations

import threading

import pysam

from f5py.core.batch import ReadBatch
from f5py.core.motifs import Motif
from f5py.core.windows import Windows
from f5py.io.bam.indexed_output import indexed_output
from f5py.io.files.complete_file import complete_output
from f5py.io.files.output import TextOutput
from f5py.io.files.table_output import open_table
from f5py.options.signal_commands import CallOptions
from f5py.outputs.calls.calls_writer import CallsWriter
from f5py.outputs.formatted_text import OrderedFormatter
from f5py.outputs.sink import FinishedPart, PartFiles, Sink
from f5py.outputs.stage_tables import StageTables


class CallsTable(Sink):
    """Text table of calls.

    Parameters
    ----------
    layout : tuple
        Contigs, k, windows and motifs; see `f5py.outputs.calls.calls_writer.CallsWriter`.
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
