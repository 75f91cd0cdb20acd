"""The noise of events in unlabeled reads: correlations of successive residuals, and tails.

    python benchmarks/noise.py -r READS -b BAM -g GENOME [--slow5 FILE] [--motif cpg --motif dam --motif dcm]

Estimates the constants of `f5py.core.noise.OF_PORES` as `f5py train` does: by the likelihood of windows that no site of
the motifs touches, so that nothing needs to be known of their methylation, with the built-in levels. Intervals are of
95 %, by bootstrap over reads.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray

from f5py.compute.training import NoiseStage
from f5py.core.batch import ReadBatch
from f5py.core.motifs import motif_named
from f5py.messages import console
from f5py.options.signal_commands import TrainOptions
from f5py.pipeline.flow import process
from f5py.pipeline.inputs import open_inputs
from f5py.training.held_out import LEARNT
from f5py.training.noise import CANDIDATES, estimate


def _all_bases(batch: ReadBatch) -> NDArray[np.uint8]:
    return np.full(int(batch.reference_offsets[-1]), LEARNT, np.uint8)


def measured(options: TrainOptions, motifs: list[str]) -> tuple[str, NDArray[np.float64]]:
    """Name of the chemistry; windows and likelihoods of each read that has windows."""
    with ExitStack() as workers, ExitStack() as inputs:
        loader, chemistry = open_inputs(options, inputs)
        model = chemistry.nucleotide_model(options.kmer_model)
        stage = NoiseStage(options, chemistry, model, [motif_named(name) for name in motifs], 1.0, _all_bases)
        workers.callback(stage.close)
        process(
            options, stage, loader.batches(), loader.stop, inputs, lambda batch: None, "noise", "nothing was measured"
        )
    reads = np.concatenate(stage.of_reads)
    return chemistry.name, reads[reads[:, 0] > 0]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-r", required=True, help="indexed reads")
    parser.add_argument("-b", required=True, help="alignments")
    parser.add_argument("-g", required=True, help="reference")
    parser.add_argument("--slow5", action="append", default=[], help="BLOW5; without it the signals of the index")
    parser.add_argument("--motif", action="append", help="whose sites are left out; cpg, dam and dcm without it")
    parser.add_argument("--samples", type=int, default=500, help="of the bootstrap")
    given = parser.parse_args()
    options = TrainOptions(
        bam=given.b, reads=given.r, genome=given.g, slow5=tuple(given.slow5), output="-", threads=2, gpu="off"
    )
    with console.on_standard_error():
        name, reads = measured(options, given.motif or ["cpg", "dam", "dcm"])
    total = reads.sum(axis=0)
    found = estimate(total[1:], int(total[0]))
    if found is None:
        raise SystemExit(f"too few windows: {int(total[0])}")
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(given.samples):
        sums = reads[rng.integers(0, len(reads), len(reads))].sum(axis=0)
        drawn.append(estimate(sums[1:], int(sums[0])))
    print(f"{name}: {found.n_windows:,} windows of {len(reads)} reads; {found.noise.words}")
    for field in ("stay", "step"):
        low, high = np.quantile([getattr(one.noise, field) for one in drawn if one is not None], (0.025, 0.975))
        print(f"  {field} {getattr(found.noise, field):.2f} [{low:.2f}, {high:.2f}]")
    same = np.mean([one is not None and one.noise.tails == found.noise.tails for one in drawn])
    print(f"  a window's log-likelihood gains {found.gain:.3f}, of which by the tails {found.gain_of_tails:.3f}; ")
    print(f"  these tails in {100 * same:.0f} % of the samples")
    best = np.argsort(total[1:])[::-1][:5]
    for i in best:
        print(f"  {CANDIDATES[i].words}: {(total[1 + i] - total[1:].max()) / total[0]:.4f} per window")


if __name__ == "__main__":
    main()
