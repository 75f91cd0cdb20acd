"""The options of the commands for tables of calls, indices, simulated data and this machine."""

from collections.abc import Iterator

from f5py.errors import UsageError
from f5py.options.declaration import REQUIRED, Group, Kind, Options, argument, flag, option, options_class
from f5py.options.output_names import TEXT
from f5py.options.shared import (
    CALL_THRESHOLD,
    MOST_PROCESSES,
    MOST_THREADS,
    StrictOptions,
    device_numbers,
    kind_of_methylation,
    mod_code,
    output_file,
    own_motif,
)

_INPUT, _OUTPUT = Group.INPUT, Group.OUTPUT


@options_class
class IndexOptions(StrictOptions):
    """Options of ``f5py index``."""

    reads: tuple[str, ...] = argument("READS [...]", default=(), repeated=True,
        brief="Reads: FASTA, FASTQ, BAM or folders",
        help="Basecalled reads: FASTA or FASTQ, plain or compressed, BAM, or folders of such files.")  # fmt: skip
    output: str | None = option("-o", "--output", kind=Kind.PATH, group=_OUTPUT, metavar="PREFIX", ours=True,
        default_words="the name of the reads", brief="Prefix of the index files",
        help="Prefix of the index files, to be given to the other commands as -r; needed for several files of reads, "
        "or if their folder is not writable.")  # fmt: skip
    directories: tuple[str, ...] = option("-d", "--directory", kind=Kind.PATH, group=_INPUT, metavar="DIR",
        repeated=True, default=(), brief="Folder of fast5 files",
        help="Folder of fast5 files, searched with its subfolders. Repeatable.")  # fmt: skip
    summaries: tuple[str, ...] = option("-s", "--sequencing-summary-file", kind=Kind.FILE, group=_INPUT, repeated=True,
        default=(), aliases=("--sequencing-summary",), brief="The basecaller's sequencing summary",
        help="The basecaller's sequencing summary, which makes indexing much faster. Repeatable.")  # fmt: skip
    summary_lists: tuple[str, ...] = option("-f", "--summary-fofn", kind=Kind.FILE, group=_INPUT, repeated=True,
        default=(), brief="File with names of summaries",
        help="File with the paths of sequencing summaries, one per line. Repeatable.")  # fmt: skip
    slow5: tuple[str, ...] = option("--slow5", kind=Kind.FILE, metavar="PATH", group=_INPUT, repeated=True, default=(),
        brief="SLOW5 or BLOW5 file, or folder",
        help="SLOW5 or BLOW5 file with signals, or folder of such files, instead of fast5 files. Their indices "
        "FILE.idx are made too. Repeatable.")  # fmt: skip
    skip_slow5_idx: bool = flag("--skip-slow5-idx", aliases=("--skip-slow-idx",), group=_INPUT,
        help="Do not make the index of the SLOW5 file.")  # fmt: skip
    pod5: tuple[str, ...] = option("--pod5", kind=Kind.PATH, group=_INPUT, repeated=True, default=(), ours=True,
        brief="POD5 file or folder",
        help="POD5 file, or folder of POD5 files, searched with its subfolders. Repeatable.")  # fmt: skip
    resume: bool = flag("--resume", group=Group.PARTS, ours=True,
        help="Save the progress over fast5 files in a file next to the index, which is removed at the end, so that the "
        "same command does not open them again.")  # fmt: skip
    threads: int = option("-t", "--threads", group=Group.SPEED, default=4, at_least=1, at_most=MOST_THREADS,
        help="Number of threads that compress the sequences.")  # fmt: skip
    iop: int = option("--iop", group=Group.SPEED, default=1, at_least=1, at_most=MOST_PROCESSES,
        help="Number of processes that open fast5 files.")  # fmt: skip
    verbose: int = option("-v", "--verbose", default=1, at_least=0, at_most=255, value_may_lack=1,
        help="Verbosity: 0 the counts, 1 also the folders, 2 also every skipped file.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse signals of two formats."""
        yield from self.not_with(self.given("pod5"), "slow5")


@options_class
class EvaluationOptions(StrictOptions):
    """Options that `SummaryOptions` and `ValidateOptions` share."""

    output: str = output_file("Output file for the figures as text.", writes=TEXT)
    report: tuple[str, ...] = option("--report", kind=Kind.FILE, group=_OUTPUT, repeated=True, default=(),
        see="formats.md#run-report",
        help="The same as HTML (.html) or JSON (.json), or only the charts (.png, .svg, .pdf). "
        "Repeatable.")  # fmt: skip
    methylated: tuple[str, ...] = option("--methylated", kind=Kind.FILE, group=_INPUT, repeated=True, default=(),
        is_table=True, help="Calls of a control with all sites methylated. Repeatable.")  # fmt: skip
    unmethylated: tuple[str, ...] = option("--unmethylated", kind=Kind.FILE, group=_INPUT, repeated=True, default=(),
        is_table=True, help="Calls of a control without methylation. Repeatable.")  # fmt: skip
    threshold: float = option("-c", "--call-threshold", group=Group.SELECTION, default=CALL_THRESHOLD, at_least=0,
        help="Absolute log_lik_ratio from which a call counts as methylated or unmethylated.")  # fmt: skip
    methylation: str | None = kind_of_methylation("Kind of methylation that was called.")
    motif: str | None = own_motif()
    calibration: float = option("--calibration", group=Group.MODEL, metavar="FACTOR", default=1.0, above=0, at_most=10,
        help="Factor of the log-likelihood ratios in tables where probabilities are made of them. For calls of "
        "call-methylation --accurate it is 1.1 (R9.4) or 1.5 (R10.4.1).")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse two motifs."""
        yield from self.not_with(self.given("motif"), "methylation")


@options_class
class SummaryOptions(EvaluationOptions):
    """Options of ``f5py summary``."""

    tables: tuple[str, ...] = argument("[CALLS ...]", default=(), repeated=True, is_table=True,
        help="Tables of calls, or alignments with MM and ML tags; by default standard input.")  # fmt: skip
    genome: str | None = option("-g", "--genome", kind=Kind.FILE, group=_INPUT, help="Reference of CRAM files.")
    mod_code: str | None = mod_code("Of modBAM")
    error_rate: float = option("--error-rate", group=Group.LIMITS, default=0.02, above=0, at_most=0.5,
        help="Maximum share of wrong calls for the recommended threshold.")  # fmt: skip


@options_class
class ValidateOptions(EvaluationOptions):
    """Options of ``f5py validate``."""

    calls: str | None = argument("[CALLS]", default=None, is_table=True, help="Calls or frequencies.")
    truth: str | None = argument("[TRUTH]", default=None, is_table=True, help="Known states of the sites.")
    genome: str | None = option("-g", "--genome", kind=Kind.FILE, group=_INPUT, help="Reference of CRAM files.")
    min_coverage: int = option("--min-coverage", group=Group.SELECTION, default=1, at_least=1,
        help="Minimum number of calls of a site to compare its frequency.")  # fmt: skip
    prior: float = option("--prior", group=Group.MODEL, default=0.5, above=0, at_most=0.999999,
        help="Prior probability of methylation, for the probabilities of calls.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse calls without the truth, and controls beside both."""
        advice = "give CALLS and TRUTH, or controls with --methylated and --unmethylated"
        yield from self.not_with(self.given("methylated", "unmethylated"), "calls", advice=advice)
        if self.truth is None:
            yield from self.only_with("TRUTH", "calls", advice=advice)
        if self.calls is None:
            yield from self.only_with("CALLS", "truth", advice=advice)


@options_class
class SimulateOptions(Options):
    """Options of ``f5py simulate``. None stands for the value of `f5py.simulation.settings.SimulationSettings`."""

    output: str = option("-o", "--output", kind=Kind.PATH, group=_OUTPUT, metavar="FOLDER", default=REQUIRED,
        brief="Folder for all files",
        help="Folder for all files; created if missing, else it must be empty.")  # fmt: skip
    force: bool = flag("--force", brief="Replace an earlier simulation",
        help="Replace an earlier simulation in FOLDER.")  # fmt: skip
    fasta: bool = flag("--fasta", help="Write reads.fasta, without qualities, instead of reads.fastq.")
    no_read_truth: bool = flag("--no-read-truth", help="Do not write truth_reads.tsv, which is large.")
    reads_per_file: int = option("--reads-per-file", group=_OUTPUT, default=4000, at_least=1,
        help="Number of reads in a fast5 file.")  # fmt: skip
    seed: int = option("--seed", default=1, at_least=0, brief=True, help="The same seed gives the same bytes.")
    genome: str | None = option("-g", "--reference", "--genome", kind=Kind.FILE, metavar="FASTA",
        default_words="a random genome", brief=True, help="Reference to simulate reads from.")  # fmt: skip
    genome_length: int | None = option("--genome-length", kind=Kind.BASES, at_least=1, default_words="1M",
        brief="Length of a random genome", help="Length of the random genome.")  # fmt: skip
    gc: float | None = option("--gc", kind=Kind.NUMBER, at_least=0.1, at_most=0.9, default_words="0.45",
        help="GC content of the random genome.")  # fmt: skip
    n_reads: int | None = option("-n", "--reads", kind=Kind.INTEGER, at_least=0, default_words="by coverage",
        brief=True, help="Number of reads.")  # fmt: skip
    coverage: float | None = option("--coverage", kind=Kind.NUMBER, above=0, default_words="20", brief=True,
        help="Mean depth, instead of a number of reads.")  # fmt: skip
    median_length: int | None = option("--median-length", kind=Kind.BASES, at_least=1,
        default_words="8000, of RNA 1000", brief="Median read length",
        help="Median of the lognormal read lengths.")  # fmt: skip
    length_sigma: float | None = option("--length-sigma", kind=Kind.NUMBER, at_least=0, default_words="0.8, of RNA 0.6",
        help="Spread of the read lengths (of their natural logarithm); with 1.086, 1 % are longer than 12.5 "
        "medians.")  # fmt: skip
    min_length: int | None = option("--min-length", kind=Kind.INTEGER, at_least=50, default_words="200",
        help="Minimum read length.")  # fmt: skip
    fixed_length: int | None = option("--length", kind=Kind.BASES, at_least=1, default_words="lognormal", brief=True,
        help="One length for all reads.")  # fmt: skip
    ultra_long: tuple[int, ...] = option("--ultra-long", kind=Kind.BASES, repeated=True, default=(), at_least=1,
        help="Add a read of this length. Repeatable.")  # fmt: skip
    strand: str = option("--strand", choices=("both", "+", "-"), default="both", help="Strand of the reads.")
    error_rate: float = option("--error-rate", default=0.03, at_least=0, at_most=0.4, brief=True,
        help="Basecalling errors per base.")  # fmt: skip
    motif: str | None = option("--motif", group=Group.MODEL, metavar="NAME|SITE:OFFSET", default_words="cpg",
        see="usage/f5py-call-methylation.md#motifs", brief="Sites: cpg, gpc, dam, dcm or your own",
        help="Sites that can be methylated: cpg, gpc, dam or dcm, or, with --meth-model, a motif of your "
        "own.")  # fmt: skip
    methylation: str = option("--methylation", choices=("per-site", "per-read"), default="per-site",
        brief="Rates of sites, or whole reads",
        help="per-site: every site has its own rate; per-read: whole reads are methylated or not.")  # fmt: skip
    site_rates: str | None = option("--site-rates", metavar="MIXTURE", default_words="beta:0.5:0.5",
        brief="Distribution of the sites' rates",
        help="Distribution of the sites' rates: rates and beta:A:B, each of which may have a weight, e.g. '0,0.5,1' or "
        "'1,beta:2:2*3'.")  # fmt: skip
    linked_within: int | None = option("--linked-within", kind=Kind.INTEGER, at_least=0, default_words="10",
        help="Sites at most this far apart share rate and state; 0: no sites do.")  # fmt: skip
    methylated_reads: float | None = option("--methylated-reads", kind=Kind.NUMBER, at_least=0, at_most=1,
        default_words="0.5", help="Share of methylated reads with --methylation per-read.")  # fmt: skip
    complete: float | None = option("--complete", kind=Kind.NUMBER, at_least=0, at_most=1, default_words="1",
        help="Share of methylated sites in a methylated read with --methylation per-read.")  # fmt: skip
    haplotypes: bool = flag("--haplotypes", brief="Simulate two haplotypes",
        help="Simulate two haplotypes, with HP tags, and write truth_hp1.tsv and truth_hp2.tsv.")  # fmt: skip
    haplotype_sites: float | None = option("--haplotype-sites", kind=Kind.NUMBER, at_least=0, at_most=1,
        default_words="0.3",
        help="Share of sites, or groups of linked ones, with different rates in the haplotypes.")  # fmt: skip
    signal_format: str | None = option("--format", group=_OUTPUT, choices=("fast5", "blow5", "pod5"),
        default_words="fast5", brief=True, help="Format of the signals.")  # fmt: skip
    pore: str = option("--pore", group=Group.MODEL, choices=("r9", "r10", "rna002", "rna004"), default="r9",
        see="usage/f5py-call-methylation.md#chemistries", brief="Chemistry",
        help="Pore chemistry: determines the built-in model for the signals and the metadata. RNA is read from the 3' "
        "ends of transcripts.")  # fmt: skip
    meth_model: str | None = option("--meth-model", kind=Kind.FILE, group=Group.MODEL, default_words="built in",
        is_model=True, brief="Pore model for the signals", help="Pore model over ACGMT for the signals.")  # fmt: skip
    shifts: str | None = option("--shifts", group=Group.MODEL, metavar="FILE|PA,PA,...", default_words="built in",
        help="Shifts of methylated k-mers against plain ones: a file of f5py train --unlabeled, or a number for each "
        "place in the k-mer, in pA.")  # fmt: skip
    shift_spread: str | None = option("--shift-spread", group=Group.MODEL, metavar="PA|PA,PA,...", default_words="0",
        help="Standard deviation of the shifts between k-mers: a number, or one for each place, in pA.")  # fmt: skip
    level_bias: float | None = option("--level-bias", kind=Kind.NUMBER, group=Group.MODEL, default_words="0",
        at_least=0, at_most=20,
        help="Standard deviation of the k-mers' levels around those of the model, in pA.")  # fmt: skip
    realistic: bool = flag("--realistic", group=Group.MODEL,
        help="Set --shift-spread and --level-bias so that calls are as accurate as those of real reads.")  # fmt: skip
    speed: float | None = option("--speed", kind=Kind.NUMBER, default_words="the chemistry's", at_least=20,
        at_most=2000, help="Bases per second.")  # fmt: skip
    slow_fraction: float = option("--slow-fraction", default=0.0, at_least=0, at_most=1,
        help="Share of reads so slow that they have more than 5 events per base.")  # fmt: skip
    slow_factor: float = option("--slow-factor", default=5.0, at_least=1, at_most=20,
        help="Factor by which these reads are slower.")  # fmt: skip
    sample_noise: float | None = option("--sample-noise", kind=Kind.NUMBER, default_words="the chemistry's", at_least=0,
        at_most=50, help="Standard deviation of the samples, in pA.")  # fmt: skip
    sample_correlation: float | None = option("--sample-correlation", kind=Kind.NUMBER, default_words="the chemistry's",
        at_least=0, at_most=0.5, help="Correlation of the noise of one sample and the next.")  # fmt: skip
    level_noise: float | None = option("--level-noise", kind=Kind.NUMBER, default_words="the chemistry's", at_least=0,
        at_most=20, help="Deviation of a base's level, in units of the model's standard deviation.")  # fmt: skip
    level_correlation: float | None = option("--level-correlation", kind=Kind.NUMBER, default_words="the chemistry's",
        at_least=-0.95, at_most=0.95, help="Correlation of the deviations of one base and the next.")  # fmt: skip
    level_tails: str | None = option("--level-tails", choices=("gaussian", "t7"), default_words="the chemistry's",
        help="Distribution of the deviations: normal, or Student's t with seven degrees of freedom.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse two words on one thing, and options of another kind of simulation."""
        yield from self.not_with(self.given("genome"), "genome_length", "gc")
        yield from self.not_with(self.given("n_reads"), "coverage")
        yield from self.not_with(self.given("fixed_length"), "median_length", "length_sigma", "min_length")
        if self.pore.startswith("rna"):
            yield from self.not_with(self.given("pore"), "strand", advice="RNA has the strand of its transcript")
        if self.methylation == "per-read":
            yield from self.not_with(self.given("methylation"), "site_rates", "linked_within")
        else:
            yield from self.only_with("--methylation per-read", "methylated_reads", "complete")
        if not self.haplotypes:
            yield from self.only_with("--haplotypes", "haplotype_sites")
        advice = "both say the levels of methylated k-mers"
        yield from self.not_with(self.given("meth_model"), "shifts", advice=advice)
        if self.pore != "r10":
            yield from self.only_with("--pore r10", "realistic")


@options_class
class DemoOptions(Options):
    """Options of ``f5py demo``."""

    folder: str = argument("[FOLDER]", default="f5py-demo", help="Folder for all files.")
    seed: int = option("--seed", default=1, at_least=0, help="Seed of the simulation.")
    threads: int | None = option("-t", "--threads", kind=Kind.INTEGER, at_least=1,
        default_words="those of each command", help="Threads.")  # fmt: skip
    force: bool = flag("--force", help="Use FOLDER even if it contains files that are not from an earlier demo.")


@options_class
class GpuCheckOptions(Options):
    """Options of ``f5py gpu-check``."""

    cuda_dev_id: str = option("--cuda-dev-id", metavar="INT[,INT...]|all", default="all",
        help="Numbers of the GPUs to check.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse numbers that are none."""
        device_numbers(self.cuda_dev_id)
        yield from ()


#: The oldest compute capability that the kernels are written for, as one number.
_OLDEST = 72


@options_class
class CompileOptions(Options):
    """Options of ``f5py compile``."""

    cuda_arch: str | None = option("--cuda-arch", metavar="INT[,INT...]",
        help="Compute capabilities of GPUs to compile for, such as 87 for 8.7.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse numbers that are none."""
        self.capabilities()
        yield from ()

    def capabilities(self) -> list[str]:
        """List the compute capabilities, each as one number such as ``"87"``.

        Raises `UsageError` if they are not numbers, or one is too old.
        """
        words = self.cuda_arch.split(",") if self.cuda_arch else []
        if not all(word.isascii() and word.isdigit() and int(word) >= _OLDEST for word in words):
            raise UsageError(
                f"--cuda-arch {self.cuda_arch}: give compute capabilities from {_OLDEST}, such as 87 or 87,90"
            )
        return words
