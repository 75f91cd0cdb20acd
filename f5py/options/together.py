"""Options that need others, or exclude them, as their declarations say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from f5py.errors import UsageError
from f5py.options.output_names import kind_of_name


class Condition(NamedTuple):
    """Condition on an option: that it is given, or that it has one of some values."""

    name: str  # field of the option
    values: tuple[str, ...]  # as they are written; none: any value but the default
    # values of the option that has the condition; it is one of these only. None: of any.
    only_for: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read ``field``, ``field=value`` or ``field=value|value``, with ``own: `` or ``own|own: `` before it."""
        own, colon, condition = text.rpartition(": ")
        name, equals, values = condition.partition("=")
        return cls(name, tuple(values.split("|")) if equals else (), tuple(own.split("|")) if colon else ())

    def holds(self, options: Any, declared: Mapping[str, Any]) -> bool:
        """Tell whether it holds; of a command that lacks the option it does not."""
        if self.name not in declared:
            return False
        if self.values:
            return str(getattr(options, self.name)) in self.values
        return is_given(getattr(options, self.name), declared[self.name])

    def stands_in_output(self, options: Any, declared: Mapping[str, Any]) -> bool:
        """Tell whether the name of the output stands for the option, as ``-o x.bam`` does for ``--modbam``."""
        if self.name not in declared or not declared[self.name].by_name or options.output_format is not None:
            return False
        return kind_of_name(options.output) in declared[self.name].by_name


def is_given(value: Any, option: Any) -> bool:
    """Tell whether a value says anything: it is not the default, nor what stands for none."""
    return value is not None and value is not False and value not in ("", ()) and value != option.default


def check_together(options: Any, declared: Mapping[str, Any]) -> None:
    """Check that options have those that they need beside them, and none that they exclude.

    Raises `UsageError` for the first option that does not, in the order of `declared`.

    Parameters
    ----------
    options : Options
    declared : mapping of str to Option
        Their declarations by field.
    """
    for name, option in declared.items():
        if not (option.needs or option.excludes) or not is_given(value := getattr(options, name), option):
            continue
        words = option.said(value)
        excluded = [one for one in conditions_for(option.excludes, value) if one.holds(options, declared)]
        if excluded:
            others = [_said(one, declared, str(getattr(options, one.name))) for one in excluded]
            raise UsageError(f"{' and '.join([words, *others])} exclude each other; {option.advice or 'choose one'}")
        needed = [one for one in conditions_for(option.needs, value) if one.name in declared]
        if needed and not any(
            one.holds(options, declared) or one.stands_in_output(options, declared) for one in needed
        ):
            others = [_said(one, declared, " or ".join(one.values)) for one in needed]
            add = "it" if len(others) == 1 else "one of them"
            raise UsageError(
                f"{words} needs {' or '.join(others)}; {option.advice or f'add {add}, or leave {words} out'}"
            )


def conditions_for(texts: Sequence[str], value: Any) -> list[Condition]:
    """Return the conditions of an option that has this value."""
    conditions = map(Condition.parse, texts)
    return [one for one in conditions if not one.only_for or str(value) in one.only_for]


def _said(condition: Condition, declared: Mapping[str, Any], values: str) -> str:
    spelling: str = declared[condition.name].spelling
    return f"{spelling} {values}" if condition.values else spelling
