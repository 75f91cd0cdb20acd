"""``f5py plot``: draw the signal, the events and the bases of one read."""

from __future__ import annotations

from typing import Any

from f5py.cli import options
from f5py.options.plot_commands import PlotOptions


@options.command(
    "plot",
    PlotOptions,
    examples=(
        "f5py plot READ_ID -r reads.fastq -b reads.bam -g ref.fa -o read.png",
        "f5py plot READ_ID -r reads.fastq -o read.html",
    ),
)
def command(**given: Any) -> None:
    """Draw the signal, the events and the bases of one read.

    With -b and -g the events are aligned to the reference, as in eventalign; otherwise to the read's own bases, as in
    resquiggle. Needs matplotlib: pip install matplotlib.
    """
    from f5py.api.plot_functions import plot
    from f5py.plotting import default_output

    plot(**({"output": default_output(given["read"])} | given))
