"""Write what follows from the declarations of options; with --check only compare.

That is the tables of options in docs/usage, each between the lines ``<!-- options: COMMAND -->`` and
``<!-- end of options -->``; the list of commands, between ``<!-- commands -->`` and ``<!-- end of commands -->``;
``f5py/api/keywords.pyi``, from which editors and type checkers know the keywords of the Python functions; and the
manual pages in ``packaging/man``.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import TypedDict

import f5py
from f5py import cli
from f5py.api.call import FUNCTIONS
from f5py.api.documentation import is_result, shown_options
from f5py.cli.commands import COMMANDS, GROUPS
from f5py.cli.options import options_of
from f5py.options import Group, Kind, Option, declarations
from f5py.options.declaration import REQUIRED

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
_TABLE = re.compile(r"(<!-- options: (\S+) -->\n).*?(<!-- end of options -->)", re.DOTALL)
_LIST = re.compile(r"(<!-- commands -->\n).*?(<!-- end of commands -->)", re.DOTALL)
#: An option in a sentence.
_OPTION = re.compile(r"(?<![\w`-])(--[a-zA-Z][a-zA-Z0-9_-]*|-[a-zA-Z])(?![\w-])")
_TITLES = "| option | default | meaning |\n|---|---|---|\n"


def table(command: str, page: Path) -> str:
    """Make the tables of a command's options, group by group, for a page of the documents."""
    groups = []
    for group in Group:
        rows = [
            _row(option, page)
            for option in declarations(options_of(command)).values()
            if option.group is group and option.refused is None and not option.is_argument
        ]
        if group is Group.OTHER:
            rows += [
                "| `--quiet` | off | print nothing but warnings and errors |",
                "| `--log-file` FILE | none | append all messages to this file, too |",
                "| `-V`, `--version` | | print the version |",
                "| `-h`, `--help`, `--help-all` | | show the help, or that of all options |",
            ]
        if rows:
            note = ", not in the help" if group is Group.DEVELOPER else ""
            groups.append(f"### {group.value}{note}\n\n{_TITLES}" + "\n".join(rows) + "\n")
    return "\n" + "\n".join(groups) + "\n"


def _row(option: Option, page: Path) -> str:
    words = option.value_text().replace("|", " or ")
    spelled = ", ".join(f"`{spelling}`" for spelling in option.names)
    meaning = option.help[0].lower() + option.help[1:].removesuffix(".") if option.help[1].islower() else option.help
    meaning = _OPTION.sub(r"`\1`", meaning.replace("|", r"\|").replace("*", r"\*"))
    if option.see is not None:
        meaning += f" ([more]({_link(option.see, page)}))"
    if others := option.aliases + option.foreign:
        meaning += f"; also {', '.join(f'`{alias}`' for alias in others)}"
    return f"| {spelled} {words}".rstrip() + f" | {option.default_text() or 'off'} | {meaning} |"


def _link(target: str, page: Path) -> str:
    """Make a link from a page to a place that is named from docs/."""
    name, _, heading = target.partition("#")
    linked = DOCS / name
    return f"#{heading}" if linked == page else f"{os.path.relpath(linked, page.parent)}#{heading}"


def command_list() -> str:
    """List the commands in the groups of the help, each with a link to its page, which is beside."""
    groups = []
    for title, names in GROUPS.items():
        rows = "".join(f"| [`f5py {name}`](f5py-{name}.md) | {COMMANDS[name].title} |\n" for name in names)
        groups.append(f"\n**{title}**\n\n| command | what it does |\n|---|---|\n{rows}")
    return "".join(groups) + "\n"


def with_tables(page: Path) -> str:
    """Bring the tables in the text of a page up to date."""
    text = _TABLE.sub(lambda found: found[1] + table(found[2], page) + found[3], page.read_text())
    return _LIST.sub(lambda found: found[1] + command_list() + found[2], text)


