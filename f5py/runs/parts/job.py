"""Some parts of a plan that one process works on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack

from f5py.compute.alignment import AlignmentStage
from f5py.compute.statistics import RunStatistics
from f5py.core.batch import ReadBatch
from f5py.pipeline.loader import Loader
from f5py.pipeline.parts import Part
from f5py.runs.parts.part_outputs import OpenOutputs, outputs_of_parts
from f5py.runs.parts.plan import Plan

WriteBatch = Callable[[ReadBatch], None]


class PartJob:
    """What `f5py.commands` needs to work on parts instead of a whole run.

    Parameters
    ----------
    plan : Plan
    numbers : list of int
        Of the parts, ascending.
    judges_fit : bool
        Whether the first reads say if the reads fit the chemistry, as those of a run over all reads do.

    Attributes
    ----------
    left : str
        What an error leaves of the outputs, for messages.
    """

    left = "the parts before are done"

    def __init__(self, plan: Plan, numbers: list[int], judges_fit: bool) -> None:
        self.plan = plan
        self.judges_fit = judges_fit
        self.numbers = numbers

    def outputs(
        self,
        loader: Loader,
        stage: AlignmentStage,
        outputs: ExitStack,
        open_outputs: OpenOutputs,
        new_statistics: Callable[[], RunStatistics | None],
    ) -> tuple[WriteBatch, Callable[[], None]]:
        """Let the loader load the parts; return what writes a batch, and what completes the last parts.

        `outputs` gives up what is not complete when it is left by an error.
        """
        loader.parts = parts = [Part(number, self.plan.ranges[number]) for number in self.numbers]
        stage.judges_fit = self.judges_fit
        return outputs_of_parts(self.plan, deque(parts), stage, outputs, open_outputs, new_statistics)
