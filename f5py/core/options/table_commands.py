"""The options of the commands that work on tables, and of those that make indices and simulated data."""

from __future__ import annotations

from f5py.core.options.declaration import REQUIRED, Group, Kind, Options, argument, flag, option, options_class
from f5py.core.options.shared import (
    CALL_THRESHOLD,
    METHYLATION,
    METHYLATIONS,
    MOST_PROCESSES,
    MOST_THREADS,
    StrictOptions,
)

_INPUT, _OUTPUT = Group.INPUT, Group.OUTPUT


@options_class
class IndexOptions(StrictOptions, Options):
    """Options of ``f5py index``."""

    reads: tuple[str, ...] = argument(
        "READS [...]", default=(), repeated=True,
        help="Basecalled reads: FASTA or FASTQ, plain or compressed, BAM, or folders of such files.",
    )  # fmt: skip
    output: str | None = option(
        "-o", "--output", kind=Kind.PATH, group=_OUTPUT, metavar="PREFIX", ours=True,
        default_words="the name of the reads",
        help="What the names of the index begin with, to be given to the other commands as -r; for several files of "
        "reads, and where their folder cannot be written to.",
    )  # fmt: skip
    directories: tuple[str, ...] = option(
        "-d", "--directory", kind=Kind.PATH, group=_INPUT, metavar="DIR", repeated=True, default=(),
        help="Folder with fast5 files, searched with all folders below it. Repeatable.",
    )  # fmt: skip
    summaries: tuple[str, ...] = option(
        "-s", "--sequencing-summary-file", kind=Kind.FILE, group=_INPUT, repeated=True, default=(),
        aliases=("--sequencing-summary",),
        help="The basecaller's sequencing summary: makes indexing much faster. Repeatable.",
    )  # fmt: skip
    summary_lists: tuple[str, ...] = option(
        "-f", "--summary-fofn", kind=Kind.FILE, group=_INPUT, repeated=True, default=(),
        help="File with the paths of sequencing summaries, one per line. Repeatable.",
    )  # fmt: skip
    slow5: str | None = option(
        "--slow5", kind=Kind.FILE, group=_INPUT,
        help="SLOW5 or BLOW5 file with all signals, instead of fast5 files. Its index FILE.idx is made too.",
    )  # fmt: skip
    skip_slow5_idx: bool = flag(
        "--skip-slow5-idx", aliases=("--skip-slow-idx",), group=_INPUT,
        help="Do not make the index of the SLOW5 file.",
    )  # fmt: skip
    pod5: tuple[str, ...] = option(
        "--pod5", kind=Kind.PATH, group=_INPUT, repeated=True, default=(), ours=True,
        help="POD5 file, or folder searched for *.pod5 with all folders below it. Repeatable.",
    )  # fmt: skip
    resume: bool = flag(
        "--resume", group=Group.PARTS, ours=True,
        help="Keep what is found in fast5 files in a file beside the index, which is removed at the end: the same "
        "command again does not open them again.",
    )  # fmt: skip
    threads: int = option(
        "-t", "--threads", kind=Kind.INTEGER, group=Group.SPEED, default=4, at_least=1, at_most=MOST_THREADS,
        help="Threads that compress the sequences.",
    )  # fmt: skip
    iop: int = option(
        "--iop", kind=Kind.INTEGER, group=Group.SPEED, default=1, at_least=1, at_most=MOST_PROCESSES,
        help="Processes that open fast5 files.",
    )  # fmt: skip
    verbose: int = option(
        "-v", "--verbose", kind=Kind.INTEGER, default=1, at_least=0, at_most=255, number_may_lack=1,
        help="How much to tell: 0 the counts, 1 the folders too, 2 every skipped file too.",
    )  # fmt: skip