_STUB = ROOT / "f5py" / "api" / "keywords.pyi"
_STUB_HEAD = """# Made by docs/make_reference.py: types of keywords and results of the functions of ``import f5py``.

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import IO, Literal, Protocol, TypedDict

import pandas
import polars
import pyarrow
from typing_extensions import Required

from f5py.commands.train import TrainingSummary

class ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = ..., /) -> object: ...

# Without stubs of pyarrow, pandas or Polars their classes are unknown to type checkers; these are not.
class Arrow(pyarrow.Table):
    num_rows: int
    num_columns: int
    column_names: list[str]

class Pandas(pandas.DataFrame): ...
class Polars(polars.DataFrame): ...

AsArrow = Literal["arrow"] | None
AsPandas = Literal["pandas"]
AsPolars = Literal["polars"]
Path = str | PathLike[str]
Paths = Path | Iterable[Path]
File = Path | IO[bytes]
Files = File | Iterable[File]
Output = File | None
Format = Literal["tsv", "csv", "parquet"] | None
Model = File | TrainingSummary
Table = File | ArrowStream | Iterator[ArrowStream]
Tables = Table | Iterable[Table]
Region = str | tuple[str, int, int]
Progress = Callable[[str, int, int | None], object] | None

# Keywords of the functions, each declared once; commands share most of them.

"""
_LINE = 120
_TYPES = {
    Kind.FLAG: "bool", Kind.YES_NO: "bool", Kind.INTEGER: "int", Kind.BASES: "int | str", Kind.NUMBER: "float",
    Kind.TEXT: "str", Kind.FILE: "File", Kind.PATH: "Path",
}  # fmt: skip
#: Keywords that overloads of functions have themselves, as the result depends on them.
_OF_OVERLOADS = {
    "CallOptions": ("output", "modbam_output_name", "output_format"), "EventalignOptions": ("output", "m6anet_json"),
    "ResquiggleOptions": ("output", "paf"), "CheckOptions": ("output",), "FrequencyOptions": ("output",),
    "MergeOptions": ("output",), "ExtractOptions": ("output",),
    "PlotOptions": ("output",), "PlotRegionOptions": ("output",),
}  # fmt: skip

_FUNCTIONS = ROOT / "f5py" / "api" / "functions.pyi"
_FUNCTIONS_HEAD = """# Made by docs/make_reference.py: signatures of the functions of ``import f5py``, with results.

from collections.abc import Iterator
from typing import Literal, overload

from typing_extensions import Unpack

from f5py.api import keywords as k
from f5py.commands.index import IndexSummary
from f5py.commands.simulate import SimulationSummary
from f5py.commands.summary import SummaryReport
from f5py.commands.train import TrainingSummary
from f5py.commands.validate import ValidationReport
from f5py.compute.diagnosis import RunCounts
from f5py.mapping import MapCounts
from f5py.plotting.picture import Picture

"""
_RETURNED = {
    "returns: k.AsArrow = None": "k.Arrow",
    "returns: k.AsPandas": "k.Pandas",
    "returns: k.AsPolars": "k.Polars",
}
_ITERATED = {key: f"Iterator[{one}]" for key, one in _RETURNED.items()}
_WRITTEN, _DRAWN = {"output: k.File": "None"}, {"output: None = None": "Picture", "output: k.File": "None"}
_COUNTED = {"output: k.File": "RunCounts"}
#: Results by the keywords that decide on them, of functions that have several.
_RESULTS: dict[str, dict[str, str]] = {
    "fast5_check": _RETURNED | {"output: k.File": "tuple[int, int]"},
    "call_methylation": _RETURNED | _COUNTED | {
        "modbam_output_name: k.File, output: k.Output = None": "RunCounts",
        'output_format: Literal["none"], output: k.Output = None': "RunCounts",
    },
    "eventalign": _RETURNED | _COUNTED | {"m6anet_json: k.Path, output: k.Output = None": "RunCounts"},
    "resquiggle": _RETURNED | _COUNTED | {"paf: Literal[True], output: k.File": "RunCounts"},
    "frequencies": _RETURNED | _WRITTEN, "merge_frequencies": _RETURNED | _WRITTEN, "extract": _RETURNED | _WRITTEN,
    "regions": _RETURNED, "compare": _RETURNED, "iter_calls": _ITERATED, "iter_events": _ITERATED,
    "plot": _DRAWN, "plot_region": _DRAWN,
}  # fmt: skip


def functions_stub() -> str:
    """Make the text of the stub file of the functions."""
    return _FUNCTIONS_HEAD + "".join(line for name in f5py.__all__ if name in FUNCTIONS for line in _signatures(name))


