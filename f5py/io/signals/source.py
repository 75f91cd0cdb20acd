"""Protocol of signal sources: raw samples and calibration of many reads at once, as flat arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from f5py.core.batch import PackedSamples, StoredSamples
from f5py.core.large_arrays import recycled_array
from f5py.core.offsets import offsets_of
from f5py.io.files.signal_format import Kind, file_kind
from f5py.io.remote import shown
from f5py.threads.pool import CallingThread, WorkerPool


class Unreadable(Exception):
    """A file or a read cannot be read; the text is the cause, as a phrase whose subject is the file or the read."""


class Calibration(NamedTuple):
    """Units of a read's samples: ``pA = (sample + offset) * (range / digitisation)``; the sampling rate is in Hz."""

    digitisation: float
    offset: float
    range: float
    sampling_rate: float


#: The calibration fields of a block, in the order in which `BlockBuilder.add` takes them.
CALIBRATION = Calibration._fields
#: These, and when the read was sequenced, which need not be known.
FIELDS = (*CALIBRATION, "start_time")
_N_CALIBRATION = len(CALIBRATION)
#: What is wrong with reads that are looked for in no file.
NO_FILE = "is in no signal file known; give the files that the reads were basecalled from"
#: Makes an array of a length and a dtype.
Room = Callable[[int, DTypeLike], NDArray]


class Packed(NamedTuple):
    """Samples of reads as they came; see `f5py.core.batch.PackedSamples`."""

    stored: StoredSamples

    def expand(
        self,
        reads: NDArray[np.int64],
        places: NDArray[np.int64],
        samples: NDArray[np.int16],
        pool: WorkerPool | CallingThread,
    ) -> float:
        from f5py.io.signals._stored_numba import copy_samples

        return pool.run(copy_samples, reads, self.stored, places, samples)


@dataclass
class SignalBlock:
    """The signals of n reads, in the order in which they were asked for."""

    samples: NDArray[np.int16]  # shape (offsets[-1],): raw DAC values of all reads, one read after the other
    # shape (n + 1,): read i has ``samples[offsets[i]:offsets[i + 1]]``; an unreadable read has none
    offsets: NDArray[np.int64]
    # digitisation, offset, range, sampling_rate: shape (n,): calibration of each read: ``pA = (raw + offset) * (range /
    # digitisation)``; Hz for the last. NaN where the read is unreadable.
    digitisation: NDArray[np.float32]
    offset: NDArray[np.float32]
    range: NDArray[np.float32]
    sampling_rate: NDArray[np.float32]
    # for each unreadable read its index and one line that says what is wrong and where
    problems: dict[int, str] = field(default_factory=dict)
    # shape (n,): seconds from the begin of the sequencing run to that of the read; NaN where the files do not say that
    start_time: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    # what the samples are still to be filled with, by `expand` or read by read
    packed: PackedSamples | None = None

    def __post_init__(self) -> None:
        if len(self.start_time) < len(self.offset):
            self.start_time = np.full(len(self.offset), np.nan, np.float32)

    @classmethod
    def empty(
        cls,
        names: Sequence[str],
        places: Sequence[str],
        n_samples: NDArray[np.int64],
        calibration: NDArray[np.float64],
        causes: dict[int, str],
        room: Room = recycled_array,
    ) -> SignalBlock:
        """Check what was read of n reads, and lay out a block whose samples are still to be filled in.

        Checks what must hold for every format, so that all formats reject the same reads with the same words.

        Parameters
        ----------
        names : sequence of str, length n
        places : sequence of str, length n
            The file of each read, for messages; may be empty.
        n_samples : int64, shape (n,)
            -1 for a read that is unreadable.
        calibration : float64, shape (n, 5)
            Values of `FIELDS`, the start in samples.
        causes : dict of int to str
            Reads that are unreadable, and why; added to.
        room : callable, optional
            Makes the array of samples.
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
        return cls.from_calibration(room(int(offsets[-1]), np.int16), offsets, [*stored.T, seconds], problems)

    @classmethod
    def from_calibration(
        cls,
        samples: NDArray[np.int16],
        offsets: NDArray[np.int64],
        calibration: NDArray[np.float32] | Sequence[NDArray[np.float32]],
        problems: dict[int, str],
    ) -> SignalBlock:
        """Make a block from a table of calibration and starts, shape (5, n), with its rows as in `FIELDS`."""
        digitisation, offset, range_, sampling_rate, start_time = np.ascontiguousarray(calibration)
        return cls(samples, offsets, digitisation, offset, range_, sampling_rate, problems, start_time)

    def expand(self, pool: WorkerPool | CallingThread) -> None:
        """Fill in the samples of all reads, if they have been left packed."""
        packed, self.packed = self.packed, None
        if packed is not None:
            reads = np.flatnonzero(np.diff(self.offsets))
            packed.expand(reads, self.offsets[reads], self.samples, pool)

    def calibration(self) -> NDArray[np.float32]:
        """Return the table that `from_calibration` takes."""
        return np.stack([getattr(self, name) for name in FIELDS])


class SignalSource(Protocol):
    """A place where signals are read from.

    Not safe for use by several threads at once, unless it has an attribute ``is_concurrent`` that is true: `fetch` may
    be called in several then.
    """

    @property
    def kind(self) -> Kind:
        """The format of the files, as reports of a run name it."""
        ...

    def holds(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """Mark the named reads that the files list."""
        ...

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        """Read the signals of the named reads; a name may occur more than once.

        A read that is missing or unreadable is reported in ``problems`` and has no samples; that a whole
        source is unusable raises `SignalError`, and that an optional package is needed to read it
        `MissingDependencyError`.
        """
        ...

    def run_info(self, names: Sequence[str]) -> dict[str, str]:
        """Return what is known of the sequencing run of the first of the named reads that can be read.

        Returns
        -------
        dict of str to str
            ``experiment_type``, ``sequencing_kit``, ``flow_cell_product_code``, ``sample_frequency`` and the like, as
            the context tags and the tracking id of fast5 and the header of SLOW5 spell them, in lower case. What is
            not known is absent.
        """
        ...

    def first_names(self, n: int) -> list[str]:
        """Return the names of some reads of the files, at most n."""
        ...

    def place(self, name: str) -> str:
        """Return where the read's signal is, as summaries show it: its file, or ``slow5``; "" if it is unknown."""
        ...

    def close(self) -> None:
        """Close all files and stop all helper processes. May be called twice."""
        ...