@options_class
class FrequencyOptions(StrictOptions, Options):
    """Options of ``f5py meth-freq``."""

    tables: tuple[str, ...] = argument(
        "[CALLS ...]", default=(), repeated=True, help="Tables of calls, counted as one; instead of -i."
    )
    calls: str = option(
        "-i", "--input", kind=Kind.FILE, group=_INPUT, default="-", default_words="standard input",
        help="Table of calls, plain or gzip.",
    )  # fmt: skip
    output: str = option(
        "-o", "--output", kind=Kind.FILE, group=_OUTPUT, default="-", default_words="standard output",
        help="Frequencies; compressed (bgzip) if the name ends in .gz. A file appears only when it is complete.",
    )  # fmt: skip
    threshold: float = option(
        "-c", "--call-threshold", kind=Kind.NUMBER, group=Group.SELECTION, default=CALL_THRESHOLD,
        help="Skip calls whose absolute log_lik_ratio is smaller.",
    )  # fmt: skip
    threshold_per_site: bool = flag(
        "--threshold-per-site", group=Group.SELECTION, ours=True,
        help="Multiply the threshold by the number of sites in the group, as nanopolish does (with -c 2 by default).",
    )  # fmt: skip
    split_groups: bool = flag("-s", "--split-groups", help="Count every site of a group by itself.")
    methylation: str | None = option(
        "-q", "--methylation", group=Group.MODEL, choices=METHYLATIONS, default_words=METHYLATION, ours=True,
        help="What was called: the motif at which -s and --bedmethyl split groups.",
    )  # fmt: skip
    motif: str | None = option(
        "--motif", group=Group.MODEL, metavar="SITE:OFFSET", ours=True,
        help="A motif of your own instead of -q, such as CHG:0.",
    )  # fmt: skip
    output_format: str | None = option(
        "--output-format", group=_OUTPUT, choices=("tsv", "parquet"), ours=True,
        default_words="what the name of the output says, else tsv",
        help="Parquet has the same columns, typed; needs -o. Without this option .parquet, .bed (as --bedmethyl), "
        ".bedgraph and .bw decide.",
    )  # fmt: skip
    chrom_sizes: str | None = option(
        "--chrom-sizes", kind=Kind.FILE, group=_INPUT, ours=True,
        help="Names and lengths of the chromosomes, such as the .fai of the reference; bigWig needs them.",
    )  # fmt: skip
    bedmethyl: bool = flag(
        "--bedmethyl", ours=True,
        help="Write bedMethyl as modkit does: a row per site and strand, groups split; with a tabix index if the name "
        "of the output ends in .gz.",
    )  # fmt: skip
    combine_strands: bool = flag(
        "--combine-strands", help="In bedMethyl, bedGraph and bigWig: one row for both strands of a site.", ours=True
    )


@options_class
class MergeOptions(StrictOptions, Options):
    """Options of ``f5py freq-merge``."""

    tables: tuple[str, ...] = argument("FILE1 FILE2 ...", repeated=True, default=(), help="Tables of frequencies.")
    output: str = option(
        "-o", "--output", kind=Kind.FILE, group=_OUTPUT, default="-", default_words="standard output",
        help="The sums; compressed (bgzip) if the name ends in .gz. A file appears only when it is complete.",
    )  # fmt: skip


@options_class
class EvaluationOptions(StrictOptions, Options):
    """What `SummaryOptions` and `ValidateOptions` share."""

    output: str = option(
        "-o", "--output", kind=Kind.FILE, group=_OUTPUT, default="-", default_words="standard output",
        help="The figures as text.",
    )  # fmt: skip
    report: tuple[str, ...] = option(
        "--report", kind=Kind.FILE, group=_OUTPUT, repeated=True, default=(),
        help="The same as a page (.html), for programs (.json), or the charts alone (.png, .svg, .pdf). Repeatable.",
    )  # fmt: skip
    methylated: tuple[str, ...] = option(
        "--methylated", kind=Kind.FILE, group=_INPUT, repeated=True, default=(),
        help="Calls of a control with all sites methylated. Repeatable.",
    )  # fmt: skip
    unmethylated: tuple[str, ...] = option(
        "--unmethylated", kind=Kind.FILE, group=_INPUT, repeated=True, default=(),
        help="Calls of a control without methylation. Repeatable.",
    )  # fmt: skip
    threshold: float = option(
        "-c", "--call-threshold", kind=Kind.NUMBER, group=Group.SELECTION, default=CALL_THRESHOLD, at_least=0,
        help="Size of the log_lik_ratio from which a call counts as methylated or not.",
    )  # fmt: skip
    methylation: str | None = option(
        "-q", "--methylation", group=Group.MODEL, choices=METHYLATIONS, default_words=METHYLATION,
        help="What was called.",
    )  # fmt: skip
    motif: str | None = option(
        "--motif", group=Group.MODEL, metavar="SITE:OFFSET", help="A motif of your own instead of -q, such as CHG:0."
    )


