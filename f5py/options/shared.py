"""Options that several commands have."""

from collections.abc import Iterator
from typing import Any

from f5py.errors import UsageError
from f5py.options.cores import usable_cores
from f5py.options.declaration import (
    REQUIRED,
    Group,
    Kind,
    Options,
    declarations,
    flag,
    option,
    options_class,
    refused,
)
from f5py.options.input_names import BESIDE_ALIGNMENTS, BESIDE_READS, BESIDE_REFERENCE, BESIDE_SLOW5
from f5py.options.output_names import BAM, REPORT, TABLE

#: Calls with a smaller absolute log-likelihood ratio count for neither state, unless the user says otherwise.
CALL_THRESHOLD = 2.5
#: What is called, unless the user says otherwise.
METHYLATION = "cpg"
#: Kinds of methylation, and the recognition sites that they are named for.
METHYLATIONS = ("cpg", "gpc", "dam", "dcm")
#: More than any machine is good for; a slip of the finger would take all memory.
MOST_THREADS, MOST_PROCESSES = 1024, 256
_COMPRESSED = "Output file; compressed (bgzip) if the name ends in .gz. It appears only when it is complete."
_PORES = ("r9", "r10", "rna004")
#: When GPUs are used.
GPU_USES = ("auto", "on", "off")


def threads(meaning: str) -> Any:
    """Declare ``--threads``."""
    return option(
        "-t", "--threads", kind=Kind.INTEGER, group=Group.SPEED, default=usable_cores(),
        default_words="as many as the cores that may be used", at_least=1, at_most=MOST_THREADS, brief=meaning,
        help=meaning,
    )  # fmt: skip


def min_mapq(*aliases: str) -> Any:
    """Declare ``--min-mapq``, with more names of nanopolish's."""
    return option(
        "--min-mapq", kind=Kind.INTEGER, group=Group.SELECTION, default=20,
        at_most=255, aliases=("--min-mapping-quality", *aliases),
        brief="Skip alignments of lower mapping quality",
        help="Skip alignments with lower mapping quality.",
    )  # fmt: skip


def max_bases(default: int) -> Any:
    """Declare ``--max-bases``."""
    return option(
        "-B", "--max-bases", kind=Kind.BASES, group=Group.SPEED, default=default, at_least=1,
        help="Number of bases at which a batch is complete.",
    )  # fmt: skip


def alignments(**more: Any) -> Any:
    """Declare ``--bam``."""
    return option(
        "-b", "--bam", kind=Kind.FILE, group=Group.INPUT, default=REQUIRED,
        brief="Alignments: SAM, BAM or CRAM",
        help="Alignments (SAM, BAM or CRAM; - for standard input).", beside=BESIDE_ALIGNMENTS, url="alignments",
        **more,
    )  # fmt: skip


def output_file(help: str = _COMPRESSED, **more: Any) -> Any:
    """Declare ``--output`` as a file that is standard output by default."""
    return option(
        "-o", "--output", kind=Kind.FILE, group=Group.OUTPUT, default="-", default_words="standard output",
        brief="Output file", help=help, **more,
    )  # fmt: skip


def kind_of_methylation(help: str, **more: Any) -> Any:
    """Declare ``--methylation`` with the kinds that there are."""
    return option(
        "-q", "--methylation", group=Group.MODEL, choices=METHYLATIONS, default_words=METHYLATION, help=help, **more
    )


def mod_code(subject: str = "Of modBAM and bedMethyl", **more: Any) -> Any:
    """Declare ``--mod-code``."""
    return option(
        "--mod-code", group=Group.MODEL, metavar="CODE", default_words="that of the motif, m or a",
        pattern="[A-Za-z]|[0-9]{1,9}", pattern_words="a letter, or a number of ChEBI",
        brief="Modification to count, such as h",
        help=f"{subject}: the modification to count, as the tags name it, such as h for 5hmC.", **more,
    )  # fmt: skip


def own_motif(**more: Any) -> Any:
    """Declare ``--motif``, an alternative to ``--methylation``."""
    return option(
        "--motif", group=Group.MODEL, metavar="SITE:OFFSET", see="usage/f5py-call-methylation.md#motifs",
        brief="Another motif, such as CHG:0",
        help="A motif of your own instead of -q, such as CHG:0.", **more,
    )  # fmt: skip


