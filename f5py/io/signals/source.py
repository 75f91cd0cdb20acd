"""Protocols of signal sources and readers, and blocks of signals as flat arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from f5py.core.batch import StoredSamples
from f5py.core.large_arrays import recycled_array
from f5py.core.offsets import offsets_of
from f5py.io.files.signal_format import Kind, file_kind
from f5py.io.remote import shown
from f5py.io.signals.system_limits import TOO_MANY_FILES, most_open
from f5py.threads.pool import CallingThread, WorkerPool


class UnreadableError(Exception):
    """A file or read cannot be read; the text is a phrase with it as subject."""


class Calibration(NamedTuple):
    """Units of a read's samples: ``pA = (sample + offset) * (range / digitisation)``."""

    digitisation: float
    offset: float
    range: float
    sampling_rate: float  # Hz


CALIBRATION = Calibration._fields
#: Calibration and the start of the read, which may be unknown.
FIELDS = (*CALIBRATION, "start_time")
_N_CALIBRATION = len(CALIBRATION)
NO_FILE = "is in no signal file known; give the files that the reads were basecalled from"
#: Default number of open files.
MAX_OPEN_FILES = 64
#: Longer signals (55 hours at 5 kHz) mean damage.
MAX_SAMPLES = 1_000_000_000
#: Allocates an array of a length and a dtype.
Allocator = Callable[[int, DTypeLike], NDArray]
#: Samples of a read and values of `FIELDS`, or why it is unreadable.
ReadOrCause = tuple[NDArray[np.int16], Sequence[float] | NDArray[np.float64]] | str


@dataclass
class SignalBlock:
    """Signals of n reads, in the order of the request."""

    samples: NDArray[np.int16]  # shape (offsets[-1],): raw DAC values
    offsets: NDArray[np.int64]  # shape (n + 1,); unreadable reads are empty
    # shape (5, n): values of `FIELDS`, the start in seconds; NaN for unreadable reads and unknown starts
    calibration: NDArray[np.float32]
    problems: dict[int, str]  # one line for each unreadable read, by index
    packed: StoredSamples | None = None  # source of samples that are not yet expanded

    @classmethod
    def empty(
        cls,
        names: Sequence[str],
        places: Sequence[str],
        n_samples: NDArray[np.int64],
        calibration: NDArray[np.float64],
        causes: dict[int, str],
        room: Allocator = recycled_array,
    ) -> SignalBlock:
        """Check n reads and lay out a block with samples that `room` allocates, unfilled.

        The checks are shared by all formats, so that they reject the same reads with the same words.

        Parameters
        ----------
        places : sequence of str, length n
            File of each read, for messages; may be empty.
        n_samples : int64, shape (n,)
            -1 for an unreadable read.
        calibration : float64, shape (n, 5)
            `FIELDS`, the start in samples.
        causes : dict of int to str
            Unreadable reads and reasons; added to.
        """
        with np.errstate(over="ignore"):
            calibration, starts = calibration[:, :_N_CALIBRATION], calibration[:, _N_CALIBRATION]
            stored = calibration.astype(np.float32)
        for i in np.flatnonzero(n_samples == 0).tolist():
            causes.setdefault(i, "has no samples")
        usable = np.isfinite(stored)
        usable[:, [0, 2, 3]] &= stored[:, [0, 2, 3]] > 0  # only the offset may be zero or negative
        for i in np.flatnonzero(~usable.all(axis=1)).tolist():
            wrong = ", ".join(
                f"{what} {value:g}"
                for what, value, good in zip(CALIBRATION, calibration[i], usable[i], strict=True)
                if not good
            )
            causes.setdefault(i, f"has no usable calibration ({wrong})")
        bad = sorted(causes)
        stored[bad] = np.nan
        with np.errstate(all="ignore"):
            seconds = (starts / stored[:, -1]).astype(np.float32)
        sizes = np.maximum(n_samples, 0)
        sizes[bad] = 0
        offsets = offsets_of(sizes)
        problems = {}
        for i in bad:
            where = f"{shown(places[i])}: " if places[i] else ""
            problems[i] = " ".join(f"{where}read {names[i]} {causes[i]}".split())
        return cls(room(int(offsets[-1]), np.int16), offsets, np.stack([*stored.T, seconds]), problems)

    def expand(self, pool: WorkerPool | CallingThread) -> None:
        """Fill in packed samples."""
        packed, self.packed = self.packed, None
        if packed is not None:
            reads = np.flatnonzero(np.diff(self.offsets))
            packed.expand(reads, self.offsets[reads], self.samples, pool)


