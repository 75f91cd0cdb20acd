"""The ``f5py`` command: a group of lazily imported subcommands and one place that reports errors."""

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress
from functools import cache
from typing import Any, NoReturn

import click

from f5py import __version__
from f5py.cli.commands import COMMANDS, GROUPS
from f5py.cli.signals import number_of, raise_on_signals, resend, waiting
from f5py.errors import F5pyError, UsageError
from f5py.messages import console
from f5py.threads import ONE_THREAD

#: commands of f5c and nanopolish that are not here, and what to do instead.
_ELSEWHERE = {
    "polya": "dorado (--estimate-poly-a) and nanopolish polya measure poly(A) tails",
    "phase-reads": "phase with whatshap haplotag, then call-methylation --partition-tag HP counts by haplotype",
    "variants": "call variants with clair3",
    "methyltrain": "f5py train --methylated BAM makes models with methylated k-mers",
    "scorereads": "f5py eventalign --summary shows how well each read fits the pore model",
    "vcf2fasta": "use bcftools consensus",
    "detect-polyi": "nanopolish detect-polyi does this",
}

#: Objects made before unreachable ones are looked for. With Python's 700 a tenth of the time that a run takes to start
#: goes there, for imported modules have none.
_GARBAGE_THRESHOLD = 200_000
#: What the process is to end with.
_statuses: list[int] = []


class _StopError(Exception):
    """Ended from outside; the cause says how."""


def _report_unraisable(unraisable: Any) -> None:
    """Report uncatchable errors as Python does, except those of pysam's files.

    An interrupt is not lost for having come where Python drops every error, such as in the end of an object.
    """
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        resend(number_of(unraisable.exc_value))
    elif "pysam." not in str(unraisable.object):
        sys.__unraisablehook__(unraisable)


def _report_uncaught(kind: type[BaseException], problem: BaseException, trace: Any) -> None:
    """Report an uncaught error as Python does, except those of closing pysam's files: see above."""
    if trace is not None or not issubclass(kind, OSError):
        sys.__excepthook__(kind, problem, trace)


@cache
def command_of(name: str) -> Any:
    """Import a command as click has it; `f5py.cli.options` and the options are imported only here."""
    from f5py.cli.options import OptionsCommand

    return OptionsCommand(COMMANDS[name])


