"""``f5py resquiggle``: align every signal to the bases of its own read."""

from __future__ import annotations

from typing import Any

import click

from f5py.cli import options


@click.command("resquiggle", cls=options.ProfiledCommand, context_settings=options.CONTEXT)
@options.add(options.RUN)
@click.option("-c", "--paf", is_flag=True, help="Print PAF: a line per read, with the samples of each k-mer.")
@options.add(options.RNA, options.MODELS, options.RECALIBRATION, options.CUDA, options.DEVELOPER, options.VERSION)
@click.argument("reads", metavar="READS")
@click.argument("signals", metavar="SIGNALS")
def command(**parameters: Any) -> None:
    """Align every signal to the bases of its own read.

    READS is a FASTA or FASTQ file, plain or gzip. SIGNALS is a SLOW5, BLOW5, POD5 or fast5 file, or a folder of POD5
    or fast5 files. Prints the samples of every k-mer.
    """
    from f5py.commands.resquiggle import run
    from f5py.core.options import ResquiggleOptions

    parameters["cuda_at_once"] = options.gpu_at_once(parameters)
    with options.resource_report():
        run(ResquiggleOptions(**parameters))
