"""``f5py call-methylation``."""

from __future__ import annotations

from typing import Any

import click

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
@options.add(options.CUDA, options.DEVELOPER, options.VERSION)
def command(**parameters: Any) -> None:
    """Call methylated bases in every read.

    Prints a table with one row per group of neighbouring CpG sites of each read; a positive log-likelihood ratio
    speaks for methylation.
    """
    from f5py.pipeline.call_methylation import run
    from f5py.pipeline.caller import CallOptions

    parameters["meth_out_version"] = int(parameters["meth_out_version"])
    parameters["cuda_at_once"] = options.was_given("disable_cuda") and not parameters["disable_cuda"]
    with options.resource_report():
        run(CallOptions(**parameters))
