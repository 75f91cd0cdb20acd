"""``f5py meth-freq``: methylation frequency at every site."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.frequency_commands import FrequencyOptions


@options.command(
    "meth-freq",
    FrequencyOptions,
    examples=(
        "f5py meth-freq -s -i calls.tsv -o freq.tsv",
        "f5py meth-freq run1.tsv.gz run2.tsv.gz -o sites.bed.gz",
        "f5py meth-freq dorado.bam -g ref.fa --min-coverage 5 -o freq.tsv",
        "f5py meth-freq calls.tsv --chrom-sizes ref.fa.fai -o sites.bw",
    ),
)
def command(**given: Any) -> None:
    """Count methylation at every site, from tables of call-methylation, tags of any caller, or bedMethyl."""
    from f5py.api.table_functions import frequencies

    frequencies(**given)
