"""Signal sources that survive crashes and hangs of the libraries for HDF5, VBZ and POD5.

Damaged files can make these abort or loop. They run in reader processes, and a dead process costs only the read or file
at fault.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

import numpy as np

from f5py.io.files.signal_format import Kind
from f5py.io.signals.helper_process import CPU_SECONDS
from f5py.io.signals.processes import ParallelSource, ReaderDiedError
from f5py.io.signals.source import FIELDS, FileReader, IndexedSource, SignalBlock, merge_blocks, paths_of
from f5py.messages.console import input_warning

#: Faulty reads after which a file is blocked.
_MOST_DEADLY_READS = 3


class Blocklist:
    """Files and single reads that crash readers, with reasons; shared by sources of the same reads."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.reads: dict[tuple[str, str], str] = {}
        self.lock = threading.Lock()  # for additions

    def __len__(self) -> int:
        return len(self.files) + len(self.reads)

    def why(self, name: str, path: str) -> str:
        """Return why a read is blocked, "" if it is not."""
        return self.files.get(path) or self.reads.get((name, path), "")


class GuardedSource(IndexedSource):
    """A `ParallelSource` that continues without the files that crash its processes.

    Raises `SignalError` if the processes cannot be started. `blocklist` shares known crashes between sources.
    """

    def __init__(
        self,
        n_processes: int,
        paths: Mapping[str, str],
        reader: type[FileReader],
        kind: Kind | None = None,
        cpu_seconds: float = CPU_SECONDS,
        blocklist: Blocklist | None = None,
    ) -> None:
        super().__init__(paths, kind)
        self._n_processes = n_processes
        self._cpu_seconds = cpu_seconds
        self._reader = reader
        self._blocklist = Blocklist() if blocklist is None else blocklist
        self._source = self._start_processes()

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        """Read the signals of the named reads, as `SignalSource.fetch`.

        Raises `SignalError`, after which the source is unusable, if a process was killed or died without a faulty file.
        """
        while True:
            try:
                return self._fetch(names)
            except ReaderDiedError as death:
                if not death.is_damage:
                    raise
                with self._blocklist.lock:
                    self._find_crash_cause(death)
                self._source = self._start_processes()

    def run_info(self, names: Sequence[str]) -> dict[str, str]:
        if self._blocklist.files:
            paths = paths_of(self._paths, names)
            names = [name for name, path in zip(names, paths, strict=True) if path not in self._blocklist.files]
        try:
            return self._source.run_info(names)
        except ReaderDiedError as death:
            if not death.is_damage:
                raise
            with self._blocklist.lock:
                for path in death.paths:
                    if path not in self._blocklist.files:
                        self._give_up(path, death.how)
            self._source = self._start_processes()
            return {}

    def close(self) -> None:
        self._source.close()

    def _start_processes(self) -> ParallelSource:
        return ParallelSource(self._n_processes, self._paths, self._reader, self._kind, self._cpu_seconds)

    def _give_up(self, path: str, how: str) -> None:
        """Block a file."""
        self._blocklist.files[path] = f"is in a file that {how}; it is damaged"
        _warn(path, how, "its reads are left out")

    def _fetch(self, names: Sequence[str]) -> SignalBlock:
        if not len(self._blocklist):
            return self._source.fetch(names)
        paths = paths_of(self._paths, names)
        whys = [self._blocklist.why(name, path) for name, path in zip(names, paths, strict=True)]
        lost = [i for i, why in enumerate(whys) if why]
        if not lost:
            return self._source.fetch(names)
        kept = [i for i, why in enumerate(whys) if not why]
        block = self._source.fetch([names[i] for i in kept])
        problems = {at: f"{paths[i]}: read {names[i]} {whys[i]}" for at, i in enumerate(lost)}
        nothing = np.full((len(FIELDS), len(lost)), np.nan, np.float32)
        none = SignalBlock.from_calibration(np.empty(0, np.int16), np.zeros(len(lost) + 1, np.int64), nothing, problems)
        return merge_blocks(len(names), [(kept, block), (lost, none)])

    def _find_crash_cause(self, death: ReaderDiedError) -> None:
        """Read a dead process's files one by one and block the faulty ones; raise `death` if there are none."""
        of_file: dict[str, list[str]] = {}
        n_known = 0
        for name, path in zip(death.names, death.paths, strict=True):
            if self._blocklist.why(name, path):
                n_known += 1
            else:
                of_file.setdefault(path, []).append(name)
        n_before = len(self._blocklist)
        with _RestartedReader(self._reader, self._kind, self._cpu_seconds) as one:
            for path, names in of_file.items():
                how, is_loop = one.fate(names, path)
                if not how:
                    continue
                reads = {} if is_loop else self._crashing_reads(one, names, path)
                earlier = sum(file == path for _, file in self._blocklist.reads)
                if reads and earlier + len(reads) <= _MOST_DEADLY_READS:
                    self._blocklist.reads.update(reads)
                    _warn(path, how, f"{len(reads)} of its reads {'is' if len(reads) == 1 else 'are'} left out")
                else:
                    self._give_up(path, how)
        if len(self._blocklist) == n_before and not n_known:
            raise death

    def _crashing_reads(self, one: _RestartedReader, names: Sequence[str], path: str) -> dict[tuple[str, str], str]:
        """Find the reads of a file that crash the reader, by name and path, up to the limit for the file."""
        found: dict[tuple[str, str], str] = {}
        for name in dict.fromkeys(names):
            how, _ = one.fate([name], path)
            if how:
                found[name, path] = f"{how}; it is damaged"
            if len(found) > _MOST_DEADLY_READS:
                break
        return found


def _warn(path: str, how: str, what: str) -> None:
    input_warning("read_signals", f"{path}: {how}; {what}, and the run goes on", "damaged signal files")


class _RestartedReader(AbstractContextManager["_RestartedReader"]):
    """A reader process that is restarted after its death."""

    def __init__(self, reader: type[FileReader], kind: Kind | None, cpu_seconds: float) -> None:
        self._reader = reader
        self._kind = kind
        self._cpu_seconds = cpu_seconds
        self._source: ParallelSource | None = None

    def __exit__(self, *_: object) -> None:
        if self._source is not None:
            self._source.close()

    def fate(self, names: Sequence[str], path: str) -> tuple[str, bool]:
        """Return how reading these reads kills the process, "" if it does not, and whether it hangs."""
        paths = dict.fromkeys(names, path)
        if self._source is None:
            self._source = ParallelSource(1, paths, self._reader, self._kind, self._cpu_seconds)
        self._source.set_paths(paths)
        try:
            self._source.fetch(names)
        except ReaderDiedError as death:
            self._source = None
            if not death.is_damage:
                raise
            return death.how, death.is_loop
        return "", False
