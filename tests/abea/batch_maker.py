"""Batches of made-up reads that are ready for alignment."""

import numpy as np

from f5py.core.batch import Events
from f5py.core.offsets import offsets_of
from f5py.pore_model import builtin

from ..made_batches import read_batch

MODEL = builtin("r9.4_450bps.nucleotide.6mer")


def made_batch(rng, n_reads, usual=1500, long=9000):
    """Make reads of 6 to `usual` bases, some of them noise, over-segmented or far longer than the others."""
    bases, events = [], []
    for i in range(n_reads):
        length = int(rng.integers(6, usual)) if i % 10 else 6
        if i % 15 == 14:
            length = long
        letters = rng.integers(0, 4, length)
        ranks = np.zeros(length - 5, np.int64)
        for offset in range(6):
            ranks = 4 * ranks + letters[offset : offset + length - 5]
        repeats = 1 + rng.poisson(7.0 if i % 12 == 7 else 0.8, len(ranks))
        index = np.repeat(ranks, repeats)
        means = MODEL.level_mean[index] + MODEL.level_stdv[index] * rng.normal(size=len(index))
        if i % 11 == 5:
            means = rng.uniform(40, 160, len(index))
        bases.append(np.frombuffer(b"ACGT", np.uint8)[letters])
        events.append(means.astype(np.float32))
    n_bases = np.array([len(one) for one in bases])
    n_events = np.array([len(one) for one in events])
    batch = read_batch(
        n_reads,
        bases=np.concatenate(bases),
        base_offsets=offsets_of(n_bases),
        events=Events.none()._replace(offsets=offsets_of(n_events), mean=np.concatenate(events)),
        shift=np.zeros(n_reads, np.float32),
        scale=np.ones(n_reads, np.float32),
        var=np.ones(n_reads, np.float32),
    )
    return batch
