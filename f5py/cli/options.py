"""Option types and option objects shared by the subcommands, each declared once."""

from __future__ import annotations

import resource
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from f5py import __version__, console


class YesNo(click.ParamType):
    """``yes``/``y`` or ``no``/``n``, as f5c takes them; anything else is a usage error."""

    name = "yes|no"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        if isinstance(value, bool):
            return value
        if value in ("yes", "y"):
            return True
        if value in ("no", "n"):
            return False
        self.fail(f"{value!r} is neither yes nor no", param, ctx)


class BaseCount(click.ParamType):
    """A number of bases with an optional decimal suffix K, M or G (either case)."""

    name = "NUM[K/M/G]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        multiplier = {"K": 1e3, "M": 1e6, "G": 1e9}.get(value[-1:].upper(), 1.0)
        digits = value if multiplier == 1.0 else value[:-1]
        try:
            count = int(float(digits) * multiplier + 0.499)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a number such as 5000000, 500K or 5M", param, ctx)
        if count < 1:
            self.fail(f"{value!r} is not greater than zero", param, ctx)
        return count


class _Profile(click.ParamType):
    name = "NAME|FILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from f5py.pipeline.profiles import Profile, load_profile

        return value if isinstance(value, Profile) else load_profile(value)


YES_NO = YesNo()
INPUT_FILE = click.Path(exists=False, dir_okay=False)
OUTPUT_FILE = click.Path(exists=False, dir_okay=False, allow_dash=True)
_POSITIVE = click.IntRange(min=1)


class ProfiledCommand(click.Command):
    """A command whose ``-x`` values stand in for the options that were not given, wherever ``-x`` stands."""

    def invoke(self, ctx: click.Context) -> Any:
        from click.core import ParameterSource

        profile = ctx.params.pop("profile", None)
        if profile is not None:
            for name, value in profile.values().items():
                if name in ctx.params and ctx.get_parameter_source(name) is ParameterSource.DEFAULT:
                    ctx.params[name] = value
            _print_profile({**profile.values(), **ctx.params})
        return super().invoke(ctx)


def _print_profile(values: dict[str, Any]) -> None:
    console.note(
        "set_opt_profile",
        f"max-lf: {values['cuda_max_lf']:.1f}, avg-epk: {values['cuda_avg_epk']:.1f}, "
        f"max-epk: {values['cuda_max_epk']:.1f}, K: {values['batchsize']}, B: {values['max_bases'] / 1e6:.1f}M, "
        f"t: {values['threads']}, ultra-thresh: {values['ultra_thresh'] / 1e3:.1f}k, iop: {values['iop'] or 'auto'}",
    )


#: Context settings of every subcommand.
CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}

VERSION = (
    click.version_option(__version__, "-V", "--version", prog_name="f5py", message="%(prog)s %(version)s"),
)

INPUT = (
    click.option("-r", "--reads", required=True, type=INPUT_FILE, help="Base-called reads, indexed by f5py index."),
    click.option("-b", "--bam", required=True, help="Sorted alignments (SAM, BAM or CRAM; - for standard input)."),
    click.option("-g", "--genome", required=True, type=INPUT_FILE, help="Reference in FASTA format."),
    click.option("-w", "--window", help="Only the region contig:start-end, or the windows in a .bed file."),
    click.option("--slow5", type=INPUT_FILE, help="Signals in a SLOW5 or BLOW5 file."),
    click.option("--pod5", type=click.Path(exists=False), help="Signals in a POD5 file or a folder of them."),
)

RUN = (
    click.option("-t", "--threads", type=_POSITIVE, default=8, show_default=True, help="Worker threads."),
    click.option(
        "-K",
        "--batchsize",
        type=_POSITIVE,
        default=512,
        show_default=True,
        help="Maximum number of reads in a batch.",
    ),
    click.option(
        "-B",
        "--max-bases",
        type=BaseCount(),
        default="5M",
        show_default=True,
        help="Number of bases at which a batch is closed.",
    ),
    click.option(
        "-o",
        "--output",
        type=OUTPUT_FILE,
        default="-",
        help="Output file, compressed if it ends in .gz.  [default: standard output]",
    ),
    click.option(
        "-x", "--profile", type=_Profile(), help="Options for a kind of machine (laptop, desktop, hpc, ...) or a file."
    ),
    click.option(
        "--iop", type=_POSITIVE, help="Processes that read fast5 or POD5 files.  [default: chosen from -t]"
    ),
    click.option("-v", "--verbose", type=click.IntRange(0, 255), default=0, show_default=True, help="Verbosity."),
)

RECALIBRATION = (
    click.option(
        "--min-recalib-events",
        type=_POSITIVE,
        default=200,
        show_default=True,
        help="Minimum number of events to recalibrate a read with.",
    ),
)

