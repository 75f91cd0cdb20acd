"""``f5py simulate``: reads whose methylation is known."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.core.options import SimulateOptions


@options.command(
    "simulate",
    SimulateOptions,
    examples=(
        "f5py simulate -o simulated --genome-length 100K --coverage 20 --seed 1",
    ),
)
def command(**given: Any) -> None:
    """Simulate R9.4 reads of known CpG methylation.

    Writes into FOLDER: ref.fa, reads.fastq, reads.bam, fast5/, the sites' true frequencies (truth.tsv) and
    the state of every site in every read (truth_reads.tsv).
    """
    from f5py.api.functions import simulate

    simulate(**given)
