"""The beginning of a run: its inputs are opened, and what computes them is made ready."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from f5py.compute.alignment import AlignmentStage, begin_gpu
from f5py.runs.recipe import Recipe
from f5py.runs.warm_up import OF_SIGNALS, warm_up
from f5py.threads.pool import share_heap


def open_run(
    recipe: Recipe, options: Any, of_all: bool, workers: ExitStack, inputs: ExitStack
) -> tuple[Any, AlignmentStage]:
    """Open the inputs of a run, and make what computes them; a first run compiles.

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
    with warm_up([*recipe.kernels(options), *OF_SIGNALS]):
        begin_gpu(options, of_all)
        loader, chemistry = recipe.open(options, inputs)
    stage = recipe.stage(options, loader, chemistry)
    workers.callback(stage.close)
    return loader, stage