class SignalSource(Protocol):
    """Protocol of signal sources, with the answers of those for one thread at a time that use no threads."""

    @property
    def kind(self) -> Kind:
        """Format of the files, for reports."""
        ...

    @property
    def is_concurrent(self) -> bool:
        """Whether `fetch` may be called in several threads."""
        return False

    def use_pool(self, pool: WorkerPool, leaves_packed: bool = False) -> None:
        """Read with these threads, while they exist; `leaves_packed` leaves expansion to the user of a block."""
        return

    def has_reads(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """Return which reads the files list."""
        ...

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        """Read the signals of the named reads, repeats allowed.

        Missing and unreadable reads are in ``problems`` and have no samples. Raises `SignalError` if the source is
        unusable, `MissingDependencyError` if it needs a package.
        """
        ...

    def run_info(self, names: Sequence[str]) -> dict[str, str]:
        """Return metadata of the sequencing run of the first readable read.

        Keys, such as ``experiment_type``, ``sequencing_kit``, ``flow_cell_product_code`` and ``sample_frequency``, are
        spelled as in fast5's context tags and tracking id and SLOW5's header, in lower case.
        """
        ...

    def first_names(self, n: int) -> list[str]:
        """Return the names of at most n reads."""
        ...

    def place(self, name: str) -> str:
        """Return a read's file, or ``slow5``, for summaries; "" if unknown."""
        ...

    def close(self) -> None:
        """Close all files and stop all processes. May be called twice."""
        ...


def paths_of(paths: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return the file of each read, "" if unknown, by the mapping's own ``paths_of`` if it has one."""
    ask_at_once = getattr(paths, "paths_of", None)
    return [paths.get(name, "") for name in names] if ask_at_once is None else ask_at_once(names)


class IndexedSource(SignalSource):
    """Signals of reads with indexed files; the format is by default that of the first file."""

    def __init__(self, paths: Mapping[str, str], kind: Kind | None = None) -> None:
        self._paths = paths
        self._kind = kind

    @property
    def kind(self) -> Kind:
        if self._kind is None:
            first = next(filter(None, self._paths.values()), "")
            with suppress(OSError, ValueError):
                return "pod5" if first and file_kind(first) == "pod5" else "fast5"
        return self._kind or "fast5"

    def has_reads(self, names: Sequence[str]) -> NDArray[np.bool_]:
        return np.fromiter(map(bool, paths_of(self._paths, names)), np.bool_, len(names))

    def first_names(self, n: int) -> list[str]:
        return list(islice(self._paths, n))

    def place(self, name: str) -> str:
        return shown(self._paths.get(name, ""))

    def run_info(self, names: Sequence[str]) -> dict[str, str]:
        for name, path in zip(names, paths_of(self._paths, names), strict=True):
            if path and (found := self._run_info(name, path)):
                return found
        return {}

    def _run_info(self, name: str, path: str) -> dict[str, str]:
        """Return metadata of the run of a read in a file, nothing if it is unreadable."""
        raise NotImplementedError


class FileSource(IndexedSource):
    """Signals of indexed reads, read in this process. Closes the reader with itself."""

    def __init__(self, paths: Mapping[str, str], reader: FileReader, kind: Kind | None = None) -> None:
        super().__init__(paths, kind)
        self._reader = reader

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        return self._reader.read(names, paths_of(self._paths, names))

    def _run_info(self, name: str, path: str) -> dict[str, str]:
        return self._reader.run_info(name, path)

    def close(self) -> None:
        self._reader.close()


class BlockBuilder:
    """Builder of a `SignalBlock` from reads in any order; parameters as for `SignalBlock.empty`."""

    def __init__(self, names: Sequence[str], places: Sequence[str], room: Allocator = recycled_array) -> None:
        self._room = room
        self._names = names
        self._places = places
        self._samples: list[NDArray[np.int16] | None] = [None] * len(names)
        self._calibration = np.full((len(names), len(FIELDS)), np.nan)
        self._causes: dict[int, str] = {}

    def add(self, i: int, read: ReadOrCause) -> None:
        """Set read i, which is not copied."""
        if isinstance(read, str):
            self._causes[i] = read
        else:
            self._samples[i], calibration = read
            self._calibration[i, : len(calibration)] = calibration

    def build(self) -> SignalBlock:
        """Check all reads and return the block; the builder cannot be reused."""
        n_samples = np.array([-1 if read is None else read.size for read in self._samples], np.int64)
        block = SignalBlock.empty(self._names, self._places, n_samples, self._calibration, self._causes, self._room)
        for i, read in enumerate(self._samples):
            if read is not None and i not in block.problems:
                block.samples[block.offsets[i] : block.offsets[i + 1]] = read
            self._samples[i] = None  # frees memory early
        return block


class SignalFile(Protocol):
    """Protocol of open signal files."""

    def reads(self, names: Sequence[str]) -> Iterable[ReadOrCause]:
        """Read distinct reads, in this order."""
        ...

    def run_info(self, name: str) -> dict[str, str]:
        """Return metadata of a read's run, as `SignalSource.run_info`; may raise `UnreadableError`."""
        ...

    def close(self) -> None: ...


class FileReader:
    """Reader of reads with known files; made without arguments.

    The most recently used files stay open, fewer of them once the system has run out of file descriptors.
    """

    def __init__(self, max_open: int = MAX_OPEN_FILES) -> None:
        self._most_open = most_open(max_open)
        self._files: dict[str, SignalFile | str] = {}  # the least recently used first

    @staticmethod
    def prepare(path: str) -> None:
        """Import the modules for a file, or for none in particular (""); may raise anything."""

    @staticmethod
    def open_file(path: str) -> SignalFile | str:
        """Return the open file, or why its reads are unreadable."""
        raise NotImplementedError

    def fetch_remote(self, by_file: Mapping[str, Iterable[str]]) -> None:
        """Fetch reads in remote files, all at the same time."""

    def read(self, names: Sequence[str], paths: Sequence[str], room: Allocator = recycled_array) -> SignalBlock:
        """Read each named read from its file; an empty path means an unknown file.

        `room` allocates the block's samples; its earlier arrays are not needed then. Raises `MissingDependencyError` if
        a file needs a package; unreadable reads are in ``problems``.
        """
        block = BlockBuilder(names, paths, room)
        by_file: dict[str, dict[str, list[int]]] = {}
        for i, (name, path) in enumerate(zip(names, paths, strict=True)):
            by_file.setdefault(path, {}).setdefault(name, []).append(i)
        self.fetch_remote(by_file)
        for path, reads in by_file.items():
            file = self.file(path)
            found = [file] * len(reads) if isinstance(file, str) else file.reads(list(reads))
            for repeats, read in zip(reads.values(), found, strict=True):
                for i in repeats:
                    block.add(i, read)
        return block.build()

    def run_info(self, name: str, path: str) -> dict[str, str]:
        """Return metadata of a read's run, as `SignalSource.run_info`; nothing for an unreadable read."""
        file = self.file(path)
        try:
            return {} if isinstance(file, str) else file.run_info(name)
        except UnreadableError:
            return {}

    def file(self, path: str) -> SignalFile | str:
        """Return an open file, or why its reads are unreadable."""
        if path in self._files:
            self._files[path] = self._files.pop(path)
            return self._files[path]
        while True:
            self._close_all_but(self._most_open - 1)
            try:
                return self._files.setdefault(path, self.open_file(path))
            except OSError as problem:
                if problem.errno not in TOO_MANY_FILES or not self._files:
                    raise
                self._most_open = len(self._files)

    def close(self) -> None:
        self._close_all_but(0)

    def _close_all_but(self, n: int) -> None:
        while len(self._files) > n:
            file = self._files.pop(next(iter(self._files)))
            if not isinstance(file, str):
                file.close()


def unreadable_block(names: Sequence[str], places: Sequence[str], causes: Sequence[str]) -> SignalBlock:
    """Make a block of unreadable reads; parameters as for `BlockBuilder`."""
    n = len(names)
    return SignalBlock.empty(names, places, np.full(n, -1), np.full((n, len(FIELDS)), np.nan), dict(enumerate(causes)))


def merge_blocks(n: int, parts: Sequence[tuple[Sequence[int], SignalBlock]], room: Allocator = np.empty) -> SignalBlock:
    """Merge blocks, each with its read indices, into one of n reads; of repeated reads the last counts."""
    lengths, part_of = np.zeros((2, n), np.int64)
    calibration = np.empty((len(FIELDS), n), np.float32)
    problems: dict[int, str] = {}
    for number, (reads, block) in enumerate(parts):
        part_of[reads] = number
        lengths[reads] = np.diff(block.offsets)
        calibration[:, reads] = block.calibration
    offsets = offsets_of(lengths)
    samples = room(int(offsets[-1]), np.int16)
    for number, (reads, block) in enumerate(parts):
        problems.update((reads[i], line) for i, line in block.problems.items() if part_of[reads[i]] == number)
        for i in np.flatnonzero(part_of[reads] == number).tolist():
            read = reads[i]
            samples[offsets[read] : offsets[read + 1]] = block.samples[block.offsets[i] : block.offsets[i + 1]]
    return SignalBlock(samples, offsets, calibration, dict(sorted(problems.items())))