class _LazyGroup(click.Group):
    """A group that imports a subcommand only when it is used, so that ``--help`` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _ELSEWHERE:
            raise UsageError(f"{cmd_name}: not a command of f5py; {_ELSEWHERE[cmd_name]}")
        if cmd_name not in COMMANDS:
            return None
        return command_of(cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the subcommand; for a wrong name suggest the nearest ones."""
        if args[0] == "help":
            args = [*args[1:2], "--help"] if args[1:] else ["--help"]
            if args == ["--help"]:
                click.echo(ctx.get_help(), color=ctx.color)
                ctx.exit()
        name = args[0]
        is_wrong = not name.startswith("-") and name not in _ELSEWHERE and name not in COMMANDS
        if is_wrong and not ctx.resilient_parsing:  # as the shell does for its completion
            from difflib import get_close_matches

            near = [known for known in COMMANDS if known.startswith(name)] or get_close_matches(name, COMMANDS)
            more = f"did you mean {' or '.join(near)}?" if near else "f5py --help lists them"
            raise UsageError(f"{name}: not a command of f5py; {more}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; click would give a closed pipe and Ctrl-C endings of its own."""
        try:
            return super().invoke(ctx)
        except (BrokenPipeError, KeyboardInterrupt) as reason:
            raise _StopError from reason

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(len(name) for name in COMMANDS)
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), COMMANDS[name].title) for name in names])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="f5py", message="%(prog)s %(version)s")
def f5py() -> None:
    """Call methylation from nanopore signals. A drop-in replacement for f5c."""


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit with its status; without `args`, as the program of this process.

    0 success; 1 a reported error; 2 wrong usage; 128 and the number of a signal: 129 hung up, 130 interrupted, 141 the
    reader of our output went away, 138, 143 and 152 ended by a batch system.
    """
    if sys.stderr is None:
        _point_at_nothing(2)  # else an output file may get its number, and with it the messages of libraries
    if args is None:
        atexit.register(_end)  # before all others, so that it is called after them
    gc.set_threshold(_GARBAGE_THRESHOLD)
    os.environ.update(ONE_THREAD | os.environ)  # before NumPy is imported
    sys.unraisablehook = _report_unraisable
    sys.excepthook = _report_uncaught
    raise_on_signals(main.__code__)
    with console.on_standard_error():
        _exit(_status(args))


def _status(args: list[str] | None) -> int:
    """Run the command line, report an error, and return the exit status."""
    if (files := sys.modules.get("f5py.io.files.atomic_write")) is not None:
        files.forget_files_with_rows()
    try:
        f5py.main(args=args, prog_name="f5py", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        status = 0
    except click.exceptions.Exit as stop:
        status = stop.exit_code
    except click.UsageError as wrong:
        if isinstance(wrong, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # of click 8.2 and later
            wrong.show()
        else:
            from f5py.cli.wrong_usage import one_line

            console.error("f5py", one_line(wrong))
        status = wrong.exit_code
    except F5pyError as problem:
        if (number := waiting()) is not None:  # inputs end, too, when a whole pipeline is interrupted
            return _ended_by(number)
        console.error("f5py", str(problem))
        status = 2 if isinstance(problem, UsageError) else 1
    except (_StopError, BrokenPipeError, KeyboardInterrupt, click.Abort) as stop:
        reason = stop.__cause__ or stop
        if isinstance(reason, BrokenPipeError):
            _point_at_nothing(1)  # the interpreter's last flush would complain of what it cannot take
            status = 128 + signal.SIGPIPE
        else:
            status = _ended_by(number_of(reason) if isinstance(reason, KeyboardInterrupt) else signal.SIGINT)
    except MemoryError:
        what = "not enough memory; make batches smaller (-K, -B), or leave more to this program"
        console.error("f5py", f"{what}{_rows_until_then()}")
        status = 1
    except RuntimeError as problem:
        if "start new thread" not in str(problem):
            raise
        console.error("f5py", "the system allows no more threads, or has no memory for them; use a smaller -t")
        status = 1
    except OSError as problem:
        console.error("f5py", f"{_where(problem)}{problem.strerror or problem}{_rows_until_then()}")
        status = 1
    return status


def _where(problem: OSError) -> str:
    """Name the file of a system's error."""
    if problem.filename:
        return f"{problem.filename}: "
    try:
        os.getcwd()
    except OSError:
        return "the working folder has gone, change to another one: "
    return ""


def _ended_by(number: int) -> int:
    """Report the signal that ended the run, and return the exit status."""
    what = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    console.error("f5py", f"{what}; files appear only when they are complete{_rows_until_then()}")
    return 128 + number


def _rows_until_then() -> str:
    """Name the files with rows of incomplete tables."""
    files = sys.modules.get("f5py.io.files.atomic_write")
    kept = files.files_with_rows() if files is not None else []
    return f"; the rows until then are in {' and '.join(kept)}" if kept else ""


def _point_at_nothing(descriptor: int) -> None:
    """Redirect an output of the process to the null device."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    if nothing != descriptor:
        os.dup2(nothing, descriptor)
        os.close(nothing)


def _exit(status: int) -> NoReturn:
    run, opening = (sys.modules.get(f"f5py.{name}") for name in ("threads.pipeline", "compute.gpu.device"))
    is_stuck = False
    if status and run is not None and run.stages_running():
        from f5py.io.files.atomic_write import finish_pending

        is_stuck = True
        finish_pending()
    elif status and sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError:  # has been reported
            _point_at_nothing(1)
    if is_stuck or (opening is not None and opening.is_starting()):
        # In a call that does not return, or not soon. The interpreter's own end would come to blows with that thread.
        if sys.stderr is not None:
            sys.stderr.flush()
        os._exit(status)
    _statuses.append(status)
    sys.exit(status)


def _end() -> None:
    """End the process after its exit handlers, without the slow teardown of modules."""
    if _statuses:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # closed, or nobody reads it: has been reported
                if stream is not None:
                    stream.flush()
        os._exit(_statuses[-1])
