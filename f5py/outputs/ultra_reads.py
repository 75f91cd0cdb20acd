"""Records of ultra-long reads that a run in parts has skipped."""

from __future__ import annotations

import pysam

from f5py.core.batch import ReadBatch
from f5py.io.bam.joined_bam import JoinedBam
from f5py.io.files.complete_file import complete_output
from f5py.outputs.sink import FinishedPart, PartFiles, Sink


class UltraReads(Sink):
    """BAM file of ``--skip-ultra`` for a run in parts; in a single run and in each part the loader writes it."""

    part_name = "ultra.bam"

    def __init__(self, path: str, header: pysam.AlignmentHeader) -> None:
        super().__init__(path)
        self._header = header

    def _open(self, part: PartFiles | None) -> None:
        file = self.files.enter_context(complete_output(self.path))
        self._records = self.files.enter_context(JoinedBam(file, self.path, self._header))

    def write(self, batch: ReadBatch) -> None:
        """Do nothing: the loader has skipped these reads."""

    def append(self, part: FinishedPart) -> None:
        with part.open(self.part_name) as file:
            self._records.append(file)
