"""The options of ``f5py map``."""

import re
from collections.abc import Iterator
from typing import Any

from f5py.errors import UsageError
from f5py.options.declaration import Group, Kind, argument, flag, option, options_class, refused
from f5py.options.output_names import PAF, REPORT, check_name, kind_of_alignments
from f5py.options.shared import GpuOptions, output_file, threads

_SEEDS = "of the preset"
#: One or two whole numbers.
_NUMBERS, _LIKE = "[0-9]+(,[0-9]+)?", "like 400 or 400,200"
#: Presets; the numbers behind them are in `f5py.mapping.settings`.
_SPLICED_PRESETS = ("splice", "splice:hq", "cdna")
MAP_PRESETS = (
    "map-ont", "map-pb", "map-hifi", "lr:hq", "rna", *_SPLICED_PRESETS, "ava-ont", "darwin", "darwin-paper",
)  # fmt: skip
_DARWIN_PRESETS = ("darwin", "darwin-paper")
#: Those that maximal exact matches can be the seeds of.
MEM_PRESETS = ("map-ont", "map-hifi", "lr:hq", "rna")
#: Ways out where an option of minimap2 is not possible here.
_MINIMAP2 = "type: minimap2 -ax PRESET"
_OVERLAPS = "for overlaps of reads give -x ava-ont or -x darwin"
#: Options of chains and minimizers, which have no meaning for tiles.
_NOT_OF_TILES = (
    "write_index", "w", "hpc", "frequent", "frequent_bounds", "rescue_distance", "frequent_in_read", "max_gap",
    "bandwidths", "min_count", "min_chain_score", "max_chain_skip", "max_chain_iter", "zdrop", "min_score",
    "splice", "transcript_strand", "junctions", "max_intron", "non_canonical", "junction_bonus", "splice_flank",
    "end_seed_penalty", "no_end_filter", "for_only", "rev_only",
)  # fmt: skip
_MIN_MEM = 17
#: Bases of a batch, by default, for each thread, and at least and at most.
_BASES_OF_THREAD, _FEWEST_BASES, _MOST_BASES = 1_000_000, 4_000_000, 8_000_000
#: At most where reads are aligned in tiles, of which a batch needs many.
_MOST_BASES_OF_TILES = 20_000_000
_INT8_MOST = 127
#: Chains have a table of all differences up to this.
_MOST_INTRON = 10_000_000
#: More than all minimizers of a read, which none is: 0 switches this filter off.
_ALL = 2.0
#: A field of a header line. Text need not be ASCII, but bytes that are no text come as surrogates.
_HEADER_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9]:[^\x00-\x1f\x7f\ud800-\udfff]+")
#: Counts, lengths and scores are kept in 32 bits, as minimap2 keeps them.
_MOST_NUMBER = 2**31 - 1


