"""Rows of the catalogue: commands that read signals."""

from f5py.api.command import Command, Function

_KMER_COLUMNS = {"read_id": "string", "kmer_idx": "int64", "start_raw_idx": "int64", "end_raw_idx": "int64"}
_CHECK_COLUMNS = {"read_name": "string", "signal_file": "string", "samples": "int64", "problem": "string"}

INDEX = Command(
    name="index",
    options_class="table_commands.IndexOptions",
    module="f5py.commands.index",
    title="Index basecalled reads and their signal files.",
    help="""Index the basecalled READS (FASTA or FASTQ, plain or compressed) and their signal files.

Writes READS.index, READS.index.fai, READS.index.gzi and READS.index.readdb, or these names with another prefix
(-o PREFIX; then give -r PREFIX to the other commands). The signals are in fast5 files (-d), POD5 files (--pod5),
or a SLOW5 file (--slow5). f5c and nanopolish can use the index too, except that they cannot read POD5 files.
""",
    examples=(
        "f5py index -d fast5/ reads.fastq",
        "f5py index -s sequencing_summary.txt -d fast5/ reads.fastq",
        "f5py index --slow5 reads.blow5 reads.fastq",
        "f5py index -o run7 --pod5 pod5/ fastq_pass/",
    ),
    reports_resources=True,
    functions=(
        Function(
            name="index",
            way="value",
            annotation="f5py.commands.index.IndexSummary",
            does="Index basecalled reads and their signal files, as ``f5py index`` does.",
            returns="IndexSummary",
            returned="How many reads are known, and how many of them have a signal.",
            example="""
>>> f5py.index("made/reads.fastq", directories="made/fast5")
IndexSummary(reads=30, with_signal=30)
""",
        ),
    ),
)
MAP = Command(
    name="map",
    options_class="f5py.mapping.MapOptions",
    module="f5py.mapping",
    function="map_command",
    title="Map reads to a reference and sort the alignments.",
    help="""Map reads to a reference and sort the alignments.

The alignments are those of minimap2 2.24 with the same preset and options, and its options are called the same.
Tags of unaligned BAM files, such as the basecaller's, are kept.
""",
    examples=(
        "f5py map ref.fa reads.fastq -o reads.bam",
        "f5py map ref.fa basecalls.bam -o reads.bam",
        "f5py map -x rna -y transcripts.fa reads.fastq.gz -o reads.bam",
        "f5py map ref.fa reads.fastq -o reads.paf",
    ),
    reports_resources=True,
    functions=(
        Function(
            name="map_reads",
            way="file",
            annotation="f5py.mapping.MapCounts",
            does="Map reads to a reference and sort the alignments, as ``f5py map`` does.",
            returns="MapCounts",
            returned="Reads, bases, mapped reads and records.",
            what="the alignments",
            written_from="reads",
            example="""
>>> counts = f5py.map_reads("made/ref.fa", "made/reads.fastq", output="mapped.bam")
>>> counts.reads
30
""",
        ),
    ),
)
CHECK = Command(
    name="fast5-check",
    options_class="signal_commands.CheckOptions",
    module="f5py.commands.fast5_check",
    title="Check that the signals of indexed reads can be read.",
    help="""Read the signal of every read in an index, in any format.

Prints a table with the file and the number of samples of each read, and what is wrong with those without a usable
signal.
""",
    examples=("f5py fast5-check -r reads.fastq -o signals.tsv",),
    functions=(
        Function(
            name="fast5_check",
            way="text",
            annotation="tuple[int, int]",
            does="Read the signal of every read in an index, of any format, as ``f5py fast5-check`` does.",
            rows=(
                "Return the table as a `pyarrow.Table`, a `pandas.DataFrame` or a `polars.DataFrame`; without "
                "`output` that is the default."
            ),
            returns="pyarrow.Table, pandas.DataFrame, polars.DataFrame or (int, int)",
            returned=(
                "A row for every read; or, if they are written, how many reads there are, and how many of them have a "
                "usable signal."
            ),
            also_raises="if no signal is usable",
            columns=_CHECK_COLUMNS,
            example="""
>>> f5py.fast5_check(reads="made/reads.fastq").num_rows
30
""",
        ),
    ),
)
CALL = Command(
    name="call-methylation",
    options_class="signal_commands.CallOptions",
    module="f5py.commands.call_methylation",
    title="Call methylated bases in every read.",
    help="""Call methylated bases in every read.

Prints a table with one row per group of neighbouring sites of each read; a positive log-likelihood ratio
favours methylation.
""",
    examples=(
        "f5py call-methylation -r reads.fastq -b reads.bam -g ref.fa -o calls.tsv",
        "f5py call-methylation -b calls.bam -g ref.fa --pod5 pod5/ -o calls.bam --bedmethyl sites.bed.gz",
        "f5py call-methylation -w chr20:1,000,000-2,000,000 -r reads.fastq -b reads.bam -g ref.fa -o part.parquet",
    ),
    reports_resources=True,
    functions=(
        Function(
            name="call_methylation",
            way="rows",
            annotation="f5py.compute.counts.RunCounts",
            does="Call methylation in every read, as ``f5py call-methylation`` does.",
            rows=(
                "Return the calls as a `pyarrow.Table`, a `pandas.DataFrame` or a `polars.DataFrame`, with the "
                "columns of the Parquet output; without `output` that is the default. See `iter_calls` for more calls "
                "than fit in memory."
            ),
            returns="pyarrow.Table, pandas.DataFrame, polars.DataFrame or RunCounts",
            returned="The calls, or, if they are written only, how many reads met which fate.",
            without_rows={"modbam_output_name": (), "output_format": ("none",)},
            example="""
>>> calls = f5py.call_methylation(reads="made/reads.fastq", bam="made/reads.bam", genome="made/ref.fa")
>>> calls.column_names[:4]
['chromosome', 'strand', 'start', 'end']
>>> counts = f5py.call_methylation(
...     reads="made/reads.fastq", bam="made/reads.bam", genome="made/ref.fa", output="calls.tsv", modbam="calls.bam"
... )
>>> counts.total
30
""",
        ),
        Function(
            name="iter_calls",
            way="batches",
            does="Call methylation and yield the calls of one batch of reads after the other.",
            more=(
                "The command works while the caller does; memory follows the size of a batch (`batchsize`, "
                "`max_bases`). Closing the iterator ends the command."
            ),
            rows="What the tables are returned as; by default `pyarrow.Table`.",
            returns="pyarrow.Table, pandas.DataFrame or polars.DataFrame",
            returned="Calls, in the order of the alignments, with the columns of the Parquet output.",
            example="""
>>> inputs = {"reads": "made/reads.fastq", "bam": "made/reads.bam", "genome": "made/ref.fa"}
>>> sum(table.num_rows for table in f5py.iter_calls(**inputs, batchsize=10)) == calls.num_rows
True
""",
        ),
    ),
)
EVENTALIGN = Command(
    name="eventalign",
    options_class="signal_commands.EventalignOptions",
    module="f5py.commands.eventalign",
    title="Align the events of every read to the reference.",
    help="""Align the events of every read to the k-mers of the reference.

Prints a table with one row per event: its k-mer on the reference, its current, and what the pore model expects.
""",
    examples=(
        "f5py eventalign -r reads.fastq -b reads.bam -g ref.fa -o events.tsv.gz",
        "f5py eventalign -b calls.bam -g transcripts.fa --pod5 pod5/ --m6anet-json m6anet/",
        "f5py eventalign -r reads.fastq -b reads.bam -g ref.fa --signal-index --scale-events -o events.parquet",
    ),
    reports_resources=True,
    functions=(
        Function(
            name="eventalign",
            way="rows",
            annotation="f5py.compute.counts.RunCounts",
            does="Align the events of every read to the reference, as ``f5py eventalign`` does.",
            rows=(
                "Return the rows of the table as a `pyarrow.Table`, a `pandas.DataFrame` or a `polars.DataFrame`, "
                "with the columns of the Parquet output, and write no table; without `output` that is the default. "
                "See `iter_events` for more rows than fit in memory."
            ),
            returns="pyarrow.Table, pandas.DataFrame, polars.DataFrame or RunCounts",
            returned="The rows, or, if they are written, how many reads met which fate.",
            without_rows={"m6anet_json": ()},
            example="""
>>> events = f5py.eventalign(reads="made/reads.fastq", bam="made/reads.bam", genome="made/ref.fa")
>>> events.column_names[:3]
['contig', 'position', 'reference_kmer']
""",
        ),
        Function(
            name="iter_events",
            way="batches",
            does="Align events to the reference and yield the rows of some reads after the other.",
            more=(
                "The command works while the caller does; memory follows the size of a batch (`batchsize`, "
                "`max_bases`). Closing the iterator ends the command."
            ),
            rows="What the tables are returned as; by default `pyarrow.Table`.",
            returns="pyarrow.Table, pandas.DataFrame or polars.DataFrame",
            returned="Rows, in the order of the alignments, with the columns of the Parquet output.",
            example="""
>>> first = next(f5py.iter_events(reads="made/reads.fastq", bam="made/reads.bam", genome="made/ref.fa"))
>>> first.column_names == events.column_names
True
""",
        ),
    ),
)
RESQUIGGLE = Command(
    name="resquiggle",
    options_class="signal_commands.ResquiggleOptions",
    module="f5py.commands.resquiggle",
    title="Align every signal to the bases of its own read.",
    help="""Align every signal to the bases of its own read.

READS is a FASTA or FASTQ file, plain or compressed. SIGNALS are SLOW5, BLOW5, POD5 or fast5 files, and folders of
such files. Prints the samples of every k-mer.
""",
    examples=(
        "f5py resquiggle reads.fastq reads.blow5 -o moves.tsv",
        "f5py resquiggle -c reads.fastq pod5/ -o moves.paf",
    ),
    reports_resources=True,
    functions=(
        Function(
            name="resquiggle",
            way="text",
            annotation="f5py.compute.counts.RunCounts",
            does="Align every signal to the bases of its own read, as ``f5py resquiggle`` does.",
            rows=(
                "Return the rows as a `pyarrow.Table`, a `pandas.DataFrame` or a `polars.DataFrame`, and write none; "
                "without `output` that is the default. The samples of a k-mer without events are missing."
            ),
            returns="pyarrow.Table, pandas.DataFrame, polars.DataFrame or RunCounts",
            returned="The rows, or, if they are written, how many reads met which fate.",
            without_rows={"paf": ()},
            what="PAF",
            columns=_KMER_COLUMNS,
            example="""
>>> f5py.resquiggle("made/reads.fastq", "made/fast5").column_names
['read_id', 'kmer_idx', 'start_raw_idx', 'end_raw_idx']
""",
        ),
    ),
)
TRAIN = Command(
    name="train",
    options_class="signal_commands.TrainOptions",
    module="f5py.commands.train",
    title="Estimate a pore model from control reads.",
    help="""Estimate the levels of k-mers from reads of known methylation, and write them as a pore model.

Give control reads with --methylated and --unmethylated, or with -b and --truth. Unmethylated reads alone give a
nucleotide model, otherwise the model has methylated k-mers, for --meth-model. Some of the reads are held out to
test the model. Rare k-mers get levels from similar ones.

Of R10.4.1, --unlabeled needs no controls: it fits what a methylated C adds to the level, by its place in the k-mer, to
any reads of which some sites are methylated, and writes a short file for --meth-model.
""",
    examples=(
        "f5py train --methylated sssi.bam --unmethylated wga.bam -g ref.fa --pod5 pod5/ -o cpg.model",
        "f5py train --unmethylated wga.bam -g ref.fa -r reads.fastq --slow5 reads.blow5 -o nucleotide.model",
        "f5py train --unlabeled reads.bam -g ref.fa --slow5 reads.blow5 -o cpg.model --report fit.html",
    ),
    reports_resources=True,
    functions=(
        Function(
            name="train",
            way="unwritten",
            annotation="f5py.commands.train.TrainingSummary",
            does="Estimate a pore model from control reads or, of R10.4.1, from any reads, as ``f5py train`` does.",
            returns="TrainingSummary",
            returned="The model, and how it came about. It is written only if `output` is given.",
        ),
    ),
)
PLOT = Command(
    name="plot",
    options_class="plot_commands.PlotOptions",
    module="f5py.commands.plot",
    title="Draw the signal, events and bases of a read.",
    help="""Draw the signal, the events and the bases of one read.

With -b and -g the events are aligned to the reference, as in eventalign; otherwise to the read's own bases, as in
resquiggle. Needs matplotlib: pip install matplotlib.
""",
    examples=(
        "f5py plot READ_ID -r reads.fastq -b reads.bam -g ref.fa -o read.png",
        "f5py plot READ_ID -r reads.fastq -o read.html",
    ),
    functions=(
        Function(
            name="plot",
            way="picture",
            does="Draw the signal, the events and the bases of one read, as ``f5py plot`` does.",
            has_progress=False,
            returns="Picture or None",
            returned="Without `output`, the picture, which a notebook shows.",
            annotation="None",
            example="""
>>> f5py.plot(calls["read_name"][0].as_py(), reads="made/reads.fastq", output="read.html")
""",
        ),
    ),
)
