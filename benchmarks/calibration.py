"""Calibration of calls, on reads without labels: constants of `f5py.core.noise.CALIBRATION`.

    python benchmarks/calibration.py -r READS -b BAM -g GENOME [--slow5 FILE] [--site TA:1 --site AA:1]

Plain bases are given a second hypothesis, a decoy: at the sites of a motif that no enzyme methylates, one base is
"methylated" as a C is in CG, that is, k-mers with it get the shift of k-mers of CG with the modified base at the same
place; which of them is drawn. The first hypothesis is true, so the best factor of the ratios is that with the
greatest likelihood of it. Windows that any methylation could touch are left out. Intervals are of 95 %, by bootstrap
over reads; the calibration error is that of the greater of both probabilities.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.commands import call_methylation as command
from f5py.compute import methylation as stage
from f5py.core.batch import ReadBatch
from f5py.core.kmers import kmer_digits
from f5py.core.motifs import Motif, motif_named, parse_motif
from f5py.core.offsets import used_elements
from f5py.methylation.calls import call_methylation
from f5py.options.signal_commands import CallOptions
from f5py.pore_model import PoreModel
from f5py.training.noise import plain_windows

_HIDDEN = [motif_named(name) for name in ("cpg", "dam", "dcm")]
_FACTORS = np.round(np.arange(0.1, 2.51, 0.02), 2)
_SAMPLES, _BINS, _DRAWS = 300, 10, 3


def decoy(model: PoreModel, motif: Motif, seed: int) -> PoreModel:
    """Make a model with M for the modified base of `motif` instead of C, moved as k-mers of CG are."""
    rng = np.random.default_rng(seed)
    n, power = len(model.level_mean), 5 ** np.arange(model.k - 1, -1, -1)
    letters = kmer_digits(np.arange(n), model.k, 5)
    modified = letters == model.alphabet.index("M")
    in_cg = ~(modified[:, :-1] & (letters[:, 1:] != model.alphabet.index("G"))).any(axis=1)
    with_c = np.where(modified, model.alphabet.index("C"), letters) @ power
    plain = np.where(modified, model.alphabet.index(motif.canonical), letters) @ power
    moves = model.level_mean - model.level_mean[with_c]
    places = modified @ (1 << np.arange(model.k))
    level, stdv = model.level_mean.copy(), model.level_stdv.copy()
    for one in np.unique(places[places > 0]):
        here = np.flatnonzero(places == one)
        if len(known := here[in_cg[here]]):
            level[here] = model.level_mean[plain[here]] + moves[rng.choice(known, len(here))]
            stdv[here] = model.level_stdv[plain[here]]
    return PoreModel(model.name, model.k, model.alphabet, level, stdv)


def ratios_of(options: CallOptions, motif: Motif) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Ratios of the decoys, positive where the decoy is more probable, and numbers of their reads."""
    ratios: list[NDArray[np.float64]] = []
    reads: list[NDArray[np.int64]] = []

    def with_decoys(batch: ReadBatch, _: Motif, model: PoreModel, *others: Any, **more: Any) -> float:
        for seed in range(_DRAWS):
            one = replace(batch)
            call_methylation(one, motif, decoy(model, motif, seed), *others, **more)
            is_plain = plain_windows(one, _HIDDEN)
            used = np.flatnonzero(used_elements(one.calls.offsets, one.calls.n))[is_plain]
            ratios.append(one.calls.methylated[used].astype(np.float64) - one.calls.unmethylated[used])
            reads.append(one.read_index[np.repeat(np.arange(len(one)), one.calls.n)[is_plain]])
        return call_methylation(batch, _, model, *others, **more)

    real: Callable[..., float] = stage.call_methylation
    stage.call_methylation = with_decoys  # type: ignore[assignment]
    try:
        command.run(options)
    finally:
        stage.call_methylation = real  # type: ignore[assignment]
    return np.concatenate(ratios), np.unique(np.concatenate(reads), return_inverse=True)[1]


def error(ratios: NDArray[np.float64], factor: float) -> float:
    """Compute the expected calibration error of the greater of both probabilities."""
    sure = 1 / (1 + np.exp(-np.abs(ratios) * factor))
    at = np.minimum(((sure - 0.5) * 2 * _BINS).astype(np.int64), _BINS - 1)
    return float(np.abs(np.bincount(at, sure - (ratios < 0), _BINS)).sum() / len(ratios))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-r", required=True, help="indexed reads")
    parser.add_argument("-b", required=True, help="alignments")
    parser.add_argument("-g", required=True, help="reference")
    parser.add_argument("--slow5", action="append", default=[], help="BLOW5; without it the signals of the index")
    parser.add_argument("--site", action="append", help="where decoys are; TA:1, AA:1 and GC:1 without it")
    given = parser.parse_args()
    print("| site | noise | windows | reads | best factor | error as it is | error with it |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for site in given.site or ["TA:1", "AA:1", "GC:1"]:
        found = parse_motif(site)
        motif = Motif(found.name, found.pattern, found.offset, None)
        for noise in ("independent", "correlated"):
            options = CallOptions(
                bam=given.b, reads=given.r, genome=given.g, slow5=tuple(given.slow5), output="/dev/null", threads=2,
                gpu="off", noise=noise, rescale=False if noise == "correlated" else None,
            )  # fmt: skip
            ratios, reads = ratios_of(options, motif)
            n = reads.max() + 1
            loss = np.stack([np.bincount(reads, np.logaddexp(0, ratios * factor), n) for factor in _FACTORS], axis=1)
            best = _FACTORS[loss.sum(axis=0).argmin()]
            rng = np.random.default_rng(1)
            drawn = [_FACTORS[loss[rng.integers(0, n, n)].sum(axis=0).argmin()] for _ in range(_SAMPLES)]
            low, high = np.quantile(drawn, (0.025, 0.975))
            print(
                f"| {site} | {noise} | {len(ratios):,} | {n:,} | {best:.2f} [{low:.2f}, {high:.2f}] | "
                f"{error(ratios, 1.0):.3f} | {error(ratios, best):.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
