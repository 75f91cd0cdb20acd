"""Source for SLOW5 (text) and BLOW5 (binary) files with all compressions.

pyslow5 has no ARM wheels. This decoder runs in threads without the GIL, reads remote files, and reports damaged records
singly, in half the processor time (benchmarks/results/loading.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import StoredSamples
from f5py.core.large_arrays import recycled_array
from f5py.core.names import Names
from f5py.errors import SignalError
from f5py.io.files.signal_format import BINARY_HEADER_AT, BLOW5_MAGIC, KIND_NAMES, Kind, file_kind
from f5py.io.remote import ranged_file
from f5py.io.signals.slow5._slow5_functions import ZSTD
from f5py.io.signals.slow5._slow5_index import RecordFile, RecordFormat, cause, open_records, raise_for, records_of
from f5py.io.signals.slow5._slow5_numba import CANNOT_READ, NOT_FOUND, SHORTER, read_lines, read_records
from f5py.io.signals.source import FIELDS, SignalBlock, SignalSource
from f5py.messages.console import input_warning
from f5py.threads.pool import BorrowedPool, WorkerPool

#: Limit of header sizes.
_MOST_HEADER = 1 << 28
#: Newest supported version and sample compression.
_NEWEST_VERSION, _MOST_SIGNAL_PRESS = [1, 0, 0], 2
#: Start of a text file: version and number of read groups.
_TEXT_START = re.compile(r"#slow5_version\t(\d+)\.(\d+)\.(\d+)\n(?:#num_read_groups\t(\d+)\n)?")
#: Mandatory columns.
_TYPES = "#char*\tuint32_t\tdouble\tdouble\tdouble\tdouble\tuint64_t\tint16_t*\t"
_N_COLUMNS = _TYPES.count("\t")
_COLUMNS = "#read_id\tread_group\tdigitisation\toffset\trange\tsampling_rate\tlen_raw_signal\traw_signal\t"
#: Value sizes of optional columns.
_SIZES = {"char": 1, "float": 4, "double": 8} | {f"{sign}int{8 * n}_t": n for sign in ("", "u") for n in (1, 2, 4, 8)}
_START = ("uint64_t", "start_time")
#: Missing values of attributes.
_ABSENT = ("", ".")
#: First value of `Slow5Source._density`, margin for the next call, and limit.
_FIRST_DENSITY, _REACH, _MOST_DENSITY = 1.0, 1.1, 4.0


class DecodedRecords(NamedTuple):
    """Records of n reads, filled by compiled code."""

    used: NDArray[np.int64]  # shape (1,): elements of `scratch` needed; may exceed its size
    scratch: NDArray[np.int16]  # samples in order of completion, some still packed
    places: NDArray[np.int64]  # shape (n,): offset in `scratch`, -1 without room
    n_samples: NDArray[np.int64]  # shape (n,)
    is_packed: NDArray[np.bool_]  # shape (n,): svb-zd bytes, with a byte offset as place
    codes: NDArray[np.int32]  # shape (n,): see `f5py.io.signals.slow5._slow5_numba`
    groups: NDArray[np.int64]  # shape (n,): read groups
    calibration: NDArray[np.float64]  # shape (n, 5): values of `FIELDS`, the start in samples

    @classmethod
    def for_reads(cls, n: int, scratch: NDArray[np.int16]) -> DecodedRecords:
        places, n_samples, groups = np.zeros((3, n), np.int64)
        is_packed, codes = np.zeros(n, np.bool_), np.zeros(n, np.int32)
        calibration = np.full((n, len(FIELDS)), np.nan)
        return cls(np.zeros(1, np.int64), scratch, places, n_samples, is_packed, codes, groups, calibration)


class Slow5Source(SignalSource):
    """Signals of a SLOW5 file.

    A missing or wrong index ``<path>.idx`` is made; the file is usable even if that cannot be written. Raises
    `SignalError` if the file is missing, damaged or not SLOW5, `MissingDependencyError` without its compression
    library.
    """

    def __init__(self, path: str, n_threads: int = 1) -> None:
        if n_threads < 1:
            raise ValueError(f"n_threads must be at least 1, not {n_threads}")
        self.path = path
        self._leaves_packed = False
        self._threads = BorrowedPool(n_threads)
        self._density = _FIRST_DENSITY  # elements of `DecodedRecords.scratch` per byte of the last records
        self._file: RecordFile | None = None
        self._remote = ranged_file(path)
        self._groups, form = _read_header(path)
        self._file = open_records(path, form)
        try:
            self._records = records_of(path, self._file, self._threads.workers)
        except BaseException:
            self.close()
            raise

    @property
    def kind(self) -> Kind:
        return "slow5"

    @property
    def is_concurrent(self) -> bool:
        return self._remote is None

    def use_pool(self, pool: WorkerPool, leaves_packed: bool = False) -> None:
        self._threads.lend(pool)
        self._leaves_packed = leaves_packed

    def has_reads(self, names: Sequence[str]) -> NDArray[np.bool_]:
        return self._records.names.rows_of(Names.of(names)) >= 0

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        names = Names.of(names)
        got = self._read(names)
        codes = got.codes.tolist()
        causes = {i: cause(codes[i]) for i in np.flatnonzero(got.codes).tolist()}
        got.n_samples[got.codes != 0] = -1
        places, empty = [self.path] * len(names), np.empty if self._leaves_packed else recycled_array
        block = SignalBlock.empty(names, places, got.n_samples, got.calibration, causes, empty)
        each = np.arange(len(names) + 1)
        block.packed = StoredSamples(got.scratch, each, got.places, got.n_samples, got.is_packed)
        if not self._leaves_packed:
            block.expand(self._threads.workers())
        return block

    def _read(self, names: Names) -> DecodedRecords:
        """Read the named records; raise `SignalError` if the file fails."""
        file, n = self._opened(), len(names)
        rows = self._records.names.rows_of(names)
        listed = np.flatnonzero(rows >= 0)
        places, sizes = np.zeros((2, n), np.int64)
        places[listed], sizes[listed] = self._records.places[rows[listed]], self._records.sizes[rows[listed]]
        if self._remote is not None:
            self._remote.fetch_ranges(places[listed], (places + sizes)[listed])
        n_bytes = int(sizes.sum())
        room = int(n_bytes * min(_REACH * self._density, _MOST_DENSITY)) + 1
        while True:
            got = DecodedRecords.for_reads(n, recycled_array(room, np.int16))
            got.codes[rows < 0] = NOT_FOUND
            read = read_lines if file.form.is_text else read_records
            self._threads.workers().run(read, listed, names.text, names.offsets, places, sizes, file, got)
            for i in np.flatnonzero(np.isin(got.codes, (CANNOT_READ, SHORTER)))[:1].tolist():
                raise_for(self.path, file, int(got.codes[i]), 0)
            room = int(got.used[0])
            self._density = room / n_bytes if room else self._density
            if (got.places >= 0).all():
                return got

    def run_info(self, names: Sequence[str]) -> dict[str, str]:
        """Return the header's metadata of the first readable read, with its sampling rate; see `SignalSource`."""
        self._warn_of_mixed_runs()
        for name in names:
            got = self._read(Names.of([name]))
            if got.codes[0] == 0:
                group = int(got.groups[0])
                found = self._groups[group] if group < len(self._groups) else {}
                return {"sample_frequency": f"{got.calibration[0, FIELDS.index('sampling_rate')]:g}", **found}
        return {}

    def names(self) -> Iterator[str]:
        """Iterate over the names of all reads."""
        self._opened()
        return map(self._records.names.name, range(len(self._records.names)))

    def first_names(self, n: int) -> list[str]:
        return list(islice(self.names(), n))

    def place(self, name: str) -> str:
        return "slow5"

    def close(self) -> None:
        """Close the file and end the threads. May be called twice."""
        self._threads.close()
        if self._file is not None:
            os.close(self._file.descriptor)
            self._file = None

    def _opened(self) -> RecordFile:
        if self._file is None:
            raise SignalError(f"{self.path}: has been closed")
        return self._file

    def _warn_of_mixed_runs(self) -> None:
        kinds = sorted({group["experiment_type"] for group in self._groups if "experiment_type" in group})
        if len(kinds) > 1:
            input_warning(
                "run_info",
                f"{self.path}: its read groups differ in experiment_type ({', '.join(kinds)}); all reads are treated "
                "as the first one",
            )


