"""A batch of real reads with the rows of f5c's event alignment."""

from __future__ import annotations

import gzip
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from f5py.compute.alignment import AlignmentStage
from f5py.core.batch import ReadBatch, Rows, RowState
from f5py.io.bam.alignments import AlignmentFile
from f5py.options.signal_commands import EventalignOptions
from f5py.pipeline.inputs import open_inputs

NUCLEOTIDE = "r9.4_450bps.nucleotide.6mer"


def ecoli_contigs(ecoli: Path) -> list[str]:
    """Names of the contigs in the header of ``reads8.bam``."""
    alignments = AlignmentFile(str(ecoli / "reads8.bam"), str(ecoli / "ref.fa"), 20, False)
    try:
        return alignments.contigs
    finally:
        alignments.close()


def calibrated_batch(ecoli: Path, reads: Path, n_threads: int = 1) -> ReadBatch:
    """Make the records of ``reads8.bam`` as they are before the event alignment; no rows.

    `ecoli` is the folder of the read set, `reads` its indexed FASTA file. Hard clips are not counted, as in the
    expected files.
    """
    options = EventalignOptions(
        reads=str(reads),
        bam=str(ecoli / "reads8.bam"),
        genome=str(ecoli / "ref.fa"),
        threads=n_threads,
        hard_clips=False,
    )
    with ExitStack() as inputs:
        loader, chemistry = open_inputs(options, inputs)
        (batch,) = loader.batches()
    stage = AlignmentStage(options, chemistry, keep_samples=True)
    stage.check_batch(batch)
    stage.compute(batch)
    stage.count_batch(batch)
    stage.close()
    return batch


def add_expected_rows(batch: ReadBatch, ecoli: Path) -> None:
    """Fill the row arrays of `calibrated_batch` from the expected table."""
    text = gzip.decompress((ecoli / "expected/eventalign/default.tsv.gz").read_bytes()).decode()
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    read_index = np.array([row[3] for row in rows]).astype(np.int64)
    position = np.array([row[1] for row in rows]).astype(np.int32)
    event = np.array([row[5] for row in rows]).astype(np.int32)
    bad = np.array([set(row[9]) == {"N"} for row in rows])
    n_events = batch.events.offsets[-1]
    batch.rows = Rows(
        batch.events.offsets, np.zeros(len(batch), np.int64), np.zeros(n_events, np.int32),
        np.zeros(n_events, np.int32), np.zeros(n_events, np.uint8),
    )  # fmt: skip
    for read, number in enumerate(batch.read_index.tolist()):
        mine = read_index == number
        n_rows = int(mine.sum())
        first = batch.events.offsets[read]
        assert n_rows <= batch.n_events[read]
        batch.rows.n[read] = n_rows
        batch.rows.event[first : first + n_rows] = event[mine]
        batch.rows.position[first : first + n_rows] = position[mine]
        batch.rows.state[first : first + n_rows] = bad[mine] * np.uint8(RowState.BAD)
    assert batch.rows.n.sum() == len(rows)


def expected_batch(ecoli: Path, reads: Path) -> ReadBatch:
    """Make the records of ``reads8.bam`` with the expected rows; see `calibrated_batch`."""
    batch = calibrated_batch(ecoli, reads)
    add_expected_rows(batch, ecoli)
    return batch
