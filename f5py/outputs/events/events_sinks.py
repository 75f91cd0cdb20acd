"""Outputs of ``eventalign`` besides text: PAF, BAM, summary of the reads."""

from __future__ import annotations

from typing import Any

import pysam

from f5py.core.batch import ReadBatch
from f5py.io.bam.indexed_output import indexed_output
from f5py.io.files.output import TextOutput
from f5py.io.files.table_output import open_table
from f5py.messages import console
from f5py.outputs.events.eventalign_paf import EventalignPaf
from f5py.outputs.events.eventalign_sam import SamToBam
from f5py.outputs.events.eventalign_summary import EventalignSummary
from f5py.outputs.formatted_text import FormattedText
from f5py.outputs.sink import FinishedPart, PartFiles, Sink, append_text


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
