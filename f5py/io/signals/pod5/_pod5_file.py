"""A POD5 file through lib_pod5 and pyarrow, a table of reads at a time.

The package pod5 imports pandas, which takes longer than reading a small file. Imported inside functions only, because
it imports pyarrow.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import lib_pod5
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from f5py.core.offsets import concatenate_tuples, elements_of, offsets_of
from f5py.errors import F5pyError
from f5py.io.files.memory_file import memory_file
from f5py.io.files.signal_format import POD5_MAGIC
from f5py.io.remote import ranged_file
from f5py.io.remote.ranged_file import Stretches
from f5py.io.signals.pod5._pod5_extents import fetch_all_but_signals
from f5py.io.signals.pod5.uuids import keys_of_names
from f5py.io.signals.source import MAX_SAMPLES, ReadOrCause, UnreadableError
from f5py.io.signals.system_limits import reraise_system_error

_NO_UUID = "has a name that is not a UUID, as all reads of POD5 files have"
#: Cached tables per file.
_MOST_READ_TABLES = 256
_MOST_SIGNAL_TABLES = 1 << 14
#: Bytes of a signal table around its signals, fixed and per row.
_AROUND, _AROUND_PER_ROW = 1 << 12, 48
#: Run fields of POD5 and their fast5 names.
_RUN_FIELDS = {
    "acquisition_id": "run_id",
    "flow_cell_id": "flow_cell_id",
    "flow_cell_product_code": "flow_cell_product_code",
    "protocol_run_id": "protocol_run_id",
    "sample_id": "sample_id",
    "sample_rate": "sample_frequency",
    "sequencer_position": "device_id",
    "sequencer_position_type": "device_type",
    "sequencing_kit": "sequencing_kit",
}


class Pod5File:
    """An open POD5 file. Raises `UnreadableError` if it cannot be opened, with the file as the text's subject."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._remote = ranged_file(path)
        try:
            self._extents = np.empty((0, 3), np.int64) if self._remote is None else fetch_all_but_signals(self._remote)
            with nullcontext() if self._remote is None else _suppress_sparse_warning():
                self._library = lib_pod5.open_file(path)
            if self._library is None:
                raise ValueError(lib_pod5.get_error_string())
            self._reads = _open_table(_bytes_of(self._library.get_file_read_table_location()))
            self._runs = _open_table(_bytes_of(self._library.get_file_run_info_table_location()))
            place = self._library.get_file_signal_table_location()
            self._bytes, self._begin = _bytes_of(place), place.offset
            self._signals = _open_table(self._bytes)
        except F5pyError:
            raise
        except Exception as error:  # of Arrow, the C++ library or Python
            raise UnreadableError(_why_not_opened(path, error)) from None
        self.is_compressed = self._signals.schema.field("signal").type.equals(pa.large_binary())
        self._entries = lru_cache(_MOST_READ_TABLES)(self._table_entries)
        self._places = lru_cache(_MOST_SIGNAL_TABLES)(self._table_places)

    def close(self) -> None:
        self._library.close()
        del self._entries, self._places, self._reads, self._runs, self._signals, self._bytes

    def all_keys(self) -> NDArray[np.void]:
        """Return the UUIDs of the reads in file order, V16; raise `UnreadableError` if they are damaged."""
        try:
            tables = [_keys_of(self._reads.get_batch(i)) for i in range(self._reads.num_record_batches)]
        except Exception as error:
            raise UnreadableError(f"has a damaged table of reads ({_one_line(error)})") from None
        return np.concatenate([np.empty(0, "V16"), *tables])

    def find(self, keys: NDArray[np.void]) -> ReadEntries:
        """Look up distinct UUIDs, V16 of shape (n,), in the order of the file; missing ones are left out."""
        rows = np.empty(len(keys), np.uint32)
        per_table = np.zeros(self._reads.num_record_batches, np.uint32)
        try:
            self._library.plan_traversal(np.frombuffer(keys.tobytes(), np.uint8).reshape(-1, 16), per_table, rows)
            ends = np.cumsum(per_table, dtype=np.int64)
            found = [ReadEntries.none()]
            for table in np.flatnonzero(per_table).tolist():
                found.append(self._entries(table).take(rows[ends[table] - per_table[table] : ends[table]]))
        except Exception as error:
            raise UnreadableError(f"is in a file that has a damaged table of reads ({_one_line(error)})") from None
        return concatenate_tuples(found)

    def entries_of(self, names: Sequence[str]) -> ReadEntries:
        """Look up names, as by `find`."""
        keys, is_uuid = keys_of_names(names)
        return self.find(np.unique(keys[is_uuid].view("S16")).view("V16"))

    def reads(self, names: Sequence[str]) -> Iterator[ReadOrCause]:
        """Read distinct reads, in this order."""
        found: dict[bytes, ReadOrCause] = {}
        missing = "is not in this file"
        try:
            entries = self.entries_of(names)
            found = dict(zip(map(bytes, entries.keys), self._decoded(entries), strict=True))
        except UnreadableError as problem:
            reraise_system_error(problem, self._path)
            missing = str(problem)
        keys, is_uuid = keys_of_names(names)
        for key, good in zip(map(bytes, keys), is_uuid.tolist(), strict=True):
            yield found.get(key, missing) if good else _NO_UUID

    def _decoded(self, entries: ReadEntries) -> Iterator[ReadOrCause]:
        places = self.places_of(entries.pieces)
        for i, (n_samples, calibration) in enumerate(zip(entries.n_samples.tolist(), entries.calibration, strict=True)):
            if n_samples > MAX_SAMPLES:
                yield f"has damaged signal data ({n_samples} samples)"
                continue
            try:
                yield self.samples_of(n_samples, places[slice(*entries.piece_offsets[i : i + 2])]), calibration
            except UnreadableError as problem:
                reraise_system_error(problem, self._path)
                yield str(problem)

    def samples_of(self, n_samples: int, places: NDArray[np.int64]) -> NDArray[np.int16]:
        """Decode a read from `places_of` its chunks; raise `UnreadableError` if it is damaged."""
        samples = np.empty(n_samples, np.int16)
        try:
            at = 0
            for begin, end, length in places.tolist():
                if begin < 0:
                    raise ValueError("piece outside of its table")
                if at + length > n_samples:
                    raise ValueError("more samples than announced")
                stored, room = self._bytes[begin - self._begin : end - self._begin], samples[at : at + length]
                if not self.is_compressed:
                    room[:] = stored.view(np.int16)
                elif length:
                    lib_pod5.decompress_signal(stored, room)
                at += length
            if at != n_samples:
                raise ValueError("fewer samples than announced")
        except Exception as error:
            raise UnreadableError(f"has damaged signal data ({_one_line(error)})") from None
        return samples

    def places_of(self, pieces: NDArray[np.int64]) -> NDArray[np.int64]:
        """Locate signal chunks in the file by their rows in the signal tables.

        Returns start, end and samples of each chunk, int64 of shape (n, 3); -1 if unknown.
        """
        places = np.full((len(pieces), 3), -1)
        if self._n_rows < 0:
            return places
        tables, rows = np.divmod(pieces, self._n_rows)
        for table in np.unique(tables[(tables >= 0) & (tables < self._signals.num_record_batches)]).tolist():
            of_table = tables == table
            places[of_table] = self._places(table)[rows[of_table]]
        return places

    def stretches_of_tables(self, reads: ReadEntries) -> list[Stretches]:
        """Return the ranges to fetch before the signals of reads can be located, for a remote file."""
        if self._remote is None or not len(reads.pieces) or self._n_rows < 0:
            return []
        tables = np.unique(reads.pieces // self._n_rows)
        extents = self._extents[tables[tables < len(self._extents)]]
        n_around = _AROUND + _AROUND_PER_ROW * self._n_rows
        begins, ends = extents[:, [0, 2]].ravel(), extents[:, [1, 2]].ravel()
        begins[1::2] -= n_around  # after the signals
        ends[::2] += n_around  # before them
        return [(self._remote, np.maximum(begins, 0), ends)]

    def stretches_of_signals(self, reads: ReadEntries) -> list[Stretches]:
        """Return the ranges to fetch to decode reads; those of `stretches_of_tables` must be present."""
        places = self.places_of(reads.pieces)
        begins, ends, _ = places[places[:, 0] >= 0].T
        return [] if self._remote is None else [(self._remote, begins, ends)]

    def run_info(self, name: str) -> dict[str, str]:
        """Return the run's metadata of a read under fast5 attribute names in lower case, without empty values.

        Tags taken over from fast5 (``context_tags``, ``tracking_id``) are included; POD5's own fields take precedence.
        """
        try:
            info = self._run_infos[self.entries_of([name]).runs[0]]
        except Exception:
            return {}  # the damage is reported for the read when its signal is asked for
        own = [(name, str(info[field])) for field, name in _RUN_FIELDS.items()]
        return {key.lower(): value for key, value in [*info["context_tags"], *info["tracking_id"], *own] if value}

    @cached_property
    def _n_rows(self) -> int:
        """Rows of each signal table but the last; -1 if the first one is damaged."""
        try:
            return self._signals.get_batch(0).num_rows if self._signals.num_record_batches else 1
        except Exception:  # decoding reports it
            return -1

    @cached_property
    def _run_infos(self) -> dict[str, dict[str, Any]]:
        """Metadata of runs by acquisition."""
        columns = ["context_tags", "tracking_id", "adc_max", "adc_min", *_RUN_FIELDS]
        return {row["acquisition_id"]: row for row in self._runs.read_all().select(columns).to_pylist()}

    def _table_entries(self, number: int) -> ReadEntries:
        """Return the entries of a read table."""
        batch = self._reads.get_batch(number)
        names = batch.column("run_info").dictionary.to_pylist()
        run_of = batch.column("run_info").indices.to_numpy()
        digitisation, sampling_rate = np.empty(len(names), np.float32), np.empty(len(names))
        for run in np.unique(run_of).tolist():
            info = self._run_infos[names[run]]
            digitisation[run], sampling_rate[run] = info["adc_max"] - info["adc_min"] + 1, info["sample_rate"]
        digitisation = digitisation[run_of]
        scale = batch.column("calibration_scale").to_numpy().astype(np.float32)
        span = scale * digitisation
        # range / digitisation must reproduce the stored scale to the bit
        with np.errstate(divide="ignore", invalid="ignore"):
            exact = span / digitisation == scale
        offset, start = (batch.column(name).to_numpy() for name in ("calibration_offset", "start"))
        fields = np.where(exact, digitisation, np.float32(1)), offset, np.where(exact, span, scale)
        calibration = np.stack([*fields, sampling_rate[run_of], start], axis=1).astype(np.float64)
        signal, n_samples = batch.column("signal"), batch.column("num_samples").to_numpy()
        pieces = signal.values.to_numpy().astype(np.int64)
        offsets = np.maximum.accumulate(signal.offsets.to_numpy().clip(0, len(pieces)))  # if they are damaged
        return ReadEntries(_keys_of(batch), np.array(names, object)[run_of], n_samples, calibration, pieces, offsets)

    def _table_places(self, number: int) -> NDArray[np.int64]:
        """Return `places_of` the chunks of a signal table, in `_n_rows` rows."""
        places = np.full((self._n_rows, 3), -1)
        try:
            batch = self._signals.get_batch(number)
            stored, lengths = batch.column("signal"), batch.column("samples").to_numpy()[: self._n_rows]
            _, offsets, *_, values = stored.buffers()
            offsets = np.frombuffer(offsets, np.int64)[stored.offset :][: len(lengths) + 1]
            offsets = offsets * (1 if self.is_compressed else np.dtype(np.int16).itemsize)
            begins, ends = offsets[:-1], offsets[1:]
            good = (begins >= 0) & (begins <= ends) & (ends <= values.size)
            at = values.address - self._bytes.ctypes.data + self._begin
            places[: len(lengths)][good] = np.stack([at + begins, at + ends, lengths], axis=1)[good]
        except Exception:  # decoding reports it
            return np.full((self._n_rows, 3), -1)
        return places


class ChunkOffsetFile(Pod5File):
    """An open POD5 file with chunk offsets in place of samples: three int64 per read and per chunk.

    A read's row has its number of samples and zeros. A chunk's row has its start and end in the file and its samples,
    or -1 if unknown or not compressed. `DirectPod5Source` reads and expands the chunks.
    """

    def samples_of(self, n_samples: int, places: NDArray[np.int64]) -> NDArray[np.int16]:
        if not n_samples:
            return np.empty(0, np.int16)
        rows = places if self.is_compressed else np.full_like(places, -1)
        return np.concatenate([[[n_samples, 0, 0]], rows]).view(np.int16).ravel()


class ReadEntries(NamedTuple):
    """Entries of n reads in the tables of a file."""

    keys: NDArray[np.void]  # V16, shape (n,): UUIDs
    runs: NDArray[np.object_]  # shape (n,): acquisitions
    n_samples: NDArray[np.uint64]  # shape (n,)
    calibration: NDArray[np.float64]  # shape (n, 5): `FIELDS`, the start in samples
    pieces: NDArray[np.int64]  # rows of the signal tables
    piece_offsets: NDArray[np.int64]  # shape (n + 1,)

    @classmethod
    def none(cls) -> ReadEntries:
        nothing = np.empty(0, np.int64)
        n_samples, calibration = np.empty(0, np.uint64), np.empty((0, 5))
        return cls(np.empty(0, "V16"), np.empty(0, object), n_samples, calibration, nothing, offsets_of([]))

    def take(self, rows: NDArray[np.integer]) -> ReadEntries:
        """Return the entries of some rows."""
        n_pieces = np.diff(self.piece_offsets)[rows]
        pieces = self.pieces[elements_of(self.piece_offsets[rows], n_pieces)]
        keys, runs, n_samples, calibration = (column[rows] for column in self[:4])
        return ReadEntries(keys, runs, n_samples, calibration, pieces, offsets_of(n_pieces))


@contextmanager
def _suppress_sparse_warning() -> Iterator[None]:
    """Suppress the library's warning about sparse files on standard error."""
    try:
        error = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    with memory_file("f5py messages", 0) as caught:
        os.dup2(caught.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(error, 2)
            os.close(error)
            caught.seek(0)
            for line in caught:
                if b"st_blocks" not in line:  # of other threads
                    os.write(2, line)


def _bytes_of(place: lib_pod5.EmbeddedFileData) -> NDArray[np.uint8]:
    """Map an embedded file."""
    try:
        return np.memmap(place.file_path, np.uint8, "r", place.offset, place.length)
    except OSError:  # some file systems cannot map
        return np.fromfile(place.file_path, np.uint8, place.length, offset=place.offset)


def _open_table(content: NDArray[np.uint8]) -> pa.ipc.RecordBatchFileReader:
    return pa.ipc.open_file(pa.py_buffer(content))


def _why_not_opened(path: str, error: Exception) -> str:
    try:
        with open(path, "rb") as file:
            start = file.read(len(POD5_MAGIC))
            file.seek(0, 2)
            file.seek(-min(len(POD5_MAGIC), file.tell()), 2)
            end = file.read()
    except (OSError, ValueError) as problem:
        return f"cannot be opened ({getattr(problem, 'strerror', None) or problem})"
    if not start:
        return "is empty"
    if start != POD5_MAGIC:
        return "is not POD5"
    if end != POD5_MAGIC:
        return "is truncated; copy it again"
    return f"is damaged ({_one_line(error)})"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _keys_of(batch: pa.RecordBatch) -> NDArray[np.void]:
    """Return the UUIDs of a read table."""
    column = batch.column("read_id")
    return np.frombuffer(column.buffers()[1], "V16")[column.offset : column.offset + len(column)]
