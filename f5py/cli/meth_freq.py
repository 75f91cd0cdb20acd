"""``f5py meth-freq``: methylation frequency at every site."""

from __future__ import annotations

import math

import click

from f5py.cli import options


@click.command("meth-freq", context_settings=options.CONTEXT)
@click.option(
    "-c",
    "--call-threshold",
    "threshold",
    type=float,
    default=2.5,
    show_default=True,
    metavar="FLOAT",
    help="Skip calls whose absolute log_lik_ratio is smaller.",
)
@click.option("-i", "--input", "calls", default="-", metavar="FILE", help="Calls, also gzipped.  [default: stdin]")
@click.option("-o", "--output", default="-", metavar="FILE", help="Frequencies.  [default: stdout]")
@click.option("-s", "--split-groups", is_flag=True, help="Count every CG of a group as a site of its own.")
@options.add(options.VERSION)
def command(threshold: float, calls: str, output: str, split_groups: bool) -> None:
    """Methylation frequency at every site, from the table that call-methylation writes."""
    if math.isnan(threshold):
        raise click.UsageError("--call-threshold: nan is not a number")

    from f5py import console
    from f5py.io.byte_input import open_bytes
    from f5py.io.complete_file import complete_output
    from f5py.methylation.frequency import methylation_frequency

    if calls == "-":
        console.note("meth-freq", "Scanning the input from stdin ...")
    with open_bytes(calls) as source, complete_output(output) as out:
        name = "standard input" if calls == "-" else calls
        methylation_frequency(source, threshold, split_groups, name).write(out)
