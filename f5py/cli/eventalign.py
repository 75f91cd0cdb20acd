"""``f5py eventalign``: align the events of every read to the k-mers of the reference."""

from __future__ import annotations

from typing import Any

import click

from f5py.cli import options


@click.command("eventalign", cls=options.ProfiledCommand, context_settings=options.CONTEXT)
@options.add(options.INPUT, options.RUN, options.FILTERS, options.RNA, options.MODELS)
@click.option("-c", "--paf", is_flag=True, help="Print PAF: a line per read, with the samples of each k-mer.")
@click.option("-a", "--sam", is_flag=True, help="Print SAM (BAM if -o ends in .bam).")
@click.option(
    "--sam-out-version",
    type=click.Choice(["1", "2"]),
    help="SAM layout: 2 the record with signal tags, 1 nanopolish's alignment of events.  [default: 2]",
)
@click.option("--m6anet", is_flag=True, help="Print the table that m6anet takes: a row per position.")
@click.option(
    "--output-format",
    type=click.Choice(["tsv", "parquet"]),
    default="tsv",
    show_default=True,
    help="Parquet has the same columns, typed, in a tenth of the bytes.",
)
@click.option("--summary", type=options.OUTPUT_FILE, metavar="FILE", help="Write a summary with a line per read.")
@click.option("--print-read-names", is_flag=True, help="Print read names instead of read indices.")
@click.option("--scale-events", is_flag=True, help="Scale events to the pore model, not the model to the events.")
@click.option("--samples", is_flag=True, help="Append the scaled samples of each event.")
@click.option("--signal-index", is_flag=True, help="Append each event's first sample and the one after its last.")
@click.option("--collapse-events", is_flag=True, help="Print consecutive events of one position as one.")
@options.add(options.REPORT, options.CUDA, options.DEVELOPER, options.VERSION)
def command(**parameters: Any) -> None:
    """Align the events of every read to the k-mers of the reference.

    Prints a table with one row per event: its k-mer on the reference, its current, and what the pore model expects.
    """
    from f5py.commands.eventalign import run
    from f5py.core.options import EventalignOptions

    if parameters["sam_out_version"] is not None:
        parameters["sam_out_version"] = int(parameters["sam_out_version"])
    parameters["cuda_at_once"] = options.gpu_at_once(parameters)
    with options.resource_report():
        run(EventalignOptions(**parameters))
