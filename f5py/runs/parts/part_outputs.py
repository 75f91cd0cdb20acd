"""The outputs of parts: each batch goes to those of its part, and a part that has ended is completed."""

from __future__ import annotations

import json
import platform
import resource
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from f5py.compute.alignment import AlignmentStage
from f5py.compute.counts import RunCounts
from f5py.compute.statistics import RunStatistics
from f5py.core.batch import ReadBatch
from f5py.errors import InputFileError, OutputFileError
from f5py.io.files.complete_file import complete_output
from f5py.io.files.output import TextOutput
from f5py.pipeline.parts import Part
from f5py.runs.outcome import Outcome
from f5py.runs.parts.plan import Plan
from f5py.runs.parts.text_chain import ChainedText, Extent, TextChain, append_rows, is_whole

#: Names of files in the folder of a part.
ARROW, MODBAM, SITES, M6ANET, FAILED_READS, ULTRA, SUMMARY = (
    "table.arrow", "modbam.bam", "sites.npz", "m6anet.npy", "failed_reads.tsv", "ultra.bam", "summary.tsv"
)  # fmt: skip
_ABOUT = "part.json"
#: Parts that may wait for the disk.
_MOST_WAITING = 4


class DonePart(NamedTuple):
    """The outputs of a part that is done.

    Attributes
    ----------
    plan : Plan
    number : int
    table : Extent
        The rows of its table of text.
    """

    plan: Plan
    number: int
    table: Extent

    def path(self, name: str) -> str:
        """A file of the part."""
        return str(self.plan.part_folder(self.number) / name)

    def append_rows(self, out: TextOutput) -> None:
        """Write the rows of its table of text; see `f5py.runs.parts.text_chain.append_rows`."""
        append_rows(self.plan.folder, self.table, out)


#: Opens the outputs of a part in a folder, and its table as text; returns what writes a batch, and what completes the
#: files.
OpenOutputs = Callable[[Path, ExitStack, ChainedText], tuple[Callable[[ReadBatch], None], Callable[[], None]]]


class PartOutputs:
    """Writes the batches of several parts, which come one part after the other.

    Parameters
    ----------
    plan : Plan
    parts : deque of Part
        In the order in which they come. Taken from it when they begin; the loader may append more until then.
    stage : AlignmentStage
        What counts the reads of a batch.
    open_outputs : OpenOutputs
    new_statistics : function
        Gives what the report of a part is made of, or None.
    """

    def __init__(
        self,
        plan: Plan,
        parts: deque[Part],
        stage: AlignmentStage,
        open_outputs: OpenOutputs,
        new_statistics: Callable[[], RunStatistics | None],
    ) -> None:
        self._plan = plan
        self._stage = stage
        self._open_outputs = open_outputs
        self._new_statistics = new_statistics
        self._folders: dict[int, Path] = {}  # of parts that have not begun, which the loader may be ahead at
        for part in parts if plan.options.get("skip_ultra") is not None else []:
            self._folders[part.number] = plan.begin_part(part.number)
            part.ultra_path = str(self._folders[part.number] / ULTRA)
        self._waiting = parts
        self._current: _OpenPart | None = None
        self._next: tuple[int, int | None] = 0, 0  # the part after those so far, and its first row if that is known
        self._chain: TextChain | None = None
        self._commits = ThreadPoolExecutor(1, thread_name_prefix="f5py-parts")
        self._committed: deque[Future[None]] = deque()
        self._started = time.perf_counter()  # of the first part; the next ones begin when the one before is complete

    def write(self, batch: ReadBatch) -> None:
        """Write a batch to the outputs of its part."""
        while self._current is None or self._current.part.number != batch.part:
            self._next_part()
        self._current.write(batch)
        self._stage.count(batch, self._current.counts, self._current.statistics)

    def finish(self) -> None:
        """Complete all parts; to be called when everything has been loaded and written."""
        while self._waiting:
            self._next_part()
        self._complete()
        while self._committed:
            self._committed.popleft().result()
        self._close()

    def abandon(self, *problem: Any) -> None:
        """Give up the parts that are not complete, because of an exception: its type, itself and its traceback."""
        if self._current is not None:
            self._current.abandon(*problem)
            self._plan.abandon_part(self._current.folder)
        for folder in self._folders.values():
            self._plan.abandon_part(folder)
        self._close()

    def _next_part(self) -> None:
        self._complete()
        part = self._waiting.popleft()
        next_part, first_row = self._next
        before = None
        if part.number != next_part:
            before = _about_before(self._plan, part.number)
            first_row = None if before is None else before.get("next_row")
        if self._chain is None:
            extent = None if before is None else _extent_before(self._plan, part.number, before)
            self._chain = TextChain(self._plan.folder, extent)
        folder = self._folders.pop(part.number, None) or self._plan.begin_part(part.number)
        text = self._chain.part(part.number == 0, first_row)
        self._current = _OpenPart(part, folder, text, self._open_outputs, self._new_statistics(), self._started)

    def _complete(self) -> None:
        if self._current is None:
            return
        self._current.complete()
        self._next = self._current.part.number + 1, self._current.text.next_row
        # beside the work: to wait for the disk takes long
        self._committed.append(self._commits.submit(self._commit, self._current))
        while self._committed and (self._committed[0].done() or len(self._committed) > _MOST_WAITING):
            self._committed.popleft().result()
        self._current = None
        self._started = time.perf_counter()

    def _close(self) -> None:
        self._commits.shutdown()
        if self._chain is not None:
            self._chain.close()

    def _commit(self, done: _OpenPart) -> None:
        try:
            done.text.to_disk()
        except OSError as problem:
            raise OutputFileError(f"{done.folder}: cannot write: {problem.strerror}; the part is not done") from None
        self._plan.complete_part(done.part.number, done.folder)