@options_class
class MapOptions(GpuOptions):
    """Options of ``f5py map``."""

    reference: str = argument("REF", help="The reference: FASTA, plain or compressed, or an index that -d has written.")
    reads: tuple[str, ...] = argument("READS [...]", default=(), repeated=True,
        help="Reads: FASTA or FASTQ, plain or compressed (- for standard input), or alignment files such as a "
        "basecaller's unaligned BAM.")  # fmt: skip
    output: str = output_file(
        help="Output file: sorted, and indexed, BAM; CRAM, SAM or PAF if the name ends so, compressed text if it ends "
        "in .sam.gz or .paf.gz. It appears only when it is complete.")  # fmt: skip
    paf: bool = flag("--paf", ours=True, see="formats.md#paf-and-sam", brief=True,
        help="Write PAF, in the order of the reads.")  # fmt: skip
    write_index: str | None = option("-d", "--write-index", kind=Kind.PATH, group=Group.OUTPUT, written=True,
        brief="Write the index, to be given as REF later",
        help="Write the index of the reference, to be given as REF later.")  # fmt: skip
    no_md: bool = flag("--no-MD", ours=True, help="Leave out the tag MD.")
    md: bool = flag("--MD", help="Write the tag MD also into PAF; alignments have it anyway.")
    cs: str | None = option("--cs", group=Group.OUTPUT, choices=("short", "long", "none"), value_may_lack="short",
        brief="Write the tag cs, with differing bases",
        help="Write the tag cs, with the bases that differ; without a value, the short form.")  # fmt: skip
    eqx: bool = flag("--eqx", help="Write = and X instead of M in CIGAR strings.")
    soft_clips: bool = flag("-Y", "--soft-clips", brief="Whole reads in all records",
        help="Give supplementary and secondary records the whole read. Always with tags of bases.")  # fmt: skip
    comments: bool = flag("-y", "--comments", brief="Turn comments that are SAM tags into tags",
        help="Turn comments of FASTQ that look like SAM tags into tags.")  # fmt: skip
    read_group: str | None = option("-R", "--read-group", group=Group.OUTPUT, metavar="LINE",
        brief="Read group, like @RG\\tID:a\\tSM:b",
        help=r"Read group of all reads, such as @RG\tID:a\tSM:b.")  # fmt: skip
    secondary: bool = option("--secondary", group=Group.OUTPUT, default=True, brief=True,
        help="Write secondary alignments.")  # fmt: skip
    as_sam: bool = flag("-a", help="Write SAM to standard output; a file's name says its format.")
    with_cigar: bool = flag("-c", help="Write PAF to standard output, without -a; a file's name says its format.")
    hits_only: bool = flag("--sam-hit-only", help="Leave out records of reads that are not mapped.")
    paf_no_hit: bool = flag("--paf-no-hit", help="Write lines of PAF for reads that are not mapped.")
    no_qualities: bool = flag("-Q", help="Leave out qualities.")
    index_bases: int | None = option("-I", kind=Kind.BASES, group=Group.LIMITS, at_least=1,
        help="Accepted as minimap2 has it; the index has one part.")  # fmt: skip
    split_prefix: str | None = option("--split-prefix", group=Group.LIMITS, metavar="PREFIX",
        help="Accepted as minimap2 has it; the index has one part.")  # fmt: skip
    long_cigars: bool = flag("-L", group=Group.LIMITS, help="Accepted as minimap2 has it; BAM has long CIGAR strings.")
    two_threads: bool = flag("-2", group=Group.LIMITS,
        help="Accepted as minimap2 has it; reading takes threads anyway.")  # fmt: skip
    kalloc: int | None = option("--cap-kalloc", kind=Kind.BASES, group=Group.LIMITS, at_least=0,
        help="Accepted as minimap2 has it; changes nothing.")  # fmt: skip
    bucket_bits: int | None = option("--bucket-bits", kind=Kind.INTEGER, group=Group.LIMITS,
        help="Accepted as minimap2 has it; changes nothing.")  # fmt: skip
    all_chains: bool = refused("-P", kind=Kind.FLAG, reason=f"raise -N, lower -p, or {_MINIMAP2} -P")
    no_diagonal: bool = refused("-D", kind=Kind.FLAG, reason=f"{_OVERLAPS}, or {_MINIMAP2} -D")
    all_overlaps: bool = refused("-X", kind=Kind.FLAG, reason=f"{_OVERLAPS}, or {_MINIMAP2} -X")
    dual: bool = refused("--dual", kind=Kind.YES_NO, reason=f"{_OVERLAPS}, or {_MINIMAP2} --dual")
    alt: str | None = refused("--alt", reason=f"give a reference without ALT contigs, or {_MINIMAP2} --alt")
    hash_seed: int | None = refused("--seed", kind=Kind.INTEGER, reason=f"equal places are chosen by 11; {_MINIMAP2}")
    no_hash_name: bool = refused("--no-hash-name", kind=Kind.FLAG, reason=f"names decide ties; {_MINIMAP2}")
    no_long_join: bool = refused("--no-long-join", kind=Kind.FLAG, reason=f"give -r 500,500, or {_MINIMAP2}")
    rmq: bool = refused("--rmq", kind=Kind.YES_NO, reason=f"chains are made by -r and -g; {_MINIMAP2} --rmq=yes")
    end_bonus: int | None = refused("--end-bonus", kind=Kind.INTEGER, reason=f"{_MINIMAP2} --end-bonus")
    report: tuple[str, ...] = option("--report", kind=Kind.FILE, group=Group.OUTPUT, ours=True, writes=REPORT,
        repeated=True, default=(), see="formats.md#run-report", brief="Write a report: .html, .json or _mqc.json",
        help="Write a report with counts, distributions, times, versions and parameters: HTML if the name ends in "
        ".html, else JSON, which MultiQC reads if the name ends in _mqc.json. Repeatable.")  # fmt: skip
    sample: str | None = option("--sample", group=Group.OUTPUT, ours=True, metavar="NAME",
        default_words="SM of -R, else the names of the output's folder and the output",
        help="Name of the sample in the report, and so in MultiQC.")  # fmt: skip
    preset: str = option("-x", "--preset", group=Group.MAPPING, default="map-ont",
        brief="Kind of reads: map-hifi, lr:hq, rna, ...",
        help=f"Settings for a kind of reads: {', '.join(MAP_PRESETS)}. Other options change them.")  # fmt: skip
    k: int | None = option("-k", kind=Kind.INTEGER, group=Group.MAPPING, at_least=4, at_most=28, default_words=_SEEDS,
        brief=True, help="Length of minimizers.")  # fmt: skip
    w: int | None = option("-w", kind=Kind.INTEGER, group=Group.MAPPING, at_least=1, at_most=255, default_words=_SEEDS,
        brief="Window of a minimizer", help="Window: a minimizer is the smallest of so many neighbors.")  # fmt: skip
    hpc: bool = flag("-H", group=Group.MAPPING, help="Compress homopolymers in minimizers.")
    seeds: str = option("--seeds", group=Group.MAPPING, choices=("minimizer", "mem"), default="minimizer",
        help="Seeds of the comparison: minimizers, as in minimap2, or maximal exact matches "
        "(MEM).")  # fmt: skip
    splice: bool = flag("--splice", group=Group.MAPPING,
        help="Align over introns with the scores of the preset, unlike -x splice.")  # fmt: skip
    transcript_strand: str | None = option("-u", group=Group.MAPPING, choices=("f", "b", "r", "n"),
        default_words=_SEEDS, brief="Introns: f for direct RNA",
        help="Align over introns, and look for GT..AG on the strand of the read (f: direct RNA), on the other one (r), "
        "on both (b) or on none (n: introns only with -x splice or --splice).")  # fmt: skip
    junctions: str | None = option("--junc-bed", kind=Kind.FILE, group=Group.MAPPING, brief="Annotated introns, BED",
        help="Prefer introns of this BED file, plain or compressed: genes with 12 columns, or introns with "
        "6.")  # fmt: skip
    for_only: bool = flag("--for-only", group=Group.MAPPING,
        help="Map reads as they are only, not their reverse complements.")  # fmt: skip
    rev_only: bool = flag("--rev-only", group=Group.MAPPING, help="Map the reverse complements of reads only.")
    min_mem: int | None = option("--min-mem", kind=Kind.INTEGER, group=Group.LIMITS, at_least=15, at_most=255,
        default_words="17", help="Shortest exact match that is a seed, with --seeds mem.")  # fmt: skip
    frequent: float | None = option("-f", kind=Kind.NUMBER, group=Group.LIMITS, at_least=0, at_most=_MOST_NUMBER,
        default_words="0.0002",
        help="Pass over this fraction of the most frequent minimizers, or those with more places than "
        "this.")  # fmt: skip
    frequent_bounds: str | None = option("-U", pattern=_NUMBERS, pattern_words=_LIKE, group=Group.LIMITS,
        metavar="INT,INT", default_words="10,1000000", help="Bounds of the threshold by -f.")  # fmt: skip
    rescue_distance: int | None = option("-e", kind=Kind.INTEGER, group=Group.LIMITS, at_least=0, default_words="500",
        help="Use one of the frequent minimizers every so many bases.")  # fmt: skip
    frequent_in_read: float | None = option("--q-occ-frac", kind=Kind.NUMBER, group=Group.LIMITS, at_least=0,
        default_words="0.01",
        help="Drop minimizers that are more than this fraction of a read's; 0: none.")  # fmt: skip
    max_gap: int | None = option("-g", kind=Kind.INTEGER, group=Group.LIMITS, at_least=1, default_words=_SEEDS,
        help="Largest gap without a seed in a chain.")  # fmt: skip
    bandwidths: str | None = option("-r", group=Group.LIMITS, metavar="INT[,INT]", pattern=_NUMBERS,
        pattern_words=_LIKE, default_words=_SEEDS,
        help="Bandwidths of chaining, and of joining chains over long gaps.")  # fmt: skip
    max_intron: int | None = option("-G", kind=Kind.BASES, group=Group.LIMITS, at_least=1, at_most=_MOST_INTRON,
        default_words="200K", help="Longest intron, with -x splice or --splice.")  # fmt: skip
    non_canonical: int | None = option("-C", kind=Kind.INTEGER, group=Group.LIMITS, at_least=0, default_words=_SEEDS,
        help="Penalty of each end of an intron that is not GT..AG.")  # fmt: skip
    junction_bonus: int | None = option("--junc-bonus", kind=Kind.INTEGER, group=Group.LIMITS, at_least=0,
        default_words=_SEEDS, help="Bonus of each end of an intron that --junc-bed has.")  # fmt: skip
    splice_flank: bool | None = option("--splice-flank", kind=Kind.YES_NO, group=Group.LIMITS, default_words=_SEEDS,
        help="Penalize introns without a purine behind GT or a pyrimidine before AG by half of -C.")  # fmt: skip
    end_seed_penalty: int | None = option("--end-seed-pen", kind=Kind.INTEGER, group=Group.LIMITS, at_least=0,
        default_words="6",
        help="Score that seeds at the ends of spliced reads need, besides the logarithm of their "
        "distance.")  # fmt: skip
    no_end_filter: bool = flag("--no-end-flt", group=Group.LIMITS, help="Keep poor seeds at the ends of chains.")
    min_count: int | None = option("-n", kind=Kind.INTEGER, group=Group.LIMITS, at_least=1, default_words="3",
        help="Fewest seeds of a chain.")  # fmt: skip
    min_chain_score: int | None = option("-m", kind=Kind.INTEGER, group=Group.LIMITS, at_least=1, default_words=_SEEDS,
        help="Smallest score of a chain.")  # fmt: skip
    secondary_ratio: float | None = option("-p", kind=Kind.NUMBER, group=Group.LIMITS, at_least=0, at_most=1,
        default_words="0.8", help="Smallest ratio of a secondary alignment's score to the primary one's.")  # fmt: skip
    max_secondary: int | None = option("-N", kind=Kind.INTEGER, group=Group.LIMITS, at_least=0, default_words="5",
        brief="Most secondary alignments", help="Most secondary alignments; 0 as --secondary no.")  # fmt: skip
    mask: float | None = option("-M", kind=Kind.NUMBER, group=Group.LIMITS, at_least=0, at_most=1, default_words="0.5",
        help="A hit is secondary if a better one covers more than this fraction of it.")  # fmt: skip
    max_chain_skip: int | None = option("--max-chain-skip", kind=Kind.INTEGER, group=Group.LIMITS, at_least=0,
        default_words="25", help="Seeds that are tried in vain before the search for a predecessor ends.")  # fmt: skip
    max_chain_iter: int | None = option("--max-chain-iter", kind=Kind.INTEGER, group=Group.LIMITS, at_least=1,
        default_words="5000", help="Seeds among which a predecessor is looked for.")  # fmt: skip
    match: int | None = option("-A", kind=Kind.INTEGER, group=Group.LIMITS, at_least=1, default_words=_SEEDS,
        help="Score of a match.")  # fmt: skip
    mismatch: int | None = option("-B", kind=Kind.INTEGER, group=Group.LIMITS, at_least=0, default_words=_SEEDS,
        help="Penalty of a mismatch.")  # fmt: skip
    gap_open: str | None = option("-O", group=Group.LIMITS, metavar="INT[,INT]", pattern=_NUMBERS, pattern_words=_LIKE,
        default_words=_SEEDS,
        help="Penalties of opening a gap; of spliced reads the second one is that of an intron.")  # fmt: skip
    gap_extend: str | None = option("-E", group=Group.LIMITS, metavar="INT[,INT]", pattern=_NUMBERS,
        pattern_words=_LIKE, default_words=_SEEDS,
        help="Penalties of a base in a gap; a gap of l bases costs the smaller of O1 + l E1 and O2 + l "
        "E2.")  # fmt: skip
    zdrop: str | None = option("-z", group=Group.LIMITS, metavar="INT[,INT]", pattern=_NUMBERS, pattern_words=_LIKE,
        default_words=_SEEDS,
        help="Drop of the score at which an alignment ends, and at which an inversion is looked for.")  # fmt: skip
    min_score: int | None = option("-s", kind=Kind.INTEGER, group=Group.LIMITS, at_least=0, default_words=_SEEDS,
        help="Smallest score of a hit.")  # fmt: skip
    threads: int = threads("Number of threads.")
    batch_bases: int | None = option("-K", "--batch-bases", kind=Kind.BASES, group=Group.SPEED, at_least=1,
        default_words="1M for each thread, from 4M to 8M (20M with -x darwin)", brief="Bases of a batch",
        help="Number of bases at which a batch is complete; the output does not depend on it, but the memory "
        "does.")  # fmt: skip
    command_line: str = "f5py map"
    indexes_reference: bool = False  # write the missing .fai, and check both, before reads are mapped

    def rules(self) -> Iterator[str]:
        """Refuse options beside a preset, seeds or an output that have no use for them."""
        preset = f"--preset {self.preset}"
        if self.is_darwin:
            yield from self.not_with([preset], *_NOT_OF_TILES)
        yield from self.not_with(self.given("no_md"), "md")
        yield from self.not_with(self.given("for_only"), "rev_only")
        if not self.reads:
            yield from self.only_with("READS", "report", advice="it is about reads, of which none are given")
        if not self.report:
            yield from self.only_with("--report", "sample")
        others = self.given("hpc", "splice", "transcript_strand", "for_only", "rev_only")
        others += [] if self.preset in MEM_PRESETS else [preset]
        advice = (
            "exact matches are seeds of both strands without compressed homopolymers or introns, with -x "
            f"{', '.join(MEM_PRESETS)}"
        )
        yield from self.not_with(others, "seeds", advice=advice)
        if self.seeds != "mem":
            yield from self.only_with("--seeds mem", "min_mem")
        if self.preset not in MAP_PRESETS:
            yield f"-x {self.preset}: choose from {', '.join(MAP_PRESETS)}"
        if not self.reads and self.write_index is None:
            yield "no reads are given; name files of reads, or -d to write the index"
        if self.paf:
            check_name("-o", self.output, PAF)
        elif self.output != "-":
            kind_of_alignments(self.output)
        if self.read_group is not None:
            parse_read_group(self.read_group)
        if self.preset == "ava-ont" and not self.is_paf:
            yield "-x ava-ont: overlaps are written as PAF; give --paf, or -o with a name that ends in .paf"
        for spelling, text in (("-O", self.gap_open), ("-E", self.gap_extend)) if self.is_darwin else ():
            if text is not None and "," in text:
                yield f"{spelling} {text}: -x {self.preset} has one kind of gaps; give one number"

    @property
    def bases_of_batch(self) -> int:
        """Number of bases at which a batch is complete: enough that all threads have work up to its end."""
        most = _MOST_BASES_OF_TILES if self.is_darwin else _MOST_BASES
        return self.batch_bases or min(max(_BASES_OF_THREAD * self.threads, _FEWEST_BASES), most)

    @property
    def is_darwin(self) -> bool:
        """Whether reads are aligned in tiles."""
        return self.preset in _DARWIN_PRESETS

    @property
    def is_spliced(self) -> bool:
        """Whether reads are aligned over introns."""
        return self.preset in _SPLICED_PRESETS or self.splice or self.transcript_strand in ("f", "b", "r")

    @property
    def without_effect(self) -> list[str]:
        """Options about introns that are given although reads are not aligned over introns."""
        of_ends = "non_canonical", "junction_bonus", "splice_flank", "end_seed_penalty", "junctions"
        return self.given(*(() if self._begins_spliced else ("max_intron",)), *(() if self.is_spliced else of_ends))

    @property
    def _begins_spliced(self) -> bool:
        return self.preset in _SPLICED_PRESETS or self.splice

    @property
    def kind(self) -> str:
        """Format of the output: ``bam``, ``cram``, ``sam`` or ``paf``."""
        if self.paf:
            return "paf"
        if self.output == "-":
            return "sam" if self.as_sam else "paf" if self.with_cigar else "bam"
        return kind_of_alignments(self.output)

    @property
    def is_paf(self) -> bool:
        """Whether PAF is written."""
        return self.kind == "paf"

    @property
    def differences(self) -> str | None:
        """Form of the tag cs, if it is written."""
        return None if self.cs == "none" else self.cs

    @property
    def has_secondary(self) -> bool:
        """Whether secondary alignments are written."""
        return self.secondary and self.max_secondary != 0

    def changes(self) -> dict[str, Any]:
        """Collect the settings that the options change, by the names of `f5py.mapping.settings.MapSettings`."""
        single = {
            "k": self.k, "w": self.w, "hpc": self.hpc or None, "mid_occ_frac": self.frequent,
            "occ_dist": self.rescue_distance, "max_gap": self.max_gap,
            "q_occ_frac": _ALL if self.frequent_in_read == 0 else self.frequent_in_read,
            "min_cnt": self.min_count, "min_sc": self.min_chain_score, "pri_ratio": self.secondary_ratio,
            "best_n": self.max_secondary or None, "mask": self.mask, "max_skip": self.max_chain_skip,
            "max_iter": self.max_chain_iter, "match": self.match, "mismatch": self.mismatch,
            "min_dp_max": self.min_score, "spliced": self.is_spliced or None,
            "directions": "nfrb".find(self.transcript_strand) if self.transcript_strand else None,
            "non_canonical": self.non_canonical, "junction_bonus": self.junction_bonus,
            "splice_flank": self.splice_flank, "end_seed_penalty": self.end_seed_penalty,
            "trim_ends": False if self.no_end_filter else None,
            "strands": (self.for_only + 2 * self.rev_only) or None,
            "min_mem": (self.min_mem or _MIN_MEM) if self.seeds == "mem" else None,
        }  # fmt: skip
        changed: dict[str, Any] = {name: value for name, value in single.items() if value is not None}
        if self.max_intron is not None and self._begins_spliced:
            changed |= dict.fromkeys(("max_gap_ref", "bw", "bw_long"), self.max_intron)
        for spelling, text, names in (
            ("-U", self.frequent_bounds, ("min_mid_occ", "max_mid_occ")), ("-r", self.bandwidths, ("bw", "bw_long")),
            ("-O", self.gap_open, ("q", "q2")), ("-E", self.gap_extend, ("e", "e2")),
            ("-z", self.zdrop, ("zdrop", "zdrop_inv")),
        ):  # fmt: skip
            if text is not None:
                changed |= zip(names, _numbers(spelling, text), strict=False)
                if "," not in text and spelling in ("-O", "-E", "-z"):
                    changed[names[1]] = changed[names[0]]
        return changed


