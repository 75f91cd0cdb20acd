"""Declaration of an option: its names, type, default, range and help, written once.

An options class is a dataclass with fields made by `option`, `flag`, `argument` and `refused`. The command line,
the checks of values that come from Python, the profiles' keys and the tables of the documentation are made from these
fields.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from f5py.errors import UsageError
from f5py.options.output_names import OutputContent

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:  # a word to type checkers only, which Python 3.10 does not have

    def dataclass_transform(**more):
        """Return a decorator that does nothing."""
        return lambda function: function


Class = TypeVar("Class")


class Group(Enum):
    """Headings of the help, in its order."""

    INPUT = "Input"
    OUTPUT = "Output"
    SELECTION = "Which reads"
    MAPPING = "Mapping"
    MODEL = "Pore model"
    LIMITS = "Limits"
    SPEED = "Speed"
    PARTS = "In parts"
    GPU = "GPU"
    OTHER = "Other"
    DEVELOPER = "For developers"


class Kind(Enum):
    """Form of an option's value."""

    FLAG = "flag"
    YES_NO = "yes/no"
    INTEGER = "INT"
    NUMBER = "FLOAT"
    BASES = "NUM[K/M/G]"
    CHOICE = "choice"
    TEXT = "TEXT"
    FILE = "FILE"
    PATH = "PATH"


_FOREIGN = {"--threads": "-@", "--window": "--region", "--genome": "--reference"}
#: What arrays and compiled code can hold.
_MOST_INTEGER = 2**63 - 1
#: In the place of a default: the option must be given.
REQUIRED = object()


