"""Option types and option objects shared by the subcommands, each declared once."""

from __future__ import annotations

from typing import Any

import click


class YesNo(click.ParamType):
    """``yes``/``y`` or ``no``/``n``, as f5c takes them; anything else is a usage error."""

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
        multiplier = {"K": 1e3, "M": 1e6, "G": 1e9}.get(value[-1:].upper(), 1.0)
        digits = value if multiplier == 1.0 else value[:-1]
        try:
            count = int(float(digits) * multiplier + 0.499)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a number such as 5000000, 500K or 5M", param, ctx)
        if count < 1:
            self.fail(f"{value!r} is not greater than zero", param, ctx)
        return count
