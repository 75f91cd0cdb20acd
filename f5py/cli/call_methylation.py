"""``f5py call-methylation``."""

from __future__ import annotations

from typing import Any

import click

from f5py.cli import options
from f5py.core.options import CALL_THRESHOLD, METHYLATION


@click.command("call-methylation", cls=options.ProfiledCommand, context_settings=options.CONTEXT)
@options.add(options.INPUT, options.RUN, options.FILTERS, options.MODELS)
@click.option(
    "--meth-model", type=options.INPUT_FILE, help="Methylation pore model to use instead of the built-in one."
)
@click.option(
    "-q",
    "--methylation",
    type=click.Choice(["cpg", "gpc", "dam", "dcm"]),
    help=f"Kind of methylation.  [default: {METHYLATION}]",
)
@click.option(
    "--motif", metavar="IUPAC:OFFSET", help="Another motif and the place of its methylated base; needs --meth-model."
)
@click.option("--per-site", is_flag=True, help="Call every site of a group by itself instead of the group as a whole.")
@click.option(
    "--meth-out-version",
    type=click.Choice(["1", "2"]),
    default="2",
    show_default=True,
    help="Layout of the table: 2 has a strand column, 1 does not.",
)
@click.option(
    "--output-format",
    type=click.Choice(["tsv", "parquet"]),
    default="tsv",
    show_default=True,
    help="Parquet has the same columns, typed.",
)
@click.option(
    "--modbam", type=options.OUTPUT_FILE, help="Also write the alignments with MM and ML tags to this BAM file."
)
@click.option(
    "--modbam-style",
    type=click.Choice(["read", "reference"]),
    default="read",
    show_default=True,
    help="Tags on the read's own bases or on the reference's.",
)
@click.option("--replace-tags", is_flag=True, help="Replace the MM and ML tags that called records have already.")
@click.option(
    "--bedmethyl", type=options.OUTPUT_FILE, help="Also write counts per site as bedMethyl (.gz: with tabix index)."
)
@click.option(
    "--call-threshold",
    type=float,
    help=f"Calls with a smaller absolute ratio count as failed in --bedmethyl.  [default: {CALL_THRESHOLD}]",
)
@click.option(
    "--threshold-per-site",
    is_flag=True,
    help="Multiply that threshold by the number of motifs in the group, as nanopolish does.",
)
@click.option("--combine-strands", is_flag=True, help="Count both strands together in --bedmethyl.")
@click.option("--partition-tag", metavar="TAG", help="One --bedmethyl file for each value of this tag, such as HP.")
@options.add(options.REPORT, options.CUDA, options.DEVELOPER, options.VERSION)
def command(**parameters: Any) -> None:
    """Call methylated bases in every read.

    Prints a table with one row per group of neighbouring sites of each read; a positive log-likelihood ratio
    speaks for methylation.
    """
    from f5py.commands.call_methylation import run
    from f5py.core.options import CallOptions

    parameters["meth_out_version"] = int(parameters["meth_out_version"])
    parameters["command_line"] = options.command_line()
    parameters["cuda_at_once"] = options.gpu_at_once(parameters)
    with options.resource_report():
        run(CallOptions(**parameters))
