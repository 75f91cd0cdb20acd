"""Batches for benchmarks: a real set loaded once and repeated in memory."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from f5py.core.batch import ReadBatch
from f5py.core.offsets import offsets_of
from f5py.io.alignments import AlignmentFile
from f5py.io.read_index import READDB_SUFFIX, ReadIndex, read_readdb
from f5py.io.reference import Reference
from f5py.io.signals import open_source
from f5py.pipeline.loader import Loader

_OFFSETS = {
    "cigar": "cigar_offsets",
    "reference": "reference_offsets",
    "bases": "base_offsets",
    "samples": "sample_offsets",
}


def load_batch(folder: Path) -> ReadBatch:
    """All records of the indexed set in `folder` (reads.fasta or .fastq, reads.bam, ref.fa) as one batch."""
    (reads_path,) = (str(path) for path in folder.glob("reads.fast[aq]"))
    alignments = AlignmentFile(str(folder / "reads.bam"), str(folder / "ref.fa"), 20, False)
    loader = Loader(
        alignments=alignments,
        reads_path=reads_path,
        reads=ReadIndex.open(reads_path),
        reference=Reference(str(folder / "ref.fa"), alignments.contigs, alignments.contig_lengths),
        signals=open_source(read_readdb(reads_path + READDB_SUFFIX), 1),
        windows=None,
        batch_size=1_000_000,
        max_bases=10**12,
        ultra_path=None,
        ultra_threshold=10**9,
        skip_unreadable=True,
        hard_clips=True,
    )
    (batch,) = loader.batches()
    return batch


def repeat(batch: ReadBatch, times: int) -> ReadBatch:
    """The batch's reads `times` over, as one loaded batch."""
    values = {}
    for field in dataclasses.fields(batch):
        value = getattr(batch, field.name)
        if field.name == "names":
            values[field.name] = value * times
        elif field.name in _OFFSETS.values():
            values[field.name] = offsets_of(np.tile(np.diff(value), times))
        elif isinstance(value, np.ndarray) and len(value):
            values[field.name] = np.tile(value, times)
        elif field.name == "number":
            values[field.name] = value
    return ReadBatch(**values)
