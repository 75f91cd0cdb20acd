"""Documentation and signature of the functions for commands."""

import inspect
import re
from collections.abc import Collection

from f5py.options import Kind, Option, declarations
from f5py.options.declaration import REQUIRED

#: How the documentation calls the types of values.
_TYPES = {
    Kind.FLAG: "bool", Kind.YES_NO: "bool", Kind.INTEGER: "int", Kind.BASES: "int or str", Kind.NUMBER: "float",
    Kind.TEXT: "str", Kind.FILE: "path or file", Kind.PATH: "path",
}  # fmt: skip
_RETURNS = (
    "Kind of the returned tables: `pyarrow.Table`, `pandas.DataFrame` or `polars.DataFrame`. "
    "Default: Arrow, unless the table is written only."
)
_PROGRESS = "Called while the command works, also from other threads; `total` may be an estimate, or None."
_RAISED = "For anything wrong with the options, the input or the output."


def docstring(text: str, kind: type, own: Collection[str]) -> str:
    """Put the options of a class among the parameters of a function's documentation, in NumPy's style."""
    text = inspect.cleandoc(text)
    found = re.search(r"\n\n(?:Returns|Yields|Raises|Examples)\n-+\n|$", text)
    head, rest = text[: found.start()], text[found.start() :]  # type: ignore[union-attr]
    parameters = [f"{name} : {type_words(one)}\n    {_meaning(name, one)}" for name, one in shown_options(kind).items()]
    if "returns" in own:
        parameters.append(f'returns : {{None, "arrow", "pandas", "polars"}}, optional\n    {_RETURNS}')
    if "progress" in own:
        parameters.append(f"progress : function of (unit, done, total), optional\n    {_PROGRESS}")
    if "\n\nRaises\n" not in rest:
        results, example, examples = rest.partition("\n\nExamples\n")
        rest = f"{results}\n\nRaises\n------\nF5pyError\n    {_RAISED}{example}{examples}"
    return f"{head}\n\nParameters\n----------\n" + "\n".join(parameters) + rest


def signature(kind: type, own: Collection[str]) -> inspect.Signature:
    """Return the signature of a function: a command's arguments, its options by keyword, and others."""
    parameters = [_parameter(name, option) for name, option in shown_options(kind).items()]
    parameters += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in own]
    return inspect.Signature(sorted(parameters, key=lambda one: (one.kind, one.default is not one.empty)))


def shown_options(options: type) -> dict[str, Option]:
    """Map keywords to the documented options of a class."""
    return {name: option for name, option in declarations(options).items() if not option.is_hidden}


def type_words(option: Option) -> str:
    """Describe the values of an option in words."""
    # "One of" is no expression of Python: pages made of the docstring show the choices as they are written.
    words = f"one of {', '.join(map(repr, option.choices))}" if option.kind is Kind.CHOICE else _TYPES[option.kind]
    if option.is_argument or option.repeated:
        words = "path or file" if option.kind in (Kind.PATH, Kind.FILE) else words
    if option.is_table:
        words = "path, file or table"
    if option.is_model:
        words = "path, file or TrainingSummary"
    if option.is_list:
        words = "path, file or sequence of str"
    if option.listed:
        words = "str or sequence"
    if option.metavar == "REGION":
        words = "str, (contig, start, end)"
    if option.repeated or option.metavar == "REGION":
        words = f"{words}, or several"
    return words if option.default is REQUIRED else f"{words}, optional"


def _meaning(name: str, option: Option) -> str:
    names = f" ``{', '.join(option.names)}``" if option.names else ""
    shown = "" if option.default is REQUIRED else option.default_text()
    if is_result(name, option):
        shown = "none; the result is returned"
    default = f" Default: {shown}." if shown not in ("", "none") else ""
    return f"{option.help}{default}{names}"


def is_result(name: str, option: Option) -> bool:
    """Return whether an option names the file of results that are else returned."""
    return name == "output" and option.kind is Kind.FILE


def _parameter(name: str, option: Option) -> inspect.Parameter:
    default = inspect.Parameter.empty if option.default is REQUIRED else option.default
    if is_result(name, option):
        default = None
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if option.is_argument else inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default)
