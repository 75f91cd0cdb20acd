"""Made-up reads with events, base-to-event maps and alignments to a made-up reference."""

from __future__ import annotations

import numpy as np

from f5py.core.batch import BaseMap, Events, ReadBatch
from f5py.core.offsets import offsets_of
from f5py.pore_model import PoreModel

from ..made_batches import read_batch
from .plain_viterbi import OPERATIONS, opposite_strand, rank


def made_model(rng, k: int) -> PoreModel:
    stdv = rng.uniform(1, 3, 4**k).astype(np.float32)
    return PoreModel("made", k, "ACGT", rng.uniform(60, 130, 4**k).astype(np.float32), stdv)


def level_model(k: int) -> PoreModel:
    """Make a model that cannot tell k-mers apart, which makes for many ties."""
    return PoreModel("level", k, "ACGT", np.full(4**k, 90, np.float32), np.full(4**k, 2, np.float32))


def random_bases(rng, length: int) -> str:
    return "".join("ACGT"[i] for i in rng.integers(0, 4, length))


def made_read(rng, model, cigar: str, reverse=False, start=1000, events_per_base=2.0, noise=1.0, wrong=0.02) -> dict:
    """One read that has the alignment `cigar` (such as ``10S100M2D50M``) at `start`.

    A tenth of the k-mers have no event of their own, and a part `wrong` of the events fits no k-mer.
    """
    operations, number = [], ""
    for letter in cigar:
        if letter.isdigit():
            number += letter
        else:
            operations.append((OPERATIONS.index(letter), int(number)))
            number = ""
    span = sum(length for operation, length in operations if OPERATIONS[operation] in "MDN=X")
    reference = random_bases(rng, span + 1)
    sequence, at = "", 0
    for operation, length in operations:
        name = OPERATIONS[operation]
        if name in "M=":
            sequence += reference[at : at + length]
        elif name in "ISXH":
            sequence += random_bases(rng, length)
        if name in "MDN=X":
            at += length
    if reverse:
        sequence = opposite_strand(sequence)
    n_kmers = max(len(sequence) - model.k + 1, 0)
    repeats = np.where(rng.random(n_kmers) < 0.1, 0, 1 + rng.poisson(max(events_per_base / 0.9 - 1, 0), n_kmers))
    first_event = np.full(len(sequence), -1, np.int32)
    first_event[:n_kmers] = np.where(repeats > 0, np.cumsum(repeats) - repeats, -1)
    ranks = np.repeat([rank(sequence[j : j + model.k]) for j in range(n_kmers)], repeats).astype(np.int64)
    means = 1.02 * model.level_mean[ranks] - 3 + noise * model.level_stdv[ranks] * rng.normal(size=len(ranks))
    means = np.where(rng.random(len(means)) < wrong, rng.uniform(30, 200, len(means)), means)
    return {
        "cigar": np.array([length << 4 | operation for operation, length in operations], np.uint32),
        "reverse": reverse,
        "start": start,
        "span": span,
        "reference": np.frombuffer(reference.encode(), np.uint8),
        "bases": np.frombuffer(sequence.encode(), np.uint8),
        "first_event": first_event,
        "means": means.astype(np.float32),
        "events_per_base": events_per_base,
    }


def made_batch(reads: list[dict]) -> ReadBatch:
    """Make a batch of reads that are ready for the alignment of events to the reference."""
    n = len(reads)

    def joined(name):
        return np.concatenate([read[name] for read in reads])

    def offsets(name):
        return offsets_of(np.array([len(read[name]) for read in reads], np.int64))

    start = np.array([read["start"] for read in reads], np.int64)
    return read_batch(
        n,
        reference_start=start,
        reference_end=start + np.array([read["span"] for read in reads], np.int64),
        reverse=np.array([read["reverse"] for read in reads], np.bool_),
        cigar=joined("cigar"),
        cigar_offsets=offsets("cigar"),
        reference=joined("reference"),
        reference_offsets=offsets("reference"),
        bases=joined("bases"),
        base_offsets=offsets("bases"),
        events=Events.none()._replace(offsets=offsets("means"), mean=joined("means")),
        base_map=BaseMap(offsets("bases"), joined("first_event"), np.empty(0, np.int32)),
        shift=np.full(n, -3, np.float32),
        scale=np.full(n, 1.02, np.float32),
        var=np.full(n, 1.1, np.float32),
        events_per_base=np.array([read["events_per_base"] for read in reads], np.float64),
    )
