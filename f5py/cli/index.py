"""``f5py index``: index basecalled reads and their signal files."""

from __future__ import annotations

import click

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
    threads: int,
    processes: int,
    verbose: int,
    reads: str,
) -> None:
    """Index the basecalled READS (FASTA or FASTQ, plain or gzip) and their signal files.

    Writes READS.index, READS.index.fai, READS.index.gzi and READS.index.readdb, which f5c and nanopolish
    understand too.
    """
    from f5py.io.build_index import index_fast5, report_counts

    with options.resource_report():
        counts = index_fast5(reads, directories, summaries, summary_lists, threads, processes, verbose)
        report_counts(*counts)
