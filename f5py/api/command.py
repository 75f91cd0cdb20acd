"""A command as a function: its options object from keyword arguments, its signature and its documentation."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import shlex
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from f5py.messages import console
from f5py.messages.progress import Listener, told_to
from f5py.options import Kind, Option, declarations
from f5py.options.declaration import REQUIRED, paths_read

#: How the documentation calls the types of values.
_TYPES = {
    Kind.FLAG: "bool", Kind.YES_NO: "bool", Kind.INTEGER: "int", Kind.BASES: "int", Kind.NUMBER: "float",
    Kind.TEXT: "str", Kind.FILE: "path or file", Kind.PATH: "path",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Command:
    """One of f5py's commands.

    Attributes
    ----------
    name : str
        As the command line has it.
    python_name : str
        That of the function of `f5py`.
    options : class
        An options class.
    module, function : str
        Where what it does is found.
    """

    name: str
    python_name: str
    options: type
    module: str
    function: str = "run"

    def run(self, given: Mapping[str, Any], *more: Any, progress: Listener | None = None) -> Any:
        """Do what the command does.

        Parameters
        ----------
        given : mapping
            Values by keyword.
        *more : Any
            What its function takes besides the options.
        progress : function, optional
            Told of the progress.

        Raises
        ------
        TypeError
            A keyword is none of the command's, or one that is required is missing.
        F5pyError
            What the command raises.
        """
        from f5py.api.values import GivenFiles
        from f5py.io.files.inputs_in_use import inputs_in_use

        with GivenFiles() as files, files.told(), told_to(progress), ExitStack() as inputs:
            options = self.chosen(given, files)
            inputs.enter_context(inputs_in_use(paths_read(options)))
            try:
                result = getattr(import_module(self.module), self.function)(options, *more)
            except BrokenPipeError:
                files.finish()  # which raises what has broken the pipe, if that was one of ours
                raise
            files.finish()
        return result

    def check_keywords(self, given: Mapping[str, Any]) -> None:
        """Raise TypeError for keywords that are none of the command's, and required ones that are missing."""
        for name in given:
            if name not in self._fields:
                near = difflib.get_close_matches(name, self._fields, n=1)
                more = f"; did you mean {near[0]}?" if near else ""
                raise TypeError(f"{self.python_name}() has no option {name!r}{more}")
        missing = [
            name
            for name, option in declarations(self.options).items()
            if option.default is REQUIRED
            and name not in given
            and all(given.get(other) is None for other in option.unless)
        ]
        if missing:
            raise TypeError(f"{self.python_name}() needs {' and '.join(missing)}")

    def chosen(self, given: Mapping[str, Any], files: Any) -> Any:
        """The options object; values of a profile stand in for what is not given."""
        from f5py.api.values import option_value

        self.check_keywords(given)
        declared = declarations(self.options)
        values = {
            name: option_value(name, declared[name], value, files) if name in declared else value
            for name, value in given.items()
        }
        if "command_line" in self._fields and "command_line" not in values:
            values["command_line"] = self.command_line(values)
        if (profile := values.pop("profile", None)) is not None:
            values = self._with_profile(profile, values)
        return self.options(**values)

    def command_line(self, values: Mapping[str, Any]) -> str:
        """The command line that does the same."""
        words, positional = ["f5py", self.name], []
        for name, option in declarations(self.options).items():
            value = values.get(name, option.default)
            if value == option.default:
                continue
            if option.is_argument:
                positional += list(value) if option.repeated else [value]
                continue
            spelling = option.names[-1]
            if option.kind is Kind.FLAG:
                words.append(spelling)
            elif option.kind is Kind.YES_NO:
                words.append(f"{spelling}={'yes' if value else 'no'}")
            else:
                for one in value if option.repeated else [value]:
                    words += [spelling, str(one)]
        return shlex.join([*words, *positional])

    @property
    def _fields(self) -> Mapping[str, Any]:
        return self.options.__dataclass_fields__  # type: ignore[attr-defined]

    def _with_profile(self, name: str, values: dict[str, Any]) -> dict[str, Any]:
        from f5py.options.cores import usable_cores
        from f5py.options.profiles import PROFILES, load_profile

        profile = load_profile(name).values()
        if name in PROFILES:  # those of kinds of machines, of which this one may be a small part
            profile["threads"] = min(profile["threads"], usable_cores())
        if "gpu" in values:
            profile.pop("disable_cuda", None)
        values = {option: value for option, value in profile.items() if option in self._fields} | values
        defaults = {option: declared.default for option, declared in declarations(self.options).items()}
        shown = defaults | profile | values
        console.note(
            "set_opt_profile",
            f"max-lf: {shown['cuda_max_lf']:.1f}, avg-epk: {shown['cuda_avg_epk']:.1f}, "
            f"max-epk: {shown['cuda_max_epk']:.1f}, K: {shown['batchsize']}, B: {shown['max_bases'] / 1e6:.1f}M, "
            f"t: {shown['threads']}, ultra-thresh: {shown['ultra_thresh'] / 1e3:.1f}k, iop: {shown['iop'] or 'auto'}",
        )
        return values


def documented(command: Command) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that adds a command's options to the signature and the documentation of a function."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        own = {name: one for name, one in inspect.signature(function).parameters.items() if one.kind != one.VAR_KEYWORD}
        options = shown_options(command.options)
        described = "\n".join(f"{name} : {type_words(one)}\n    {_meaning(name, one)}" for name, one in options.items())
        parameters = {name: _parameter(name, option) for name, option in options.items()} | own
        function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            sorted(parameters.values(), key=lambda one: (one.kind, one.default is not one.empty))
        )
        marker = "Parameters\n----------\n"
        text = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = text.replace(marker, f"{marker}{described}\n", 1)
        return function

    return decorate


def shown_options(options: type) -> dict[str, Option]:
    """The options of a class that are documented, by keyword."""
    return {name: option for name, option in declarations(options).items() if not option.is_hidden}


def type_words(option: Option) -> str:
    """What a value of an option is, in words."""
    words = " or ".join(map(repr, option.choices)) if option.kind is Kind.CHOICE else _TYPES[option.kind]
    if option.is_argument or option.repeated:
        words = "path or file" if option.kind in (Kind.PATH, Kind.FILE) else words
    if option.is_table:
        words = "path, file or table"
    if option.listed:
        words = "str or sequence"
    if option.metavar == "REGION":
        words = "str, (contig, start, end)"
    if option.repeated or option.metavar == "REGION":
        words = f"{words}, or several"
    return words if option.default is REQUIRED else f"{words}, optional"


def _meaning(name: str, option: Option) -> str:
    names = f" ``{', '.join(option.names)}``" if option.names else ""
    shown = "" if option.default is REQUIRED else option.default_shown()
    if _is_result(name, option):
        shown = "none; the result is returned"
    default = f" Default: {shown}." if shown not in ("", "none") else ""
    return f"{option.help}{default}{names}"


def _is_result(name: str, option: Option) -> bool:
    """Whether an option names the file that takes what is returned without it."""
    return name == "output" and option.kind is Kind.FILE


def _parameter(name: str, option: Option) -> inspect.Parameter:
    default = inspect.Parameter.empty if option.default is REQUIRED else option.default
    if _is_result(name, option):
        default = None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
