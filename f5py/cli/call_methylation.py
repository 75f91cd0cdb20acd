"""``f5py call-methylation``."""

from __future__ import annotations

from typing import Any

import click

from f5py import console
from f5py.cli import options


@click.command("call-methylation", cls=options.ProfiledCommand, context_settings=options.CONTEXT)
@options.add(options.INPUT, options.RUN, options.FILTERS, options.MODELS)
@click.option(
    "--meth-model", type=options.INPUT_FILE, help="Methylation pore model to use instead of the built-in one."
)
@click.option(
    "--meth-out-version",
    type=click.Choice(["1", "2"]),
    default="2",
    show_default=True,
    help="Layout of the table: 2 has a strand column, 1 does not.",
)
@options.add(options.CUDA, options.DEVELOPER)
def command(**parameters: Any) -> None:
    """Call methylated bases in every read.

    Prints a table with one row per group of neighbouring CpG sites of each read; a positive log-likelihood ratio
    speaks for methylation.
    """
    from f5py.pipeline.call_methylation import CallOptions, run

    cuda = options.take_cuda(parameters)
    parameters["meth_out_version"] = int(parameters["meth_out_version"])
    if not cuda.pop("disable_cuda"):
        console.info("init_cuda", "no GPU is used: events are aligned by the CPU threads")
    with options.resource_report():
        run(CallOptions(**parameters))