class FileReader(Protocol):
    """Reads signals from many files, told for each read which file holds it.

    The part of a source that a helper process needs: it knows no index, so that only the paths of the reads at
    hand are sent to a process. An implementation is created without arguments.
    """

    def prepare(self, path: str) -> None:
        """Import what will be needed to read that file, or "", if none is known yet; it may raise anything."""

    def read(self, names: Sequence[str], paths: Sequence[str], room: Room = recycled_array) -> SignalBlock:
        """Read each named read from its file.

        Raises `MissingDependencyError` if a package that a file needs is not installed. The reads come in the order of
        `names`; what cannot be read is in ``problems``.

        Parameters
        ----------
        names, paths : sequences of str, length n
            Read names and their files; an empty path means that the file is not known.
        room : callable, optional
            Makes the block's array of samples, of a length and a dtype; what it has made before is not needed then.
        """
        ...

    def run_info(self, name: str, path: str) -> dict[str, str]:
        """Return what is known of a read's run, as `SignalSource.run_info`; nothing if the read cannot be read."""
        ...

    def close(self) -> None:
        """Close all files. May be called twice."""
        ...


def paths_of(paths: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return the file of each named read, "" where it is not known.

    A mapping that has a method ``paths_of`` is asked for all of them at once.
    """
    ask_at_once = getattr(paths, "paths_of", None)
    return [paths.get(name, "") for name in names] if ask_at_once is None else ask_at_once(names)


class IndexedSource(SignalSource):
    """The signals of reads whose files are known from an index.

    Parameters
    ----------
    paths : mapping of str to str
        Read name to file path, such as a `ReadFiles`. Not copied.
    kind : {"fast5", "pod5"}, optional
        The format of the files; found by the content of the first one if it is not given.
    """

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

    def holds(self, names: Sequence[str]) -> NDArray[np.bool_]:
        return np.fromiter(map(bool, paths_of(self._paths, names)), np.bool_, len(names))

    def first_names(self, n: int) -> list[str]:
        return list(islice(self._paths, n))

    def place(self, name: str) -> str:
        return shown(self._paths.get(name, ""))


class FileSource(IndexedSource):
    """The signals of indexed reads, read in this process.

    Parameters
    ----------
    paths, kind
        As for `IndexedSource`.
    reader : FileReader
        Closed with the source.
    """

    def __init__(self, paths: Mapping[str, str], reader: FileReader, kind: Kind | None = None) -> None:
        super().__init__(paths, kind)
        self._reader = reader

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        return self._reader.read(names, paths_of(self._paths, names))

    def run_info(self, names: Sequence[str]) -> dict[str, str]:
        for name, path in zip(names, paths_of(self._paths, names), strict=True):
            if path and (found := self._reader.run_info(name, path)):
                return found
        return {}

    def close(self) -> None:
        self._reader.close()


class BlockBuilder:
    """Collects reads in any order and lays them out as one `SignalBlock`.

    Parameters
    ----------
    names : sequence of str, length n
        The reads of the block.
    places : sequence of str, length n
        The file of each read, for messages; may be empty.
    room : callable, optional
        Makes the array of samples.
    """

    def __init__(self, names: Sequence[str], places: Sequence[str], room: Room = recycled_array) -> None:
        self._room = room
        self._names = names
        self._places = places
        self._samples: list[NDArray[np.int16] | int | None] = [None] * len(names)
        self._calibration = np.full((len(names), len(FIELDS)), np.nan)
        self._causes: dict[int, str] = {}

    def add(self, i: int, samples: NDArray[np.int16] | int, calibration: Sequence[float]) -> None:
        """Give read i its samples and its values of `CALIBRATION`, and after them its start in samples, if it is known.

        Instead of the samples their number may be given: the caller then fills the read's part of the block.
        """
        self._samples[i] = samples
        self._calibration[i, : len(calibration)] = calibration

    def fail(self, i: int, cause: str) -> None:
        """Say that read i is unreadable, and why."""
        self._causes[i] = cause

    def repeat(self, i: int, first: int) -> None:
        """Make read i the same as read `first`, which was asked for earlier in the block."""
        self._samples[i] = self._samples[first]
        self._calibration[i] = self._calibration[first]
        if first in self._causes:
            self._causes[i] = self._causes[first]

    def build(self) -> SignalBlock:
        """Check all reads and return the block. The builder is used up."""
        n_samples = np.array([-1 if read is None else _size(read) for read in self._samples], np.int64)
        block = SignalBlock.empty(self._names, self._places, n_samples, self._calibration, self._causes, self._room)
        for i, read in enumerate(self._samples):
            if isinstance(read, np.ndarray) and i not in block.problems:
                block.samples[block.offsets[i] : block.offsets[i + 1]] = read
            self._samples[i] = None  # freed while the block fills: the peak is one copy, not two
        return block


def _size(read: NDArray[np.int16] | int) -> int:
    """Count the samples that a builder has been given."""
    return read.size if isinstance(read, np.ndarray) else read


def merge_blocks(n: int, parts: Sequence[tuple[Sequence[int], SignalBlock]], room: Room = np.empty) -> SignalBlock:
    """Make one block of n reads from the blocks of parts of them; each part comes with its reads' indices.

    Of a read that is in several parts the last one has what counts.
    """
    lengths, part_of = np.zeros((2, n), np.int64)
    calibration = np.empty((len(FIELDS), n), np.float32)
    problems: dict[int, str] = {}
    for number, (reads, block) in enumerate(parts):
        part_of[reads] = number
        lengths[reads] = np.diff(block.offsets)
        calibration[:, reads] = block.calibration()
    offsets = offsets_of(lengths)
    samples = room(int(offsets[-1]), np.int16)
    for number, (reads, block) in enumerate(parts):
        problems.update((reads[i], line) for i, line in block.problems.items() if part_of[reads[i]] == number)
        for i in np.flatnonzero(part_of[reads] == number).tolist():
            read = reads[i]
            samples[offsets[read] : offsets[read + 1]] = block.samples[block.offsets[i] : block.offsets[i + 1]]
    return SignalBlock.from_calibration(samples, offsets, calibration, dict(sorted(problems.items())))
