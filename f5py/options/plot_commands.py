"""The options of the commands that draw."""

from collections.abc import Iterator

from f5py.options.declaration import REQUIRED, Group, Kind, Options, argument, option, options_class
from f5py.options.input_names import BESIDE_READS
from f5py.options.shared import (
    CALL_THRESHOLD,
    SIGNALS,
    LimitOptions,
    ModelOptions,
    RnaOptions,
    SignalOptions,
    indexed_reads,
    kind_of_methylation,
    min_mapq,
    read_ids,
)


@options_class
class PlotOptions(RnaOptions, LimitOptions, ModelOptions, SignalOptions):
    """Options of ``f5py plot``."""

    read: str = argument("[READ_ID]", default="", help="Name of the read.")
    read_ids: str | None = read_ids("List of the reads to draw: a file with a name a line; - is standard input.")
    reads: str = indexed_reads(
        "Basecalled reads; if the signals are named, they need no index, and without them the bases are those in -b.",
        unless=("bam",))  # fmt: skip
    bam: str | None = option("-b", "--bam", kind=Kind.FILE, group=Group.INPUT,
        help="Alignments (SAM, BAM or CRAM), to draw the reference's bases.")  # fmt: skip
    genome: str | None = option("-g", "--genome", kind=Kind.FILE, group=Group.INPUT,
        help="Reference in FASTA format, for -b.")  # fmt: skip
    window: str | None = option("-w", "--window", group=Group.SELECTION, metavar="REGION",
        default_words="the whole read in .html, else the first 100 positions that the signal passes",
        help="Region contig:start-end of the reference; without -b, k-mers first-last of the read.")  # fmt: skip
    alignment: int | None = option("--alignment", kind=Kind.INTEGER, group=Group.SELECTION, at_least=1,
        default_words="the primary one that overlaps the region",
        help="Number of the read's alignment, primary or supplementary, counted from 1 in the order of "
        "-b.")  # fmt: skip
    output: str = option("-o", "--output", kind=Kind.FILE, group=Group.OUTPUT, default="{}.png",
        brief="Output: .png, .svg, .pdf or .html",
        help="Output file; {} stands for the name of the read, and the extension determines the format: png, svg, pdf "
        "or html.")  # fmt: skip
    methylation: str | None = kind_of_methylation(
        help="Calls to show in .html, if there is a model for them and -b is given.")  # fmt: skip
    meth_model: str | None = option("--meth-model", kind=Kind.FILE, group=Group.MODEL, default_words="built in",
        is_model=True, help="Pore model with methylated bases for these calls.")  # fmt: skip
    call_threshold: float = option("--call-threshold", group=Group.OUTPUT, default=CALL_THRESHOLD, at_least=0,
        help="Calls with a lower absolute log_lik_ratio are shown pale.")  # fmt: skip
    x_axis: str = option("--x-axis", group=Group.OUTPUT, choices=("samples", "time"), default="samples",
        help="Unit of the x axis: samples, or seconds since the start of the read.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse options of reads that are aligned to a reference for others."""
        yield from self.not_with(self.given("read_ids"), "read")
        both = "give both, or none to draw the read's own bases"
        if self.genome is None:
            yield from self.only_with("--genome", "bam", advice=both)
        if self.bam is None:
            yield from self.only_with("--bam", "genome", advice=both)
            yield from self.only_with("--bam", "alignment")
            advice = "methylation is called in reads that are aligned to a reference"
            yield from self.only_with("--bam", "methylation", "meth_model", advice=advice)


@options_class
class PlotRegionOptions(RnaOptions, ModelOptions, SignalOptions, Options):
    """Options of ``f5py plot-region``."""

    bam: tuple[str, ...] = option("-b", "--bam", kind=Kind.FILE, group=Group.INPUT, default=REQUIRED, repeated=True,
        unless=("sample",), brief="Alignments with MM and ML tags; repeatable",
        help="Alignments (SAM, BAM or CRAM) with MM and ML tags; faster with an index. Repeatable: a panel for "
        "each.")  # fmt: skip
    sample: tuple[str, ...] = option("--sample", group=Group.INPUT, metavar="NAME=FILE", default=(), repeated=True,
        pattern=r"(?s)[^=]+=.+", pattern_words="a name, = and a file, such as control=control.bam",
        default_words="the sample of the read groups, or the file's name", brief="Alignments with a name; repeatable",
        help="Alignments with the name of their panel, instead of -b. Repeatable.")  # fmt: skip
    genome: str | None = option("-g", "--genome", kind=Kind.FILE, group=Group.INPUT,
        brief="Reference in FASTA format, for CRAM or --signals",
        help="Reference in FASTA format; needed for CRAM files and --signals.")  # fmt: skip
    signals: str | None = option("--signals", group=Group.OUTPUT, choices=("samples", "events"),
        value_may_lack="samples", brief="Draw signals over the reference instead of calls",
        help="Draw the signals of the reads over the reference instead of calls: their samples, or the means of their "
        "events.")  # fmt: skip
    reads: str | None = option("-r", "--reads", kind=Kind.FILE, group=Group.INPUT,
        beside=BESIDE_READS, default_words="the bases in the alignments",
        brief="Basecalled reads, for --signals",
        help="Basecalled reads, for --signals.")  # fmt: skip
    genes: str | None = option("--genes", kind=Kind.FILE, group=Group.INPUT,
        help="Genes to draw below the frequencies: BED, GFF or GTF, plain or compressed.")  # fmt: skip
    window: str = option("-w", "--window", group=Group.SELECTION, metavar="REGION", default=REQUIRED,
        help="The locus, contig:start-end.")  # fmt: skip
    code: str | None = option("--code", group=Group.SELECTION, default_words="that with the most calls",
        help="Code of the modification in the MM tag, such as m, h or a.")  # fmt: skip
    threshold: float = option("--call-threshold", group=Group.SELECTION, default=CALL_THRESHOLD, at_least=0,
        help="Calls with lower absolute log-odds count for neither state.")  # fmt: skip
    min_coverage: int | None = option("--min-coverage", kind=Kind.INTEGER, group=Group.SELECTION, at_least=1,
        default_words="a fifth of the median site's",
        help="Sites with fewer decided calls get no point among the frequencies.")  # fmt: skip
    min_mapq: int = min_mapq()
    smooth: int | None = option("--smooth", kind=Kind.INTEGER, group=Group.OUTPUT, at_least=1, metavar="SITES",
        default_words="a fortieth of the sites",
        brief="Sites of the windows of lines",
        help="Draw lines of the means over windows of so many sites; 1 joins the sites.")  # fmt: skip
    read_order: str = option("--read-order", group=Group.OUTPUT, choices=("packed", "mean"), default="packed",
        brief="Order of the reads",
        help="Pack the reads into rows, or order them by their share of modified calls.")  # fmt: skip
    max_reads: int = option("--max-reads", group=Group.LIMITS, default=200, at_least=1,
        help="Maximum number of reads of a sample to draw; those that cover most of the locus are chosen.")  # fmt: skip
    max_bases: int = option("--max-bases", kind=Kind.BASES, group=Group.LIMITS, default=1_000_000,
        help="Maximum length of the locus.")  # fmt: skip
    output: str = option("-o", "--output", kind=Kind.FILE, group=Group.OUTPUT, default=REQUIRED,
        help="Output file; its extension determines the format: png, svg, pdf or html.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse options of calls for signals, and those of signals for calls."""
        of_calls = ("genes", "code", "min_coverage", "smooth", "read_order")
        yield from self.not_with(self.given("signals"), *of_calls, advice="it is for calls of methylation")
        if self.signals is None:
            yield from self.only_with("--signals", "reads", *SIGNALS, "pore", "kmer_model", "rna")
        elif self.genome is None:
            yield from self.only_with("--genome", "signals", advice="the signals are drawn over its bases")
