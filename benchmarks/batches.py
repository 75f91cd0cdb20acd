"""Batches for benchmarks: a real set loaded once and repeated in memory."""

from __future__ import annotations

import dataclasses
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from f5py.core.batch import ReadBatch
from f5py.core.offsets import offsets_of
from f5py.options.signal_commands import CallOptions
from f5py.pipeline.inputs import open_inputs

_OFFSETS = {
    "cigar": "cigar_offsets",
    "reference": "reference_offsets",
    "bases": "base_offsets",
    "samples": "sample_offsets",
}


def load_batch(folder: Path) -> ReadBatch:
    """All records of the indexed set in `folder` (reads.fasta or .fastq, reads.bam, ref.fa) as one batch."""
    (reads,) = (str(path) for path in folder.glob("reads.fast[aq]"))
    options = CallOptions(
        reads=reads, bam=str(folder / "reads.bam"), genome=str(folder / "ref.fa"), batchsize=1_000_000, max_bases=10**12
    )
    with ExitStack() as inputs:
        loader, _ = open_inputs(options, inputs)
        (batch,) = loader.batches()
    return batch


def repeat(batch: ReadBatch, times: int) -> ReadBatch:
    """Repeat the batch's reads `times` over, as one loaded batch."""
    values = {}
    for field in dataclasses.fields(batch):
        value = getattr(batch, field.name)
        if field.name == "names":
            values[field.name] = list(value) * times
        elif field.name in _OFFSETS.values():
            values[field.name] = offsets_of(np.tile(np.diff(value), times))
        elif isinstance(value, np.ndarray) and len(value):
            values[field.name] = np.tile(value, times)
        elif field.name == "number":
            values[field.name] = value
    return ReadBatch(**values)
