"""``f5py meth-freq``: methylation frequency at every site."""

from __future__ import annotations

from f5py.cli import options
from f5py.core.options import FrequencyOptions


@options.command("meth-freq", FrequencyOptions)
def command(chosen: FrequencyOptions) -> None:
    """Methylation frequency at every site, from the tables that call-methylation writes."""
    from f5py.commands.meth_freq import write_frequency_file

    write_frequency_file(chosen)
