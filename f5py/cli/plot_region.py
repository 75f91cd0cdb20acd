"""``f5py plot-region``: draw the reads over a locus with their methylation calls."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.plot_commands import PlotRegionOptions


@options.command(
    "plot-region",
    PlotRegionOptions,
    examples=(
        "f5py plot-region -b calls.bam -w chr11:2,000,000-2,003,000 -o locus.png",
        "f5py plot-region -b calls.bam -w chr11:2,000,000-2,003,000 --code h -o locus.html",
    ),
)
def command(**given: Any) -> None:
    """Draw the reads at a locus: each with its methylation calls, and the frequency at every site.

    Calls are taken from the MM and ML tags of alignments, as written by call-methylation --modbam, dorado and others.
    Reads with an HP tag, as written by whatshap and hiphase, are grouped by haplotype. Needs matplotlib:
    pip install matplotlib.
    """
    from f5py.api.plot_functions import plot_region

    plot_region(**given)
