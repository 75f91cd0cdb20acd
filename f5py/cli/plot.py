"""``f5py plot``: draw the signal, the events and the bases of one read."""

from __future__ import annotations

import os
from typing import Any

import click

from f5py.cli import options
from f5py.plot import FORMATS

_ENDINGS = tuple(f".{kind}" for kind in FORMATS)
_READS, *_, _SLOW5, _POD5 = options.INPUT


@click.command("plot", context_settings=options.CONTEXT)
@click.argument("read", metavar="READ_ID")
@options.add((_READS,))
@click.option("-b", "--bam", help="Alignments (SAM, BAM or CRAM), to draw the reference's bases.")
@click.option("-g", "--genome", type=options.INPUT_FILE, help="Reference in FASTA format; belongs to -b.")
@click.option(
    "-w",
    "--window",
    help="Only the region contig:start-end of the reference; without -b, k-mers first-last of the read. "
    "[default: the first 100 positions that the signal passes]",
)
@options.add((_SLOW5, _POD5))
@click.option(
    "-o", "--output", metavar="FILE", help=f"Output, whose ending says the format: {', '.join(FORMATS)}. "
    f"[default: READ_ID.{FORMATS[0]}]"
)  # fmt: skip
@click.option(
    "--x-axis",
    type=click.Choice(["samples", "time"]),
    default="samples",
    show_default=True,
    help="Unit of the x axis: samples, or seconds since the start of the read.",
)
@options.add(options.RNA, options.MODELS, options.RECALIBRATION, options.VERSION)
def command(**parameters: Any) -> None:
    """Draw the signal, the events and the bases of one read.

    With -b and -g the events are aligned to the reference, as eventalign does, without to the read's own bases, as
    resquiggle does. Needs matplotlib: pip install "f5py[plot]".
    """
    _check(parameters)
    from f5py.commands.plot import PlotOptions, run

    run(PlotOptions(**parameters))


def _check(parameters: dict[str, Any]) -> None:
    """Fill in the name of the output; refuse what does not go together."""
    if (parameters["bam"] is None) != (parameters["genome"] is None):
        given, missing = ("-b", "-g") if parameters["genome"] is None else ("-g", "-b")
        raise click.UsageError(f"{given} needs {missing}; give both, or none to draw the read's own bases")
    output = parameters["output"]
    if output is None:
        parameters["output"] = output = f"{parameters['read']}.{FORMATS[0]}"
        if os.path.basename(output) != output:
            raise click.UsageError(f"the name of the read, {parameters['read']}, is no file name; name a file with -o")
    elif os.path.splitext(output)[1].lower() not in _ENDINGS:
        raise click.BadParameter(f"{output!r} does not end in {', '.join(_ENDINGS)}", param_hint="-o")
