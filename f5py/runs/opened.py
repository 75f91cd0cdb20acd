"""The beginning of a run: its inputs are opened, and what computes them is made ready."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

from f5py.compute.alignment import AlignmentStage, begin_gpu
from f5py.runs.compile_ahead import OF_SIGNALS, CompileAhead
from f5py.runs.recipe import Recipe
from f5py.threads.pool import share_heap


class Opened(NamedTuple):
    """What a run is made of, before it has begun."""

    loader: Any
    stage: AlignmentStage
    ahead: CompileAhead | None  # loads the code that is kept, and has the other compiled
    parts: tuple[list[str], list[str]]  # of `f5py.runs.compile_ahead`: what computing and what writing needs


def parts_of_run(recipe: Recipe, options: Any) -> list[str]:
    """List the parts of `f5py.runs.compile_ahead` that the CPU threads need, the longest first; none: none ahead."""
    compiled = recipe.compiled(options)
    if compiled is None:
        return []
    return [*recipe.loading_parts(options), *(part for parts in compiled for part in parts), *OF_SIGNALS]


def open_run(recipe: Recipe, options: Any, of_all: bool, workers: ExitStack, inputs: ExitStack) -> Opened:
    """Open the inputs of a run, and make what computes them.

    Parameters
    ----------
    of_all : bool
        The whole input is to be computed, not some parts.
    workers, inputs : ExitStack
        What closes them.

    Raises
    ------
    F5pyError
        For anything wrong with the options or the inputs.
    """
    share_heap()
    with recipe.processes_ahead(options):
        has_gpu = begin_gpu(options, of_all)
        compiled = recipe.compiled(options)
        ahead = None
        if compiled is not None:
            ahead = CompileAhead([*parts_of_run(recipe, options), *(recipe.beside_gpu(options) if has_gpu else ())])
            workers.callback(ahead.close)
        loader, chemistry = recipe.open(options, inputs)
    if ahead is not None:
        recipe.load_after(options, loader, ahead.wait)
    stage = recipe.stage(options, loader, chemistry)
    workers.callback(stage.close)
    return Opened(loader, stage, ahead, compiled or ([], []))


def use_backends(recipe: Recipe, options: Any, opened: Opened, of_all: bool) -> None:
    """Let a run compute on GPUs, if it may and there are any, once the code that it takes is there."""
    _, stage, ahead, _ = opened
    if ahead is not None:
        stage.before_stage = ahead.wait
        stage.before_gpu = partial(ahead.load, recipe.beside_gpu(options))
    stage.use_gpu(opened.loader, of_all)
