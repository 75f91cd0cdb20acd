"""Nanopore methylation calling with adaptive banded event alignment.

Every command of ``f5py`` is a function here, with the command's options as keyword arguments. They are imported when
they are first used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from f5py.api.functions import (
        call_methylation,
        compare,
        eventalign,
        extract,
        fast5_check,
        finish,
        frequencies,
        index,
        iter_calls,
        iter_events,
        map_reads,
        merge,
        merge_frequencies,
        plan,
        plot,
        plot_region,
        regions,
        resquiggle,
        run_part,
        simulate,
        summary,
        train,
        validate,
    )  # fmt: skip
    from f5py.errors import F5pyError, UsageError

__version__ = "0.1.0"

__all__ = [
    "F5pyError",
    "UsageError",
    "call_methylation",
    "compare",
    "eventalign",
    "extract",
    "fast5_check",
    "finish",
    "frequencies",
    "index",
    "iter_calls",
    "iter_events",
    "map_reads",
    "merge",
    "merge_frequencies",
    "plan",
    "plot",
    "plot_region",
    "regions",
    "resquiggle",
    "run_part",
    "simulate",
    "summary",
    "train",
    "validate",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'f5py' has no attribute {name!r}")
        from f5py import errors
        from f5py.api import functions

        return getattr(errors if name.endswith("Error") else functions, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
