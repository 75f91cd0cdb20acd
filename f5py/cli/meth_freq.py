"""``f5py meth-freq``: methylation frequency at every site."""

from __future__ import annotations

import click

from f5py.cli import options
from f5py.core.options import CALL_THRESHOLD, METHYLATION


@click.command("meth-freq", context_settings=options.CONTEXT)
@click.option(
    "-c",
    "--call-threshold",
    "threshold",
    type=float,
    default=CALL_THRESHOLD,
    show_default=True,
    metavar="FLOAT",
    help="Skip calls whose absolute log_lik_ratio is smaller.",
)
@click.option(
    "--threshold-per-site",
    is_flag=True,
    help="Multiply the threshold by the number of motifs in the group, as nanopolish does (with -c 2 by default).",
)
@click.option("-i", "--input", "calls", default="-", metavar="FILE", help="Calls, also gzipped.  [default: stdin]")
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    help="Frequencies; bgzipped if the name ends in .gz.  [default: stdout]",
)
@click.option("-s", "--split-groups", is_flag=True, help="Count every motif of a group as a site of its own.")
@click.option(
    "-q",
    "--methylation",
    type=click.Choice(["cpg", "gpc", "dam", "dcm"]),
    help=f"What was called: the motif at which -s and --bedmethyl split groups.  [default: {METHYLATION}]",
)
@click.option("--motif", metavar="SITE:OFFSET", help="A motif of your own instead of -q, such as CHG:0.")
@click.option(
    "--output-format", type=click.Choice(["tsv", "parquet"]), default="tsv", show_default=True, help="Kind of table."
)
@click.option(
    "--bedmethyl",
    is_flag=True,
    help="Write bedMethyl as modkit does: a row per site and strand, groups split; if -o ends in .gz, with an index.",
)
@click.option("--combine-strands", is_flag=True, help="With --bedmethyl: one row for both strands of a site.")
@options.add(options.VERSION)
def command(
    threshold: float,
    threshold_per_site: bool,
    calls: str,
    output: str,
    split_groups: bool,
    methylation: str | None,
    motif: str | None,
    output_format: str,
    bedmethyl: bool,
    combine_strands: bool,
) -> None:
    """Methylation frequency at every site, from the table that call-methylation writes."""
    from f5py.commands.meth_freq import FrequencyOptions, write_frequency_file

    write_frequency_file(
        calls,
        output,
        FrequencyOptions(
            threshold=threshold,
            threshold_per_site=threshold_per_site,
            split_groups=split_groups,
            methylation=methylation,
            motif=motif,
            output_format=output_format,
            bedmethyl=bedmethyl,
            combine_strands=combine_strands,
        ),
    )
