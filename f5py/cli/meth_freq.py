"""``f5py meth-freq``: methylation frequency at every site."""

from __future__ import annotations

import math

import click

from f5py.cli import options


@click.command("meth-freq", context_settings=options.CONTEXT)
@click.option(
    "-c",
    "--call-threshold",
    "threshold",
    type=float,
    default=2.5,
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
    default="cpg",
    show_default=True,
    help="What was called: the motif at which -s and --bedmethyl split groups.",
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
    methylation: str,
    motif: str | None,
    output_format: str,
    bedmethyl: bool,
    combine_strands: bool,
) -> None:
    """Methylation frequency at every site, from the table that call-methylation writes."""
    if math.isnan(threshold):
        raise click.UsageError("--call-threshold: nan is not a number")
    if threshold_per_site and not 0 <= threshold < math.inf:
        raise click.UsageError(f"--threshold-per-site needs a finite --call-threshold of at least 0, not {threshold:g}")
    if combine_strands and not bedmethyl:
        raise click.UsageError("--combine-strands belongs to --bedmethyl; the other tables never tell strands apart")
    if bedmethyl and output_format == "parquet":
        raise click.UsageError("--bedmethyl is a text format; leave out --output-format parquet")
    if bedmethyl and split_groups:
        raise click.UsageError("--bedmethyl always splits groups; leave out --split-groups")
    if output_format == "parquet" and output == "-":
        raise click.UsageError("--output-format parquet needs a file: name one with -o")
    if output_format == "parquet" and output.endswith((".gz", ".bgz")):
        raise click.UsageError(f"-o {output}: Parquet is compressed already; give a name without .gz")
    if motif is not None and options.was_given("methylation"):
        raise click.UsageError("give either --methylation or --motif")

    from f5py import console
    from f5py.commands.meth_freq import FrequencyOptions, write_frequency_file

    if calls == "-":
        console.note("meth-freq", "Scanning the input from stdin ...")
    write_frequency_file(
        calls,
        output,
        FrequencyOptions(
            threshold=threshold,
            threshold_per_site=threshold_per_site,
            split_groups=split_groups,
            methylation=methylation,
            motif=motif,
            output_format="bedmethyl" if bedmethyl else output_format,
            combine_strands=combine_strands,
        ),
    )
