"""The commands: names, and the parts of their help besides options."""

from typing import NamedTuple


class Command(NamedTuple):
    """Name and help of a command; `f5py.cli.options` has its function."""

    name: str
    title: str  # its line in the help of all commands
    help: str  # above the options
    examples: tuple[str, ...]  # command lines for the help
    reports_resources: bool = False  # version, time and memory are printed at its end
    runs_commands: bool = False  # its function is given one that runs command lines


_ALL = (
    Command(
        "index",
        "Index basecalled reads and their signal files.",
        """Index the basecalled READS (FASTA or FASTQ, plain or compressed) and their signal files.

Writes READS.index, READS.index.fai, READS.index.gzi and READS.index.readdb, or these names with another prefix
(-o PREFIX; then give -r PREFIX to the other commands). The signals are in fast5 files (-d), POD5 files (--pod5),
or a SLOW5 file (--slow5). f5c and nanopolish can use the index too, except that they cannot read POD5 files.
""",
        (
            "f5py index -d fast5/ reads.fastq",
            "f5py index -s sequencing_summary.txt -d fast5/ reads.fastq",
            "f5py index --slow5 reads.blow5 reads.fastq",
            "f5py index -o run7 --pod5 pod5/ fastq_pass/",
        ),
        reports_resources=True,
    ),
    Command(
        "map",
        "Map reads to a reference and sort the alignments.",
        """Map reads to a reference and sort the alignments.

The alignments are those of minimap2 2.24 with the same preset and options, and its options are called the same.
Tags of unaligned BAM files, such as the basecaller's, are kept.
""",
        (
            "f5py map ref.fa reads.fastq -o reads.bam",
            "f5py map ref.fa basecalls.bam -o reads.bam",
            "f5py map -x rna -y transcripts.fa reads.fastq.gz -o reads.bam",
            "f5py map ref.fa reads.fastq -o reads.paf",
        ),
        reports_resources=True,
    ),
    Command(
        "call-methylation",
        "Call methylated bases in every read.",
        """Call methylated bases in every read.

Prints a table with one row per group of neighboring sites of each read; a positive log-likelihood ratio
favors methylation.
""",
        (
            "f5py call-methylation -r reads.fastq -b reads.bam -g ref.fa -o calls.tsv",
            "f5py call-methylation -b calls.bam -g ref.fa --pod5 pod5/ -o calls.bam --bedmethyl sites.bed.gz",
            "f5py call-methylation -w chr20:1,000,000-2,000,000 -r reads.fastq -b reads.bam -g ref.fa -o part.parquet",
        ),
        reports_resources=True,
    ),
    Command(
        "meth-freq",
        "Count methylation at every site from the calls.",
        """Count methylation at every site, from tables of call-methylation, tags of any caller, or bedMethyl.""",
        (
            "f5py meth-freq -s -i calls.tsv -o freq.tsv",
            "f5py meth-freq run1.tsv.gz run2.tsv.gz -o sites.bed.gz",
            "f5py meth-freq dorado.bam -g ref.fa --min-coverage 5 -o freq.tsv",
            "f5py meth-freq calls.tsv --chrom-sizes ref.fa.fai -o sites.bw",
        ),
    ),
    Command(
        "eventalign",
        "Align the events of every read to the reference.",
        """Align the events of every read to the k-mers of the reference.

Prints a table with one row per event: its k-mer on the reference, its current, and the level by the pore model.
""",
        (
            "f5py eventalign -r reads.fastq -b reads.bam -g ref.fa -o events.tsv.gz",
            "f5py eventalign -b calls.bam -g transcripts.fa --pod5 pod5/ --m6anet-json m6anet/",
            "f5py eventalign -r reads.fastq -b reads.bam -g ref.fa --signal-index --scale-events -o events.parquet",
        ),
        reports_resources=True,
    ),
    Command(
        "resquiggle",
        "Align every signal to the bases of its own read.",
        """Align every signal to the bases of its own read.

READS is a FASTA or FASTQ file, plain or compressed. SIGNALS are SLOW5, BLOW5, POD5 or fast5 files, and folders of
such files. Prints the samples of every k-mer.
""",
        ("f5py resquiggle reads.fastq reads.blow5 -o moves.tsv", "f5py resquiggle -c reads.fastq pod5/ -o moves.paf"),
        reports_resources=True,
    ),
    Command(
        "freq-merge",
        "Merge tables of methylation frequencies.",
        """Add up tables of meth-freq, plain or gzipped, as if their calls had been counted together.""",
        ("f5py freq-merge run1.freq.tsv run2.freq.tsv -o freq.tsv",),
    ),
    Command(
        "extract",
        "List the calls of single reads, base by base.",
        """List the calls of single reads: a row for each read, base and modification.

FILE is BAM, SAM or CRAM with MM and ML tags, as call-methylation, dorado and others write it, or a table
of call-methylation.
""",
        (
            "f5py extract dorado.bam -o calls.tsv.gz",
            "f5py extract dorado.bam -w chr11:2,000,000-2,003,000 --read-ids reads.txt -o calls.parquet",
            "f5py extract calls.tsv -o sites.tsv",
        ),
    ),
    Command(
        "regions",
        "Sum methylation by region and sample.",
        """Sum the methylation of regions, such as genes or islands: a row for each region and sample.

Each FILE is a sample: a table of meth-freq, bedMethyl, alignments with MM and ML tags, or a table of
call-methylation. Needs pyarrow: pip install pyarrow.
""",
        (
            "f5py regions genes.bed tumour.tsv normal.tsv -o genes.tsv",
            "f5py regions islands.bed a.bed.gz b.bed.gz --sample case --sample control -o islands.parquet",
            "f5py regions genes.bed dorado.bam -g ref.fa --min-coverage 5 -o genes.tsv",
        ),
    ),
    Command(
        "summary",
        "Summarise calls and recommend a threshold.",
        """Summarise tables of calls, and recommend a threshold for their log-likelihood ratios.

Shows how many calls each threshold keeps, and how many of these are likely to be wrong: judging by the ratios, by
two components fitted to them, or by the calls of controls. Also shows methylation by read, by the number of sites
in a group and by context. Needs pyarrow: pip install pyarrow.
""",
        (
            "f5py summary calls.tsv",
            "f5py summary calls.parquet --report calls.html --report calls.json",
            "f5py summary calls.tsv --methylated sssi.tsv --unmethylated wga.tsv",
        ),
    ),
    Command(
        "validate",
        "Compare calls or frequencies with the truth.",
        """Compare calls or frequencies with known states of the sites.

CALLS is a table of calls, BAM with MM and ML tags, bedMethyl or a table of meth-freq. TRUTH is bedMethyl, a table
of meth-freq, or a simulation's truth.tsv or truth_reads.tsv. Instead of both, calls of controls can be given.
For calls, prints the area under the ROC curve, precision and recall by threshold, and the reliability of the
probabilities; for sites, the correlation of frequencies. Calls need pyarrow: pip install pyarrow.
""",
        (
            "f5py validate calls.tsv truth.bed.gz",
            "f5py validate freq.tsv wgbs.bed --min-coverage 10 --report validation.html",
            "f5py validate --methylated sssi.bam --unmethylated wga.bam",
        ),
    ),
    Command(
        "compare",
        "Compare the events of two samples.",
        """Compare the events of two samples, to find modified bases without a model for them.

A and B are tables of f5py eventalign (text or Parquet), or alignments, and events are aligned first. For every
position and strand, or every k-mer: mean, median and standard deviation of levels and dwell times in both samples,
and Kolmogorov-Smirnov and Mann-Whitney tests, with q-values. Needs pyarrow:
pip install pyarrow.
""",
        (
            "f5py compare native.parquet ivt.parquet -o differences.tsv",
            "f5py compare native.bam ivt.bam -g ref.fa --rna --pod5 native/ --pod5 ivt/ -o differences.parquet",
            "f5py compare native.tsv ivt.tsv --by kmer",
        ),
    ),
    Command(
        "train",
        "Estimate a pore model from control reads.",
        """Estimate the levels of k-mers from reads of known methylation, and write them as a pore model.

Give control reads with --methylated and --unmethylated, or with -b and --truth. Unmethylated reads alone give a
nucleotide model, otherwise the model has methylated k-mers, for --meth-model. Some of the reads are held out to
test the model. Rare k-mers get levels from similar ones.

Of R10.4.1, --unlabeled needs no controls: it fits the shift of the level by a methylated C at each place in the k-mer,
to any reads with some methylated sites, and writes a short file for --meth-model.
""",
        (
            "f5py train --methylated sssi.bam --unmethylated wga.bam -g ref.fa --pod5 pod5/ -o cpg.model",
            "f5py train --unmethylated wga.bam -g ref.fa -r reads.fastq --slow5 reads.blow5 -o nucleotide.model",
            "f5py train --unlabeled reads.bam -g ref.fa --slow5 reads.blow5 -o cpg.model --report fit.html",
        ),
        reports_resources=True,
    ),
    Command(
        "fast5-check",
        "Check that the signals of indexed reads can be read.",
        """Read the signal of every read in an index, in any format.

Prints a table with the file and the number of samples of each read, and the fault of those without a usable
signal.
""",
        ("f5py fast5-check -r reads.fastq -o signals.tsv",),
    ),
    Command(
        "plot",
        "Draw the signal, events and bases of a read.",
        """Draw the signal, the events and the bases of one read.

With -b and -g the events are aligned to the reference, as in eventalign; otherwise to the read's own bases, as in
resquiggle. Needs matplotlib: pip install matplotlib.
""",
        (
            "f5py plot READ_ID -r reads.fastq -b reads.bam -g ref.fa -o read.png",
            "f5py plot READ_ID -r reads.fastq -o read.html",
        ),
    ),
    Command(
        "plot-region",
        "Draw the reads at a locus with their calls.",
        """Draw the reads at a locus: each with its methylation calls, and the frequency at every site.

Calls are taken from the MM and ML tags of alignments, as written by call-methylation --modbam, dorado and others.
Reads with an HP tag, as written by whatshap and hiphase, are grouped by haplotype. Needs matplotlib:
pip install matplotlib.
""",
        (
            "f5py plot-region -b calls.bam -w chr11:2,000,000-2,003,000 -o locus.png",
            "f5py plot-region -b calls.bam -w chr11:2,000,000-2,003,000 --code h -o locus.html",
        ),
    ),
    Command(
        "simulate",
        "Simulate reads of known methylation.",
        """Simulate reads of known methylation.

Writes into FOLDER: ref.fa, reads.fastq, reads.bam, the signals, the sites' true frequencies (truth.tsv) and the
state of every site in every read (truth_reads.tsv). Dwell times and noise are like those of real reads.
""",
        (
            "f5py simulate -o simulated --genome-length 100K --coverage 20 --seed 1",
            "f5py simulate -o rna --pore rna004 --genome-length 20K -n 1000 --format pod5",
        ),
    ),
    Command(
        "run-part",
        "Do parts of a plan.",
        """Do parts of a plan that was made by call-methylation or eventalign with --plan and --partitions.

Parts can be done in any order, by any number of processes and machines that see the folder.
""",
        ("f5py run-part plan/ 7", "f5py run-part plan/ 0-15 -t 16", "f5py run-part plan/"),
        reports_resources=True,
    ),
    Command(
        "plan",
        "Show the progress of a plan and the time left.",
        """Show the progress of a plan made with --plan, and how long the rest will take.""",
        (
            "f5py plan plan/",
            "f5py plan plan/ --estimate --jobs 100 --price 0.8",
            "f5py plan plan/ --print-slurm -o array.sh",
        ),
    ),
    Command(
        "finish",
        "Write the outputs of a plan when its parts are done.",
        """Write the outputs of a plan when all parts are done: the same bytes as from a single run.""",
        ("f5py finish plan/",),
    ),
    Command(
        "merge",
        "Merge outputs, such as those of several windows.",
        """Merge outputs of the same kind, such as those of several windows: tables, Parquet, modBAM or bedMethyl.

Rows come in the order of the files. modBAM records that are in several files are merged into one with all calls,
and bedMethyl counts are added up. For tables of frequencies use freq-merge.
""",
        (
            "f5py merge chr1.tsv.gz chr2.tsv.gz -o calls.tsv.gz",
            "f5py merge window1.bam window2.bam -o calls.bam",
            "f5py merge window1.bed window2.bed -o sites.bed.gz",
        ),
    ),
    Command(
        "demo",
        "Simulate, index, call and compare with the truth.",
        """Simulate reads, index them, call methylation and compare its frequencies with the truth.

Everything is written into FOLDER (default: f5py-demo), and every step is shown as the command that you
would type. The last lines show whether f5py works on this machine.
""",
        ("f5py demo",),
        runs_commands=True,
    ),
    Command(
        "gpu-check",
        "Show the GPUs, and compare their results with the CPU's.",
        """Show the GPUs, and compare their results with the CPU's.

Prints each GPU with its compute capability and memory, and the versions of CuPy, of CUDA's driver and of its
run-time compiler (NVRTC). Every kernel is compiled, and computes a small made-up batch; its results must be the
CPU's to the last bit. The status is 1 if there is no GPU, or if one cannot be used.
""",
        ("f5py gpu-check", "f5py gpu-check --cuda-dev-id 0"),
    ),
    Command(
        "compile",
        "Compile the hot loops ahead of the first run.",
        """Compile the hot loops for this processor, ahead of the first run.

What is compiled is kept where runs look for it, see NUMBA_CACHE_DIR. With --cuda-arch the kernels are compiled for
GPUs of these compute capabilities, too, which need not be there. For images of containers, and nodes of clusters.
""",
        ("f5py compile", "f5py compile --cuda-arch 87"),
        runs_commands=True,
    ),
)
COMMANDS = {command.name: command for command in _ALL}
#: How the help shows them.
GROUPS = {
    "Methylation": (
        "call-methylation",
        "meth-freq",
        "freq-merge",
        "extract",
        "regions",
        "summary",
        "validate",
        "plot-region",
    ),
    "Events": ("eventalign", "resquiggle", "compare", "plot"),
    "Before": ("index", "fast5-check", "map"),
    "In parts": ("plan", "run-part", "finish", "merge"),
    "Models and simulated reads": ("train", "simulate", "demo"),
    "This machine": ("gpu-check", "compile"),
}
