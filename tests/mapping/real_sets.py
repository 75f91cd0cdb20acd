"""Real and simulated read sets, mapped by the stages, and what minimap2 2.24 says of them."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import numpy as np

from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.mapping import hit_table as field
from f5py.mapping.align._pair_alignment_numba import Made
from f5py.mapping.batch import MappingBatch
from f5py.mapping.chain.chaining import score_chains
from f5py.mapping.hits.hits import align_hits, chain_hits, no_alignments, rank_hits
from f5py.mapping.index.contigs import Contigs
from f5py.mapping.index.reference_index import ReferenceIndex, build_index, codes_of
from f5py.mapping.index.seeds import OverlapTargets, find_anchors
from f5py.mapping.settings import MapSettings, parameters
from f5py.threads.pool import WorkerPool

Sequences = list[tuple[str, str]]


def text_of(path: Path) -> str:
    """Text of a file that may be compressed."""
    return (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()


def rows_of(path: Path) -> list[list[str]]:
    """Fields of the lines of a table."""
    return [line.split("\t") for line in text_of(path).splitlines()]


@cache
def sequences_of(path: Path) -> Sequences:
    """Names and bases of a FASTA or FASTQ file."""
    text = text_of(path)
    if text.startswith("@"):
        lines = text.splitlines()
        return [(lines[i][1:].split()[0], lines[i + 1]) for i in range(0, len(lines), 4)]
    records = [record.splitlines() for record in text[1:].split("\n>")]
    return [(lines[0].split()[0], "".join(lines[1:])) for lines in records]


def joined(sequences: Sequences) -> tuple[np.ndarray, np.ndarray]:
    """Letters and offsets of sequences."""
    text = bytearray("".join(bases for _, bases in sequences), "ascii")
    return np.frombuffer(text, np.uint8), offsets_of([len(bases) for _, bases in sequences])


def index_of(sequences: Sequences, settings: MapSettings, pool: WorkerPool) -> ReferenceIndex:
    """Index of contigs."""
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


def map_all(
    reference: Sequences, reads: Sequences, settings: MapSettings, with_alignment: bool = True, n_threads: int = 2
) -> tuple[ReferenceIndex, MappingBatch]:
    """Run all stages."""
    pool = WorkerPool(n_threads)
    try:
        index = index_of(reference, settings, pool)
        batch = batch_of(reads)
        numbers = parameters(settings, index.mid_occ(settings))
        find_anchors(batch, index, numbers, pool, OverlapTargets(index) if settings.ava else None)
        score_chains(batch, numbers, pool)
        chain_hits(batch, index, numbers, pool)
        if with_alignment:
            align_hits(batch, index, numbers, pool)
        rank_hits(batch, numbers, pool)
    finally:
        pool.close()
    return index, batch


def nothing_made() -> Made:
    """No alignments from elsewhere."""
    return Made(*no_alignments(1), np.zeros(2, np.int64))  # type: ignore[arg-type]


def cigar_of(ops: np.ndarray) -> str:
    """CIGAR string of operations."""
    return "".join(f"{op >> 4}{'MID'[op & 15]}" for op in ops.tolist())


def paf_of(index: ReferenceIndex, batch: MappingBatch, with_alignment: bool = True) -> list[list[str]]:
    """Fields of minimap2's PAF lines, plainly."""
    hits = batch.hits
    assert hits is not None
    assert batch.anchors is not None
    rows = []
    lengths = np.diff(index.offsets)
    for hit in hits.table:
        read, contig = hit[field.READ], hit[field.CONTIG]
        is_own = hit[field.ID] == hit[field.PARENT]
        kind = ("PI" if is_own else "Si")[hit[field.INVERSION]]
        row = [
            batch.names[read], batch.lengths[read], hit[field.QS], hit[field.QE], "+-"[hit[field.REVERSE]],
            index.names[contig], lengths[contig], hit[field.RS], hit[field.RE], hit[field.MLEN], hit[field.BLEN],
            hit[field.MAPQ],
        ]  # fmt: skip
        if with_alignment:
            mismatches = hit[field.BLEN] - hit[field.MLEN] + hit[field.N_AMBI]
            row += [f"NM:i:{mismatches}", f"ms:i:{hit[field.DP_MAX]}", f"AS:i:{hit[field.DP_SCORE]}"]
            row.append(f"nn:i:{hit[field.N_AMBI]}")
        row += [f"tp:A:{kind}", f"cm:i:{hit[field.COUNT]}", f"s1:i:{hit[field.SCORE]}"]
        if is_own:
            row.append(f"s2:i:{hit[field.SUBSC]}")
        if with_alignment:
            columns = hit[field.BLEN] + hit[field.N_AMBI] - hit[field.N_GAP] + hit[field.N_GAPOPEN]
            divergence = 1.0 - hit[field.MLEN] / columns
            row.append(f"de:f:{divergence:.4f}" if divergence else "de:f:0")
        elif hit[field.DIVERGENCE] >= 0:
            divergence = hit[field.DIVERGENCE] / (1 << field.DIVERGENCE_BITS)
            row.append(f"dv:f:{divergence:.4f}" if divergence else "dv:f:0")
        if hit[field.SPLIT]:
            row.append(f"zd:i:{hit[field.SPLIT]}")
        row.append(f"rl:i:{batch.anchors.rep_len[read]}")
        if with_alignment:
            first = hit[field.OPS]
            row.append(f"cg:Z:{cigar_of(hits.ops[first : first + hit[field.N_OPS]])}")
        rows.append([str(value) for value in row])
    return rows