@dataclasses.dataclass(frozen=True)
class Option:
    """One option or positional argument of a command."""

    names: tuple[str, ...]  # spellings, short ones first; the documented ones. Empty for a positional argument.
    kind: Kind
    help: str  # one or two sentences, without the default
    group: Group
    default: Any = None  # `REQUIRED`, or the value without the option
    default_words: str | None = None  # the default in words, where the value does not tell it
    metavar: str | None = None  # what the value is called in the help
    choices: tuple[Any, ...] = ()  # of a `Kind.CHOICE`
    # at_least, at_most, above: bounds of a number
    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    pattern: str | None = None  # regular expression that the whole of a text must match
    pattern_words: str = ""  # the form that `pattern` asks for, in words
    aliases: tuple[str, ...] = ()  # spellings of f5c and nanopolish that are accepted and not documented first
    repeated: bool = False  # may be given several times; the value is a tuple
    value_may_lack: int | str | None = None  # the value if the option is given without one
    refused: str | None = None  # known, but not possible here: the reason, and what to do instead
    # fields of other options; with one of them, a required option may be missing, and is empty then
    unless: tuple[str, ...] = ()
    ours: bool = False  # neither f5c nor nanopolish has it, so it never makes an abbreviation of theirs ambiguous
    written: bool = False  # names a file that is written, though it is not among the options of the output
    beside: tuple[str, ...] = ()  # endings of the files that are read together with this one
    is_list: bool = False  # names a list of words; from Python it can be a sequence of them
    is_model: bool = False  # names a pore model; from Python it can be what `f5py.train` returns
    is_table: bool = False  # names a table of calls, frequencies or events; from Python it can be one in memory
    writes: OutputContent | None = None  # what that file is, so that it cannot have the name of something else
    # says how a run works, but not what comes out, so that a resumed run may change it; see `is_free`
    free: bool = False
    # the value may be a URL; by which method of `f5py.pipeline.remote_inputs.RemoteInputs` it is read then
    url: str | None = None
    see: str | None = None  # where the documents say more: a file below docs/, and a heading in it
    # the same as `help` in a few words, for ``--help``, which leaves out those without it if there are many options;
    # True if `help` is that short
    brief: str | None = None

    @property
    def is_free(self) -> bool:
        """Whether a resumed run may change it."""
        return self.free or self.group in (Group.SPEED, Group.GPU, Group.PARTS)

    @property
    def spelling(self) -> str:
        """The name that messages use."""
        return self.names[-1] if self.names else (self.metavar or "").strip("[].").split()[0]

    def label(self, value: Any) -> str:
        """Name the option in messages, with the value if it is a choice."""
        if self.kind is Kind.YES_NO:
            return f"{self.spelling} {'yes' if value else 'no'}"
        return f"{self.spelling} {value}" if self.kind is Kind.CHOICE else self.spelling

    @property
    def is_file(self) -> bool:
        """Whether the value can be the name of a file or folder."""
        return self.kind in (Kind.FILE, Kind.PATH) or "FILE" in (self.metavar or "") or self.metavar == "REGION"

    @property
    def is_input(self) -> bool:
        """Whether it names an input."""
        return self.is_file and not self.written and self.group not in (Group.OUTPUT, Group.PARTS)

    @property
    def is_output(self) -> bool:
        """Whether it names an output file, and not a prefix or a folder."""
        return self.written or (self.kind is Kind.FILE and self.group is Group.OUTPUT)

    @property
    def listed(self) -> bool:
        """Whether the value is a list with commas."""
        return "," in (self.metavar or "") or self.metavar == "MIXTURE"

    @property
    def is_hidden(self) -> bool:
        """Whether the help leaves it out."""
        return self.group is Group.DEVELOPER or self.refused is not None

    @property
    def is_argument(self) -> bool:
        """Whether it is given by its position."""
        return not self.names

    @property
    def spellings(self) -> tuple[str, ...]:
        """All names."""
        return self.names + self.aliases + self.foreign

    @property
    def foreign(self) -> tuple[str, ...]:
        """Spellings of samtools, which are accepted and never make an abbreviation ambiguous."""
        return tuple(_FOREIGN[name] for name in self.names if name in _FOREIGN and _FOREIGN[name] not in self.names)

    def value_text(self) -> str:
        """Name the option's value; empty for a flag."""
        if self.kind is Kind.FLAG:
            return ""
        if self.metavar is not None:
            return self.metavar
        return "/".join(map(str, self.choices)) if self.kind is Kind.CHOICE else self.kind.value

    def default_text(self) -> str:
        """Write the default in words; empty for a flag."""
        if self.default is REQUIRED:
            return f"required without {' or '.join(f'--{name}' for name in self.unless)}" if self.unless else "required"
        if self.default_words is not None:
            return self.default_words
        if self.kind is Kind.FLAG:
            return ""
        if self.default is None or self.default == ():
            return "none"
        if self.kind is Kind.YES_NO:
            return "yes" if self.default else "no"
        if self.kind is Kind.BASES:
            return _format_bases(self.default)
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)

    def check(self, value: Any) -> None:
        """Raise `UsageError` for a value that the option cannot have."""
        if isinstance(value, tuple):
            for one in value:
                self.check(one)
            return
        if value is None:
            return
        if self.refused is not None:
            if value:
                self._fail(f"is not possible: {self.refused}")
            return
        if self.choices and value not in self.choices:
            self._fail(f"{value}: choose from {', '.join(map(str, self.choices))}")
        if self.pattern is not None and not re.fullmatch(self.pattern, value, re.ASCII):
            self._fail(f"{value}: must be {self.pattern_words}")
        if not isinstance(value, int | float) or isinstance(value, bool):
            return
        if value != value:
            self._fail("nan is not a number")
        if isinstance(value, int) and abs(value) > _MOST_INTEGER:
            self._fail(f"is a number of {len(str(abs(value)))} digits: must be at most {_MOST_INTEGER}")
        if self.at_least is not None and value < self.at_least:
            self._fail(f"{value:g}: must be at least {self.at_least:g}")
        if self.above is not None and value <= self.above:
            self._fail(f"{value:g}: must be above {self.above:g}")
        if self.at_most is not None and value > self.at_most:
            self._fail(f"{value:g}: must be at most {self.at_most:g}")

    def _fail(self, why: str) -> NoReturn:
        raise UsageError(f"{self.names[-1] if self.names else self.metavar} {why}")


def paths_read(options: Options) -> list[str]:
    """List the input files and folders, and those that belong to them."""
    paths: list[str] = []
    for name, declared in declarations(type(options)).items():
        value = getattr(options, name)
        if declared.is_input and value:
            for given in value if declared.repeated else (value,):
                path = given.partition("=")[2] if declared.metavar == "NAME=FILE" else given
                paths += [path, *(f"{path}{suffix}" for suffix in declared.beside)]
    return paths


def paths_written(options: Options) -> Iterator[tuple[str, str, str]]:
    """Yield field, spelling and path of each output."""
    for name, declared in declarations(type(options)).items():
        value = getattr(options, name)
        if not declared.is_output or not value:
            continue
        if declared.repeated:
            yield from ((name, declared.names[0], path) for path in value)
        else:
            yield name, declared.names[0], value


def base_count(text: str) -> int | None:
    """Parse a number of bases with an optional suffix K, M or G in either case; None if it is invalid."""
    multiplier = {"K": 1e3, "M": 1e6, "G": 1e9}.get(text[-1:].upper(), 1.0)
    try:
        return int(float(text if multiplier == 1.0 else text[:-1]) * multiplier + 0.499)
    except (ValueError, OverflowError):
        return None


