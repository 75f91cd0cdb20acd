"""Setup of a run: inputs and compute stage."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from f5py.compute.alignment import AlignmentStage, begin_gpu
from f5py.jit.warm_up import warm_up
from f5py.runs.compiled_stages import OF_SIGNALS, STAGES
from f5py.runs.recipe import Recipe
from f5py.threads.pool import share_heap


def open_run(
    recipe: Recipe, options: Any, of_all: bool, workers: ExitStack, inputs: ExitStack
) -> tuple[Any, AlignmentStage]:
    """Open the inputs of a run, and make its compute stage; a first run compiles. Raises `F5pyError`.

    Parameters
    ----------
    of_all : bool
        The run covers the whole input, not some parts.
    workers, inputs : ExitStack
        Close the stage and the inputs.
    """
    share_heap()
    with warm_up({name: STAGES[name] for name in (*recipe.kernels(options), *OF_SIGNALS)}):
        begin_gpu(options, of_all)
        loader, chemistry = recipe.open(options, inputs)
    stage = recipe.stage(options, loader, chemistry)
    workers.callback(stage.close)
    return loader, stage
