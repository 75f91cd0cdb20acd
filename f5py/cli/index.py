"""``f5py index``: index basecalled reads and their signal files."""

from __future__ import annotations

import click

from f5py import console
from f5py.cli import options


@click.command("index", context_settings=options.CONTEXT)
@click.option(
    "-d",
    "--directory",
    "directories",
    metavar="DIR",
    multiple=True,
    help="Folder with fast5 files, searched with all folders below it. Repeatable.",
)
@click.option(
    "-s",
    "--sequencing-summary-file",
    "summaries",
    metavar="FILE",
    multiple=True,
    help="The basecaller's sequencing summary: makes indexing much faster. Repeatable.",
)
@click.option(
    "-f",
    "--summary-fofn",
    "summary_lists",
    metavar="FILE",
    multiple=True,
    help="File with the paths of sequencing summaries, one per line. Repeatable.",
)
@click.option(
    "--slow5",
    metavar="FILE",
    help="SLOW5 or BLOW5 file with all signals, instead of fast5 files. Its index FILE.idx is made too.",
)
@click.option("--skip-slow5-idx", is_flag=True, help="Do not make the index of the SLOW5 file.")
@click.option(
    "--pod5",
    metavar="PATH",
    multiple=True,
    help="POD5 file, or folder searched for *.pod5 with all folders below it. Repeatable.",
)
@click.option(
    "-t",
    "--threads",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    metavar="INT",
    help="Threads that compress the sequences.",
)
@click.option(
    "--iop",
    "processes",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="INT",
    help="Processes that open fast5 files.",
)
@click.option(
    "-v",
    "--verbose",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="INT",
    help="How much to tell: 0 the counts, 1 the folders too, 2 every skipped file too.",
)
@options.add(options.VERSION)
@click.argument("reads")
def command(
    directories: tuple[str, ...],
    summaries: tuple[str, ...],
    summary_lists: tuple[str, ...],
    slow5: str | None,
    skip_slow5_idx: bool,
    pod5: tuple[str, ...],
    threads: int,
    processes: int,
    verbose: int,
    reads: str,
) -> None:
    """Index the basecalled READS (FASTA or FASTQ, plain or gzip) and their signal files.

    Writes READS.index, READS.index.fai, READS.index.gzi and READS.index.readdb. The signals are in fast5 files (-d),
    POD5 files (--pod5), or a SLOW5 file (--slow5). f5c and nanopolish understand what is written too, but not the
    signals that READS.index.readdb names if they are in POD5 files.
    """
    from f5py.commands.index import index_fast5, index_slow5, report_counts

    if slow5 is not None and pod5:
        raise click.UsageError("--slow5 and --pod5 exclude each other.")
    if skip_slow5_idx and slow5 is None:
        console.warning("index", "--skip-slow5-idx has no effect without --slow5")
    with options.resource_report():
        if slow5 is not None:
            _warn_of_idle_options()
            report_counts(*index_slow5(reads, slow5, threads, not skip_slow5_idx), "slow5")
        else:
            counts = index_fast5(reads, directories, summaries, summary_lists, threads, processes, verbose, pod5)
            report_counts(*counts, " or ".join(["fast5"] * bool(directories or not pod5) + ["pod5"] * bool(pod5)))


def _warn_of_idle_options() -> None:
    names = {"directories": "-d", "summaries": "-s", "summary_lists": "-f", "processes": "--iop"}
    if given := [name for parameter, name in names.items() if options.was_given(parameter)]:
        console.warning("index", f"{', '.join(given)}: no effect with --slow5")