def _format_bases(number: int) -> str:
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if number >= unit:
            return f"{number / unit:g}{letter}"
    return str(number)


#: Forms of values that a default tells.
_KINDS = {bool: Kind.YES_NO, int: Kind.INTEGER, float: Kind.NUMBER}


def option(
    *names: str, kind: Kind | None = None, group: Group = Group.OTHER, help: str, default: Any = None, **more: Any
) -> Any:
    """Declare a field of an options class; see `Option`. Without `kind`, choices or the default tell it."""
    kind = Kind.CHOICE if more.get("choices") else kind or _KINDS.get(type(default), Kind.TEXT)
    if more.get("brief") is True:
        more["brief"] = help
    declared = Option(names, kind, help, group, default, **more)
    arguments: dict[str, Any] = {} if default is REQUIRED else {"default": default}
    if declared.unless:
        arguments = {"default": () if declared.repeated else ""}
    return dataclasses.field(metadata={"option": declared}, **arguments)


def flag(*names: str, group: Group = Group.OUTPUT, help: str, **more: Any) -> Any:
    """Declare a field that is true if its option is given."""
    return option(*names, kind=Kind.FLAG, group=group, help=help, default=False, **more)


def argument(metavar: str, *, help: str, default: Any = REQUIRED, **more: Any) -> Any:
    """Declare a field that is given by its position."""
    return option(metavar=metavar, kind=Kind.PATH, help=help, default=default, **more)


def refused(*names: str, kind: Kind = Kind.TEXT, reason: str) -> Any:
    """Declare an option of f5c or nanopolish that cannot be had here. ``no`` is accepted for yes/no options."""
    default = False if kind in (Kind.FLAG, Kind.YES_NO) else None
    return option(*names, kind=kind, help="", default=default, refused=reason)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def options_class(kind: type[Class]) -> type[Class]:
    """Make a dataclass of options, of a command or of a part of several, with the methods of `Options`.

    Generated methods of each class would take longer than all else that ``--help`` does.
    """
    return dataclasses.dataclass(init=False, eq=False, repr=False)(kind)


class Options:
    """Base of the options classes, which checks every value, and all together by `rules`."""

    def __init__(self, **given: Any) -> None:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        values = {one.name: given.pop(one.name, one.default) for one in fields}
        if missing := [name for name, value in values.items() if value is dataclasses.MISSING]:
            raise TypeError(f"{type(self).__name__} needs {' and '.join(missing)}")
        if given:
            raise TypeError(f"{type(self).__name__} has no field {' and '.join(given)}")
        vars(self).update(values)
        declared = declarations(type(self))
        for name, one in declared.items():
            if one.repeated and not isinstance(getattr(self, name), tuple):
                raise TypeError(f"{name} is a tuple of values, not {getattr(self, name)!r}")
            one.check(getattr(self, name))
        for owner in reversed(type(self).__mro__):
            for problem in vars(owner)["rules"](self) if "rules" in vars(owner) else ():
                raise UsageError(problem)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"options cannot be changed: {name}")

    def rules(self) -> Iterator[str]:
        """Yield messages about options that do not go together, besides those of the bases."""
        yield from ()

    def given(self, *names: str) -> list[str]:
        """Name, as messages do, those of some options that are given: neither at their default, nor none."""
        declared, found = declarations(type(self)), []
        for name in names:
            value = getattr(self, name, None)
            is_none = value is None or value is False or value == "" or value == ()
            if name in declared and not is_none and value != declared[name].default:
                found.append(declared[name].label(value))
        return found

    def not_with(self, others: list[str], *names: str, advice: str = "choose one") -> Iterator[str]:
        """Yield a message about an option that is given beside others, which are given."""
        for option in self.given(*names) if others else ():
            yield f"{' and '.join([option, *others])} exclude each other; {advice}"

    def only_with(self, needed: str, *names: str, advice: str = "") -> Iterator[str]:
        """Yield a message about an option that is given without those that are `needed`, one of them."""
        for option in self.given(*names):
            add = "one of them" if " or " in needed else "it"
            yield f"{option} needs {needed}; {advice or f'add {add}, or leave {option} out'}"


#: What `declarations` has listed: a run asks many times.
_declared: dict[type[Any], Mapping[str, Option]] = {}


def declarations(options: type[Any]) -> Mapping[str, Option]:
    """List the options of a class by field name, group by group and in the order of their declaration."""
    if options not in _declared:
        fields = dataclasses.fields(options)
        found = {field.name: field.metadata["option"] for field in fields if "option" in field.metadata}
        order = list(Group)
        _declared[options] = dict(sorted(found.items(), key=lambda item: order.index(item[1].group)))
    return _declared[options]
