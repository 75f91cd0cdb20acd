"""The other processes of a run, as seen by the one that cuts the batches and writes them.

Each opens the inputs for itself, gets the records of one batch after the other, loads and computes them, and hands the
batch back through shared memory. So no interpreter does more than its GPU's share, and the outputs are made as in a run
of one process. A batch of a process that has died is loaded and computed here.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from f5py.compute.alignment import AlignmentStage
from f5py.core.batch import ReadBatch
from f5py.errors import F5pyError, MissingDependencyError
from f5py.io.shared_objects import ObjectChannel
from f5py.io.signals.helper_process import HUNG_UP, HelperProcess
from f5py.messages import console
from f5py.pipeline.batch_records import Cut
from f5py.pipeline.elsewhere import Awaited
from f5py.pipeline.loader import Loader
from f5py.runs.companions._companion_process import Computed, End, Problem, Said, serve
from f5py.runs.recipe import Recipe

_WHO = "companion"
#: How long the end of a process is waited for that has handed everything over.
_PATIENCE_SECONDS = 20.0
#: How long a process is waited for that has been ended, or has come to its end; a GPU takes a while to be let go.
_END_SECONDS = 0.5


class Companions:
    """See `f5py.pipeline.elsewhere.Elsewhere`.

    Starts the processes, which open their inputs meanwhile. Raises `F5pyError` if they cannot be started.

    Parameters
    ----------
    recipe : Recipe
    options : sequence of options
        Of each process.
    """

    def __init__(self, recipe: Recipe, options: Sequence[Any]) -> None:
        self._changed = threading.Condition()
        self._others: list[_Companion] = []
        self._n_here = 0  # batches that are loaded or computed here
        self._most_here = 0
        self._stopping = False
        try:
            for own in options:
                self._others.append(_Companion(recipe, own, self._changed))
        except OSError as problem:
            self.close()
            raise MissingDependencyError(f"cannot start a process for each GPU: {problem.strerror}") from None

    def help(self, loader: Loader, stage: AlignmentStage, n_lanes: int, warnings: list[str]) -> None:
        """Take batches from now on; what else loads and computes is that of this process.

        Parameters
        ----------
        n_lanes : int
            Batches that are computed here at the same time.
        warnings : list of str
            What has been warned of, which is not said twice.
        """
        self._loader, self._stage = loader, stage
        self._most_here = loader.settings.n_ahead + n_lanes + 1
        for other in self._others:
            other.begin(self._most_here, warnings)
        stage.times.n_threads = sum(other.n_threads for other in self._others) + stage.pool.n_threads
        loader.elsewhere = self

    @property
    def room(self) -> int:
        return self._most_here * len(self._others)

    def take(self, cut: Cut) -> Awaited | None:
        with self._changed:
            self._changed.wait_for(self._has_room)
            if self._stopping:
                return None
            other = min(self._others, key=lambda one: one.fullness)
            if other.fullness >= self._n_here / self._most_here and self._n_here < self._most_here:
                self._n_here += 1
                return None
            awaited = other.expect(cut)
        other.send_cut(awaited)
        return awaited

    def _has_room(self) -> bool:
        return self._stopping or self._n_here < self._most_here or any(other.fullness < 1.0 for other in self._others)

    def computed_here(self) -> None:
        with self._changed:
            self._n_here -= 1
            self._changed.notify_all()

    def batch_of(self, awaited: Awaited) -> ReadBatch:
        arrived = awaited.take()
        if arrived is not None:
            self._loader.take_in(*arrived)
            return arrived[0]
        if self._stopping:
            raise F5pyError("the run is being ended")
        batch, found = self._loader.load(awaited.cut)
        self._loader.take_in(batch, found)
        self._stage.compute(batch)
        return batch

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self.close()

    def end(self) -> None:
        for other in self._others:
            other.say_end()

    def finish(self) -> None:
        """Add up the times of the processes, which have been told that there are no more batches."""
        for other in self._others:
            for name, seconds in other.seconds_at_end(_PATIENCE_SECONDS).items():
                self._stage.times.add(name, seconds)

    def close(self) -> None:
        """End the processes. May be called twice."""
        for other in self._others:
            other.close()


class _Companion:
    """The end of one process here."""

    def __init__(self, recipe: Recipe, options: Any, changed: threading.Condition) -> None:
        self.n_threads = options.threads
        self.has_ended = False
        self._most = 1
        self._warnings: list[str] = []
        self._has_begun = threading.Event()
        self._is_closed = False
        self._is_over = False  # everything has been handed over
        self._changed = changed
        self._awaited: dict[int, Awaited] = {}
        self._end: queue.SimpleQueue[dict[str, float]] = queue.SimpleQueue()
        self._process = HelperProcess(serve)
        self._channel = ObjectChannel(self._process.connection)
        self._send((recipe, options))
        self._thread = threading.Thread(target=self._receive, name="f5py-companion", daemon=True)
        self._thread.start()

    def begin(self, most: int, warnings: list[str]) -> None:
        """Let it have so many batches at a time; see `Companions.help`."""
        self._most, self._warnings = most, warnings
        self._has_begun.set()

    @property
    def fullness(self) -> float:
        """Batches that it has, as a share of those that it may have; many if it takes no more."""
        return 1e9 if self.has_ended else len(self._awaited) / self._most

    def expect(self, cut: Cut) -> Awaited:
        """Make the batch that it will be sent; the lock of `changed` is held."""
        awaited = Awaited(replace(cut, stretches=[one.alone() for one in cut.stretches]))
        self._awaited[cut.number] = awaited
        return awaited

    def send_cut(self, awaited: Awaited) -> None:
        """Send the records of a batch."""
        self._send(awaited.cut)

    def say_end(self) -> None:
        """Say that there are no more batches."""
        self._send(None)

    def seconds_at_end(self, most: float) -> dict[str, float]:
        """Return the seconds that its threads together have worked on each stage, once it tells."""
        try:
            return self._end.get(timeout=most)
        except queue.Empty:
            return {}

    def close(self) -> None:
        """End it at once, or wait for its end if it has handed everything over. May be called twice."""
        self._is_closed = True
        self._has_begun.set()
        if not self._is_over:
            self._process.kill()
        self._thread.join(_END_SECONDS)

    def _send(self, message: Any) -> None:
        with suppress(*HUNG_UP):  # the thread that receives will know
            self._channel.send(message)

    def _receive(self) -> None:
        error: BaseException | None = None
        try:
            while True:
                message = self._channel.recv()
                if isinstance(message, Computed):
                    with self._changed:
                        awaited = self._awaited.pop(message.batch.number)
                        self._changed.notify_all()
                    awaited.put(*message)
                    del awaited
                elif isinstance(message, Said):
                    self._say(message)
                elif isinstance(message, Problem):
                    error = message.error
                elif isinstance(message, End):
                    self._is_over = True
                    self._end.put(message.seconds)
                del message  # its arrays are large
        except HUNG_UP:
            pass
        finally:
            self._give_up(error)
        self._process.wait(_PATIENCE_SECONDS)
        self._process.close()

    def _give_up(self, error: BaseException | None) -> None:
        """Let what it has not handed over be computed here; after an error what comes first has it."""
        with self._changed:
            self.has_ended = True
            awaited, self._awaited = self._awaited, {}
            self._changed.notify_all()
        self._end.put({})
        if not (self._is_closed or self._is_over) and (error is None or not awaited):
            self._process.wait(_END_SECONDS)
            why = f"has ended (status {self._process.status})" if error is None else f"could not go on: {error}"
            console.warning(
                _WHO, f"a process of this run {why}; the others do its work, {len(awaited)} batches of it again"
            )
        for one in awaited.values():
            one.fail(error)

    def _say(self, said: Said) -> None:
        self._has_begun.wait()  # what this process finds when it opens the inputs comes first
        if said.level == "WARNING":
            if said.text not in self._warnings:
                console.warning(said.who, said.text, said.kind)
        else:
            (console.info if said.level == "INFO" else console.note)(said.who, said.text)