def parse_read_group(text: str) -> str:
    r"""Parse a read group as minimap2's -R: a header line with ``\t`` for tabs and escaped backslashes.

    Backslashes that a workflow language or a shell has doubled are read as one. Raises `UsageError` if the result is
    not a line of the SAM specification with a unique, printable ID.
    """
    single = text
    while single.startswith("@RG\\\\"):
        single = single.replace("\\\\", "\\")
    line = re.sub(r"\\(.?)", lambda escape: {"t": "\t", "\\": "\\"}.get(escape[1], escape[0]), single)
    start, *fields = line.split("\t")
    names = [field[:2] for field in fields]
    problem = None
    if start != "@RG" or not fields:
        problem = r"does not begin with @RG\t"
    elif wrong := [field for field in fields if not _HEADER_FIELD.fullmatch(field)]:
        problem = f"its field {wrong[0]!r} is not two letters, a colon and text"
    elif twice := next((name for name in names if names.count(name) > 1), None):
        problem = f"it has {twice} twice"
    elif "ID" not in names:
        problem = "it has no ID"
    elif not (identifier := fields[names.index("ID")]).isascii():
        problem = f"{identifier} is not ASCII"
    if problem is not None:
        shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
        raise UsageError(f"-R {shown}: {problem}; give a line like '@RG\\tID:name\\tSM:sample'")
    return line


