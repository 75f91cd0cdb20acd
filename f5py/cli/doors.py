"""The functions that the command line calls, and the classes of their options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from f5py.api import functions
from f5py.api.call import FUNCTIONS, function
from f5py.options import Options
from f5py.options.machine_commands import CompileOptions, GpuCheckOptions
from f5py.options.table_commands import DemoOptions


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
