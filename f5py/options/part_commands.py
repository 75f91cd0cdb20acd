"""The options of runs in parts, and of the commands that work on a plan."""

from __future__ import annotations

from collections.abc import Iterator

from f5py.options.declaration import Group, Kind, Options, argument, flag, option, options_class
from f5py.options.gpu import GPU_USES
from f5py.options.shared import MOST_PROCESSES, MOST_THREADS, output_file, threads

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
        yield from super().rules()
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
        brief="Call what arrives in this folder",
        help="Call the alignments (BAM) that arrive in this folder, with the signals in it; without BAM, FASTQ is "
        "mapped as f5py map does it. Ctrl-C ends the run and writes the results; the same command continues "
        "it.")  # fmt: skip
    watch_until_idle: float | None = option("--watch-until-idle", kind=Kind.NUMBER, group=Group.INPUT, at_least=0,
        metavar="MINUTES", ours=True, free=True, default_words="never",
        help="Write the results and end when nothing new has arrived for this long.")  # fmt: skip
    watch_interval: float = option("--watch-interval", group=Group.INPUT, default=10.0, above=0, metavar="SECONDS",
        ours=True, free=True,
        help="How often the folder is checked; a file that has not changed in between is complete.")  # fmt: skip
    watch_process_total: int | None = option("-c", "--watch-process-total", kind=Kind.INTEGER, group=Group.INPUT,
        at_least=1, default_words="1",
        help="Number of processes that share the files in the folder, by the last number in the file "
        "names.")  # fmt: skip
    watch_process_index: int | None = option("-i", "--watch-process-index", kind=Kind.INTEGER, group=Group.INPUT,
        at_least=0, default_words="0", help="Which of these processes this is.")  # fmt: skip

    def rules(self) -> Iterator[str]:
        """Refuse other inputs beside a watched folder, and its options without one."""
        yield from super().rules()
        others = self.given("reads", "window", "partitions", "engine", "resume")
        advice = "all that comes into the folder is called, and the same command goes on with it"
        yield from self.not_with(others, "watch", advice=advice)
        if self.watch is None:
            yield from self.only_with("--watch", "watch_until_idle", "watch_process_total", "watch_process_index")
        total, index = self.watch_process_total or 1, self.watch_process_index or 0
        if index >= total:
            yield f"--watch-process-index {index}: must be below --watch-process-total, which is {total}"


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
        yield from super().rules()
        if not self.estimate:
            yield from self.only_with("--estimate", "speed", "price")


@options_class
class JoinOptions(Options):
    """Options of ``f5py merge``; `command_line` is what an @PG line says."""

    command_line: str = "f5py merge"

    inputs: tuple[str, ...] = argument("FILE", default=(), repeated=True,
        help="Outputs of call-methylation or eventalign of the same kind: tables, Parquet, modBAM or "
        "bedMethyl.")  # fmt: skip
    output: str = output_file()
    threads: int = threads("Compression threads.")
