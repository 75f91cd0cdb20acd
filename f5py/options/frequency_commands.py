"""The options of the commands that count calls by site."""

from collections.abc import Iterator

from f5py.options.declaration import Group, Kind, argument, flag, option, options_class
from f5py.options.output_names import FOR_R, OF_SITES, PARQUET_TO_FILE, TABLE, kind_if_unset
from f5py.options.shared import (
    CALL_THRESHOLD,
    ReadListOptions,
    StrictOptions,
    kind_of_methylation,
    mod_code,
    output_file,
    own_motif,
)

_INPUT, _OUTPUT = Group.INPUT, Group.OUTPUT


@options_class
class FrequencyOptions(StrictOptions):
    """Options of ``f5py meth-freq``."""

    tables: tuple[str, ...] = argument("[CALLS ...]", default=(), repeated=True, is_table=True,
        brief="Tables of calls, modBAM or bedMethyl",
        help="Tables of calls, BAM files with MM and ML tags of any caller, or bedMethyl files, counted as "
        "one.")  # fmt: skip
    calls: tuple[str, ...] = option("-i", "--input", kind=Kind.FILE, group=_INPUT, repeated=True, default=(),
        default_words="standard input", is_table=True, brief="The same; can be given several times",
        help="Table of calls, modBAM or bedMethyl, to be counted with the others; tables plain or gzip. "
        "Repeatable.")  # fmt: skip
    output: str = output_file()
    threshold: float = option("-c", "--call-threshold", group=Group.SELECTION, default=CALL_THRESHOLD, at_least=0,
        brief="Skip calls with a lower |log_lik_ratio|",
        help="Skip calls with a lower absolute log_lik_ratio.")  # fmt: skip
    min_coverage: int = option("--min-coverage", group=Group.SELECTION, default=1, at_least=1, ours=True,
        brief="Minimum number of calls of a site",
        help="Minimum number of calls of a site, or row, to be listed.")  # fmt: skip
    threshold_per_site: bool = flag("--threshold-per-site", group=Group.SELECTION, ours=True,
        brief="Multiply -c by the sites of the group",
        help="Multiply the threshold by the number of sites in the group, as nanopolish does (with -c 2 by "
        "default).")  # fmt: skip
    split_groups: bool = flag("-s", "--split-groups", brief="Count every site of a group by itself",
        help="Count every site of a group separately.")  # fmt: skip
    methylation: str | None = kind_of_methylation(ours=True, brief="Kind of methylation",
        help="Kind of methylation that was called: the motif by which -s and --bedmethyl split groups.")  # fmt: skip
    motif: str | None = own_motif(ours=True)
    mod_code: str | None = mod_code(ours=True)
    genome: str | None = option("-g", "--genome", kind=Kind.FILE, group=_INPUT, ours=True,
        default_words="the bases of the reads", brief="Reference of modBAM",
        help="Of modBAM: the reference, which says where sites are; needed for CRAM.")  # fmt: skip
    stranded: bool = flag("--stranded", ours=True, brief="Add columns for each strand",
        help="Add columns with the counts of each strand to the table. bedMethyl has a row for each.")  # fmt: skip
    output_format: str | None = option("--format", "--output-format", group=_OUTPUT,
        choices=("tsv", "csv", "parquet", *FOR_R), ours=True, see="usage/f5py-meth-freq.md#tables-for-r",
        default_words="by the name of the output, else tsv",
        brief="Format, if the name does not tell it",
        help="Format of the table; parquet needs -o; dss, methylkit and bismark are tables for R with a row per site "
        "and strand. By default .csv, .parquet, .bed (as --bedmethyl), .bedgraph and .bw in the name determine "
        "it.")  # fmt: skip
    chrom_sizes: str | None = option("--chrom-sizes", kind=Kind.FILE, group=_INPUT, ours=True,
        brief="Lengths of chromosomes, for bigWig",
        help="Names and lengths of the chromosomes, such as the .fai of the reference; needed for bigWig.")  # fmt: skip
    bedmethyl: bool = flag("--bedmethyl", ours=True, see="formats.md#bedmethyl",
        brief="Write bedMethyl, as modkit does",
        help="Write bedMethyl as modkit does: a row per site and strand, with groups split, and with a tabix index if "
        "the name of the output ends in .gz.")  # fmt: skip
    combine_strands: bool = flag("--combine-strands", ours=True, brief="Count both strands of a site together",
        help="In bedMethyl, bedGraph, bigWig and tables for R: one row for both strands of a site.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse two words on one thing, and options of bedMethyl for tables."""
        of_sites, for_r = self.given("bedmethyl"), self.output_format in FOR_R
        yield from self.not_with(of_sites, "split_groups", advice="bedMethyl always has them split")
        of_strands = of_sites or (self.given("output_format") if for_r else [])
        yield from self.not_with(of_strands, "stranded", advice="there is a row for each strand anyway")
        yield from self.not_with(self.given("motif"), "methylation")
        if self.output_format == "parquet" and not self.given("output"):
            yield from self.only_with("--output", "output_format", advice=PARQUET_TO_FILE)
        if self.output_format in ("parquet", "csv", *FOR_R):
            yield from self.not_with(self.given("output_format"), "bedmethyl", advice="bedMethyl is another format")
        if not of_sites and not for_r and kind_if_unset(self.output, self.output_format) not in OF_SITES:
            advice = "the other tables tell strands apart with --stranded only"
            yield from self.only_with("--bedmethyl", "combine_strands", advice=advice)


@options_class
class MergeOptions(StrictOptions):
    """Options of ``f5py freq-merge``."""

    tables: tuple[str, ...] = argument("FILE1 FILE2 ...", repeated=True, default=(), is_table=True,
        help="Tables of frequencies.")  # fmt: skip
    output: str = output_file(writes=TABLE)


@options_class
class ExtractOptions(ReadListOptions, StrictOptions):
    """Options of ``f5py extract``."""

    inputs: tuple[str, ...] = argument("[FILE ...]", default=(), repeated=True, is_table=True,
        help="Alignments with MM and ML tags of any caller, or tables of calls; by default "
        "standard input.")  # fmt: skip
    output: str = output_file("Output file: a table with tabs, .csv or .parquet; compressed (bgzip) if the name ends "
        "in .gz. It appears only when it is complete.")  # fmt: skip
    window: tuple[str, ...] = option("-w", "--window", group=Group.SELECTION, metavar="REGION", repeated=True,
        default=(), default_words="everything",
        brief="Only bases in this region, or those of a .bed file",
        help="Only bases in this region, contig or contig:start-end (from 1, both included), several with spaces "
        "between them, or the windows in a .bed file; needs an indexed BAM or CRAM file, or a table. "
        "Repeatable.")  # fmt: skip
    genome: str | None = option("-g", "--genome", kind=Kind.FILE, group=_INPUT, help="Reference of CRAM files.")
    methylation: str | None = kind_of_methylation("Kind of methylation in tables.")
    motif: str | None = own_motif()

    def rules(self) -> Iterator[str]:
        """Refuse two motifs."""
        yield from self.not_with(self.given("motif"), "methylation")


@options_class
class RegionsOptions(StrictOptions):
    """Options of ``f5py regions``."""

    bed: str = argument("BED", help="Regions: a BED file; its fourth column names them.")
    tables: tuple[str, ...] = argument("FILE ...", default=(), repeated=True, is_table=True,
        help="A file for each sample: a table of frequencies, bedMethyl, alignments with MM and ML tags, or a table of "
        "calls.")  # fmt: skip
    output: str = output_file("Output file: a table with tabs, .csv or .parquet; compressed (bgzip) if the name ends "
        "in .gz. It appears only when it is complete.")  # fmt: skip
    samples: tuple[str, ...] = option("--sample", group=_OUTPUT, metavar="NAME", repeated=True, default=(),
        default_words="the names of the files",
        help="Name of a sample; given once for each file, in their order. Repeatable.")  # fmt: skip
    threshold: float = option("-c", "--call-threshold", group=Group.SELECTION, default=CALL_THRESHOLD, at_least=0,
        help="Of calls and tags: skip calls with a lower absolute log_lik_ratio.")  # fmt: skip
    min_coverage: int = option("--min-coverage", group=Group.SELECTION, default=1, at_least=1,
        help="Minimum number of calls of a site.")  # fmt: skip
    methylation: str | None = kind_of_methylation("Kind of methylation that was called.")
    motif: str | None = own_motif()
    mod_code: str | None = mod_code()
    genome: str | None = option("-g", "--genome", kind=Kind.FILE, group=_INPUT, default_words="the bases of the reads",
        help="Of modBAM: the reference, which says where sites are; needed for CRAM.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse two motifs."""
        yield from self.not_with(self.given("motif"), "methylation")
