"""Outputs of parts: route each batch to its part, and complete parts at their end."""

from __future__ import annotations

import os
import resource
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from f5py.compute.alignment import AlignmentStage
from f5py.compute.diagnosis import RunCounts
from f5py.compute.statistics import RunStatistics
from f5py.core.batch import ReadBatch
from f5py.io.files.complete_file import complete_output
from f5py.jit.instructions import processor_has_fused_sums
from f5py.outputs.sink import PartFiles, Sinks
from f5py.pipeline.batch_records import Part
from f5py.runs.outcome import Outcome
from f5py.runs.parts.done_part import RECORD, PartRecord, check_processor, file_state
from f5py.runs.parts.plan import Plan
from f5py.runs.parts.text_chain import ChainedText, new_chain, write_errors

#: Parts that may wait for the disk.
_MOST_WAITING = 4

#: Opens the outputs of a part.
OpenOutputs = Callable[[PartFiles], Sinks]


class PartOutputs:
    """Write the batches of consecutive parts."""

    def __init__(
        self,
        plan: Plan,
        parts: deque[Part],
        stage: AlignmentStage,
        open_outputs: OpenOutputs,
        new_statistics: Callable[[], RunStatistics | None],
    ) -> None:
        check_processor(plan)
        self._plan = plan
        self._stage = stage
        self._open_outputs = open_outputs
        self._new_statistics = new_statistics
        self._waiting = parts
        self._current: _OpenPart | None = None
        self._chain: BinaryIO | None = None
        self._commits = ThreadPoolExecutor(1, thread_name_prefix="f5py-parts")
        self._committed: deque[Future[None]] = deque()
        self._started = time.perf_counter()  # of the first part; the next ones begin when the one before is complete

    def write(self, batch: ReadBatch) -> None:
        if batch.is_earlier:
            return
        while self._current is None or self._current.part.number != batch.part:
            self._next_part()
        self._current.sinks.write(batch)
        self._stage.count(batch, self._current.counts, self._current.statistics)

    def finish(self) -> None:
        """Complete all parts, after the last batch."""
        while self._waiting:
            self._next_part()
        self._complete()
        while self._committed:
            self._committed.popleft().result()
        self._close()

    def abandon(self, *problem: Any) -> None:
        """Discard incomplete parts after an exception, given as to `__exit__`."""
        if problem[0] is None:
            return
        if self._current is not None:
            self._current.sinks.abandon(*problem)
            self._plan.abandon_part(self._current.folder)
        self._close()

    def _next_part(self) -> None:
        self._complete()
        part = self._waiting.popleft()
        if self._chain is None:
            self._chain = new_chain(self._plan.folder)
        folder = self._plan.begin_part(part.number)
        text = ChainedText(self._chain, has_header=part.number == 0)
        sinks = self._open_outputs(PartFiles(folder, text))
        self._current = _OpenPart(part, folder, text, sinks, self._new_statistics())

    def _complete(self) -> None:
        done = self._current
        if done is None:
            return
        done.sinks.finish()
        part, counts = done.part, done.counts
        seconds = time.perf_counter() - self._started
        counts = replace(counts, ultra=part.n_ultra, total=counts.total + part.n_ultra)
        record = PartRecord(
            plan=self._plan.fingerprint,
            number=part.number,
            outcome=Outcome(counts, part.skipped, done.statistics, processing=seconds),
            has_known=part.has_known,
            seconds=round(seconds, 3),
            peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            host=os.uname().nodename,
            has_fused_sums=processor_has_fused_sums(),
            table=done.text.extent(),
            files={},
        )
        # beside the work: to wait for the disk takes long
        self._committed.append(self._commits.submit(self._commit, done, record))
        while self._committed and (self._committed[0].done() or len(self._committed) > _MOST_WAITING):
            self._committed.popleft().result()
        self._current = None
        self._started = time.perf_counter()

    def _close(self) -> None:
        self._commits.shutdown()
        if self._chain is not None:
            with suppress(OSError):  # the error of a write that has been reported
                self._chain.close()

    def _commit(self, done: _OpenPart, record: PartRecord) -> None:
        """Complete a part by its record with checksums of the files, in a thread."""
        with write_errors(done.folder, "; the part is not done"):
            files = {name: file_state(done.folder, name) for name in sorted(os.listdir(done.folder))}
            with complete_output(str(done.folder / RECORD)) as file:
                file.write(replace(record, files=files).as_json())
            if self._plan.is_kept:
                done.text.to_disk()
        self._plan.complete_part(done.part.number, done.folder)


@dataclass
class _OpenPart:
    """A part in progress."""

    part: Part
    folder: Path
    text: ChainedText
    sinks: Sinks
    statistics: RunStatistics | None
    counts: RunCounts = field(default_factory=RunCounts)