FILTERS = (
    click.option(
        "--min-mapq", type=int, default=20, show_default=True, help="Leave out alignments of lower mapping quality."
    ),
    click.option(
        "--secondary", type=YES_NO, default="no", show_default=True, help="Use secondary alignments too."
    ),
    click.option(
        "--skip-unreadable",
        type=YES_NO,
        default="yes",
        show_default=True,
        help="Leave out reads without a usable signal instead of stopping.",
    ),
    click.option(
        "--hard-clips",
        type=YES_NO,
        default="yes",
        show_default=True,
        help="Count hard-clipped bases in read positions; f5c does not, and misplaces such records (no: as f5c).",
    ),
    click.option("--skip-ultra", type=OUTPUT_FILE, help="Leave out ultra-long reads and write them to this BAM file."),
    click.option(
        "--ultra-thresh",
        type=int,
        default=100_000,
        show_default=True,
        help="Reads longer than this are ultra-long (with --skip-ultra).",
    ),
    *RECALIBRATION,
)

RNA = (click.option("--rna", is_flag=True, help="The reads are direct RNA."),)

MODELS = (
    click.option(
        "--pore",
        type=click.Choice(["r9", "r10", "rna004"]),
        help="Pore chemistry.  [default: as the signals say, else r9]",
    ),
    click.option("--kmer-model", type=INPUT_FILE, help="Pore model to use instead of the built-in one."),
)

CUDA = (
    click.option(
        "--disable-cuda",
        type=YES_NO,
        default="no",
        show_default=True,
        help="Do not use a GPU. By default one is started when that pays; no, given here, starts it at once.",
    ),
    click.option("--cuda-dev-id", type=click.IntRange(min=0), default=0, show_default=True, help="GPU to use."),
    click.option(
        "--cuda-max-lf",
        type=float,
        default=3.0,
        show_default=True,
        help="Reads shorter than this times the batch's mean length may go to the GPU.",
    ),
    click.option(
        "--cuda-avg-epk",
        type=float,
        default=2.0,
        show_default=True,
        help="Events per k-mer that GPU memory is laid out for.",
    ),
    click.option(
        "--cuda-max-epk",
        type=float,
        default=5.0,
        show_default=True,
        help="Reads with fewer events per base may go to the GPU.",
    ),
    click.option("--cuda-mem-frac", type=float, help="Share of free GPU memory to use.  [default: 0.9; Jetson 0.7]"),
    click.option(
        "--auto-tune",
        type=YES_NO,
        default="no",
        show_default=True,
        help="Follow the advice on batch sizes and on the GPU's share while running.",
    ),
)

REPORT = (
    click.option(
        "--report",
        type=OUTPUT_FILE,
        help="Write counts, times, versions and parameters as JSON; MultiQC takes it if its name ends in _mqc.json.",
    ),
)

DEVELOPER = (
    click.option("--print-events", type=YES_NO, default="no", hidden=True, help="Print detected events."),
    click.option("--print-banded-aln", type=YES_NO, default="no", hidden=True, help="Print aligned pairs."),
    click.option("--print-scaling", type=YES_NO, default="no", hidden=True, help="Print each read's scaling."),
    click.option("--debug-break", type=int, default=-1, hidden=True, help="Stop after the batch of this number."),
    click.option("--profile-cpu", type=YES_NO, default="no", hidden=True, help="Accepted; times are always printed."),
)


def was_given(name: str) -> bool:
    """Whether the option of that parameter name stands on the command line that is being run."""
    from click.core import ParameterSource

    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def gpu_at_once(parameters: dict[str, Any]) -> bool:
    """Whether a GPU is asked for, rather than allowed, on the command line that is being run."""
    return was_given("disable_cuda") and not parameters["disable_cuda"]


def command_line() -> str:
    """The command line as a user can repeat it."""
    return shlex.join(["f5py", *sys.argv[1:]])


def add(*groups: Iterable[Callable]) -> Callable:
    """A decorator that applies groups of options in the order in which the help shall list them."""

    def decorate(function: Callable) -> Callable:
        for option in reversed([option for group in groups for option in group]):
            function = option(function)
        return function

    return decorate


@contextmanager
def resource_report() -> Iterator[None]:
    """Print version, command line, time and memory when the command inside has succeeded."""
    started = time.perf_counter()
    yield
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in usage)
    peak = max(one.ru_maxrss for one in usage) * 1024 / 2**30
    console.note("main", f"Version: {__version__}")
    console.note("main", f"CMD: {command_line()}")
    console.note(
        "main",
        f"Real time: {time.perf_counter() - started:.3f} sec; CPU time: {cpu:.3f} sec; Peak RAM: {peak:.3f} GB\n",
    )
