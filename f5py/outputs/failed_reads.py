"""List of the failed reads with their causes."""

from contextlib import suppress
from typing import Any

import numpy as np
import pysam

from f5py.compute.diagnosis import CAUSES, FATES, cause_text
from f5py.core.batch import ReadBatch, ReadStatus
from f5py.errors import F5pyError, OutputFileError
from f5py.io.bam.bam_output import RecordOutput
from f5py.io.files.complete_file import complete_output
from f5py.options.shared import AlignmentOptions
from f5py.outputs.sink import FinishedPart, PartFiles, Sink, TextSink
from f5py.text.encoding import encoded


class UltraReads(Sink):
    """BAM file of ``--skip-ultra``, with the records of very long reads."""

    part_name = "ultra.bam"
    accepts_empty = True

    def __init__(self, path: str, header: pysam.AlignmentHeader) -> None:
        super().__init__(path)
        self._header = header

    def _open(self, part: PartFiles | None) -> None:
        file = self.files.enter_context(complete_output(self.path))
        self._records = self.files.enter_context(RecordOutput(file, self.path, self._header))

    def write(self, batch: ReadBatch) -> None:
        if batch.ultra is not None:
            self._records.write(batch.ultra)

    def append(self, part: FinishedPart) -> None:
        with part.open(self.part_name) as file:
            self._records.append(file)


class FailedReads(TextSink):
    """Output of ``--failed-reads``; the limits in `options` explain the causes."""

    part_name = "failed_reads.tsv"
    header = b"read_name\tfate\tcause\tdetails\n"

    def __init__(self, path: str, options: AlignmentOptions) -> None:
        super().__init__(path, options.threads)
        self._options = options
        self._is_whole = True  # no write has failed

    def format(self, batch: ReadBatch) -> bytes:
        lines = [
            f"{batch.names[read]}\t{FATES[ReadStatus(int(batch.status[read]))]}\t{CAUSES[batch.cause[read]]}\t"
            f"{cause_text(batch, read, self._options)}\n"
            for read in np.flatnonzero(batch.status != ReadStatus.OK).tolist()
        ]
        return encoded("".join(lines))

    def write(self, batch: ReadBatch) -> None:
        self._is_whole = False
        super().write(batch)
        self._is_whole = True

    def abandon(self, *problem: Any) -> None:
        """Complete the list after a failed run, as it explains the failure."""
        if isinstance(problem[1], F5pyError) and self._is_whole:
            with suppress(OutputFileError):  # the problem before is worth more
                self.finish()
        else:
            super().abandon(*problem)
