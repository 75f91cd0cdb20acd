"""The ``f5py`` command: a group of lazily imported subcommands and one place that reports errors."""

from __future__ import annotations

import errno
import os
import signal
import sys
from importlib import import_module

import click

from f5py import __version__, console
from f5py.errors import F5pyError

#: name -> (module below f5py.cli, one line of help); the order is that of the help.
_COMMANDS = {
    "index": ("index", "Index basecalled reads and their signal files."),
    "call-methylation": ("call_methylation", "Call methylated bases in every read."),
    "meth-freq": ("meth_freq", "Methylation frequency at every site from the calls."),
    "simulate": ("simulate", "Simulate reads of known methylation."),
    "demo": ("demo", "Simulate, index, call and compare with the truth."),
}


class _LazyGroup(click.Group):
    """A group that imports a subcommand only when it is used, so that ``--help`` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"f5py.cli.{_COMMANDS[cmd_name][0]}")
        return module.command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="f5py", message="%(prog)s %(version)s")
def f5py() -> None:
    """Call methylation from nanopore signals. A drop-in replacement for f5c."""


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit with its status.

    0 success; 1 a reported error; 2 wrong usage; 130 interrupted; 141 the reader of our output went away.
    """
    try:
        f5py.main(args=args, prog_name="f5py", standalone_mode=False)
        sys.stdout.flush()
        status = 0
    except click.exceptions.Exit as stop:
        status = stop.exit_code
    except click.ClickException as wrong_usage:
        wrong_usage.show()
        status = wrong_usage.exit_code
    except F5pyError as problem:
        console.error("f5py", str(problem))
        status = 1
    except BrokenPipeError:
        status = _quiet_pipe_exit()
    except OSError as problem:
        if problem.errno == errno.EPIPE:
            status = _quiet_pipe_exit()
        else:
            where = f"{problem.filename}: " if problem.filename else ""
            console.error("f5py", f"{where}{problem.strerror or problem}")
            status = 1
    except (KeyboardInterrupt, click.Abort):
        console.error("f5py", "interrupted; the output written so far is valid but incomplete")
        status = 130
    sys.exit(status)


def _quiet_pipe_exit() -> int:
    """Point stdout at nothing, so that the interpreter's last flush does not complain, as SIGPIPE would end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 128 + signal.SIGPIPE
