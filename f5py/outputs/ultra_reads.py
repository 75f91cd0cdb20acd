"""The records of ultra-long reads, which parts of a run have left out."""

from __future__ import annotations

import pysam

from f5py.core.batch import ReadBatch
from f5py.io.bam.joined_bam import JoinedBam
from f5py.io.files.complete_file import complete_output
from f5py.outputs.sink import DonePart, OfPart, Sink


class UltraReads(Sink):
    """The BAM file of ``--skip-ultra`` of a run in parts; in one run the loader writes it, as that of a part."""

    part_name = "ultra.bam"

    def __init__(self, path: str, header: pysam.AlignmentHeader) -> None:
        super().__init__(path)
        self._header = header

    def _open(self, part: OfPart | None) -> None:
        file = self.files.enter_context(complete_output(self.path))
        self._records = self.files.enter_context(JoinedBam(file, self.path, self._header))

    def write(self, batch: ReadBatch) -> None:
        """Do nothing: the loader has left these reads out."""

    def append(self, part: DonePart) -> None:
        with part.open(self.part_name) as file:
            self._records.append(file)
