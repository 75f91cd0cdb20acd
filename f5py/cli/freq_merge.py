"""``f5py freq-merge``: several tables of methylation frequencies into one."""

from __future__ import annotations

import click

from f5py.cli import options


@click.command("freq-merge", context_settings=options.CONTEXT)
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    help="Sums; bgzipped if the name ends in .gz.  [default: stdout]",
)
@click.argument("frequencies", nargs=-1, metavar="FILE1 FILE2 ...")
@options.add(options.VERSION)
def command(output: str, frequencies: tuple[str, ...]) -> None:
    """Add up tables that meth-freq writes, also gzipped, as if their calls had been counted together."""
    from f5py.commands.meth_freq import merge_frequency_files

    merge_frequency_files(list(frequencies), output)