def read_groups(path: str) -> list[dict[str, str]]:
    """Return the non-empty attributes of each read group of a SLOW5 file; raise `SignalError`."""
    return _read_header(path)[0]


def _read_header(path: str) -> tuple[list[dict[str, str]], RecordFormat]:
    try:
        if os.path.isdir(path):
            raise SignalError(f"{path}: is a folder; give one SLOW5 file (slow5tools merge makes one of many)")
        kind = file_kind(path)
        if kind != "slow5":
            what = f"a {KIND_NAMES[kind]} file, not SLOW5" if kind else "not a SLOW5 or BLOW5 file"
            raise SignalError(f"{path}: is {what if os.path.getsize(path) else 'empty'}")
        content, length = b"", 0
        with open(path, "rb") as file:
            start = file.read(BINARY_HEADER_AT + 4)
            is_text = not start.startswith(BLOW5_MAGIC)
            if is_text:
                file.seek(0)
                for row in file:
                    if row[:1] not in b"#@" or len(content) > _MOST_HEADER:
                        break
                    content += row
            elif (length := int.from_bytes(start[BINARY_HEADER_AT:], "little")) <= _MOST_HEADER:
                content = file.read(length)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise SignalError(f"{path}: cannot be opened ({reason})") from None
    damaged = SignalError(f"{path}: has a damaged header; copy the file again")
    text = content.decode("utf-8", "replace").replace("\r\n", "\n")
    if is_text:
        if (match := _TEXT_START.match(text)) is None:
            raise damaged
        *version, n_groups = map(int, match.groups("0"))
        if max(version) > 255:
            raise damaged
        text = text[match.end() :]
        begin, record_press, signal_press = len(content), 0, 0
    else:
        if len(content) < max(length, 1):
            raise damaged
        version, n_groups = [*start[6:9]], int.from_bytes(start[10:14], "little")
        begin, record_press, signal_press = len(start) + length, start[9], start[14]
    if version > _NEWEST_VERSION:
        raise SignalError(
            f"{path}: is of a version of the format that f5py does not know ({'.'.join(map(str, version))}); update "
            "f5py, or convert the file with slow5tools"
        )
    if record_press > ZSTD or signal_press > _MOST_SIGNAL_PRESS:
        raise SignalError(f"{path}: is compressed in a way that f5py does not know; convert it with slow5tools")
    lines = text.removesuffix("\n").split("\n")
    *attributes, types, columns = lines if len(lines) > 1 else ["", ""]
    names = [line.partition("\t")[0] for line in attributes]
    if (
        n_groups < 1
        or "\0" in text
        or not all(name.startswith("@") for name in names)
        or len(set(names)) < len(names)
        or any(line.count("\t") != n_groups for line in attributes)
        or not f"{types}\t".startswith(_TYPES)
        or not f"{columns}\t".startswith(_COLUMNS)
        or types.count("\t") != columns.count("\t")
    ):
        raise damaged
    groups: list[dict[str, str]] = [{} for _ in range(n_groups if attributes else 0)]
    for line in attributes:
        name, *values = line[1:].split("\t")
        for group, value in zip(groups, values, strict=True):
            if value not in _ABSENT:
                group[name.lower()] = value
    start_field = _start_field(types.split("\t")[_N_COLUMNS:], columns.split("\t")[_N_COLUMNS:])
    form = RecordFormat(is_text, tuple(version), begin, record_press, signal_press, np.array(start_field, np.int64))
    return groups, form


def _start_field(types: list[str], columns: list[str]) -> tuple[int, ...]:
    """Return the storage of the columns up to start_time; see `RecordFormat.start_field`."""
    sizes: list[int] = []
    for kind, name in zip(types, columns, strict=True):
        plain = kind.removesuffix("*")
        size = 1 if plain.startswith("enum") else _SIZES.get(plain, 0)
        sizes.append(size if plain == kind else -size)
        if not size:
            return ()
        if (kind, name) == _START:
            return tuple(sizes)
    return ()