@options_class
class SummaryOptions(EvaluationOptions):
    """Options of ``f5py summary``."""

    tables: tuple[str, ...] = argument(
        "[CALLS ...]", default=(), repeated=True, help="Tables of calls; standard input without any."
    )
    error_rate: float = option(
        "--error-rate", kind=Kind.NUMBER, group=Group.LIMITS, default=0.02, above=0, at_most=0.5,
        help="Share of wrong calls that the advised threshold should not exceed.",
    )  # fmt: skip


@options_class
class ValidateOptions(EvaluationOptions):
    """Options of ``f5py validate``."""

    calls: str | None = argument("[CALLS]", default=None, help="Calls or frequencies.")
    truth: str | None = argument("[TRUTH]", default=None, help="What is known of the sites.")
    genome: str | None = option("-g", "--genome", kind=Kind.FILE, group=_INPUT, help="Reference of CRAM.")
    min_coverage: int = option(
        "--min-coverage", kind=Kind.INTEGER, group=Group.SELECTION, default=1, at_least=1,
        help="Minimum number of calls of a site whose frequency is compared.",
    )  # fmt: skip
    prior: float = option(
        "--prior", kind=Kind.NUMBER, group=Group.MODEL, default=0.5, above=0, at_most=0.999999,
        help="Probability of methylation before the signal is seen, for the probabilities of calls.",
    )  # fmt: skip


