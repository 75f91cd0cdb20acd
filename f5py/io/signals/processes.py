"""Signal source that reads in several processes, because HDF5 serializes reads within a process."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing import connection as mp_connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.large_arrays import recycled_array
from f5py.core.offsets import offsets_of
from f5py.errors import SignalError
from f5py.io.files.memory_file import memory_descriptor
from f5py.io.files.signal_format import Kind
from f5py.io.signals._reader_process import SharedSamples, serve
from f5py.io.signals.fast5.reader import Fast5Reader
from f5py.io.signals.helper_process import CPU_SECONDS, HUNG_UP, LOOK_EVERY, HelperProcess, send, signal_name
from f5py.io.signals.source import FIELDS, FileReader, IndexedSource, SignalBlock, paths_of

_STOPPED = "the signal reader processes have been stopped"


class ReaderDiedError(SignalError):
    """A reader process has died or hangs.

    Attributes
    ----------
    how : str
        What a file may have done to it.
    is_damage, is_loop : bool
        A file may be the cause; the process was in an endless loop.
    names, paths : sequences of str
        The request.
    """

    def __init__(self, text: str, how: str = "", is_damage: bool = False) -> None:
        super().__init__(text)
        self.how = how
        self.is_damage = is_damage
        self.is_loop = False
        self.names: Sequence[str] = ()
        self.paths: Sequence[str] = ()


class ParallelSource(IndexedSource):
    """Signals of indexed reads, read in several processes.

    Every process has its share of the files, so that it finds them open. Samples return through `SharedSamples`. Raises
    `SignalError` if the processes cannot be started.

    Parameters
    ----------
    reader : class
        Importable `FileReader` for the processes.
    cpu_seconds : float
        Processor time for an answer, plus some per read.
    """

    def __init__(
        self,
        n_processes: int,
        paths: Mapping[str, str],
        reader: type[FileReader] = Fast5Reader,
        kind: Kind | None = None,
        cpu_seconds: float = CPU_SECONDS,
    ) -> None:
        super().__init__(paths, kind)
        self._cpu_seconds = cpu_seconds
        self._why_closed = _STOPPED
        self._readers: list[_ReaderProcess] = []
        some_path = next(filter(None, paths.values()), "")
        try:
            for _ in range(n_processes):
                self._readers.append(_ReaderProcess(reader, some_path))
        except OSError as problem:
            self.close()
            raise SignalError(f"cannot start the signal reader processes: {problem.strerror}") from None
        except BaseException:
            self.close()
            raise

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        """Read the signals of the named reads, as `SignalSource.fetch`.

        Raises `ReaderDiedError`, after which the source is unusable, or `SignalError` if it is closed.
        """
        if not self._readers:
            raise SignalError(self._why_closed)
        try:
            return self._fetch(names)
        except BaseException as problem:
            self._close_because_of(problem)
            raise

    def run_info(self, names: Sequence[str]) -> dict[str, str]:
        if not self._readers:
            raise SignalError(self._why_closed)
        reader = self._readers[0]
        try:
            for name, path in zip(names, paths_of(self._paths, names), strict=True):
                if path:
                    asked = [name], [path]
                    reader.send((name, path))
                    list(_as_they_answer({reader: None}, self._cpu_seconds))
                    if found := reader.receive():
                        return found
        except BaseException as problem:
            if isinstance(problem, ReaderDiedError):
                problem.names, problem.paths = asked
            self._close_because_of(problem)
            raise
        return {}

    def set_paths(self, paths: Mapping[str, str]) -> None:
        self._paths = paths

    def close(self) -> None:
        """Kill the processes, which only read. May be called twice."""
        readers, self._readers = self._readers, []
        for reader in readers:
            reader.end()
        for reader in readers:
            reader.release()

    def _close_because_of(self, problem: BaseException) -> None:
        """Close and keep the reason for later calls."""
        if isinstance(problem, SignalError) and self._readers:
            self._why_closed = str(problem)
        self.close()

    def _fetch(self, names: Sequence[str]) -> SignalBlock:
        paths = paths_of(self._paths, names)
        shares = {
            reader: share
            for reader, share in zip(self._readers, share_out(paths, len(self._readers)), strict=True)
            if share.size
        }
        requests = {reader: ([names[i] for i in share], [paths[i] for i in share]) for reader, share in shares.items()}
        for reader, request in requests.items():
            reader.send(request)
        try:
            return self._receive(len(names), shares)
        except ReaderDiedError as death:
            for reader, (of_reader, files) in requests.items():
                if reader.has_died:
                    death.names, death.paths = of_reader, files
            raise

    def _receive(self, n: int, shares: Mapping[_ReaderProcess, NDArray[np.int64]]) -> SignalBlock:
        """Assemble the answers for n reads."""
        lengths = np.zeros(n, np.int64)
        calibration = np.empty((len(FIELDS), n), np.float32)
        problems: dict[int, str] = {}
        for reader in _as_they_answer(shares, self._cpu_seconds):
            share = shares[reader]
            offsets, calibration[:, share], found = reader.receive()
            lengths[share] = np.diff(offsets)
            problems.update((int(share[i]), line) for i, line in found.items())

        offsets = offsets_of(lengths)
        samples = recycled_array(offsets[-1], np.int16)
        for reader, share in shares.items():
            reader.copy_samples(samples, offsets[share], lengths[share])
        return SignalBlock.from_calibration(samples, offsets, calibration, dict(sorted(problems.items())))


class _ReaderProcess:
    """Parent's end of a reader process."""

    def __init__(self, reader_class: type[FileReader], path: str) -> None:
        self._ending = False
        self.has_died = False
        self.asked: Sequence[str] = ()
        descriptor = memory_descriptor("f5py signals")
        self._shared = SharedSamples(descriptor)
        what = reader_class.__module__, reader_class.__qualname__
        try:
            self.process = HelperProcess(serve, *what, descriptors=(descriptor,))
        except BaseException:
            self._shared.close()
            raise
        self.connection = self.process.connection
        with suppress(OSError):  # the first request reports a death
            send(self.connection, path)

    def send(self, message: Any) -> None:
        self.asked = message[1] if isinstance(message[0], list) else [message[1]]
        try:
            send(self.connection, message)
        except HUNG_UP:
            raise self._ended() from None

    def receive(self) -> Any:
        try:
            message = self.connection.recv()
        except HUNG_UP:
            raise self._ended() from None
        if isinstance(message, Exception):
            raise message
        return message

    def copy_samples(self, samples: NDArray[np.int16], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> None:
        """Copy the samples of the last request to the reads' offsets in an array."""
        is_apart = np.append(True, starts[1:] != starts[:-1] + lengths[:-1])
        starts, lengths = starts[is_apart], np.add.reduceat(lengths, np.flatnonzero(is_apart))
        offsets = offsets_of(lengths)
        try:
            read = self._shared.samples(int(offsets[-1]))
        except (OSError, ValueError) as problem:
            raise SignalError(_STOPPED if self._ending else f"no memory for signals ({problem})") from None
        for to, begin, end in zip(starts.tolist(), offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            samples[to : to + end - begin] = read[begin:end]

    def end(self) -> None:
        self._ending = True
        self.process.kill()

    def release(self) -> None:
        self.process.close()
        self._shared.close()

    def _ended(self) -> SignalError:
        if self._ending:
            return SignalError(_STOPPED)
        self.has_died = True
        deadly = self.process.fatal_signal()
        code = self.process.status
        how = f"ended with status {code}" if code is None or code >= 0 else f"was ended by {signal_name(-code)}"
        return ReaderDiedError(
            f"a signal reader process (pid {self.process.pid}) {how}; if memory is short, use a smaller --iop, -K or "
            "-B",
            f"ends the library that reads it ({signal_name(-(code or 0))})",
            bool(deadly),
        )

    def silent(self, is_loop: bool) -> ReaderDiedError:
        """Kill a process that does not answer and return the error to raise."""
        self.has_died = True
        self.process.kill()
        death = ReaderDiedError(
            f"a signal reader process (pid {self.process.pid}) has not answered for {self.process.silence:.0f} "
            f"seconds; the first file that it was to read is {self.asked[0]}",
            "keeps the library that reads it in an endless loop",
            is_loop,
        )
        death.is_loop = is_loop
        return death


def share_out(paths: Sequence[str], n_shares: int) -> list[NDArray[np.int64]]:
    """Divide reads into equal shares, keeping the reads of a file together if possible.

    A checksum of its path gives a file the same share in every call; excess reads go to shares with room. Returns the
    indices of each share, int64.
    """
    if n_shares == 1:
        return [np.arange(len(paths))]
    by_file: dict[str, list[int]] = {}
    for i, path in enumerate(paths):
        by_file.setdefault(path, []).append(i)
    room = [-(-len(paths) // n_shares)] * n_shares
    shares: list[list[int]] = [[] for _ in range(n_shares)]
    homeless: list[int] = []
    for path, reads in by_file.items():
        home = zlib.crc32(os.fsencode(path)) % n_shares
        shares[home] += reads[: room[home]]
        homeless += reads[room[home] :]
        room[home] -= min(room[home], len(reads))
    for share, space in zip(shares, room, strict=True):
        share += homeless[:space]
        del homeless[:space]
    return [np.array(share, np.int64) for share in shares]


def _as_they_answer(readers: Mapping[_ReaderProcess, Any], cpu_seconds: float) -> Iterator[_ReaderProcess]:
    """Yield each reader when it has an answer or has died.

    Raises `ReaderDiedError` after too much processor time or an hour without an answer.
    """
    waiting = {reader.connection: reader for reader in readers}
    for reader in readers:
        reader.process.begin()
    while waiting:
        try:
            ready = mp_connection.wait(list(waiting), min(LOOK_EVERY, cpu_seconds))
        except (OSError, ValueError):  # closed by another thread
            raise SignalError(_STOPPED) from None
        for reader in waiting.values() if not ready else ():
            if reader.process.loops(len(reader.asked), cpu_seconds):
                raise reader.silent(is_loop=True)
            if reader.process.waits_too_long(reader.asked[0]):
                raise reader.silent(is_loop=False)
        for connection in ready:
            yield waiting.pop(connection)  # type: ignore[call-overload]
