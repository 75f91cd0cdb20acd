"""Options classes as click commands: their functions, parsing as by getopt, and help by groups.

As with getopt, names may be abbreviated, and some options have an optional value.
"""

import os
import resource
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from typing import Any

import click

from f5py import __version__
from f5py.api import functions
from f5py.api.call import FUNCTIONS, function
from f5py.cli.commands import COMMANDS, Command
from f5py.errors import F5pyError, OutputFileError, UsageError
from f5py.messages import console
from f5py.options import Group, Kind, Option, Options, declarations
from f5py.options.declaration import REQUIRED, base_count
from f5py.options.table_commands import CompileOptions, DemoOptions, GpuCheckOptions

#: Less address space is not enough for the libraries: NumPy's import fails with a traceback, and LLVM ends the process.
_LEAST_ADDRESS_SPACE = 512 << 20
#: Key of a context's `meta`: the words after the name of the command.
WORDS = "f5py.words"
#: Of values that the shell completes as names of files.
_FILE_NAME = click.Path(readable=False)
#: Options of every command.
COMMON = ("-h", "--help", "-V", "--version", "--help-all", "--quiet", "--log-file")
#: Those that are never abbreviated.
_OF_MESSAGES = ("--help-all", "--quiet", "--log-file")


@function(DemoOptions, has_progress=False)
def _demo(*, step: Callable[[str, list[str]], None], **options: Any) -> None:
    from f5py.cli import demo

    demo.run(DemoOptions(**options), step)


@function(GpuCheckOptions, has_progress=False)
def _gpu_check(**options: Any) -> None:
    from f5py.commands import gpu_check

    gpu_check.run(GpuCheckOptions(**options))


@function(CompileOptions, has_progress=False)
def _compile(*, step: Callable[[str, list[str]], None], **options: Any) -> None:
    from f5py.cli import compile

    compile.run(CompileOptions(**options), step)


#: By the names of the commands.
DOORS: dict[str, Callable[..., object]] = {
    "index": functions.index, "map": functions.map_reads, "call-methylation": functions.call_methylation,
    "meth-freq": functions.frequencies, "eventalign": functions.eventalign, "resquiggle": functions.resquiggle,
    "freq-merge": functions.merge_frequencies, "extract": functions.extract, "regions": functions.regions,
    "summary": functions.summary, "validate": functions.validate,
    "compare": functions.compare, "train": functions.train, "fast5-check": functions.fast5_check,
    "plot": functions.plot, "plot-region": functions.plot_region, "simulate": functions.simulate,
    "run-part": functions.run_part, "plan": functions.plan, "finish": functions.finish, "merge": functions.merge,
    "demo": _demo, "gpu-check": _gpu_check, "compile": _compile,
}  # fmt: skip


def options_of(name: str) -> type[Options]:
    """Return the class of a command's options."""
    return FUNCTIONS[DOORS[name].__name__]


class YesNo(click.ParamType):
    """``yes``/``y`` or ``no``/``n``, as in f5c; anything else is a usage error."""

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
        if (count := base_count(value)) is None:
            self.fail(f"{value!r} is not a number such as 5000000, 500K or 5M", param, ctx)
        if count < 1:
            self.fail(f"{value!r} is not greater than zero", param, ctx)
        return count


class _Choice(click.ParamType):
    """One of some words or numbers."""

    name = "choice"

    def __init__(self, choices: tuple[Any, ...]) -> None:
        self._values = {str(choice): choice for choice in choices}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value) not in self._values:
            self.fail(f"{value!r} is not one of {', '.join(self._values)}", param, ctx)
        return self._values[str(value)]

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in self._values if name.startswith(incomplete)]


class _ConditionalOption(click.Option):
    """An option that must be given unless one of some others is."""

    def __init__(self, *names: Any, unless: tuple[str, ...], **more: Any) -> None:
        super().__init__(*names, **more)
        self._unless = unless

    def handle_parse_result(self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]) -> Any:
        self.required = all(opts.get(name) is None for name in self._unless)
        return super().handle_parse_result(ctx, opts, args)