def outputs_of_parts(
    plan: Plan,
    parts: deque[Part],
    stage: AlignmentStage,
    outputs: ExitStack,
    open_outputs: OpenOutputs,
    new_statistics: Callable[[], RunStatistics | None] = lambda: None,
) -> tuple[Callable[[ReadBatch], None], Callable[[], None]]:
    """What writes a batch to the outputs of its part, and what completes the last parts; see `PartOutputs`.

    `outputs` gives up what is not complete when it is left by an error.
    """
    of_parts = PartOutputs(plan, parts, stage, open_outputs, new_statistics)

    def settle(*details: Any) -> None:
        if details[0] is not None:
            of_parts.abandon(*details)

    outputs.push(settle)
    return of_parts.write, of_parts.finish


class _OpenPart:
    """A part that is being written."""

    def __init__(
        self,
        part: Part,
        folder: Path,
        text: ChainedText,
        open_outputs: OpenOutputs,
        statistics: RunStatistics | None,
        started: float,
    ) -> None:
        self.part = part
        self.folder = folder
        self.counts = RunCounts()
        self.statistics = statistics
        self._started = started
        self._files = ExitStack()
        self.text = text
        self.write, self._finish = open_outputs(folder, self._files, text)

    def complete(self) -> None:
        """Complete the files, and write what they have come to beside them."""
        self._finish()
        self._files.close()
        self.counts.ultra = self.part.n_ultra
        self.counts.total += self.part.n_ultra
        seconds = time.perf_counter() - self._started
        outcome = Outcome(self.counts, self.part.skipped, self.statistics, processing=seconds)
        about = {
            "outcome": outcome.as_json(),
            "has_known": self.part.has_known,
            "seconds": round(seconds, 3),
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "host": platform.node(),
            "table": self.text.extent(),
            "next_row": self.text.next_row,
            "files": {entry.name: entry.stat().st_size for entry in sorted(self.folder.iterdir())},
        }
        with complete_output(str(self.folder / _ABOUT)) as file:
            file.write(json.dumps(about).encode() + b"\n")

    def abandon(self, *problem: Any) -> None:
        """Close the files without completing them."""
        self._files.__exit__(*problem)


def read_part(plan: Plan, number: int) -> dict[str, Any]:
    """What is known of a part that is done.

    Raises
    ------
    InputFileError
        The part is damaged: it must be worked on again.
    """
    folder = plan.part_folder(number)
    again = f"work on the part again: f5py run-part {plan.folder} {number}" if len(plan) else "run the command again"
    damaged = InputFileError(f"{folder}: is damaged; remove it and {again}")
    try:
        about: dict[str, Any] = json.loads((folder / _ABOUT).read_bytes())
        sizes = {name: (folder / name).stat().st_size for name in about["files"]}
    except (OSError, ValueError, KeyError):
        raise damaged from None
    if sizes != about["files"] or not is_whole(plan.folder, Extent(*about["table"])):
        raise damaged
    return about


def _about_before(plan: Plan, number: int) -> dict[str, Any] | None:
    """What is known of the part before one that is not the first, if it is done."""
    if not plan.is_done(number - 1):
        return None
    try:
        return read_part(plan, number - 1)
    except InputFileError:  # of a damaged part, which finish will tell about
        return None


def _extent_before(plan: Plan, number: int, before: dict[str, Any]) -> Extent | None:
    """The rows of the part before, if that was done on this machine and nothing comes after them in their file."""
    after = (other for other in plan.done() if other >= number)
    extent = Extent(*before["table"])
    try:
        is_last = all(Extent(*read_part(plan, other)["table"]).file != extent.file for other in after)
    except InputFileError:  # likewise
        return None
    return extent if is_last and before["host"] == platform.node() else None
