"""The real reads for the tests of the aligners, and what f5c's aligner makes of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from f5py.core.kmers import base_codes
from f5py.io.reads.read_files import ReadFiles
from f5py.io.reads.read_index import ReadIndex
from f5py.io.signals import open_source
from f5py.options.input_names import READDB_SUFFIX
from f5py.pipeline.sequence_loader import unmapped_batch
from f5py.signal.events import DNA, detect_events
from f5py.signal.scaling import estimate_scaling, fill_ranks
from f5py.threads.pool import WorkerPool

from ..compiled import compiled
from .made_reads import MODEL, Read

estimate_scaling, fill_ranks = map(compiled, (estimate_scaling, fill_ranks))


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
    pool.close()
    reads = []
    for i in range(len(names)):
        bases = batch.bases[batch.base_offsets[i] : batch.base_offsets[i + 1]]
        events = batch.events.mean[batch.events.offsets[i] : batch.events.offsets[i + 1]]
        ranks = np.empty(len(bases) - MODEL.k + 1, np.int32)
        fill_ranks(bases, MODEL.k, base_codes(), ranks)
        reads.append(Read(bases, events, *estimate_scaling(events, ranks, MODEL.level_mean)))
    return reads
