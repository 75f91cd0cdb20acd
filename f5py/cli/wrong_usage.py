"""One-line messages for the usage errors of click."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any

import click

from f5py.cli.commands import COMMANDS
from f5py.cli.options import WORDS, options_of
from f5py.options import Kind, Option, declarations

_VALUES = {"a valid integer": "a whole number", "a valid float": "a number"}


def one_line(problem: click.UsageError) -> str:
    """Describe a usage error and its correction in one line."""
    context = problem.ctx
    command: Any = None if context is None else context.command
    if context is None or not hasattr(command, "declared"):
        if isinstance(problem, click.NoSuchOption):
            name = problem.option_name
            return f"{name}: options come after the command, as in f5py call-methylation {name}; f5py --help lists all"
        return f"{_strip_period(problem.message)}; f5py --help lists the commands"
    if isinstance(problem, click.NoSuchOption):
        return _no_such_option(problem.option_name, command.name, command.declared)
    given, extra = _parse_given(context, command)
    if isinstance(problem, click.BadOptionUsage):
        option = _of_name(problem.option_name, command.declared)
        if option is not None and option.value_text():
            return f"{problem.option_name} needs a value ({option.value_text()}), and none follows; {_more(context)}"
    elif isinstance(problem, click.BadParameter) and not isinstance(problem, click.MissingParameter):
        name = str(problem.param.name) if problem.param is not None else ""
        return _bad_value(problem, given.get(name), command.declared.get(name))
    if extra and (told := _several_values(context.meta[WORDS], command.declared)):
        return told
    missing = [one for one in command.params if one.required and given.get(one.name) in (None, ())]
    takes_words = any(isinstance(one, click.Argument) for one in command.params)
    if extra and not takes_words:
        files = [one for one in command.declared.values() if one.kind in (Kind.FILE, Kind.PATH)]
        named = _join([_spell(command.declared[one.name]) for one in missing] or [_spell(one) for one in files[:2]])
        how = f"files are named by options, such as {named}" if files else "leave it out"
        return f"{command.name} takes no arguments, and {extra[0]} is one; {how}"
    if isinstance(problem, click.MissingParameter):
        wanted = _join([_describe_missing(command.declared[one.name], command.declared) for one in missing])
        return f"{command.name} needs {wanted}; {_more(context)}"
    if extra:
        return f"{extra[0]} is one argument too many; {_more(context)}"
    return f"{_strip_period(problem.message)}; {_more(context)}"


def _no_such_option(name: str, command: str, declared: dict[str, Option]) -> str:
    """Name the nearest option, or the commands that have this one."""
    line = f"{command} has no option {name}"
    known = [spelling for option in declared.values() if not option.is_hidden for spelling in option.names]
    if name.startswith("--") and (near := get_close_matches(name, known, n=1, cutoff=0.75)):
        return f"{line}; did you mean {near[0]}?"
    if any(option.is_argument for option in declared.values()) and not name.startswith("--"):
        words = " ".join(option.metavar or "" for option in declared.values() if option.is_argument)
        return f"{line}; usage: f5py {command} [OPTIONS] {words}"
    others = [
        other
        for other in COMMANDS
        if any(name in one.names and one.refused is None for one in declarations(options_of(other)).values())
    ]
    if name == "-d" and "fast5" in declared:
        return (
            f"{line}, as index has it; give the folder of fast5 files with --fast5, or of others with --pod5, --slow5"
        )
    if others:
        return f"{line}; it is an option of {', '.join(others)}"
    return f"{line}; f5py {command} --help-all lists all"


def _parse_given(context: click.Context, command: click.Command) -> tuple[dict[str, Any], list[str]]:
    """Parse the given values by parameter, and the extra words."""
    try:
        given, extra, _ = command.make_parser(context).parse_args(list(context.meta.get(WORDS, ())))
    except click.UsageError:
        return {}, []
    return {name: value for name, value in given.items() if isinstance(value, (str, tuple, list))}, extra


def _several_values(words: Sequence[str], declared: dict[str, Option]) -> str:
    """Name an option followed by two files of one kind, as of an expanded shell pattern."""
    for name, value, other in zip(words, words[1:], words[2:], strict=False):
        option, ending = _of_name(name, declared), PurePath(value).suffix
        if option is None or option.kind not in (Kind.FILE, Kind.PATH) or not ending or not other.endswith(ending):
            continue
        folder = "name their folder, or " if option.kind is Kind.PATH or option.metavar == "PATH" else ""
        how = f"{folder}write {name} before each" if option.repeated else "name one"
        return f"{name} takes one value, and {value} and {other} follow (has the shell expanded a pattern?); {how}"
    return ""


def _describe_missing(option: Option, declared: dict[str, Option]) -> str:
    """Describe a missing option or argument: spelling, meaning, and alternatives."""
    what = re.split(r" \(|; |: |\.$|\. ", option.help)[0]
    what = what[0].lower() + what[1:] if what[1].islower() or what[1] == " " else what
    others = [declared[name].names[0] for name in option.unless]
    instead = f" or {' or '.join(others)}" if others else ""
    return f"{_spell(option)} ({what}){instead}"


def _spell(option: Option) -> str:
    return " ".join([*option.names[:1], option.value_text()]) if option.names else option.metavar or ""


def _of_name(name: str, declared: dict[str, Option]) -> Option | None:
    return next((option for option in declared.values() if name in option.spellings), None)


def _bad_value(problem: click.BadParameter, value: Any, option: Option | None) -> str:
    """Describe a value that cannot be parsed, or an option in its place."""
    name = option.names[-1] if option is not None and option.names else str(problem.param and problem.param.name)
    shown = value if isinstance(value, str) else value[-1] if value else ""
    if option is not None and re.match(r"-+[A-Za-z]", shown):
        return f"{name} needs a value ({option.value_text()}), and {shown} follows; write it before {shown}"
    why = _strip_period(problem.message).removeprefix(f"'{shown}' ")
    for words, ours in _VALUES.items():
        why = why.replace(words, ours)
    return f"{name} {shown}: {why}" if shown else f"{name}: {why}"


def _more(context: click.Context) -> str:
    """Return the usage line; of a command without arguments, a pointer to its help."""
    pieces = context.command.collect_usage_pieces(context)
    if len(pieces) == 1:
        return f"f5py {context.command.name} --help shows all options"
    return " ".join(["usage: f5py", str(context.command.name), *pieces])


def _join(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def _strip_period(message: str) -> str:
    return message.rstrip().rstrip(".")
