"""``f5py simulate``: reads whose methylation is known."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.table_commands import SimulateOptions


@options.command(
    "simulate",
    SimulateOptions,
    examples=(
        "f5py simulate -o simulated --genome-length 100K --coverage 20 --seed 1",
        "f5py simulate -o rna --pore rna004 --genome-length 20K -n 1000 --format pod5",
    ),
)
def command(**given: Any) -> None:
    """Simulate reads of known methylation.

    Writes into FOLDER: ref.fa, reads.fastq, reads.bam, the signals, the sites' true frequencies (truth.tsv) and the
    state of every site in every read (truth_reads.tsv). Dwell times and noise are like those of real reads.
    """
    from f5py.api.functions import simulate

    simulate(**given)
