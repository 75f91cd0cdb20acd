"""``f5py train``: estimate a pore model from control reads."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.signal_commands import TrainOptions


@options.command(
    "train",
    TrainOptions,
    examples=(
        "f5py train --methylated sssi.bam --unmethylated wga.bam -g ref.fa --pod5 pod5/ -o cpg.model",
        "f5py train --unmethylated wga.bam -g ref.fa -r reads.fastq --slow5 reads.blow5 -o nucleotide.model",
    ),
)
def command(**given: Any) -> None:
    """Estimate the levels of k-mers from reads of known methylation, and write them as a pore model.

    Give control reads with --methylated and --unmethylated, or with -b and --truth. Unmethylated reads alone give a
    nucleotide model, otherwise the model has methylated k-mers, for --meth-model. Some of the reads are held out to
    test the model. Rare k-mers get levels from similar ones.
    """
    from f5py.api.functions import train

    with options.resource_report():
        train(**given)
