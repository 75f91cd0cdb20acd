"""Options that several commands have."""

from __future__ import annotations

from typing import Any

from f5py.core.options.declaration import (
    REQUIRED,
    Group,
    Kind,
    Options,
    flag,
    option,
    options_class,
    part_of_options,
    refused,
)
from f5py.errors import UsageError

#: Calls with a smaller absolute log-likelihood ratio count for neither state, unless the user says otherwise.
CALL_THRESHOLD = 2.5
#: What is called, unless the user says otherwise.
METHYLATION = "cpg"
#: Kinds of methylation, and the recognition sites that they are named for.
METHYLATIONS = ("cpg", "gpc", "dam", "dcm")
#: More than any machine is good for; a slip of the finger would take all memory.
MOST_THREADS, MOST_PROCESSES = 1024, 256
_PORES = ("r9", "r10", "rna004")


def min_mapq(*aliases: str) -> Any:
    """The declaration of ``--min-mapq``, with more names of nanopolish's."""
    return option(
        "--min-mapq", kind=Kind.INTEGER, group=Group.SELECTION, default=20,
        aliases=("--min-mapping-quality", *aliases), help="Leave out alignments of lower mapping quality.",
    )  # fmt: skip


def max_bases(default: int) -> Any:
    """The declaration of ``--max-bases``."""
    return option(
        "-B", "--max-bases", kind=Kind.BASES, group=Group.SPEED, default=default, at_least=1,
        help="Number of bases at which a batch is closed.",
    )  # fmt: skip


def alignments(**more: Any) -> Any:
    """The declaration of ``--bam``."""
    return option(
        "-b", "--bam", kind=Kind.FILE, group=Group.INPUT, default=REQUIRED,
        help="Alignments (SAM, BAM or CRAM; - for standard input).", **more,
    )  # fmt: skip


@part_of_options
class InputOptions:
    """Reads, their alignments and the reference."""

    reads: str | None = option(
        "-r", "--reads", kind=Kind.FILE, group=Group.INPUT, default_words="the bases in the alignments",
        help="Basecalled reads: FASTA or FASTQ indexed by f5py index, or, if they fit in memory and the signals are "
        "named here, also without index, and as BAM.",
    )  # fmt: skip
    bam: str = alignments()
    genome: str = option(
        "-g", "--genome", kind=Kind.FILE, group=Group.INPUT, default=REQUIRED,
        help="Reference in FASTA format; its .fai is made if it is missing.",
    )  # fmt: skip


@part_of_options
class StrictOptions:
    """What to do about doubtful input."""

    strict: bool = flag(
        "--strict", group=Group.INPUT, ours=True,
        help="End with an error where otherwise a warning says that input is damaged, incomplete or does not fit.",
    )  # fmt: skip


@part_of_options
class SignalOptions:
    """Where the raw signals are."""

    slow5: str | None = option(
        "--slow5", kind=Kind.FILE, group=Group.INPUT, help="Signals in a SLOW5 or BLOW5 file."
    )
    pod5: str | None = option(
        "--pod5", kind=Kind.PATH, group=Group.INPUT, help="Signals in a POD5 file or in those below a folder.",
        ours=True,
    )  # fmt: skip
    fast5: str | None = option(
        "--fast5", kind=Kind.PATH, group=Group.INPUT, ours=True,
        help="Signals in a fast5 file or in those below a folder, which is searched at the start of the run.",
    )  # fmt: skip


@part_of_options
class RunOptions:
    """Output and speed of a command that works on signals."""

    output: str = option(
        "-o", "--output", kind=Kind.FILE, group=Group.OUTPUT, default="-", default_words="standard output",
        help="Where the results go; compressed (bgzip) if the name ends in .gz.",
    )  # fmt: skip
    threads: int = option(
        "-t", "--threads", kind=Kind.INTEGER, group=Group.SPEED, default=8, at_least=1, at_most=MOST_THREADS,
        help="Worker threads.",
    )
    batchsize: int = option(
        "-K", "--batchsize", kind=Kind.INTEGER, group=Group.SPEED, default=512, at_least=1,
        help="Maximum number of reads in a batch.",
    )  # fmt: skip
    max_bases: int = max_bases(5_000_000)
    iop: int | None = option(
        "--iop", kind=Kind.INTEGER, group=Group.SPEED, at_least=1, at_most=MOST_PROCESSES,
        default_words="chosen from -t",
        help="Processes that read fast5 or POD5 files.",
    )  # fmt: skip
    profile: str | None = option(
        "-x", "--profile", group=Group.SPEED, metavar="NAME|FILE",
        help="Values for a kind of machine (laptop, desktop, hpc, ...) in the place of options that are not given.",
    )  # fmt: skip
    verbose: int = option(
        "-v", "--verbose", kind=Kind.INTEGER, default=0, at_least=0, at_most=255, number_may_lack=1,
        help="1 or more: also name the reads with too many events per base.",
    )  # fmt: skip
    failed_reads: str | None = option(
        "--failed-reads", kind=Kind.FILE, group=Group.OUTPUT, ours=True,
        help="Write the name of every read without a result to this file, and the cause.",
    )  # fmt: skip


