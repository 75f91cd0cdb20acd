"""The real reads for the tests of the aligners, and what f5c's aligner makes of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from f5py.io.reads.read_files import ReadFiles
from f5py.io.reads.read_index import ReadIndex
from f5py.io.signals import open_source
from f5py.options.input_names import READDB_SUFFIX
from f5py.pipeline.unmapped import unmapped_batch
from f5py.signal.events import DNA, detect_events
from f5py.signal.scaling import drop_short, estimate_scaling, rank_kmers
from f5py.threads.pool import WorkerPool

from .made_reads import MODEL, Read


def reference_pairs(path: Path) -> dict[str, list[tuple[int, int]]]:
    """Aligned (k-mer, event) pairs by read name."""
    pairs: dict[str, list[tuple[int, int]]] = {}
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        if line.startswith(">"):
            name = line[1:].split("\t")[0]
        else:
            numbers = np.array(line.replace("{", "").replace("}", ",").replace("\t", "").strip(",").split(","), int)
            pairs[name] = [tuple(pair) for pair in numbers.reshape(-1, 2).tolist()]
    return pairs


def real_reads(names: list[str], path: Path) -> list[Read]:
    """Events and scaling of indexed reads as the pipeline finds them."""
    with ReadIndex.open(str(path)) as index:
        bases, base_offsets = index.sequences(names)
    source = open_source(ReadFiles.read(str(path) + READDB_SUFFIX))
    signals = source.fetch(names)
    source.close()
    assert not signals.problems
    batch = unmapped_batch(0, names, bases, base_offsets, signals)
    pool = WorkerPool(1)
    detect_events(batch, DNA, pool)
    drop_short(batch, MODEL)
    rank_kmers(batch, MODEL, pool)
    estimate_scaling(batch, MODEL, pool)
    return [
        Read(
            batch.bases[batch.base_offsets[i] : batch.base_offsets[i + 1]],
            batch.events.mean[batch.events.offsets[i] : batch.events.offsets[i + 1]],
            batch.shift[i],
            batch.scale[i],
        )
        for i in range(len(names))
    ]