class OptionsCommand(click.Command):
    """A command with the options that its class declares, which calls the function of its name in `DOORS`."""

    def __init__(self, row: Command) -> None:
        self.row = row
        self.options = options_of(row.name)
        self.examples = row.examples
        self.declared = declarations(self.options)
        params: list[click.Parameter] = [_parameter(name, option) for name, option in self.declared.items()]
        version = click.version_option(
            __version__, "-V", "--version", prog_name="f5py", message="%(prog)s %(version)s", help="Print the version."
        )
        context = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
        super().__init__(row.name, params=params, context_settings=context, help=row.help, callback=self._run)
        version(self)
        self.params += [
            click.Option(
                ["--help-all"], is_flag=True, hidden=True, is_eager=True, expose_value=False, callback=_show_all
            ),
            click.Option(["--quiet"], is_flag=True, is_eager=True, expose_value=False, callback=_be_quiet),
            click.Option(["--log-file"], type=_FILE_NAME, is_eager=True, expose_value=False, callback=_log_to),
        ]

    def _run(self, **given: Any) -> None:
        _check_address_space()
        with resource_report() if self.row.reports_resources else nullcontext():
            DOORS[self.row.name](**given, **({"step": run_step} if self.row.runs_commands else {}))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # the shell's completion reads an unfinished line
        ctx.meta[WORDS] = args if ctx.resilient_parsing else expand(args, self.declared.values())
        try:
            return super().parse_args(ctx, list(ctx.meta[WORDS]))
        except click.UsageError as wrong:
            wrong.ctx = ctx  # its parser leaves that out
            raise

    def invoke(self, ctx: click.Context) -> Any:
        assert self.callback is not None
        return ctx.invoke(self.callback, **self.given(ctx))

    def given(self, ctx: click.Context) -> dict[str, Any]:
        """Collect the given options by field, the output's default, and the command line."""
        source, on_command_line = ctx.get_parameter_source, click.core.ParameterSource.COMMANDLINE
        given = {name: value for name, value in ctx.params.items() if source(name) is on_command_line}
        if "output" in self.declared and isinstance(self.declared["output"].default, str):
            given.setdefault("output", self.declared["output"].default)
        if any(field.name == "command_line" for field in fields(self.options)):  # type: ignore[arg-type]
            given["command_line"] = command_line()
        return given

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the headings of their groups: all of them, or those that most users need."""
        every = [option for option in self.declared.values() if not option.is_hidden]
        shows_all = ctx.meta.get(_ALL, False)
        listed = every if shows_all else _usual(every)
        headings = [("Arguments", [option for option in listed if option.is_argument])]
        for group in Group:
            of_group = [option for option in listed if option.group is group and not option.is_argument]
            headings.append((group.value, sorted(of_group, key=lambda one: one.default is not REQUIRED)))
        for heading, options in headings:
            rows = [_help_row(option) if shows_all else _brief_row(option) for option in options]
            if heading == Group.OTHER.value:
                if not shows_all and (len(listed) < len(every) or any(option.brief for option in listed)):
                    rows.append(("--help-all", "Show all options, and all about them."))
                rows += _OF_ALL
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are, so that they can be copied."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


_ALL = "f5py.help_all"
#: Options that few need.
_RARE = (Group.LIMITS, Group.GPU)
#: With more options than this the help shows those that have a brief description.
_MOST_SHOWN = 20
_OF_ALL = [
    ("--quiet", "Print nothing but warnings and errors."),
    ("--log-file FILE", "Append all messages to this file, too."),
    ("-V, --version", "Print the version."),
    ("-h, --help", "Show this message."),
]


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _be_quiet(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        console.be_quiet()


def _log_to(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None and not ctx.resilient_parsing:
        try:
            if os.path.isfile(value):
                with open(value, "rb") as file:
                    if file.read(1) not in (b"", b"["):  # as our messages begin
                        raise OutputFileError(f"--log-file {value}: is there and no log of f5py; give another name")
            console.log_to(value)
        except OSError as problem:
            raise OutputFileError(f"--log-file {value}: cannot write: {problem.strerror}") from None


def _usual(options: list[Option]) -> list[Option]:
    """Choose the options for the help of one screen."""
    usual = [option for option in options if option.group not in _RARE]
    if len(usual) <= _MOST_SHOWN:
        return usual
    return [option for option in options if option.brief or option.is_argument or option.default is REQUIRED]


def _brief_row(option: Option) -> tuple[str, str]:
    spelled, words = _help_row(option)
    if option.brief is None:
        return spelled, words
    default = "" if option.is_argument or option.default_words is not None else option.default_text()
    return spelled, option.brief.rstrip(".") + (f" [{default}]" if default not in ("", "none") else "")


def _help_row(option: Option) -> tuple[str, str]:
    if option.is_argument:
        return option.metavar or "", option.help
    shown = option.default_text()
    if shown not in ("", "none"):
        shown = f"  [{shown}]" if shown.startswith("required") else f"  [default: {shown}]"
    else:
        shown = ""
    return f"{', '.join(option.names)} {option.value_text()}".rstrip(), option.help + shown


def _parameter(name: str, option: Option) -> click.Parameter:
    """Make the parameter of click that `option` declares."""
    if option.is_argument:
        if option.repeated:
            required = option.default is REQUIRED
            return click.Argument([name], nargs=-1, required=required, metavar=option.metavar, type=_FILE_NAME)
        more: dict[str, Any] = {} if option.default is REQUIRED else {"default": option.default}
        return click.Argument([name], required=not more, metavar=option.metavar, type=_FILE_NAME, **more)
    more = {"hidden": option.is_hidden, "help": option.help}
    if option.kind is Kind.FLAG:
        more["is_flag"] = True
    else:
        more |= {"multiple": option.repeated, "metavar": option.value_text()}
        more["type"] = _Choice(option.choices) if option.choices else _TYPES[option.kind]
    if option.unless:
        return _ConditionalOption([*option.spellings, name], unless=option.unless, **more)
    if option.default is REQUIRED:
        more["required"] = True
    else:
        more["default"] = option.default
    if option.refused is not None:
        more |= {"is_eager": True, "callback": lambda ctx, param, value: option.check(value)}
    return click.Option([*option.spellings, name], **more)


_TYPES = {
    Kind.YES_NO: YesNo(), Kind.BASES: BaseCount(), Kind.INTEGER: click.INT, Kind.NUMBER: click.FLOAT,
    Kind.TEXT: click.STRING, Kind.FILE: _FILE_NAME, Kind.PATH: _FILE_NAME,
}  # fmt: skip


def expand(words: list[str], options: Iterable[Option]) -> list[str]:
    """Write every option out: long names whole, and a value where one may be missing and is.

    Raises `UsageError` if an abbreviation stands for several options, or an option with one value is given twice.
    Unknown words are left to the parser.
    """
    by_name: dict[str, Option | None] = {name: None for name in COMMON}
    for option in options:
        by_name.update(dict.fromkeys(option.spellings, option))
    given: dict[str, str] = {}
    expanded: list[str] = []
    rest = iter(words)
    pending: list[str] = []
    while (word := pending.pop() if pending else next(rest, None)) is not None:
        if word == "--":
            expanded += [word, *rest]
            break
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            name = _whole_name(name, by_name)
            option_or_none = by_name.get(name)
            takes_next = option_or_none is not None and option_or_none.kind is not Kind.FLAG and not equals
            _check_once(name, option_or_none, given)
            expanded.append(name + equals + value)
        elif word.startswith("-") and len(word) > 1:
            cluster = _in_cluster(word, by_name)
            for name, option in cluster:
                _check_once(name, option, given)
            option_or_none = cluster[-1][1] if cluster else None
            is_last = len(cluster) == len(word) - 1
            takes_next = option_or_none is not None and option_or_none.kind is not Kind.FLAG and is_last
            expanded.append(word)
        else:
            expanded.append(word)
            continue
        if not takes_next or option_or_none is None:
            continue
        value_word = next(rest, None)
        if option_or_none.value_may_lack is not None and not _is_value(value_word, option_or_none):
            expanded.append(str(option_or_none.value_may_lack))
            if value_word is not None:
                pending.append(value_word)
        elif value_word is not None:
            expanded.append(value_word)
    return expanded


def _whole_name(name: str, by_name: dict[str, Option | None]) -> str:
    """Complete an abbreviated long name; return `name` itself if it is none."""
    if name in by_name:
        return name
    candidates = {
        known: option
        for known, option in by_name.items()
        if known.startswith(name) and known.startswith("--") and known not in _OF_MESSAGES
        if option is None or known not in option.foreign
    }
    old = {known: option for known, option in candidates.items() if option is None or not option.ours}
    candidates = old or candidates  # what f5c understands stays what it was
    if len({known if option is None else option.names[-1] for known, option in candidates.items()}) > 1:
        raise UsageError(f"option {name} is ambiguous: it could be {', '.join(sorted(candidates))}")
    return next(iter(candidates), name)


def _in_cluster(word: str, by_name: dict[str, Option | None]) -> list[tuple[str, Option]]:
    """List the options in a cluster of short ones, up to one with a value or an unknown one."""
    found = []
    for letter in word[1:]:
        option = by_name.get(f"-{letter}")
        if option is None:
            break
        found.append((f"-{letter}", option))
        if option.kind is not Kind.FLAG:
            break
    return found


def _check_once(name: str, option: Option | None, given: dict[str, str]) -> None:
    """Raise `UsageError` if an option with one value is repeated. `given`, added to, has earlier names by spelling."""
    if option is None and name not in _OF_MESSAGES:
        return
    if option is not None and (option.repeated or option.refused is not None):
        return
    key = name if option is None else option.spelling
    if key not in given:
        given[key] = name
        return
    which = f"{name} is given twice" if given[key] == name else f"{given[key]} and {name} are one option, given twice"
    commas = option is not None and option.listed
    raise UsageError(f"{which}; {'write several values with commas' if commas else 'leave one out'}")


def _is_value(word: str | None, option: Option) -> bool:
    """Return whether a word is the value of an option that may lack one: a choice, or else a number."""
    if word is None:
        return False
    return word in option.choices if option.choices else word.isascii() and word.isdigit()


def _check_address_space() -> None:
    """Raise `F5pyError` under a limit on memory (``ulimit -v``) that is too low for any command."""
    try:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except OSError:  # a sandbox may refuse to tell
        return
    if limit != resource.RLIM_INFINITY and limit < _LEAST_ADDRESS_SPACE:
        raise F5pyError(
            f"the limit on memory (ulimit -v) is {limit >> 20} MB, too low for the libraries that f5py needs; allow "
            f"{_LEAST_ADDRESS_SPACE >> 20} MB or more, and 2 GB for the first run, which compiles"
        )


def run_step(name: str, args: list[str], who: str = "demo") -> None:
    """Show a command line and run it in this process. Raises `F5pyError` if it fails."""
    console.note(who, shlex.join(["f5py", name, *args]))
    OptionsCommand(COMMANDS[name]).main(args, prog_name=f"f5py {name}", standalone_mode=False)


def command_line() -> str:
    """Write the command line so that a user can repeat it."""
    return shlex.join(["f5py", *sys.argv[1:]])


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
