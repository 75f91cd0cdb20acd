"""Rows of the catalogue: commands that read tables of calls or events, and tags of calls."""

from f5py.api.command import Command, Function

FREQUENCY = Command(
    name="meth-freq",
    options_class="frequency_commands.FrequencyOptions",
    module="f5py.commands.meth_freq",
    function="write_frequency_file",
    title="Count methylation at every site from the calls.",
    help="Count methylation at every site, from tables of call-methylation, tags of any caller, or bedMethyl.",
    examples=(
        "f5py meth-freq -s -i calls.tsv -o freq.tsv",
        "f5py meth-freq run1.tsv.gz run2.tsv.gz -o sites.bed.gz",
        "f5py meth-freq dorado.bam -g ref.fa --min-coverage 5 -o freq.tsv",
        "f5py meth-freq calls.tsv --chrom-sizes ref.fa.fai -o sites.bw",
    ),
    functions=(
        Function(
            name="frequencies",
            way="rows",
            annotation="None",
            does="Methylation frequency at every site, from calls, tags or bedMethyl, as ``f5py meth-freq`` does.",
            rows=(
                "Return the frequencies as a `pyarrow.Table`, a `pandas.DataFrame` or a `polars.DataFrame`, with the "
                "columns of the Parquet output, and write no table; without `output` that is the default."
            ),
            returns="pyarrow.Table, pandas.DataFrame, polars.DataFrame or None",
            returned="The frequencies, unless they are written.",
            example="""
>>> sites = f5py.frequencies("calls.tsv", split_groups=True)
>>> sites.column_names[:3]
['chromosome', 'start', 'end']
>>> f5py.frequencies("calls.tsv", output="sites.tsv")
""",
        ),
    ),
)
MERGE = Command(
    name="freq-merge",
    options_class="frequency_commands.MergeOptions",
    module="f5py.commands.meth_freq",
    function="merge_frequency_files",
    title="Merge tables of methylation frequencies.",
    help="Add up tables of meth-freq, plain or gzipped, as if their calls had been counted together.",
    examples=("f5py freq-merge run1.freq.tsv run2.freq.tsv -o freq.tsv",),
    functions=(
        Function(
            name="merge_frequencies",
            way="rows",
            annotation="None",
            does="Add up tables of frequencies, as ``f5py freq-merge`` does.",
            rows=(
                "Return the sums as a `pyarrow.Table`, a `pandas.DataFrame` or a `polars.DataFrame`, with the columns "
                "of `frequencies`, and write no table; without `output` that is the default."
            ),
            returns="pyarrow.Table, pandas.DataFrame, polars.DataFrame or None",
            returned="The frequencies, unless they are written.",
            example="""
>>> f5py.merge_frequencies(["sites.tsv", "sites.tsv"]).num_rows == f5py.frequencies("calls.tsv").num_rows
True
""",
        ),
    ),
)
SUMMARY = Command(
    name="summary",
    options_class="table_commands.SummaryOptions",
    module="f5py.commands.summary",
    title="Summarise calls and recommend a threshold.",
    help="""Summarise tables of calls, and recommend a threshold for their log-likelihood ratios.

Shows how many calls each threshold keeps, and how many of these are likely to be wrong: judging by the ratios, by
two components fitted to them, or by the calls of controls. Also shows methylation by read, by the number of sites
in a group and by context. Needs pyarrow: pip install pyarrow.
""",
    examples=(
        "f5py summary calls.tsv",
        "f5py summary calls.parquet --report calls.html --report calls.json",
        "f5py summary calls.tsv --methylated sssi.tsv --unmethylated wga.tsv",
    ),
    functions=(
        Function(
            name="summary",
            way="unwritten",
            annotation="f5py.commands.summary.SummaryReport",
            does="Summarise tables of calls and advise a threshold, as ``f5py summary`` does.",
            returns="dict",
            returned="What the JSON report has. The text is written only if `output` is given.",
            example="""
>>> found = f5py.summary("calls.tsv", report="calls.html")
>>> "advice" in found
True
""",
        ),
    ),
)
VALIDATE = Command(
    name="validate",
    options_class="table_commands.ValidateOptions",
    module="f5py.commands.validate",
    title="Compare calls or frequencies with the truth.",
    help="""Compare calls or frequencies with what is known about the sites.

CALLS is a table of calls, BAM with MM and ML tags, bedMethyl or a table of meth-freq. TRUTH is bedMethyl, a table
of meth-freq, or a simulation's truth.tsv or truth_reads.tsv. Instead of both, calls of controls can be given.
For calls, prints the area under the ROC curve, precision and recall by threshold, and the reliability of the
probabilities; for sites, the correlation of frequencies. Calls need pyarrow: pip install pyarrow.
""",
    examples=(
        "f5py validate calls.tsv truth.bed.gz",
        "f5py validate freq.tsv wgbs.bed --min-coverage 10 --report validation.html",
        "f5py validate --methylated sssi.bam --unmethylated wga.bam",
    ),
    functions=(
        Function(
            name="validate",
            way="unwritten",
            annotation="f5py.commands.validate.ValidationReport",
            does="Compare calls or frequencies with what is known of the sites, as ``f5py validate`` does.",
            returns="dict",
            returned="What the JSON report has. The text is written only if `output` is given.",
            also_raises="if nothing can be compared",
            example="""
>>> f5py.validate("sites.tsv", "made/truth.tsv", min_coverage=5)["frequencies"]["correlation"] > 0.9
True
""",
        ),
    ),
)
COMPARE = Command(
    name="compare",
    options_class="signal_commands.CompareOptions",
    module="f5py.commands.compare",
    title="Compare the events of two samples.",
    help="""Compare the events of two samples, to find modified bases without a model for them.

A and B are tables of f5py eventalign (text or Parquet), or alignments whose events are aligned first. For every
position and strand, or every k-mer: mean, median and standard deviation of levels and dwell times in both samples,
and Kolmogorov-Smirnov and Mann-Whitney tests, with q-values. Needs pyarrow:
pip install pyarrow.
""",
    examples=(
        "f5py compare native.parquet ivt.parquet -o differences.tsv",
        "f5py compare native.bam ivt.bam -g ref.fa --rna --pod5 native/ --pod5 ivt/ -o differences.parquet",
        "f5py compare native.tsv ivt.tsv --by kmer",
    ),
    functions=(
        Function(
            name="compare",
            way="unwritten",
            does="Compare the events of two samples, as ``f5py compare`` does.",
            rows="Return a `pyarrow.Table`, which is the default, a `pandas.DataFrame` or a `polars.DataFrame`.",
            returns="pyarrow.Table, pandas.DataFrame or polars.DataFrame",
            returned="What is written, too, if `output` is given.",
            example="""
>>> f5py.compare(events, events, min_coverage=5).num_rows > 0
True
""",
        ),
    ),
)
PLOT_REGION = Command(
    name="plot-region",
    options_class="plot_commands.PlotRegionOptions",
    module="f5py.commands.plot_region",
    title="Draw the reads at a locus with their calls.",
    help="""Draw the reads at a locus: each with its methylation calls, and the frequency at every site.

Calls are taken from the MM and ML tags of alignments, as written by call-methylation --modbam, dorado and others.
Reads with an HP tag, as written by whatshap and hiphase, are grouped by haplotype. Needs matplotlib:
pip install matplotlib.
""",
    examples=(
        "f5py plot-region -b calls.bam -w chr11:2,000,000-2,003,000 -o locus.png",
        "f5py plot-region -b calls.bam -w chr11:2,000,000-2,003,000 --code h -o locus.html",
    ),
    functions=(
        Function(
            name="plot_region",
            way="picture",
            does="Draw the reads over a locus with their methylation calls, as ``f5py plot-region`` does.",
            has_progress=False,
            returns="Picture or None",
            returned="Without `output`, the picture, which a notebook shows.",
            annotation="None",
            example="""
>>> f5py.plot_region(bam="calls.bam", window="simulated:5,000-7,000", output="locus.html")
""",
        ),
    ),
)