@part_of_options
class ModelOptions:
    """Which pore the signals come from."""

    pore: str | None = option(
        "--pore", group=Group.MODEL, choices=_PORES, default_words="as the signals say, else r9", help="Pore chemistry."
    )
    kmer_model: str | None = option(
        "--kmer-model", metavar="FILE|NAME", group=Group.MODEL, default_words="built in",
        help="Pore model to align with: a file, or the name of a built-in model such as rna004-5mer.",
    )  # fmt: skip


@part_of_options
class RnaOptions:
    """For commands that take direct RNA."""

    rna: bool = flag("--rna", group=Group.MODEL, help="The reads are direct RNA.")


@part_of_options
class LimitOptions:
    """Which alignments of events are believed; the defaults are f5c's constants."""

    min_recalib_events: int = option(
        "--min-recalib-events", kind=Kind.INTEGER, group=Group.LIMITS, default=200, at_least=1,
        help="Minimum number of events to recalibrate a read with. For short reads, such as tRNA, 30 is enough.",
    )  # fmt: skip
    max_events_per_base: float = option(
        "--max-events-per-base", kind=Kind.NUMBER, group=Group.LIMITS, default=15.0, above=0, ours=True,
        help="Reads with this many events per base or more are not aligned.",
    )  # fmt: skip
    min_mean_emission: float = option(
        "--min-mean-emission", kind=Kind.NUMBER, group=Group.LIMITS, default=-5.0, ours=True,
        help="Alignments with a smaller mean log-likelihood per event are given up.",
    )  # fmt: skip
    max_gap: int = option(
        "--max-gap", kind=Kind.INTEGER, group=Group.LIMITS, default=50, at_least=0, ours=True,
        help="Alignments that pass over more bases in a row are given up.",
    )  # fmt: skip
    qc_max_var: float = option(
        "--qc-max-var", kind=Kind.NUMBER, group=Group.LIMITS, default=2.5, above=0, ours=True,
        help="Reads that are noisier than this after recalibration (var) are left out.",
    )  # fmt: skip
    qc_max_events_per_base: float = option(
        "--qc-max-events-per-base", kind=Kind.NUMBER, group=Group.LIMITS, default=5.0, above=0, ours=True,
        help="Aligned reads with more events per base are left out.",
    )  # fmt: skip


#: When GPUs are used.
GPU_USES = ("auto", "on", "off")


@part_of_options
class CudaOptions:
    """Use of GPUs; `gpu_use` says what all of it comes to."""

    gpu: str | None = option(
        "--gpu", group=Group.GPU, choices=GPU_USES, default_words="auto", ours=True,
        help="Use GPUs: auto, from when that pays; on, from the beginning; off, not at all. The result is the same.",
    )  # fmt: skip
    disable_cuda: bool | None = option(
        "--disable-cuda", kind=Kind.YES_NO, group=Group.GPU, default_words="no", help="yes: as --gpu off."
    )
    cuda_dev_id: str = option(
        "--cuda-dev-id", group=Group.GPU, metavar="INT[,INT...]|all", default="0",
        help="Numbers of the GPUs; batches are dealt to several as they become free.",
    )  # fmt: skip
    cuda_max_lf: float = option(
        "--cuda-max-lf", kind=Kind.NUMBER, group=Group.GPU, default=3.0,
        help="Reads shorter than this times the batch's mean length may go to the GPU.",
    )  # fmt: skip
    cuda_avg_epk: float = option(
        "--cuda-avg-epk", kind=Kind.NUMBER, group=Group.GPU, default=2.0,
        help="Events per base that GPU memory is laid out for.",
    )  # fmt: skip
    cuda_max_epk: float = option(
        "--cuda-max-epk", kind=Kind.NUMBER, group=Group.GPU, default=5.0,
        help="Reads with fewer events per base may go to the GPU.",
    )  # fmt: skip
    cuda_mem_frac: float | None = option(
        "--cuda-mem-frac", kind=Kind.NUMBER, group=Group.GPU, default_words="0.9; Jetson 0.7",
        help="Share of the free GPU memory to use.",
    )  # fmt: skip
    cuda_block_size: int | None = option(
        "--cuda-block-size", kind=Kind.INTEGER, group=Group.DEVELOPER, default_words="none",
        help="Accepted without effect: the kernels choose their own.",
    )  # fmt: skip
    auto_tune: bool = option(
        "--auto-tune", kind=Kind.YES_NO, group=Group.GPU, default=False, ours=True,
        help="Follow the advice on batch sizes and on the GPU's share while running.",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]
        if self.disable_cuda and self.gpu not in (None, "off"):
            raise UsageError(f"--gpu {self.gpu} and --disable-cuda=yes contradict each other; give one of them")
        device_numbers(self.cuda_dev_id)

    @property
    def gpu_use(self) -> str:
        """One of `GPU_USES`."""
        return "off" if self.disable_cuda else self.gpu or "auto"


