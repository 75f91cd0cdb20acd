"""Rows of the catalogue: runs in parts, simulated reads, and this machine."""

from f5py.api.command import Command, Function

RUN_PART = Command(
    name="run-part",
    options_class="part_commands.RunPartOptions",
    module="f5py.commands.parts",
    function="run_part",
    title="Do parts of a plan.",
    help="""Do parts of a plan that was made by call-methylation or eventalign with --plan and --partitions.

Parts can be done in any order, by any number of processes and machines that see the folder.
""",
    examples=(
        "f5py run-part plan/ 7",
        "f5py run-part plan/ 0-15 -t 16",
        "f5py run-part plan/",
    ),
    reports_resources=True,
    functions=(
        Function(
            name="run_part",
            way="value",
            does="Do parts of a plan, as ``f5py run-part`` does; the working folder is that of the plan meanwhile.",
            annotation="None",
            example="""
>>> inputs = {"reads": "made/reads.fastq", "bam": "made/reads.bam", "genome": "made/ref.fa"}
>>> counts = f5py.call_methylation(**inputs, output="planned.tsv", plan="plan", partitions=2)
>>> f5py.run_part("plan", "0-1")
""",
        ),
    ),
)
PLAN = Command(
    name="plan",
    options_class="part_commands.PlanOptions",
    module="f5py.commands.plan",
    title="Show the progress of a plan and the time left.",
    help="Show the progress of a plan made with --plan, and how long the rest will take.",
    examples=(
        "f5py plan plan/",
        "f5py plan plan/ --estimate --jobs 100 --price 0.8",
        "f5py plan plan/ --print-slurm -o array.sh",
    ),
    functions=(
        Function(
            name="plan",
            way="unwritten",
            does="Tell how far a plan is, how long it will take, or how to submit it, as ``f5py plan`` does.",
            has_progress=False,
            returns="str",
            returned="The text. It is written only if `output` is given.",
            annotation="str",
            example="""
>>> f5py.plan("plan")
'command\\tcall-methylation\\nparts\\t2\\ndone\\t2\\n'
""",
        ),
    ),
)
FINISH = Command(
    name="finish",
    options_class="part_commands.FinishOptions",
    module="f5py.commands.parts",
    function="finish",
    title="Write the outputs of a plan whose parts are done.",
    help="Write the outputs of a plan whose parts are all done: the same bytes as from a single run.",
    examples=("f5py finish plan/",),
    functions=(
        Function(
            name="finish",
            way="value",
            annotation="f5py.compute.counts.RunCounts",
            does="Write the outputs of a plan whose parts are done, as ``f5py finish`` does.",
            returns="RunCounts",
            returned="How many reads met which fate.",
            example="""
>>> f5py.finish("plan").total
30
>>> from pathlib import Path
>>> Path("planned.tsv").read_bytes() == Path("calls.tsv").read_bytes()
True
""",
        ),
    ),
)
JOIN = Command(
    name="merge",
    options_class="part_commands.JoinOptions",
    module="f5py.commands.merge",
    title="Merge outputs, such as those of several windows.",
    help="""Merge outputs of the same kind, such as those of several windows: tables, Parquet, modBAM or bedMethyl.

Rows come in the order of the files. modBAM records that are in several files are merged into one with all calls,
and bedMethyl counts are added up. For tables of frequencies use freq-merge.
""",
    examples=(
        "f5py merge chr1.tsv.gz chr2.tsv.gz -o calls.tsv.gz",
        "f5py merge window1.bam window2.bam -o calls.bam",
        "f5py merge window1.bed window2.bed -o sites.bed.gz",
    ),
    functions=(
        Function(
            name="merge",
            way="file",
            does="Merge outputs of one kind, such as those of windows, as ``f5py merge`` does.",
            has_progress=False,
            annotation="None",
            what="what is merged",
            example="""
>>> f5py.merge(["calls.tsv", "planned.tsv"], output="both.tsv")
""",
        ),
    ),
)
SIMULATE = Command(
    name="simulate",
    options_class="table_commands.SimulateOptions",
    module="f5py.commands.simulate",
    title="Simulate reads of known methylation.",
    help="""Simulate reads of known methylation.

Writes into FOLDER: ref.fa, reads.fastq, reads.bam, the signals, the sites' true frequencies (truth.tsv) and the
state of every site in every read (truth_reads.tsv). Dwell times and noise are like those of real reads.
""",
    examples=(
        "f5py simulate -o simulated --genome-length 100K --coverage 20 --seed 1",
        "f5py simulate -o rna --pore rna004 --genome-length 20K -n 1000 --format pod5",
    ),
    functions=(
        Function(
            name="simulate",
            way="value",
            annotation="f5py.commands.simulate.SimulationSummary",
            does="Simulate reads of known methylation, as ``f5py simulate`` does.",
            returns="SimulationSummary",
            returned="What was written.",
            example="""
>>> made = f5py.simulate(output="made", genome_length=20_000, n_reads=30, median_length=2_000, seed=1)
>>> made.n_reads
30
""",
        ),
    ),
)
DEMO = Command(
    name="demo",
    options_class="table_commands.DemoOptions",
    module="f5py.cli.demo",
    title="Simulate, index, call and compare with the truth.",
    help="""Simulate reads, index them, call methylation and compare its frequencies with the truth.

Everything is written into FOLDER (default: f5py-demo), and every step is shown as the command that you
would type. The last lines show whether f5py works on this machine.
""",
    examples=("f5py demo",),
)
GPU_CHECK = Command(
    name="gpu-check",
    options_class="machine_commands.GpuCheckOptions",
    module="f5py.commands.gpu_check",
    title="Show the GPUs, and check that they compute what the CPU does.",
    help="""Show the GPUs, and check that they compute what the CPU does.

Prints each GPU with its compute capability and memory, and the versions of CuPy, of CUDA's driver and of its
run-time compiler (NVRTC). Every kernel is compiled, and computes a small made-up batch whose results must be the
CPU's to the last bit. The status is 1 if there is no GPU, or if one cannot be used.
""",
    examples=(
        "f5py gpu-check",
        "f5py gpu-check --cuda-dev-id 0",
    ),
)
COMPILE = Command(
    name="compile",
    options_class="machine_commands.CompileOptions",
    module="f5py.cli.compile",
    title="Compile the hot loops ahead of the first run.",
    help="""Compile the hot loops for this processor, ahead of the first run.

What is compiled is kept where runs look for it, see NUMBA_CACHE_DIR. With --cuda-arch the kernels are compiled for
GPUs of these compute capabilities, too, which need not be there. For images of containers, and nodes of clusters.
""",
    examples=(
        "f5py compile",
        "f5py compile --cuda-arch 87",
    ),
)
