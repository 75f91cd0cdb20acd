"""Outputs of ``eventalign`` besides text: Parquet, BAM, sites for m6anet, summary of the reads."""

from __future__ import annotations

from typing import Any

import pysam

from f5py.core.batch import ReadBatch
from f5py.io.bam.indexed_output import indexed_output
from f5py.io.files.output import TextOutput
from f5py.io.files.table_output import open_table
from f5py.messages import console
from f5py.options.signal_commands import EventalignOptions
from f5py.outputs.events.eventalign_paf import EventalignPaf
from f5py.outputs.events.eventalign_sam import SamToBam
from f5py.outputs.events.eventalign_summary import EventalignSummary
from f5py.outputs.events.m6anet_sites import M6anetJson, PartSites, SiteFinder, sites_of_part
from f5py.outputs.formatted_text import FormattedText
from f5py.outputs.sink import FinishedPart, PartFiles, Sink, append_text
from f5py.pore_model.model import PoreModel


class EventPaf(FormattedText):
    """PAF output that reports oddities per read."""

    def write(self, batch: ReadBatch) -> None:
        super().write(batch)
        assert isinstance(self._text, EventalignPaf)
        for note in self._text.notes(batch):
            console.plain(note)


class EventBam(FormattedText):
    """BAM output of SAM records, indexed if sorted; parts store text.

    Parameters
    ----------
    header : pysam.AlignmentHeader
        With the @PG line of the run.
    """

    can_be_renamed = False
    _has_header = False

    def __init__(self, header: pysam.AlignmentHeader, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._header = header

    def _open_text(self) -> TextOutput:
        file = self.files.enter_context(indexed_output(self.path, self._header, self._options.threads))
        return self.files.enter_context(SamToBam(file, self.path, self._header, self._options.threads))

    def append(self, part: FinishedPart) -> None:
        lines = _WholeLines(self._out)
        part.append_rows(lines)


class _WholeLines:
    """Buffer that passes on whole lines only."""

    def __init__(self, out: TextOutput) -> None:
        self._out = out
        self._rest = b""

    def write(self, text: bytes) -> None:
        end = text.rfind(b"\n") + 1
        if end:
            self._out.write(self._rest + text[:end])
            self._rest = text[end:]
        else:
            self._rest += text

    def flush(self) -> None:
        """Do nothing: later text completes the line."""


class M6anetSites(Sink):
    """Folder of files for m6anet; a part stores its sites.

    Parameters
    ----------
    is_sorted : bool
        The reads of a transcript are contiguous.
    """

    part_name = "m6anet.npy"

    def __init__(
        self, path: str, options: EventalignOptions, model: PoreModel, contigs: list[str], is_sorted: bool
    ) -> None:
        super().__init__(path)
        self._options = options
        self._contigs = contigs
        self._is_sorted = is_sorted
        self._finder = SiteFinder(model, len(contigs), options.m6anet_max_reads)

    def _open(self, part: PartFiles | None) -> None:
        options = self._options
        sites: Any
        if part is not None:
            sites = PartSites(self.path)
        else:
            sites = M6anetJson(
                self.path, self._contigs, self._is_sorted, options.m6anet_min_reads, options.m6anet_max_reads
            )
        self._sites = self.files.enter_context(sites)

    def write(self, batch: ReadBatch) -> None:
        self._sites.write(self._finder.find(batch))

    def append(self, part: FinishedPart) -> None:
        with part.open(self.part_name) as file:
            for found in sites_of_part(file, len(self._contigs)):
                self._sites.write(found)


class ReadSummary(Sink):
    """Table of ``--summary``: a row per read."""

    part_name = "summary.tsv"

    def __init__(self, path: str, text: EventalignSummary, n_threads: int) -> None:
        super().__init__(path)
        self._text = text
        self._n_threads = n_threads

    def _open(self, part: PartFiles | None) -> None:
        self._out = self.files.enter_context(open_table(self.path, 1 if part else self._n_threads))
        self._out.write(self._text.header())

    def write(self, batch: ReadBatch) -> None:
        self._out.write(self._text.format(batch, 0, len(batch)))
        self._out.flush()

    def append(self, part: FinishedPart) -> None:
        with part.open(self.part_name) as file:
            append_text(file, self._out)