def indexed_reads(help: str = "Basecalled reads, indexed by f5py index.", **more: Any) -> Any:
    """Declare ``--reads`` of commands that need them."""
    return option(
        "-r", "--reads", kind=Kind.FILE, group=Group.INPUT, default=REQUIRED, beside=BESIDE_READS,
        see="usage/f5py-call-methylation.md#reads-without-an-index", help=help, **more,
    )  # fmt: skip


@options_class
class InputOptions(Options):
    """Reads, their alignments and the reference."""

    reads: str | None = option("-r", "--reads", kind=Kind.FILE, group=Group.INPUT,
        default_words="the bases in the alignments", beside=BESIDE_READS, url="file",
        see="usage/f5py-call-methylation.md#reads-without-an-index", brief="Basecalled reads, if not those of -b",
        help="Basecalled reads: FASTA or FASTQ indexed by f5py index. If they fit in memory and the signals are named "
        "on the command line, they need no index, and can be BAM.")  # fmt: skip
    bam: str = alignments()
    genome: str = option("-g", "--genome", kind=Kind.FILE, group=Group.INPUT, default=REQUIRED, beside=BESIDE_REFERENCE,
        url="file", brief="Reference: FASTA or index of map -d",
        help="Reference in FASTA format; or the index of f5py map -d. A missing .fai is made.")  # fmt: skip