def device_numbers(text: str | int) -> list[int] | None:
    """The numbers that ``--cuda-dev-id`` names; None for all devices.

    Raises
    ------
    UsageError
        They are not numbers, or one is named twice.
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


_NO_DUMP = "f5c's dump of signals is for its own debugging; to keep signals, convert them to BLOW5 with slow5tools"


@part_of_options
class DeveloperOptions:
    """Tables of the stages' results, mixed into the output."""

    print_events: bool = option(
        "--print-events", kind=Kind.YES_NO, group=Group.DEVELOPER, default=False,
        help="Print the events of every read before the batch's results.",
    )  # fmt: skip
    print_banded_aln: bool = option(
        "--print-banded-aln", kind=Kind.YES_NO, group=Group.DEVELOPER, default=False,
        help="Print the aligned pairs of k-mers and events.",
    )  # fmt: skip
    print_scaling: bool = option(
        "--print-scaling", kind=Kind.YES_NO, group=Group.DEVELOPER, default=False,
        help="Print shift, scale and var of every read.",
    )  # fmt: skip
    debug_break: int = option(
        "--debug-break", kind=Kind.INTEGER, group=Group.DEVELOPER, default=-1,
        help="Stop after the batch of this number, counted from 0.",
    )  # fmt: skip
    profile_cpu: bool = option(
        "--profile-cpu", kind=Kind.YES_NO, group=Group.DEVELOPER, default=False,
        help="Accepted without effect: the times of the stages are always printed.",
    )  # fmt: skip
    progress: bool = flag(
        "--progress", group=Group.DEVELOPER, help="Accepted without effect: progress is shown on every terminal."
    )
    print_raw: bool = refused(
        "--print-raw", kind=Kind.YES_NO,
        reason="samples are not printed; take them out of the signal file, e.g. with slow5tools view or pod5 inspect",
    )  # fmt: skip
    write_dump: bool = refused("--write-dump", kind=Kind.YES_NO, reason=_NO_DUMP)
    read_dump: bool = refused("--read-dump", kind=Kind.YES_NO, reason=_NO_DUMP)


@options_class  # plots are made with these alone
class AlignmentOptions(
    DeveloperOptions, CudaOptions, LimitOptions, ModelOptions, RunOptions, StrictOptions, Options
):
    """How reads are batched and their events aligned to their bases."""

    ultra_thresh: int = 100_000  # for the advice on a GPU's share

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.profile is not None:
            raise UsageError(
                "profile: give its values instead, CallOptions(**load_profile(name).values(), ...) with "
                "f5py.pipeline.profiles.load_profile"
            )

    @property
    def is_rna(self) -> bool:
        """Whether ``--rna`` is given, to a command that has it."""
        return bool(getattr(self, "rna", False))


@part_of_options
class MappedReadsOptions(SignalOptions, InputOptions, AlignmentOptions):
    """Options of a command that takes its reads from an alignment file."""

    window: str | None = option(
        "-w", "--window", group=Group.SELECTION, metavar="REGION", default_words="everything",
        help="Only contig, contig:start-end (from 1, both included) or the windows in a .bed file; needs an indexed "
        "BAM or CRAM.",
    )  # fmt: skip
    min_mapq: int = min_mapq()
    secondary: bool = option(
        "--secondary", kind=Kind.YES_NO, group=Group.SELECTION, default=False, help="Use secondary alignments too."
    )
    supplementary: bool = option(
        "--supplementary", kind=Kind.YES_NO, group=Group.SELECTION, default=True,
        help="Use supplementary alignments too.",
    )  # fmt: skip
    skip_unreadable: bool = option(
        "--skip-unreadable", kind=Kind.YES_NO, group=Group.SELECTION, default=True,
        help="Count reads without a usable signal as bad reads and go on; no: stop at the first one.",
    )  # fmt: skip
    hard_clips: bool = option(
        "--hard-clips", kind=Kind.YES_NO, group=Group.SELECTION, default=True, ours=True,
        help="Count hard-clipped bases in read positions; f5c does not, and misplaces such records (no: as f5c).",
    )  # fmt: skip
    skip_ultra: str | None = option(
        "--skip-ultra", kind=Kind.FILE, group=Group.SELECTION,
        help="Leave out ultra-long reads and write their records to this BAM file.",
    )  # fmt: skip
    ultra_thresh: int = option(
        "--ultra-thresh", kind=Kind.INTEGER, group=Group.SELECTION, default=100_000,
        help="Reads with more bases are ultra-long; no effect without --skip-ultra.",
    )  # fmt: skip
    report: str | None = option(
        "--report", kind=Kind.FILE, group=Group.OUTPUT, ours=True,
        help="Write counts, distributions, times, versions and parameters: as a page to look at if the name ends in "
        ".html, else as JSON, which MultiQC takes if the name ends in _mqc.json.",
    )  # fmt: skip
    sample: str | None = option(
        "--sample", group=Group.OUTPUT, ours=True, metavar="NAME",
        default_words="SM of the alignments' read groups, else the name of their file",
        help="What the report, and with it MultiQC, calls the sample.",
    )  # fmt: skip
