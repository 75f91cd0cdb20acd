"""``f5py simulate``: reads whose methylation is known."""

from __future__ import annotations

from typing import Any

import click

from f5py.cli import options


@click.command("simulate", context_settings=options.CONTEXT)
@click.option("-o", "--output", required=True, metavar="FOLDER", help="Folder for all files; made if absent.")
@click.option("--force", is_flag=True, help="Replace an earlier simulation in FOLDER.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Same seed, same bytes.")
@click.option("-g", "--reference", "--genome", metavar="FASTA", help="Reference [default: a random genome].")
@click.option("--genome-length", type=options.BaseCount(), help="Length of the random genome.  [default: 1M]")
@click.option("--gc", type=click.FloatRange(0.1, 0.9), help="Its GC content.  [default: 0.45]")
@click.option("-n", "--reads", type=click.IntRange(min=0), help="Number of reads.")
@click.option("--coverage", type=click.FloatRange(min=0, min_open=True), help="... or mean depth.  [default: 20]")
@click.option(
    "--median-length", type=options.BaseCount(), help="Median of the lognormal read lengths.  [default: 8000]"
)
@click.option(
    "--length-sigma",
    type=click.FloatRange(min=0),
    help="Their spread (of the natural logarithm); 1.086 puts 1 % above 12.5 medians.  [default: 0.8]",
)
@click.option("--min-length", type=click.IntRange(min=50), help="Their lower bound.  [default: 200]")
@click.option("--length", "fixed_length", type=options.BaseCount(), help="... or one length for all reads.")
@click.option(
    "--ultra-long", type=options.BaseCount(), multiple=True, help="One more read of this length; may be repeated."
)
@click.option("--strand", type=click.Choice(["both", "+", "-"]), default="both", show_default=True, help="Strand.")
@click.option(
    "--error-rate",
    type=click.FloatRange(0, 0.4),
    default=0.03,
    show_default=True,
    help="Basecalling errors per base.",
)
@click.option(
    "--methylation",
    type=click.Choice(["per-site", "per-read"]),
    default="per-site",
    show_default=True,
    help="Every CpG has a rate of its own, or whole reads are methylated or not.",
)
@click.option(
    "--site-rates",
    metavar="MIXTURE",
    help="Where the sites' rates come from: rates and beta:A:B, each with an optional *WEIGHT, "
    "e.g. '0,0.5,1' or '0*2,beta:2:2,1*2'.  [default: beta:0.5:0.5]",
)
@click.option(
    "--linked-within",
    type=click.IntRange(min=0),
    help="CpGs at most this far apart share rate and state; 0: none do.  [default: 10]",
)
@click.option(
    "--methylated-reads",
    type=click.FloatRange(0, 1),
    help="Share for --methylation per-read.  [default: 0.5]",
)
@click.option("--speed", type=click.FloatRange(20, 2000), default=450.0, show_default=True, help="Bases per second.")
@click.option(
    "--slow-fraction",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of reads so slow that they have more than 5 events per base.",
)
@click.option(
    "--slow-factor",
    type=click.FloatRange(1, 20),
    default=5.0,
    show_default=True,
    help="How much slower these are.",
)
@click.option(
    "--sample-noise",
    type=click.FloatRange(0, 50),
    default=1.5,
    show_default=True,
    help="Standard deviation of the samples, in pA.",
)
@click.option(
    "--level-noise",
    type=click.FloatRange(0, 20),
    default=0.4,
    show_default=True,
    help="Deviation of a base's level, in units of the model's standard deviation.",
)
@click.option(
    "--reads-per-file",
    type=click.IntRange(min=1),
    default=4000,
    show_default=True,
    help="Reads in one fast5 file.",
)
@click.option("--fasta", is_flag=True, help="Write reads.fasta, without qualities, instead of reads.fastq.")
@click.option("--no-read-truth", is_flag=True, help="Leave out truth_reads.tsv, which is large.")
def command(
    output: str,
    force: bool,
    reference: str | None,
    reads: int | None,
    methylation: str,
    speed: float,
    fasta: bool,
    no_read_truth: bool,
    **given: Any,
) -> None:
    """Simulate R9.4 reads of known CpG methylation.

    Writes into FOLDER: ref.fa, reads.fastq, reads.bam, fast5/, the sites' true frequencies (truth.tsv) and
    the state of every site in every read (truth_reads.tsv).
    """
    _refuse_contradictions(reference, reads, methylation, given)

    from f5py import console
    from f5py.commands.simulate import simulate
    from f5py.simulate.settings import SimulationSettings

    settings = SimulationSettings(
        n_reads=reads,
        per_read=methylation == "per-read",
        bases_per_second=speed,
        **{name: value for name, value in given.items() if value is not None},
    )
    summary = simulate(output, settings, reference=reference, fasta=fasta, read_truth=not no_read_truth, force=force)
    console.note(
        "simulate",
        f"{output}: {summary.n_reads} reads, {summary.n_bases} bases (longest read {summary.longest}), "
        f"{summary.n_samples} samples; {summary.n_covered_sites} of {summary.n_sites} CpG sites covered",
    )


def _refuse_contradictions(reference: str | None, reads: int | None, methylation: str, given: dict[str, Any]) -> None:
    """Raise a usage error for an option that another one makes meaningless."""

    def refuse(names: list[str], because: str) -> None:
        for name in names:
            if given[name] is not None:
                raise click.UsageError(f"--{name.replace('_', '-')} has no meaning with {because}")

    if reads is not None:
        refuse(["coverage"], "--reads")
    if reference is not None:
        refuse(["genome_length", "gc"], "--reference")
    if given["fixed_length"] is not None:
        refuse(["median_length", "length_sigma", "min_length"], "--length")
    if methylation == "per-read":
        refuse(["site_rates", "linked_within"], "--methylation per-read")
    else:
        refuse(["methylated_reads"], "--methylation per-site")
