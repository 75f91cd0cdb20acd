"""The options of commands on signals, whole or in parts, and of commands on a plan."""

from collections.abc import Iterator

from f5py.options.declaration import Group, Kind, Options, argument, flag, option, options_class, refused
from f5py.options.input_names import BESIDE_READS, BESIDE_REFERENCE, BESIDE_SLOW5
from f5py.options.output_names import ALIGNMENTS, OF_SITES, PARQUET_TO_FILE, SITES, TABLE, kind_if_unset
from f5py.options.shared import (
    CALL_THRESHOLD,
    GPU_USES,
    METHYLATION,
    MOST_PROCESSES,
    MOST_THREADS,
    AlignmentOptions,
    LimitOptions,
    MappedReadsOptions,
    MappingOptions,
    ModelOptions,
    ReadListOptions,
    RnaOptions,
    SignalOptions,
    StrictOptions,
    alignments,
    indexed_reads,
    kind_of_methylation,
    max_bases,
    min_mapq,
    output_file,
    own_motif,
    threads,
)

#: More parts than that would mostly be empty.
MOST_PARTS = 1_000_000
ENGINES = ("local", "dask", "slurm")


@options_class
class PartOptions(Options):
    """Work on a command in parts."""

    plan: str | None = option("--plan", kind=Kind.PATH, group=Group.PARTS, metavar="FOLDER", ours=True,
        brief="Run in parts, kept in this folder",
        help="Run in parts and keep the finished ones in this folder, so that the same command continues an "
        "interrupted run.")  # fmt: skip
    partitions: int | None = option("--partitions", kind=Kind.INTEGER, group=Group.PARTS, at_least=1,
        at_most=MOST_PARTS, ours=True, default_words="by the size of the alignments",
        help="Number of parts. With --plan and without --engine, only the plan is made, for f5py run-part and f5py "
        "finish.")  # fmt: skip
    resume: bool = flag("--resume", group=Group.PARTS, ours=True, brief="Save progress; go on if interrupted",
        help="The same as --plan with a folder next to the output, which is removed at the end.")  # fmt: skip
    engine: str | None = option("--engine", group=Group.PARTS, choices=ENGINES, default_words="local", ours=True,
        help="Where the parts are done: in this process, by the workers of a dask cluster, or in Slurm "
        "jobs.")  # fmt: skip
    scheduler: str | None = option("--scheduler", group=Group.PARTS, metavar="ADDRESS|FILE", ours=True,
        default_words="a cluster on this machine",
        help="Scheduler of a running dask cluster, or its scheduler file.")  # fmt: skip
    workers: int | None = option("--workers", kind=Kind.INTEGER, group=Group.PARTS, at_least=1, at_most=MOST_PROCESSES,
        ours=True, default_words="as many as there are processors for -t threads each",
        help="Number of worker processes of a dask cluster on this machine, or of Slurm jobs at the same "
        "time.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse options of runs in parts for other runs, and those of engines for other engines."""
        yield from self.not_with(self.given("resume"), "plan", advice="--resume chooses the folder itself")
        if not self.given("plan", "resume"):
            advice = "it is for a run in parts"
            yield from self.only_with("--plan or --resume", "partitions", "engine", advice=advice)
        if self.engine != "dask":
            yield from self.only_with("--engine dask", "scheduler")
        if self.engine not in ("dask", "slurm"):
            advice = "without, -t says how many threads work"
            yield from self.only_with("--engine dask or slurm", "workers", advice=advice)


@options_class
class WatchOptions(Options):
    """Watching of a folder that a sequencer or basecaller is writing into."""

    watch: str | None = option("--watch", kind=Kind.PATH, group=Group.INPUT, metavar="FOLDER",
        brief="Folder to follow: call new files",
        help="Folder to follow: alignments (BAM) that arrive in it are called, with the signals in it; without BAM, "
        "FASTQ is mapped as by f5py map. Ctrl-C ends the run and writes the results; the same command continues "
        "it.")  # fmt: skip
    watch_until_idle: float | None = option("--watch-until-idle", kind=Kind.NUMBER, group=Group.INPUT, at_least=0,
        metavar="MINUTES", ours=True, free=True, default_words="never",
        help="Write the results and end when nothing new has arrived for this long.")  # fmt: skip
    watch_interval: float = option("--watch-interval", group=Group.INPUT, default=10.0, above=0, metavar="SECONDS",
        ours=True, free=True,
        help="Interval between checks of the folder; a file that has not changed in between is complete.")  # fmt: skip
    watch_process_total: int | None = option("-c", "--watch-process-total", kind=Kind.INTEGER, group=Group.INPUT,
        at_least=1, default_words="1",
        help="Number of processes that share the files in the folder, by the last number in the file "
        "names.")  # fmt: skip
    watch_process_index: int | None = option("-i", "--watch-process-index", kind=Kind.INTEGER, group=Group.INPUT,
        at_least=0, default_words="0", help="Index of this process among them.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse other inputs beside a watched folder, and its options without one."""
        others = self.given("reads", "window", "partitions", "engine", "resume")
        advice = "all that comes into the folder is called, and the same command goes on with it"
        yield from self.not_with(others, "watch", advice=advice)
        if self.watch is None:
            yield from self.only_with("--watch", "watch_until_idle", "watch_process_total", "watch_process_index")
        total, index = self.watch_process_total or 1, self.watch_process_index or 0
        if index >= total:
            yield f"--watch-process-index {index}: must be below --watch-process-total, which is {total}"


@options_class
class CallOptions(WatchOptions, MappingOptions, PartOptions, ReadListOptions, MappedReadsOptions):
    """Options of ``f5py call-methylation``; `command_line` is that of the @PG line.

    Without `methylation` and `motif`, `METHYLATION` is called; `call_threshold` is `CALL_THRESHOLD`.
    """

    bam: str = alignments(unless=("watch", "reads"))

    window_mode: str | None = option("--window-mode", group=Group.SELECTION, choices=("start", "clip"),
        default_words="start", ours=True,
        help="Groups of sites of a window of -w: those that start in it, so that adjacent windows have each group "
        "once; or, as in f5c, those that lie entirely within it.")  # fmt: skip
    meth_model: str | None = option("--meth-model", kind=Kind.FILE, group=Group.MODEL, default_words="built in",
        is_model=True, brief="Pore model with methylated bases",
        help="Pore model over ACGMT to call methylation with; must have the same k as the other model.")  # fmt: skip
    methylation: str | None = option("-q", "--methylation", group=Group.MODEL, metavar="NAME[,NAME]",
        default_words=METHYLATION, brief="cpg, gpc, dam, dcm or several",
        help="Kind of methylation: cpg, gpc, dam or dcm, or several, such as cpg,gpc, in which case the table has a "
        "motif column.")  # fmt: skip
    motif: str | None = option("--motif", group=Group.MODEL, metavar="SITE:OFFSET", ours=True,
        see="usage/f5py-call-methylation.md#motifs",
        help="Another motif and the offset of its methylated base, such as CHG:0; needs --meth-model.")  # fmt: skip
    min_separation: int = option("--min-separation", group=Group.MODEL, default=10, at_least=1,
        help="Sites at most this many bases apart are called together, as a group.")  # fmt: skip
    per_site: bool = flag("--per-site", group=Group.MODEL, ours=True,
        see="usage/f5py-call-methylation.md#calls-of-single-sites", brief=True,
        help="Call every site of a group individually.")  # fmt: skip
    noise: str | None = option("--noise", group=Group.MODEL, choices=("independent", "correlated"),
        default_words="independent", ours=True,
        help="Noise of events around the levels of their k-mers: independent, as in f5c, or with the correlations and "
        "the tails of real reads, which makes fewer wrong calls.")  # fmt: skip
    accurate: bool = flag("--accurate", group=Group.MODEL, ours=True, brief="Fewer wrong calls (--noise correlated)",
        help="The same as --noise correlated.")  # fmt: skip
    rescale: bool | None = option("--rescale", kind=Kind.YES_NO, group=Group.MODEL,
        default_words="no; with --accurate on R10.4.1 yes", ours=True,
        help="Second fit of every read's scaling, to levels as the first calls have them, and second calls; with "
        "--noise correlated only.")  # fmt: skip
    meth_out_version: int = option("--meth-out-version", group=Group.OUTPUT, choices=(1, 2), default=2,
        help="Layout of the table: 2 has a strand column, 1 does not.")  # fmt: skip
    output_format: str | None = option("--output-format", group=Group.OUTPUT, choices=("tsv", "csv", "parquet", "none"),
        ours=True, see="formats.md#names-of-outputs", default_words="by the name of the output, else tsv",
        help="Format of the table; parquet needs -o; none: no table, only the outputs of other options. By default "
        ".csv, .parquet, .bam (as --modbam), .bed, .bedgraph and .bw (as --bedmethyl) in the name determine "
        "it.")  # fmt: skip
    modbam: str | None = option("--modbam", kind=Kind.FILE, group=Group.OUTPUT, ours=True, see="formats.md#modbam",
        writes=ALIGNMENTS, brief="Also write BAM with MM and ML tags",
        help="Also write the alignments with MM and ML tags to this BAM file; - is standard output.")  # fmt: skip
    modbam_output_name: str | None = option("--modbam-output-name", kind=Kind.FILE, group=Group.OUTPUT,
        writes=ALIGNMENTS,
        help="The same as --modbam FILE --output-format none, as in nanopolish.")  # fmt: skip
    modbam_style: str = option("--modbam-style", group=Group.OUTPUT, choices=("read", "reference"), default="read",
        aliases=("-s",), help="Tags for the bases of the read or of the reference.")  # fmt: skip
    replace_tags: bool = flag("--replace-tags", ours=True,
        help="Replace the MM and ML tags that called records already have.")  # fmt: skip
    merge_tags: bool = flag("--merge-tags", ours=True,
        help="Keep the MM and ML tags of called records for other modifications, and replace those for the "
        "modifications that are called.")  # fmt: skip
    prior: float | None = option("--prior", kind=Kind.NUMBER, group=Group.OUTPUT, above=0, at_most=0.999999,
        default_words="0.5", ours=True,
        help="Prior probability of methylation, for the probabilities in ML.")  # fmt: skip
    skip_overlaps: bool = flag("--skip-overlaps", group=Group.SELECTION, ours=True,
        help="Skip calls where an earlier alignment of the same read lies, so that a read counts once at a "
        "site.")  # fmt: skip
    bedmethyl: str | None = option("--bedmethyl", kind=Kind.FILE, group=Group.OUTPUT, ours=True,
        see="formats.md#bedmethyl", writes=SITES, brief="Also write counts of each site",
        help="Also write counts per site as bedMethyl, with a tabix index if the name ends in .gz; as bedGraph or "
        "bigWig if it ends in .bedgraph or .bw.")  # fmt: skip
    call_threshold: float | None = option("--call-threshold", kind=Kind.NUMBER, group=Group.OUTPUT,
        default_words=f"{CALL_THRESHOLD}", ours=True,
        help="Calls with a lower absolute ratio count as failed in --bedmethyl.")  # fmt: skip
    threshold_per_site: bool = flag("--threshold-per-site", ours=True,
        help="Multiply the threshold by the number of sites in the group, as nanopolish does.")  # fmt: skip
    combine_strands: bool = flag("--combine-strands", ours=True, help="Count both strands together in --bedmethyl.")
    partition_tag: str | None = option("--partition-tag", group=Group.OUTPUT, metavar="TAG", ours=True,
        pattern="[A-Za-z][A-Za-z0-9]", pattern_words="the two characters of a tag, such as HP",
        help="Write a --bedmethyl file for each value of this tag of the alignments, such as HP; at most "
        "1,000.")  # fmt: skip
    rna: bool = refused("--rna", kind=Kind.FLAG, reason="methylation is called in DNA; for RNA use f5py eventalign")
    watch_write_bam: bool = refused("--watch-write-bam", kind=Kind.FLAG,
        reason="mapped reads are kept in the folder of --plan, below mapped")  # fmt: skip
    command_line: str = "f5py call-methylation"

    def rules(self) -> Iterator[str]:
        """Refuse two words on one thing, and options of outputs that are not written."""
        named = kind_if_unset(self.output, self.output_format)
        if not self.window:
            yield from self.only_with("--window", "window_mode")
        yield from self.not_with(self.given("motif"), "methylation")
        if self.meth_model is None:
            yield from self.only_with("--meth-model", "motif")
        if self.noise == "independent":
            yield from self.not_with(self.given("noise"), "accurate")
        if not self.is_correlated:
            yield from self.only_with("--noise correlated or --accurate", "rescale")
        if self.output_format == "parquet" and not self.given("output"):
            yield from self.only_with("--output", "output_format", advice=PARQUET_TO_FILE)
        others = self.given("modbam", "output_format", "output")
        advice = "it writes modBAM and no table, as in nanopolish; for a table too, give --modbam and -o"
        yield from self.not_with(others, "modbam_output_name", advice=advice)
        if not self.given("modbam", "modbam_output_name") and named != "bam":
            tagged = "--modbam or --modbam-output-name"
            yield from self.only_with(tagged, "modbam_style", "replace_tags", "merge_tags", "prior")
        yield from self.not_with(self.given("replace_tags", "modbam_style"), "merge_tags")
        if self.bedmethyl is None and named not in OF_SITES:
            of_sites = ("call_threshold", "threshold_per_site", "combine_strands", "partition_tag")
            yield from self.only_with("--bedmethyl", *of_sites)

    @property
    def is_correlated(self) -> bool:
        """Whether the noise of successive events is correlated."""
        return self.accurate or self.noise == "correlated"

    @property
    def threshold(self) -> float:
        """Calls with a smaller absolute ratio count for neither state."""
        return CALL_THRESHOLD if self.call_threshold is None else self.call_threshold


_ONE_KIND = "choose one kind of output"


@options_class
class EventalignOptions(RnaOptions, MappingOptions, PartOptions, ReadListOptions, MappedReadsOptions):
    """Options of ``f5py eventalign``; `command_line` is that of the @PG line."""

    bam: str = alignments(unless=("reads",))

    min_mapq: int = min_mapq("-q")
    max_bases: int = max_bases(1_000_000)  # a base makes two rows or more, which take most of the memory
    paf: bool = flag("-c", "--paf", see="formats.md#paf-and-sam", brief="Write PAF",
        help="Write PAF: a line per read, with the samples of each k-mer.")  # fmt: skip
    sam: bool = flag("-a", "--sam", see="formats.md#paf-and-sam", brief="Write SAM or BAM",
        help="Write SAM, or BAM if the name of the output ends in .bam.")  # fmt: skip
    sam_out_version: int | None = option("--sam-out-version", group=Group.OUTPUT, choices=(1, 2), default_words="2",
        help="SAM layout: 2 is the record with signal tags, 1 is nanopolish's alignment of events.")  # fmt: skip
    m6anet: bool = flag("--m6anet", help="Write f5c's table for m6anet: a row per position.")
    m6anet_json: str | None = option("--m6anet-json", kind=Kind.PATH, group=Group.OUTPUT, metavar="FOLDER", ours=True,
        see="usage/f5py-eventalign.md#m6anet-and-xpore", brief="Write the input of m6anet",
        help="Write data.json and data.info, as m6anet dataprep would make them from the table, into this folder, and "
        "no table.")  # fmt: skip
    m6anet_min_reads: int = option("--m6anet-min-reads", group=Group.OUTPUT, default=20, at_least=1, ours=True,
        help="Minimum number of reads of a site in --m6anet-json (dataprep's --min_segment_count).")  # fmt: skip
    m6anet_max_reads: int = option("--m6anet-max-reads", group=Group.OUTPUT, default=1000, at_least=1, ours=True,
        help="Maximum number of reads of a transcript in --m6anet-json (dataprep's --readcount_max).")  # fmt: skip
    kmer_view: int | None = option("--kmer-view", kind=Kind.INTEGER, group=Group.OUTPUT, at_least=1,
        default_words="the k of the pore model", ours=True, see="usage/f5py-eventalign.md#m6anet-and-xpore",
        brief="Show this many bases of each k-mer",
        help="Only show this many bases in the middle of each k-mer, at their position: 5 for m6anet and "
        "xpore.")  # fmt: skip
    output_format: str | None = option("--output-format", group=Group.OUTPUT, choices=("tsv", "csv", "parquet"),
        ours=True, see="formats.md#parquet", default_words="by the name of the output, else tsv",
        help="Format of the table; parquet takes a tenth of the space and needs -o. By default .csv, .parquet, .sam, "
        ".bam and .paf in the name determine the format.")  # fmt: skip
    summary: str | None = option("--summary", kind=Kind.FILE, group=Group.OUTPUT, see="formats.md#summary",
        writes=TABLE, brief="Also write a line per read",
        help="Also write a summary with a line per read.")  # fmt: skip
    print_read_names: bool = flag("--print-read-names", aliases=("-n",), brief="Print read names, not numbers",
        help="Print read names instead of read indices.")  # fmt: skip
    cut_names: bool = flag("--cut-names", ours=True,
        help="Cut names of contigs at the first |, which leaves the transcript of GENCODE's names.")  # fmt: skip
    scale_events: bool = flag("--scale-events", brief="Scale events to the pore model",
        help="Scale events to the pore model, not the model to the events.")  # fmt: skip
    samples: bool = flag("--samples", brief="Append the samples of each event",
        help="Append the scaled samples of each event.")  # fmt: skip
    signal_index: bool = flag("--signal-index", brief="Append the samples' first and last place",
        help="Append each event's first sample and the one after its last.")  # fmt: skip
    collapse_events: bool = flag("--collapse-events", help="Print consecutive events of one position as one.")
    mark_deletions: bool = flag("--mark-deletions", ours=True, see="formats.md#events",
        help="Also print a row for each k-mer without an event: model_kmer is all - in a deletion, all . "
        "elsewhere.")  # fmt: skip
    mark_kmers: bool = flag("--mark-kmers", ours=True, see="formats.md#events",
        help="Append how the read's bases differ from the reference_kmer: = not at all, X, I or D as in a "
        "CIGAR.")  # fmt: skip
    models_fofn: str | None = refused("--models-fofn", reason="a run has one pore model; give it with --kmer-model")
    command_line: str = "f5py eventalign"

    def rules(self) -> Iterator[str]:
        """Refuse two kinds of output, and options of a kind that is not written."""
        tables = self.given("output_format") if self.output_format in ("parquet", "csv") else []
        parquet = tables if self.output_format == "parquet" else []
        yield from self.not_with(self.given("sam", "m6anet", "m6anet_json") + tables, "paf", advice=_ONE_KIND)
        yield from self.not_with(self.given("m6anet", "m6anet_json") + tables, "sam", advice=_ONE_KIND)
        yield from self.not_with(self.given("m6anet_json") + parquet, "m6anet", advice=_ONE_KIND)
        yield from self.not_with(self.given("output") + tables, "m6anet_json", advice="there is no table then")
        if not self.sam and kind_if_unset(self.output, self.output_format) not in ("sam", "bam"):
            yield from self.only_with("--sam", "sam_out_version")
        if parquet and not self.given("output"):
            yield from self.only_with("--output", "output_format", advice=PARQUET_TO_FILE)
        others = self.given("paf", "sam", "m6anet_json")
        yield from self.not_with(others, "kmer_view", advice="it says how the table shows k-mers")
        advice = "names in SAM and BAM are those of the header"
        yield from self.not_with(self.given("sam"), "cut_names", advice=advice)
        others = self.given("paf", "sam", "m6anet", "m6anet_json")
        advice = "it adds rows to the table; strings of PAF and SAM have D for the same k-mers"
        yield from self.not_with(others, "mark_deletions", advice=advice)
        advice = "it adds a column to the table; PAF has no bases of reads, and SAM has them with the CIGAR"
        yield from self.not_with(others, "mark_kmers", advice=advice)


@options_class
class ResquiggleOptions(RnaOptions, ReadListOptions, AlignmentOptions):
    """Options of ``f5py resquiggle``."""

    reads: str = argument("READS", help="FASTA or FASTQ file, plain or compressed.")
    signals: tuple[str, ...] = argument("SIGNALS [...]", repeated=True,
        help="SLOW5, BLOW5, POD5 or fast5 files, and folders of such files.")  # fmt: skip
    paf: bool = flag("-c", "--paf", see="formats.md#paf-and-sam",
        help="Write PAF: a line per read, with the samples of each k-mer.")  # fmt: skip
    resume: bool = flag("--resume", group=Group.PARTS, ours=True,
        help="Save progress in a folder next to the output, which is removed at the end, so that the same command "
        "continues an interrupted run.")  # fmt: skip


@options_class
class CheckOptions(SignalOptions):
    """Options of ``f5py fast5-check``."""

    reads: str = indexed_reads()
    output: str = output_file("Where the table goes; compressed (bgzip) if the name ends in .gz.", writes=TABLE)
    threads: int = threads("Number of threads that read a SLOW5 file.")
    iop: int | None = option("--iop", kind=Kind.INTEGER, group=Group.SPEED, at_least=1, default_words="chosen from -t",
        help="Processes that read fast5 or POD5 files.")  # fmt: skip


_NO_READS_OUT = "training writes a model and a report of it, and nothing of single reads"


@options_class
class TrainOptions(RnaOptions, MappedReadsOptions):
    """Options of ``f5py train``."""

    bam: str | None = option(  # type: ignore[assignment]  # the others need it
        "-b", "--bam", kind=Kind.FILE, group=Group.INPUT,
        brief="Alignments of reads with a --truth",
        help="Alignments of reads for which --truth says which sites are methylated.", url="alignments",
    )  # fmt: skip
    truth: str | None = option("--truth", kind=Kind.FILE, group=Group.INPUT, ours=True,
        brief="bedMethyl of the sample in -b",
        help="bedMethyl for the sample in -b: sites with at least 95 % count as methylated, those with at most 5 % as "
        "unmethylated; k-mers with other sites are ignored.")  # fmt: skip
    methylated: tuple[str, ...] = option("--methylated", kind=Kind.FILE, group=Group.INPUT, repeated=True, default=(),
        ours=True, brief="Control reads, all sites methylated",
        help="Alignments of control reads with all sites methylated. Repeatable.")  # fmt: skip
    unmethylated: tuple[str, ...] = option("--unmethylated", kind=Kind.FILE, group=Group.INPUT, repeated=True,
        default=(), ours=True, brief="Control reads without methylation",
        help="Alignments of reads without methylation, such as those of amplified DNA. Repeatable.")  # fmt: skip
    unlabeled: tuple[str, ...] = option("--unlabeled", kind=Kind.FILE, group=Group.INPUT, repeated=True, default=(),
        ours=True, see="usage/f5py-train.md#reads-of-unknown-methylation",
        brief="R10.4.1 reads to fit shifts to, no labels",
        help="Alignments of any R10.4.1 reads: fit the shifts of CpG k-mers to them, without labels. "
        "Repeatable.")  # fmt: skip
    groups: int = option("--groups", group=Group.LIMITS, default=3000, at_least=200, at_most=1_000_000, ours=True,
        help="Number of CpG sites that --unlabeled uses, about; whole reads are chosen by their names.")  # fmt: skip
    full: bool = flag("--full", ours=True,
        help="Write the levels of all k-mers, as f5c reads them, instead of a short file of shifts.")  # fmt: skip
    start: str | None = option("--start", aliases=("--input-model-filename",), metavar="FILE|NAME", group=Group.MODEL,
        ours=True, is_model=True, default_words="the built-in model",
        help="Pore model to start from: a file, with or without methylated k-mers; a table of k-mers and levels in any "
        "unit, of which only the order is used; or the name of a built-in model.")  # fmt: skip
    methylation: str | None = kind_of_methylation("Kind of methylation of the controls.", brief=True)
    motif: str | None = own_motif(ours=True)
    train_kmers: str = option("--train-kmers", group=Group.MODEL, choices=("all", "methylated", "unmethylated"),
        default="all", help="K-mers that get new levels.")  # fmt: skip
    rounds: int = option("--rounds", group=Group.LIMITS, default=5, at_least=1, at_most=100, ours=True,
        help="Maximum number of rounds; training stops earlier if the levels change by less than 0.05 pA.")  # fmt: skip
    prior_events: float = option("--prior-events", group=Group.LIMITS, default=20.0, at_least=0, ours=True,
        help="Weight, in events, of the level predicted from similar k-mers.")  # fmt: skip
    directory: str | None = refused("-d", reason="there is one model; name its file with -o")
    ultra_thresh: int = 100_000  # no option, as there is no --skip-ultra
    skip_ultra: str | None = refused("--skip-ultra", reason=_NO_READS_OUT)
    failed_reads: str | None = refused("--failed-reads", reason=_NO_READS_OUT)
    sample: str | None = refused("--sample", reason=_NO_READS_OUT)
    print_events: bool = refused("--print-events", kind=Kind.YES_NO, reason=_NO_READS_OUT)
    print_banded_aln: bool = refused("--print-banded-aln", kind=Kind.YES_NO, reason=_NO_READS_OUT)
    print_scaling: bool = refused("--print-scaling", kind=Kind.YES_NO, reason=_NO_READS_OUT)
    held_out: float = option("--held-out", group=Group.LIMITS, default=0.1, at_least=0, at_most=0.9, ours=True,
        help="Share of the reads that is held out to test the model; where reads pile up, of the stretches of the "
        "reference.")  # fmt: skip
    force: bool = flag("--force", ours=True,
        help="Write the model even if it is worse than the start model, calls more than a fifth of the held-out sites "
        "wrong, no methylated k-mer was seen often, or --unlabeled finds a reason against it.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse options of one way to train beside those of another."""
        if self.bam is None:
            advice = "controls are given with --methylated and --unmethylated"
            yield from self.only_with("--bam", "truth", advice=advice)
        of_levels = ("train_kmers", "rounds", "prior_events", "held_out", "kmer_model")
        advice = "it fits the shifts of R10.4.1's CpG k-mers only"
        others = self.given("methylated", "unmethylated", "truth", *of_levels)
        yield from self.not_with(others, "unlabeled", advice=advice)
        if not self.unlabeled:
            yield from self.only_with("--unlabeled", "groups", "full")
        yield from self.not_with(self.given("motif"), "methylation")
        if self.train_kmers == "methylated" and not self.given("methylated", "bam"):
            advice = "there are no methylated reads"
            yield from self.only_with("--methylated or --bam", "train_kmers", advice=advice)


@options_class
class CompareOptions(RnaOptions, LimitOptions, ModelOptions, StrictOptions):
    """Options of ``f5py compare``."""

    a: str = argument("A", is_table=True, help="Events or alignments of the first sample.")
    b: str = argument("B", is_table=True, help="Events or alignments of the second sample.")
    output: str = output_file(
        help="Output table: Parquet if the name ends in .parquet, else text, compressed (bgzip) if it ends in "
        ".gz.")  # fmt: skip
    report: tuple[str, ...] = option("--report", "--plot", kind=Kind.FILE, group=Group.OUTPUT, repeated=True,
        default=(), see="usage/f5py-compare.md#the-picture",
        help="Draw the levels of both samples against each other with the most different places marked: a picture "
        "(.png, .svg, .pdf), a page (.html) or the figures (.json). Repeatable.")  # fmt: skip
    by: str = option("--by", group=Group.OUTPUT, choices=("position", "kmer"), default="position",
        help="Compare every position and strand of the reference, or every k-mer.")  # fmt: skip
    min_coverage: int = option("--min-coverage", group=Group.SELECTION, default=10, at_least=1,
        help="Minimum number of reads in each sample.")  # fmt: skip
    genome: str | None = option("-g", "--genome", kind=Kind.FILE, group=Group.INPUT, beside=BESIDE_REFERENCE,
        help="Reference of the alignments in FASTA format.")  # fmt: skip
    reads: tuple[str, ...] = option("-r", "--reads", kind=Kind.FILE, group=Group.INPUT, repeated=True, default=(),
        default_words="the bases in the alignments", beside=BESIDE_READS,
        see="usage/f5py-call-methylation.md#reads-without-an-index",
        help="Basecalled reads; given twice for A and for B.")  # fmt: skip
    slow5: tuple[str, ...] = option("--slow5", kind=Kind.FILE, metavar="PATH", group=Group.INPUT, repeated=True,
        default=(), beside=BESIDE_SLOW5, brief="Signals: SLOW5 or BLOW5, file or folder",
        help="Signals in a SLOW5 or BLOW5 file or a folder of such; given twice for A and for B.")  # fmt: skip
    pod5: tuple[str, ...] = option("--pod5", kind=Kind.PATH, group=Group.INPUT, repeated=True, default=(),
        brief="Signals: POD5, file or folder",
        help="Signals in a POD5 file or a folder of POD5 files; given twice for A and for B.")  # fmt: skip
    fast5: tuple[str, ...] = option("--fast5", kind=Kind.PATH, group=Group.INPUT, repeated=True, default=(),
        brief="Signals: fast5, file or folder",
        help="Signals in a fast5 file or a folder of fast5 files; given twice for A and for B.")  # fmt: skip
    window: tuple[str, ...] = option("-w", "--window", group=Group.SELECTION, metavar="REGION", repeated=True,
        default=(), default_words="everything",
        help="Only this region, contig or contig:start-end, or the windows in a .bed file; needs indexed alignments. "
        "Repeatable.")  # fmt: skip
    min_mapq: int = min_mapq()
    threads: int = threads("Worker threads.")


@options_class
class RunPartOptions(Options):
    """Options of ``f5py run-part``."""

    plan: str = argument("FOLDER", help="The folder of the plan.")
    parts: tuple[str, ...] = argument("PART", default=(), repeated=True,
        help="Numbers of parts, from 0, or ranges such as 8-15; by default all that are not done.")  # fmt: skip
    threads: int | None = option("-t", "--threads", kind=Kind.INTEGER, group=Group.SPEED, at_least=1,
        at_most=MOST_THREADS, default_words="as planned", help="Worker threads.")  # fmt: skip
    gpu: str | None = option("--gpu", group=Group.GPU, choices=GPU_USES, default_words="as planned", ours=True,
        help="Use of GPUs.")  # fmt: skip
    disable_cuda: bool | None = option("--disable-cuda", kind=Kind.YES_NO, group=Group.GPU, default_words="as planned",
        help="yes: as --gpu off.")  # fmt: skip
    cuda_dev_id: str | None = option("--cuda-dev-id", group=Group.GPU, metavar="INT[,INT...]|all",
        default_words="as planned", help="Numbers of the GPUs.")  # fmt: skip


@options_class
class FinishOptions(Options):
    """Options of ``f5py finish``."""

    plan: str = argument("FOLDER", help="The folder of the plan.")
    threads: int | None = option("-t", "--threads", kind=Kind.INTEGER, group=Group.SPEED, at_least=1,
        at_most=MOST_THREADS, default_words="as planned", help="Compression threads.")  # fmt: skip
    remove: bool = flag("--remove", group=Group.OUTPUT, help="Remove the folder of the plan at the end.")


@options_class
class PlanOptions(Options):
    """Options of ``f5py plan``."""

    plan: str = argument("FOLDER", help="The folder of the plan.")
    estimate: bool = flag("--estimate", group=Group.OUTPUT,
        help="Estimate how long the remaining parts will take and how much memory and space they need, from the "
        "finished parts or from --speed.")  # fmt: skip
    speed: float | None = option("--speed", kind=Kind.NUMBER, group=Group.OUTPUT, above=0, metavar="MBASES",
        default_words="that of the parts that are done", help="Speed of a job in Mbases per second.")  # fmt: skip
    jobs: int = option("-j", "--jobs", group=Group.OUTPUT, default=1, at_least=1,
        help="Number of parts done at the same time.")  # fmt: skip
    price: float | None = option("--price", kind=Kind.NUMBER, group=Group.OUTPUT, above=0,
        help="Price of a job's machine per hour.")  # fmt: skip
    print_slurm: bool = flag("--print-slurm", group=Group.OUTPUT,
        help="Print a Slurm script: an array of jobs for the parts that are not done, and a job that "
        "finishes.")  # fmt: skip
    output: str = output_file("Output file.")

    def rules(self) -> Iterator[str]:
        """Refuse figures for an estimate without one."""
        if not self.estimate:
            yield from self.only_with("--estimate", "speed", "price")


@options_class
class JoinOptions(Options):
    """Options of ``f5py merge``; `command_line` is that of the @PG line."""

    command_line: str = "f5py merge"

    inputs: tuple[str, ...] = argument("FILE", default=(), repeated=True,
        help="Outputs of call-methylation or eventalign of the same kind: tables, Parquet, modBAM or "
        "bedMethyl.")  # fmt: skip
    output: str = output_file()
    threads: int = threads("Compression threads.")