def _signatures(name: str) -> Iterator[str]:
    """Declare a function, or its overloads."""
    implementation, options = inspect.unwrap(getattr(f5py, name)), FUNCTIONS[name].__name__
    arguments = [
        f"{one.name}: {one.annotation}" + ("" if one.default is one.empty else f" = {one.default!r}".replace("'", '"'))
        for one in inspect.signature(implementation).parameters.values()
        if one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    results = _RESULTS.get(name) or {"": implementation.__annotations__["return"]}
    for deciding, result in results.items():
        if options == "CallOptions" and "output_format" not in deciding:
            deciding += ", output_format: k.Format = None"
        parts = [*arguments, *(["*", *deciding.split(", ")] if deciding else []), f"**options: Unpack[k.{options}]"]
        yield "@overload\n" * (len(results) > 1) + _definition(f"def {name}", parts, f" -> {result}: ...") + "\n"


def stub() -> str:
    """Make the text of the stub file: a dictionary of keywords for each class of options."""
    functions = {name: getattr(f5py, name) for name in f5py.__all__ if name in FUNCTIONS}
    with_progress = {
        FUNCTIONS[name] for name, one in functions.items() if "progress" in inspect.signature(one).parameters
    }
    texts = [text for name in functions for text in _keywords_of(FUNCTIONS[name], FUNCTIONS[name] in with_progress)]
    return f"{_STUB_HEAD}{''.join(dict.fromkeys(texts)).rstrip()}\n"


def _keywords_of(options: type, has_progress: bool = False) -> Iterator[str]:
    """Declare the keywords of a class of options, after those of the classes that it inherits from."""
    keywords = _keywords(options)
    bases = list(_bases(options, keywords))
    for base in bases:
        yield from _keywords_of(base)
    inherited = {name for base in bases for name in _keywords(base)}
    rows = [f"    {name}: {words}\n" for name, words in keywords.items() if name not in inherited]
    rows += ["    progress: Progress\n"] * has_progress
    head = _definition(f"class {options.__name__}", [*(base.__name__ for base in bases or [TypedDict]), "total=False"])
    yield f"{head}\n{''.join(rows)}\n" if rows else f"{head} ...\n\n"


def _bases(options: type, keywords: dict[str, str]) -> Iterator[type]:
    """Yield the bases whose keywords are the same in the class; of a base with others, its own bases."""
    for base in options.__bases__:
        if is_dataclass(base) and (own := _keywords(base)):
            if own.items() <= keywords.items():
                yield base
            else:
                yield from _bases(base, keywords)


def _keywords(options: type) -> dict[str, str]:
    """Map the keywords of a class of options to their types, without those of overloads, and the output of bases."""
    others = _OF_OVERLOADS.get(options.__name__, () if options in FUNCTIONS.values() else ("output",))
    found = {}
    for name, option in shown_options(options).items():
        if not option.is_argument and name not in others:
            is_required = option.default is REQUIRED and not option.unless
            found[name] = f"Required[{_stub_type(name, option)}]" if is_required else _stub_type(name, option)
    return found


def _definition(begin: str, parts: list[str], end: str = ":") -> str:
    """Write the head of a class or a function as the formatter does."""
    inner = ", ".join(parts)
    line = f"{begin}({inner}){end}"
    if len(line.removesuffix(" ...") + " ...") <= _LINE:
        return line
    inner = inner if len(inner) + 4 <= _LINE else ",\n    ".join(parts) + ","
    return f"{begin}(\n    {inner}\n){end}"


def _stub_type(name: str, option: Option) -> str:
    """Write the type of an option."""
    if option.kind is Kind.CHOICE:
        words = f"Literal[{', '.join(repr(one).replace(chr(39), chr(34)) for one in option.choices)}]"
    else:
        words = "File" if option.is_argument and option.kind is Kind.PATH else _TYPES[option.kind]
    if option.is_table:
        words = "Table"
    if option.is_model:
        words = "Model"
    if option.is_list:
        words = "File | Iterable[str]"
    if option.listed:
        words = "str | float | Sequence[str | float]"
    if option.metavar == "REGION":
        words = "Region" if option.repeated else "Region | Sequence[Region]"
    if option.metavar == "SITE:OFFSET":
        words = "str | tuple[str, int]"
    if option.repeated:
        words = f"{words}s" if words in ("File", "Path", "Table") else f"{words} | Iterable[{words}]"
    may_lack = option.default is None or (option.repeated and not option.is_argument) or is_result(name, option)
    return f"{words} | None" if may_lack and option.default is not REQUIRED else words


_MAN = ROOT / "packaging" / "man"
_STATUSES = """.SH EXIT STATUS
0 on success; 1 after an error, which is described in one line; 2 for wrong usage; 129, 130, 138, 143 or 152
if ended by a hang-up, by Ctrl-C, by SIGUSR1, SIGTERM or SIGXCPU; 141 if the program that reads the output has ended
early.
"""


def man_page(name: str) -> str:
    """Make the manual page of a command, in man's macros."""
    command = COMMANDS[name]
    declared = declarations(options_of(name))
    first = inspect.cleandoc(command.help).partition("\n\n")[0]
    words = " ".join(
        [f"\\fB{name}\\fR", "[\\fIoptions\\fR]"]
        + [_roff(option.metavar or "") for option in declared.values() if option.is_argument]
    )
    parts = [
        '.\\" Made by docs/make_reference.py.\n',
        f'.TH F5PY-{name.upper()} 1 "" "f5py {f5py.__version__}" "User commands"\n',
        f".SH NAME\nf5py-{name} \\- {_roff(' '.join(first.split()).rstrip('.'))}\n",
        f".SH SYNOPSIS\n\\fBf5py\\fR {words}\n",
        f".SH DESCRIPTION\n{_roff(' '.join(command.help.split()))}\n",
        ".SH OPTIONS\n",
    ]
    for group in Group:
        rows = [one for one in declared.values() if one.group is group and not one.is_hidden]
        if rows:
            parts.append(f".SS {group.value}\n")
        for option in rows:
            shown = option.default_text()
            default = f" (default: {shown})" if shown not in ("", "none", "required") else ""
            spelled = ", ".join(f"\\fB{_roff(one)}\\fR" for one in option.names) or _roff(option.metavar or "")
            value = f" \\fI{_roff(option.value_text())}\\fR" if option.names and option.value_text() else ""
            parts.append(f".TP\n{spelled}{value}\n{_roff(option.help + default)}\n")
    parts.append(_STATUSES)
    parts.append(".SH EXAMPLES\n.nf\n" + "".join(f"{_roff(one)}\n" for one in command.examples) + ".fi\n")
    others = ", ".join(["\\fBf5py\\fR(1)", *(f"\\fBf5py-{one}\\fR(1)" for one in COMMANDS if one != name)])
    parts.append(f".SH SEE ALSO\n{others}\n")
    return "".join(parts)


def man_page_of_all() -> str:
    """Make the manual page ``f5py(1)``: what the program is, and its commands in the groups of the help."""
    about = cli.f5py.help or ""
    parts = [
        '.\\" Made by docs/make_reference.py.\n',
        f'.TH F5PY 1 "" "f5py {f5py.__version__}" "User commands"\n',
        ".SH NAME\nf5py \\- call methylation from nanopore signals, and align their events\n",
        ".SH SYNOPSIS\n\\fBf5py\\fR \\fIcommand\\fR [\\fIoptions\\fR]\n.br\n",
        "\\fBf5py\\fR \\fIcommand\\fR \\fB\\-\\-help\\fR\n",
        f".SH DESCRIPTION\n{_roff(about)}\n.PP\n",
        _roff("Each command has a manual page of its own, such as f5py-call-methylation(1). `f5py help COMMAND` shows "
              "its options."),
        "\n.SH COMMANDS\n",
    ]  # fmt: skip
    for title, names in GROUPS.items():
        parts.append(f".SS {title}\n")
        parts += [f".TP\n\\fB{_roff(name)}\\fR\n{_roff(COMMANDS[name].title)}\n" for name in names]
    parts.append(".SH ENVIRONMENT\n")
    for name, meaning in _ENVIRONMENT.items():
        parts.append(f".TP\n\\fB{name}\\fR\n{_roff(meaning)}\n")
    parts.append(_STATUSES)
    parts.append(f".SH EXAMPLES\n.nf\n{''.join(f'{_roff(one)}{chr(10)}' for one in _FIRST_STEPS)}.fi\n")
    others = ", ".join(f"\\fBf5py-{one}\\fR(1)" for one in COMMANDS)
    parts.append(f".SH SEE ALSO\n{others}\n")
    return "".join(parts)


#: What the environment decides.
_ENVIRONMENT = {
    "NUMBA_CACHE_DIR": "Folder for compiled code, instead of the user's cache folder. A private folder is made in it.",
    "XDG_CACHE_HOME": "The user's cache folder; compiled kernels of GPUs are below it.",
    "NO_COLOR": "If it is set, messages have no colors.",
}
_FIRST_STEPS = (
    "f5py demo", "f5py map ref.fa reads.fastq -o reads.bam",
    "f5py call-methylation -r reads.fastq -b reads.bam -g ref.fa --pod5 pod5/ -o calls.tsv",
    "f5py meth-freq -s -i calls.tsv -o freq.tsv",
)  # fmt: skip


def _roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def main() -> int:
    """Write or compare; return the exit status."""
    texts = {path: with_tables(path) for path in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]}
    texts |= {_STUB: stub(), _FUNCTIONS: functions_stub()}
    texts |= {_MAN / f"f5py-{name}.1": man_page(name) for name in COMMANDS}
    texts[_MAN / "f5py.1"] = man_page_of_all()
    old = {path: text for path, text in texts.items() if not path.exists() or path.read_text() != text}
    if "--check" in sys.argv:
        for path in old:
            print(f"{path}: is not what the declarations say; run python docs/make_reference.py")
        return int(bool(old))
    for path, text in old.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