@options_class
class SimulateOptions(Options):
    """Options of ``f5py simulate``; None is what `f5py.simulation.settings.SimulationSettings` has."""

    output: str = option(
        "-o", "--output", kind=Kind.PATH, group=_OUTPUT, metavar="FOLDER", default=REQUIRED,
        help="Folder for all files; made if absent, else it must be empty.",
    )  # fmt: skip
    force: bool = flag("--force", help="Replace an earlier simulation in FOLDER.")
    fasta: bool = flag("--fasta", help="Write reads.fasta, without qualities, instead of reads.fastq.")
    no_read_truth: bool = flag("--no-read-truth", help="Leave out truth_reads.tsv, which is large.")
    reads_per_file: int = option(
        "--reads-per-file", kind=Kind.INTEGER, group=_OUTPUT, default=4000, at_least=1, help="Reads in one fast5 file."
    )
    seed: int = option("--seed", kind=Kind.INTEGER, default=1, at_least=0, help="Same seed, same bytes.")
    reference: str | None = option(
        "-g", "--reference", "--genome", kind=Kind.FILE, metavar="FASTA", default_words="a random genome",
        help="Reference to make reads from.",
    )  # fmt: skip
    genome_length: int | None = option(
        "--genome-length", kind=Kind.BASES, at_least=1, default_words="1M", help="Length of the random genome."
    )
    gc: float | None = option(
        "--gc", kind=Kind.NUMBER, at_least=0.1, at_most=0.9, default_words="0.45", help="Its GC content."
    )
    n_reads: int | None = option(
        "-n", "--reads", kind=Kind.INTEGER, at_least=0, default_words="by coverage", help="Number of reads."
    )
    coverage: float | None = option(
        "--coverage", kind=Kind.NUMBER, above=0, default_words="20", help="Mean depth, instead of a number of reads."
    )
    median_length: int | None = option(
        "--median-length", kind=Kind.BASES, at_least=1, default_words="8000, of RNA 1000",
        help="Median of the lognormal read lengths.",
    )  # fmt: skip
    length_sigma: float | None = option(
        "--length-sigma", kind=Kind.NUMBER, at_least=0, default_words="0.8, of RNA 0.6",
        help="Their spread (of the natural logarithm); 1.086 puts 1 % above 12.5 medians.",
    )  # fmt: skip
    min_length: int | None = option(
        "--min-length", kind=Kind.INTEGER, at_least=50, default_words="200", help="Their lower bound."
    )
    fixed_length: int | None = option(
        "--length", kind=Kind.BASES, at_least=1, default_words="lognormal", help="One length for all reads."
    )
    ultra_long: tuple[int, ...] = option(
        "--ultra-long", kind=Kind.BASES, repeated=True, default=(), at_least=1,
        help="One more read of this length. Repeatable.",
    )  # fmt: skip
    strand: str = option("--strand", choices=("both", "+", "-"), default="both", help="Strand of the reads.")
    error_rate: float = option(
        "--error-rate", kind=Kind.NUMBER, default=0.03, at_least=0, at_most=0.4, help="Basecalling errors per base."
    )
    motif: str | None = option(
        "--motif", group=Group.MODEL, metavar="NAME|SITE:OFFSET", default_words="cpg",
        help="Sites that can be methylated: cpg, gpc, dam or dcm, or, with --meth-model, a motif of your own.",
    )  # fmt: skip
    methylation: str = option(
        "--methylation", choices=("per-site", "per-read"), default="per-site",
        help="Every site has a rate of its own, or whole reads are methylated or not.",
    )  # fmt: skip
    site_rates: str | None = option(
        "--site-rates", metavar="MIXTURE", default_words="beta:0.5:0.5",
        help="Where the sites' rates come from: rates and beta:A:B, each with an optional *WEIGHT, e.g. '0,0.5,1' or "
        "'0*2,beta:2:2,1*2'.",
    )  # fmt: skip
    linked_within: int | None = option(
        "--linked-within", kind=Kind.INTEGER, at_least=0, default_words="10",
        help="Sites at most this far apart share rate and state; 0: none do.",
    )  # fmt: skip
    methylated_reads: float | None = option(
        "--methylated-reads", kind=Kind.NUMBER, at_least=0, at_most=1, default_words="0.5",
        help="Share of methylated reads, with --methylation per-read.",
    )  # fmt: skip
    complete: float | None = option(
        "--complete", kind=Kind.NUMBER, at_least=0, at_most=1, default_words="1",
        help="Share of the sites of a methylated read that are methylated, with --methylation per-read.",
    )  # fmt: skip
    haplotypes: bool = flag(
        "--haplotypes", help="Make reads of two haplotypes, with HP tags, and truth_hp1.tsv and truth_hp2.tsv."
    )
    haplotype_sites: float | None = option(
        "--haplotype-sites", kind=Kind.NUMBER, at_least=0, at_most=1, default_words="0.3",
        help="Share of sites, or groups of linked ones, whose rate each haplotype has of its own.",
    )  # fmt: skip
    signal_format: str | None = option(
        "--format", group=_OUTPUT, choices=("fast5", "blow5", "pod5"), default_words="fast5", help="Of the signals."
    )
    pore: str = option(
        "--pore", group=Group.MODEL, choices=("r9", "r10", "rna002", "rna004"), default="r9",
        help="Pore chemistry: the built-in model that signals follow, and what the files say. RNA is read from the 3' "
        "ends of transcripts.",
    )  # fmt: skip
    meth_model: str | None = option(
        "--meth-model", kind=Kind.FILE, group=Group.MODEL, default_words="built in",
        help="Pore model over ACGMT that signals follow instead.",
    )  # fmt: skip
    speed: float | None = option(
        "--speed", kind=Kind.NUMBER, default_words="the chemistry's", at_least=20, at_most=2000,
        help="Bases per second.",
    )  # fmt: skip
    slow_fraction: float = option(
        "--slow-fraction", kind=Kind.NUMBER, default=0.0, at_least=0, at_most=1,
        help="Share of reads so slow that they have more than 5 events per base.",
    )  # fmt: skip
    slow_factor: float = option(
        "--slow-factor", kind=Kind.NUMBER, default=5.0, at_least=1, at_most=20, help="How much slower these are."
    )
    sample_noise: float | None = option(
        "--sample-noise", kind=Kind.NUMBER, default_words="the chemistry's", at_least=0, at_most=50,
        help="Standard deviation of the samples, in pA.",
    )  # fmt: skip
    level_noise: float | None = option(
        "--level-noise", kind=Kind.NUMBER, default_words="the chemistry's", at_least=0, at_most=20,
        help="Deviation of a base's level, in units of the model's standard deviation.",
    )  # fmt: skip


@options_class
class DemoOptions(Options):
    """Options of ``f5py demo``."""

    folder: str = argument("[FOLDER]", default="f5py-demo", help="Where all files go.")
    seed: int = option("--seed", kind=Kind.INTEGER, default=1, at_least=0, help="Seed of the simulation.")
    threads: int | None = option(
        "-t", "--threads", kind=Kind.INTEGER, at_least=1, default_words="those of each command", help="Threads."
    )
    force: bool = flag("--force", help="Use FOLDER even if it has files that are not an earlier demo's.")