def check_scores(
    match: int, mismatch: int, opens: tuple[int, int], extends: tuple[int, int], of_site: int | None = None
) -> None:
    """Raise `UsageError` if the differences of neighboring cells would not fit into a byte.

    Parameters
    ----------
    of_site : int, optional
        Of spliced reads: largest penalty or bonus of the end of an intron.
    """
    if extends[0] < extends[1] or opens[0] + extends[0] > opens[1] + extends[1]:
        raise UsageError(
            f"-O {opens[0]},{opens[1]} -E {extends[0]},{extends[1]}: the second gap must be dearer to open and not "
            "dearer to extend: O1+E1 <= O2+E2 and E1 >= E2"
        )
    if max(opens[1] + extends[1], opens[0] + extends[0]) + match > _INT8_MOST or (
        mismatch > 2 * (opens[0] + extends[0])
    ):
        raise UsageError("-A, -B, -O and -E: are too large; O2+E2+A must be at most 127, and B at most twice O1+E1")
    if of_site is None:
        return
    if opens[1] <= opens[0] + extends[0]:
        raise UsageError(
            f"-O {opens[0]},{opens[1]} -E {extends[0]},{extends[1]}: the opening of an intron, O2, must exceed O1+E1"
        )
    if opens[1] + 2 * of_site + opens[0] + extends[0] + match > _INT8_MOST:
        raise UsageError(
            "-A, -O, -E, -C and --junc-bonus: are too large; O2 + 2 (C + bonus) + O1 + E1 + A must be at most 127"
        )


def _numbers(spelling: str, text: str) -> list[int]:
    """Whole numbers between commas."""
    numbers = [int(number) for number in text.split(",")]
    if max(numbers) > _MOST_NUMBER:
        raise UsageError(f"{spelling} {text}: must be at most {_MOST_NUMBER}")
    return numbers