@options_class
class MappingOptions(Options):
    """Mapping of reads without alignments in the same run."""

    map_preset: str | None = option("--map-preset", group=Group.INPUT, choices=("map-ont", "map-hifi", "lr:hq", "rna"),
        ours=True, default_words="map-ont, or rna for direct RNA",
        help="Without -b, the reads of -r are mapped to the reference first; the preset of f5py map for "
        "that.")  # fmt: skip
    keep_bam: str | None = option("--keep-bam", kind=Kind.FILE, group=Group.OUTPUT, ours=True, pattern="(?is).*\\.bam",
        pattern_words="a name that ends in .bam, as the alignments are BAM",
        help="Keep the alignments that are made without -b in this BAM file; it is sorted and indexed.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse options of mapping beside alignments."""
        advice = "it is for reads without alignments, which are mapped in the same run"
        yield from self.not_with(self.given("bam", "watch"), "map_preset", "keep_bam", advice=advice)


def read_ids(help: str, **more: Any) -> Any:
    """Declare ``--read-ids``."""
    return option(
        "--read-ids", kind=Kind.FILE, group=Group.SELECTION, ours=True, is_list=True, default_words="all reads",
        see="usage/common.md#chosen-reads", brief="Only the reads in this list", help=help, **more,
    )  # fmt: skip


@options_class
class ReadListOptions(Options):
    """Choice of reads by name."""

    read_ids: str | None = read_ids("List of the reads to use: a file with a name a line; - is standard input.")


@options_class
class StrictOptions(Options):
    """Treatment of doubtful input."""

    strict: bool = flag("--strict", group=Group.INPUT, ours=True, free=True,
        help="Stop with an error instead of a warning if input is damaged, incomplete or inconsistent.")  # fmt: skip


@options_class
class SignalOptions(Options):
    """Sources of the raw signals."""

    slow5: tuple[str, ...] = option("--slow5", kind=Kind.FILE, metavar="PATH", group=Group.INPUT, url="slow5",
        beside=BESIDE_SLOW5, repeated=True, default=(), see="usage/common.md#signals",
        brief="Signals: SLOW5 or BLOW5, file or folder",
        help="Signals in a SLOW5 or BLOW5 file, or a folder of such files. Repeatable.")  # fmt: skip
    pod5: tuple[str, ...] = option("--pod5", kind=Kind.PATH, group=Group.INPUT, ours=True, url="pod5", repeated=True,
        default=(), see="usage/common.md#signals", brief="Signals: POD5, file or folder",
        help="Signals in a POD5 file or a folder of POD5 files. Repeatable.")  # fmt: skip
    fast5: tuple[str, ...] = option("--fast5", kind=Kind.PATH, group=Group.INPUT, ours=True, url="fast5", repeated=True,
        default=(), see="usage/common.md#signals", brief="Signals: fast5, file or folder",
        help="Signals in a fast5 file or a folder of fast5 files, which is searched at the start of the run. "
        "Repeatable.")  # fmt: skip

    @property
    def signal_paths(self) -> dict[str, Any]:
        """Files and folders of signals by the option that names them."""
        return {name: getattr(self, name) for name in SIGNALS}


#: Options that name signals; each is also the name of its format.
SIGNALS = tuple(declarations(SignalOptions))


@options_class
class RunOptions(Options):
    """Output and speed of a command that works on signals."""

    output: str = output_file("Output file; compressed (bgzip) if the name ends in .gz.")
    threads: int = threads("Worker threads.")
    batchsize: int | None = option("-K", "--batchsize", kind=Kind.INTEGER, group=Group.SPEED, at_least=1,
        default_words="512, or 1024 where a GPU may be used", help="Maximum number of reads in a batch.")  # fmt: skip
    max_bases: int = max_bases(5_000_000)
    iop: int | None = option("--iop", kind=Kind.INTEGER, group=Group.SPEED, at_least=1, at_most=MOST_PROCESSES,
        default_words="chosen from -t", help="Number of processes that read fast5 or POD5 files.")  # fmt: skip
    profile: str | None = option("-x", "--profile", group=Group.SPEED, metavar="NAME|FILE",
        see="usage/common.md#profiles", brief="Defaults for laptop, desktop or hpc",
        help="Defaults for a kind of machine (laptop, desktop, hpc, ...), for options that are not given.")  # fmt: skip
    verbose: int = option("-v", "--verbose", default=0, at_least=0, at_most=255, value_may_lack=1, free=True,
        help="1 or more: also print the values of all options that change results, and the reads with too many events "
        "per base.")  # fmt: skip
    failed_reads: str | None = option("--failed-reads", kind=Kind.FILE, group=Group.OUTPUT, ours=True, writes=TABLE,
        see="formats.md#failed-reads",
        help="Write a list of all reads without a result, with the cause, to this file.")  # fmt: skip


@options_class
class ModelOptions(Options):
    """Pore of the signals."""

    pore: str | None = option("--pore", group=Group.MODEL, choices=_PORES, default_words="as the signals say, else r9",
        see="usage/f5py-call-methylation.md#chemistries", brief="Chemistry, if the signals do not tell",
        help="Pore chemistry.")  # fmt: skip
    kmer_model: str | None = option("--kmer-model", metavar="FILE|NAME", group=Group.MODEL, default_words="built in",
        is_model=True, see="formats.md#pore-models", brief="Pore model: a file or built-in name",
        help="Pore model to align with: a file, or the name of a built-in model such as rna004-5mer.")  # fmt: skip


@options_class
class RnaOptions(Options):
    """Options of commands for direct RNA."""

    rna: bool = flag("--rna", group=Group.MODEL, see="usage/f5py-call-methylation.md#chemistries", brief=True,
        help="The reads are direct RNA.")  # fmt: skip


@options_class
class LimitOptions(Options):
    """Limits beyond which alignments of events are rejected; the defaults are f5c's constants."""

    min_recalib_events: int = option("--min-recalib-events", group=Group.LIMITS, default=200, at_least=1,
        help="Minimum number of events to recalibrate a read with. 30 is enough for short reads such as "
        "tRNA.")  # fmt: skip
    max_events_per_base: float = option("--max-events-per-base", group=Group.LIMITS, default=15.0, above=0, ours=True,
        help="Do not align reads with this many events per base or more.")  # fmt: skip
    min_mean_emission: float = option("--min-mean-emission", group=Group.LIMITS, default=-5.0, ours=True,
        help="Reject alignments with a lower mean log-likelihood per event.")  # fmt: skip
    max_gap: int = option("--max-gap", group=Group.LIMITS, default=50, at_least=0, ours=True,
        help="Reject alignments with more bases in a row without an event.")  # fmt: skip
    qc_max_var: float = option("--qc-max-var", group=Group.LIMITS, default=2.5, above=0, ours=True,
        help="Reject reads that are noisier than this (var) after recalibration.")  # fmt: skip
    qc_max_events_per_base: float = option("--qc-max-events-per-base", group=Group.LIMITS, default=5.0, above=0,
        ours=True, help="Reject aligned reads with more events per base.")  # fmt: skip


_NO_DUMP = "f5c's dump of signals is for its own debugging; to keep signals, convert them to BLOW5 with slow5tools"


@options_class
class DeveloperOptions(Options):
    """Tables of the stages' results, mixed into the output."""

    print_events: bool = option("--print-events", group=Group.DEVELOPER, default=False,
        help="Print the events of every read before the batch's results.")  # fmt: skip
    print_banded_aln: bool = option("--print-banded-aln", group=Group.DEVELOPER, default=False,
        help="Print the aligned pairs of k-mers and events of every read.")  # fmt: skip
    print_scaling: bool = option("--print-scaling", group=Group.DEVELOPER, default=False,
        help="Print shift, scale and var of every read.")  # fmt: skip
    debug_break: int = option("--debug-break", group=Group.DEVELOPER, default=-1,
        help="Stop after the batch with this number, counted from 0.")  # fmt: skip
    profile_cpu: bool = option("--profile-cpu", group=Group.DEVELOPER, default=False, free=True,
        help="Accepted, but has no effect: the times of the stages are always printed.")  # fmt: skip
    progress: bool = flag("--progress", group=Group.DEVELOPER, free=True,
        help="Accepted, but has no effect: progress is always shown on a terminal.")  # fmt: skip
    print_raw: bool = refused("--print-raw", kind=Kind.YES_NO,
        reason="samples are not printed; take them out of the signal file, e.g. with slow5tools view or pod5 "
        "inspect")  # fmt: skip
    write_dump: bool = refused("--write-dump", kind=Kind.YES_NO, reason=_NO_DUMP)
    read_dump: bool = refused("--read-dump", kind=Kind.YES_NO, reason=_NO_DUMP)

    def rules(self) -> Iterator[str]:
        """Refuse tables in outputs that have no place for them, and in runs that write results more than once."""
        no_place = self.given("paf", "sam", "m6anet_json", "plan", "resume", "watch")
        if getattr(self, "output_format", None) in ("parquet", "csv", "none"):
            no_place += self.given("output_format")
        yield from self.not_with(no_place, "print_events", "print_banded_aln", "print_scaling")
        yield from self.not_with(self.given("plan", "resume"), "debug_break")


@options_class
class GpuOptions(Options):
    """Use and choice of GPUs; `gpu_use` resolves these options."""

    gpu: str | None = option("--gpu", group=Group.GPU, choices=GPU_USES, default_words="auto", ours=True,
        brief="When to use GPUs: auto, on or off",
        help="When to use GPUs: auto, once it pays off; on, from the beginning; off, never. The result is the "
        "same.")  # fmt: skip
    disable_cuda: bool | None = option("--disable-cuda", kind=Kind.YES_NO, group=Group.GPU, default_words="no",
        help="yes: the same as --gpu off.")  # fmt: skip
    cuda_dev_id: str = option("--cuda-dev-id", group=Group.GPU, metavar="INT[,INT...]|all", default="0",
        help="Numbers of the GPUs; with several, each takes a batch when it becomes free.")  # fmt: skip
    cuda_mem_frac: float | None = option("--cuda-mem-frac", kind=Kind.NUMBER, group=Group.GPU,
        default_words="0.9; Jetson 0.7", help="Share of the free GPU memory to use.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse two contrary words on the use of GPUs, and numbers that are none."""
        if self.gpu != "off":
            yield from self.not_with(self.given("gpu"), "disable_cuda")
        device_numbers(self.cuda_dev_id)

    @property
    def gpu_use(self) -> str:
        """One of `GPU_USES`."""
        return "off" if self.disable_cuda else self.gpu or "auto"

    def gpu_choices(self) -> dict[str, Any]:
        """Values of these options, to set those of another command."""
        names = ("gpu", "disable_cuda", "cuda_dev_id", "cuda_mem_frac")
        return {name: getattr(self, name) for name in names}


@options_class
class CudaOptions(GpuOptions):
    """Division of reads between GPUs and CPU threads."""

    cuda_max_lf: float = option("--cuda-max-lf", group=Group.GPU, default=3.0,
        help="Only reads longer than this times the mean length of the batch can go to the CPU for their "
        "length.")  # fmt: skip
    cuda_avg_epk: float = option("--cuda-avg-epk", group=Group.GPU, default=2.0,
        help="Number of events per base that GPU memory is allocated for.")  # fmt: skip
    cuda_max_epk: float = option("--cuda-max-epk", group=Group.GPU, default=5.0,
        help="Only reads with fewer events per base can go to the GPU.")  # fmt: skip
    cuda_block_size: int | None = option("--cuda-block-size", kind=Kind.INTEGER, group=Group.DEVELOPER,
        default_words="none", free=True,
        help="Accepted, but has no effect: the kernels choose their own block size.")  # fmt: skip
    auto_tune: bool = refused("--auto-tune", kind=Kind.YES_NO,
        reason="the line at the end of a run says which of -K, -B and --cuda-max-lf to change")  # fmt: skip


def device_numbers(text: str | int) -> list[int] | None:
    """Parse the numbers that ``--cuda-dev-id`` names; None for all devices.

    Raises `UsageError` if they are not numbers, or one is named twice.
    """
    if text == "all":
        return None
    words = str(text).split(",")
    if not all(word.isascii() and word.isdigit() for word in words):
        raise UsageError(f"--cuda-dev-id {text}: give numbers of GPUs from 0, such as 0 or 0,1, or all")
    numbers = [int(word) for word in words]
    if len(set(numbers)) < len(numbers):
        raise UsageError(f"--cuda-dev-id {text}: names a GPU twice")
    return numbers


@options_class  # plots are made with these alone
class AlignmentOptions(DeveloperOptions, CudaOptions, LimitOptions, ModelOptions, RunOptions, StrictOptions):
    """Batching of reads and alignment of their events to their bases."""

    ultra_thresh: int = 100_000  # for the advice on a GPU's share

    def rules(self) -> Iterator[str]:
        """Refuse a profile, which callers resolve."""
        if self.profile is not None:
            yield (
                "profile: give its values instead, CallOptions(**load_profile(name).values(), ...) with "
                "f5py.options.profiles.load_profile"
            )

    @property
    def is_rna(self) -> bool:
        """Whether ``--rna`` is given, to a command that has it."""
        return bool(getattr(self, "rna", False))


@options_class
class MappedReadsOptions(SignalOptions, InputOptions, AlignmentOptions):
    """Options of a command that takes its reads from an alignment file."""

    window: tuple[str, ...] = option("-w", "--window", group=Group.SELECTION, metavar="REGION", repeated=True,
        default=(), default_words="everything", brief="Only this region, or those of a .bed file",
        help="Only this region, contig or contig:start-end (from 1, both included), several with spaces between them, "
        "or the windows in a .bed file; needs an indexed BAM or CRAM file. Repeatable.")  # fmt: skip
    min_mapq: int = min_mapq()
    secondary: bool = option("--secondary", group=Group.SELECTION, default=False, help="Use secondary alignments too.")
    supplementary: bool = option("--supplementary", group=Group.SELECTION, default=True,
        help="Use supplementary alignments too.")  # fmt: skip
    skip_duplicates: bool = flag("--skip-duplicates", group=Group.SELECTION, ours=True,
        help="Skip records that are marked as duplicates, and those that repeat an earlier record.")  # fmt: skip
    skip_unreadable: bool = option("--skip-unreadable", group=Group.SELECTION, default=True,
        help="Count reads without a usable signal as bad reads and continue; no: stop at the first one.")  # fmt: skip
    hard_clips: bool = option("--hard-clips", group=Group.SELECTION, default=True, ours=True,
        see="differences-from-f5c.md#numbers",
        help="Count hard-clipped bases in read positions; no: as in f5c, which misplaces such records.")  # fmt: skip
    skip_ultra: str | None = option("--skip-ultra", kind=Kind.FILE, group=Group.SELECTION, written=True, writes=BAM,
        help="Skip ultra-long reads and write their records to this BAM file.")  # fmt: skip
    ultra_thresh: int = option("--ultra-thresh", group=Group.SELECTION, default=100_000, at_least=0,
        help="Reads with more bases are ultra-long; only used with --skip-ultra.")  # fmt: skip
    report: tuple[str, ...] = option("--report", kind=Kind.FILE, group=Group.OUTPUT, ours=True, writes=REPORT,
        repeated=True, default=(), see="formats.md#run-report", brief="Write a report: .html, .json or _mqc.json",
        help="Write a report with counts, distributions, times, versions and parameters: HTML if the name ends in "
        ".html, else JSON, which MultiQC reads if the name ends in _mqc.json. Repeatable.")  # fmt: skip
    sample: str | None = option("--sample", group=Group.OUTPUT, ours=True, metavar="NAME",
        default_words="SM of the alignments' read groups, else the names of the output's folder and the output",
        help="Name of the sample in the report, and so in MultiQC.")  # fmt: skip
    mapped_by: str = ""  # the command that has mapped the reads in the same run
