"""Options restored from a plan: every value has its declared type and range."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from f5py.errors import DamagedValueError, UsageError
from f5py.io.files.json_values import MOST, is_text
from f5py.options import Option
from f5py.options.declaration import Kind
from f5py.options.shared import AlignmentOptions
from f5py.options.signal_commands import CallOptions, EventalignOptions, ResquiggleOptions

#: What commands that run in parts have as options.
OPTIONS_OF: Mapping[str, type[AlignmentOptions]] = {
    "call-methylation": CallOptions, "eventalign": EventalignOptions, "resquiggle": ResquiggleOptions,
}  # fmt: skip


def planned_options(command: str, values: Mapping[str, Any]) -> AlignmentOptions:
    """Restore the options of a command from their JSON values.

    Raises `DamagedValueError` for a command without parts, or a value that its option does not allow.
    """
    if command not in OPTIONS_OF:
        raise DamagedValueError("the command is not one that runs in parts")
    kind = OPTIONS_OF[command]
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if values.keys() != fields.keys():
        raise DamagedValueError("its options are not those of the command")
    typed = {name: _value_of(field, values[name]) for name, field in fields.items()}
    try:
        return kind(**typed)
    except UsageError as problem:
        raise DamagedValueError(str(problem)) from None


def _value_of(field: dataclasses.Field[Any], value: Any) -> Any:
    declared: Option | None = field.metadata.get("option")
    wrong = DamagedValueError(f"options.{field.name} is not what this option can be")
    if declared is None:
        if type(value) is not type(field.default) or not (is_text(value) or _is_integer(value)):
            raise wrong
        return value
    if declared.repeated:
        if not isinstance(value, list | tuple) or not all(_fits(declared, one) for one in value):
            raise wrong
        return tuple(value)
    if value is None and (declared.default is None or declared.refused):
        return None
    if not _fits(declared, value):
        raise wrong
    return value


def _fits(declared: Option, value: Any) -> bool:
    """Return whether a value has the type of its option; ranges are checked when options are made."""
    if declared.choices:
        return any(type(value) is type(choice) and value == choice for choice in declared.choices)
    if declared.kind in (Kind.FLAG, Kind.YES_NO):
        return isinstance(value, bool)
    if declared.kind in (Kind.INTEGER, Kind.BASES):
        return _is_integer(value)
    if declared.kind is Kind.NUMBER:
        return _is_integer(value) or isinstance(value, float)
    return is_text(value)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST
