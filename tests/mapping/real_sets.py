"""Real and simulated read sets, mapped by the stages, and what minimap2 2.24 says of them."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import numpy as np

from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.mapping.align._pair_alignment_numba import KnownAlignments
from f5py.mapping.batch import MappingBatch
from f5py.mapping.hits.hits import no_alignments
from f5py.mapping.index.contigs import Contigs
from f5py.mapping.index.reference_index import ReferenceIndex, build_index, codes_of
from f5py.mapping.settings import MapSettings
from f5py.threads.pool import WorkerPool

Sequences = list[tuple[str, str]]


def text_of(path: Path) -> str:
    return (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()


def rows_of(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in text_of(path).splitlines()]


@cache
def sequences_of(path: Path) -> Sequences:
    text = text_of(path)
    if text.startswith("@"):
        lines = text.splitlines()
        return [(lines[i][1:].split()[0], lines[i + 1]) for i in range(0, len(lines), 4)]
    records = [record.splitlines() for record in text[1:].split("\n>")]
    return [(lines[0].split()[0], "".join(lines[1:])) for lines in records]


def joined(sequences: Sequences) -> tuple[np.ndarray, np.ndarray]:
    text = bytearray("".join(bases for _, bases in sequences), "ascii")
    return np.frombuffer(text, np.uint8), offsets_of([len(bases) for _, bases in sequences])


def index_of(sequences: Sequences, settings: MapSettings, pool: WorkerPool) -> ReferenceIndex:
    letters, offsets = joined(sequences)
    return build_index(Contigs.of_codes([name for name, _ in sequences], codes_of(letters), offsets), settings, pool)


def batch_of(sequences: Sequences) -> MappingBatch:
    """Make a batch of reads."""
    letters, offsets = joined(sequences)
    nothing = np.empty(0, np.uint8)
    batch = MappingBatch(
        Names.of([name for name, _ in sequences]), letters, offsets, nothing, nothing,
        np.zeros(len(sequences) + 1, np.int64),
    )  # fmt: skip
    batch.codes = codes_of(letters)
    return batch


def nothing_made() -> KnownAlignments:
    return KnownAlignments(*no_alignments(1), np.zeros(2, np.int64))  # type: ignore[arg-type]
