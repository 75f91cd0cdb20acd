"""A POD5 file through the package pod5, a table of reads at a time.

The package's objects for single reads are slow: several Arrow scalars per value. Its threaded loader (``preload``)
takes more processor time than decoding here and saves none. Imported inside functions only, because it imports pod5.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import lib_pod5
import numpy as np
import pod5
import pyarrow as pa
from numpy.typing import NDArray

from f5py.core.offsets import elements_of, offsets_of
from f5py.errors import F5pyError
from f5py.io.files.memory_file import memory_file
from f5py.io.files.signal_format import POD5_MAGIC
from f5py.io.remote import ranged_file
from f5py.io.remote.ranged_file import Stretches
from f5py.io.signals.lru_cache import LruCache
from f5py.io.signals.pod5._pod5_extents import fetch_all_but_signals
from f5py.io.signals.source import UnreadableError

#: Cached tables per file.
_MOST_READ_TABLES = 256
_MOST_SIGNAL_TABLES = 2048
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
        self._remote = ranged_file(path)
        try:
            self._extents = None if self._remote is None else fetch_all_but_signals(self._remote)
            with nullcontext() if self._remote is None else _suppress_sparse_warning():
                self._file = pod5.Reader(path)
        except F5pyError:
            raise
        except Exception as error:  # of Arrow, the C++ library or Python
            raise UnreadableError(_why_not_opened(path, error)) from None
        self._path = path
        self._reads: LruCache[int, ReadTable] = LruCache(
            lambda i: ReadTable.of(self._file.get_batch(i)), _MOST_READ_TABLES
        )
        self._signals: LruCache[int, SignalTable] = LruCache(self._signal_table, _MOST_SIGNAL_TABLES)
        self._places: ChunkOffsets | None = None

    def close(self) -> None:
        self._reads.clear()
        self._signals.clear()
        self._places = None
        self._file.close()

    def all_keys(self) -> NDArray[np.void]:
        """Return the UUIDs of the reads in file order; shape (n,), dtype ``V16``.

        Raises `UnreadableError` for a damaged table of reads, with the file as the text's subject.
        """
        try:
            tables = [keys_of_table(self._file.get_batch(i)) for i in range(self._file.batch_count)]
        except Exception as error:
            raise UnreadableError(f"has a damaged table of reads ({_one_line(error)})") from None
        return np.concatenate([np.empty(0, "V16"), *tables])

    def find(self, keys: NDArray[np.void]) -> list[ReadEntries]:
        """Look up distinct UUIDs, V16 of shape (n,), table by table; missing ones are left out."""
        rows = np.empty(len(keys), np.uint32)
        per_table = np.zeros(self._file.batch_count, np.uint32)
        wanted = np.ascontiguousarray(keys).view(np.uint8).reshape(-1, 16)
        try:
            self._file.inner_file_reader.plan_traversal(wanted, per_table, rows)
            ends = np.cumsum(per_table, dtype=np.int64)
            some = np.flatnonzero(per_table)
            return [
                ReadEntries.of(self._reads.get(table), table, rows[end - n : end].astype(np.int64))
                for table, end, n in zip(some.tolist(), ends[some].tolist(), per_table[some].tolist(), strict=True)
            ]
        except Exception as error:
            raise UnreadableError(f"is in a file that has a damaged table of reads ({_one_line(error)})") from None

    def decode(self, read: StoredRead, samples: NDArray[np.int16]) -> None:
        """Write the raw ADC values of a read, of `read.n_samples`; raise `UnreadableError` if it is damaged."""
        try:
            at = 0
            for number in read.pieces:
                stored, length = self._chunk(number)
                if at + length > samples.size:
                    raise ValueError("more samples than announced")
                self._decode(stored, samples[at : at + length])
                at += length
            if at != samples.size:
                raise ValueError("fewer samples than announced")
        except Exception as error:
            raise UnreadableError(f"has damaged signal data ({_one_line(error)})") from None

    def places_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Locate compressed signal chunks in the file by their rows in the signal tables.

        Returns
        -------
        int64, shape (n, 3)
            Start, end and samples of each chunk; -1 if unknown, for the library to report.
        """
        if not self._file.is_vbz_compressed:
            return np.full((len(rows), 3), -1)
        try:
            if self._places is None:
                self._places = ChunkOffsets(*self._mapped, self._file.signal_batch_row_count)
            return self._places.of(rows)
        except Exception:  # such as a failure to map the file
            return np.full((len(rows), 3), -1)

    def stretches_of_tables(self, reads: ReadEntries) -> list[Stretches]:
        """Return the ranges to fetch before the signals of reads can be located, for a remote file."""
        if self._remote is None or self._extents is None or not len(reads.keys):
            return []
        tables = np.unique(reads.pieces // self._file.signal_batch_row_count)
        extents = self._extents[tables[tables < len(self._extents)]]
        n_around = _AROUND + _AROUND_PER_ROW * self._file.signal_batch_row_count
        begins, ends = extents[:, [0, 2]].ravel(), extents[:, [1, 2]].ravel()
        begins[1::2] -= n_around  # after the signals
        ends[::2] += n_around  # before them
        return [(self._remote, np.maximum(begins, 0), ends)]

    def stretches_of_signals(self, reads: ReadEntries) -> list[Stretches]:
        """Return the ranges to fetch to decode reads; those of `stretches_of_tables` must be present."""
        if self._remote is None or self._extents is None or not len(reads.keys):
            return []
        tables, rows = np.divmod(reads.pieces, self._file.signal_batch_row_count)
        bounds = [np.empty((0, 2), np.int64)]
        for table in np.unique(tables[tables < len(self._extents)]).tolist():
            try:
                signals = self._signals.get(table)
            except Exception:
                continue  # the damage is reported for the reads
            of_table = rows[tables == table]
            of_table = of_table[of_table < len(signals.lengths)]
            first = self._extents[table, 1] + signals.place
            itemsize = signals.values.itemsize
            bounds.append(first + itemsize * np.stack([signals.offsets[of_table], signals.offsets[of_table + 1]], 1))
        begins, ends = np.concatenate(bounds).T
        return [(self._remote, begins, ends)]

    def run_info(self, read: StoredRead) -> dict[str, str]:
        """Return the run's metadata under fast5 attribute names in lower case, without empty values.

        Tags taken over from fast5 (``context_tags``, ``tracking_id``) are included; POD5's own fields take precedence.
        """
        try:
            table, row = read.place
            info = self._file.get_batch(table).get_read(row).run_info
        except Exception:
            return {}  # the damage is reported for the read when its signal is asked for
        tags = [*info.context_tags.items(), *info.tracking_id.items()]
        own = [(name, str(getattr(info, field))) for field, name in _RUN_FIELDS.items()]
        return {key.lower(): value for key, value in tags + own if value}

    def _signal_table(self, number: int) -> SignalTable:
        signals = SignalTable.of(self._file.signal_table.get_batch(number), self._file.is_vbz_compressed)
        if self._remote is not None:  # all but the signals may go and not come again
            signals.offsets, signals.lengths = signals.offsets.copy(), signals.lengths.copy()
        return signals

    @property
    def _mapped(self) -> tuple[Any, int]:
        """The memory-mapped signal tables and the address of the file's first byte."""
        with pa.memory_map(self._path) as file:
            whole = file.read_buffer()
        of_tables = self._file.inner_file_reader.get_file_signal_table_location()
        part = whole.slice(of_tables.offset, of_tables.length)
        return pa.ipc.open_file(pa.BufferReader(part)), whole.address

    def _chunk(self, at: int) -> tuple[NDArray, int]:
        """Return a stored chunk and its number of samples. All tables but the last are equally long."""
        number, row = divmod(at, self._file.signal_batch_row_count)
        signals = self._signals.get(number)
        begin, end = signals.offsets[row : row + 2].tolist()
        if not 0 <= begin <= end <= len(signals.values):
            raise ValueError("piece outside of its table")
        return signals.values[begin:end], int(signals.lengths[row])

    def _decode(self, stored: NDArray, samples: NDArray[np.int16]) -> None:
        if not self._file.is_vbz_compressed:
            samples[:] = stored
        elif samples.size:
            lib_pod5.decompress_signal(stored, samples)


class ReadEntries(NamedTuple):
    """Entries of n reads in the tables of a file."""

    keys: NDArray[np.void]  # V16, shape (n,): UUIDs
    table: NDArray[np.int64]  # shape (n,): number of the read table
    row: NDArray[np.int64]  # shape (n,): row in it
    n_samples: NDArray[np.uint64]  # shape (n,)
    calibration: NDArray[np.float64]  # shape (n, 5): `FIELDS`, the start in samples; see `StoredRead`
    pieces: NDArray[np.int64]  # rows of the signal tables, by read
    piece_offsets: NDArray[np.int64]  # shape (n + 1,)

    @classmethod
    def of(cls, reads: ReadTable, table: int, rows: NDArray[np.int64]) -> ReadEntries:
        n_pieces = reads.n_pieces[rows]
        return cls(
            reads.keys[rows], np.full(len(rows), table), rows, reads.n_samples[rows], reads.calibration[rows],
            reads.pieces[elements_of(reads.first_piece[rows], n_pieces)].astype(np.int64), offsets_of(n_pieces),
        )  # fmt: skip

    @classmethod
    def none(cls) -> ReadEntries:
        nothing = np.empty(0, np.int64)
        n_samples, calibration = np.empty(0, np.uint64), np.empty((0, 5))
        return cls(np.empty(0, "V16"), nothing, nothing, n_samples, calibration, nothing, offsets_of([]))

    def one(self, i: int) -> StoredRead:
        begin, end = self.piece_offsets[i : i + 2].tolist()
        return StoredRead(
            (int(self.table[i]), int(self.row[i])), int(self.n_samples[i]), self.calibration[i].tolist(),
            self.pieces[begin:end].tolist(),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoredRead:
    """Entry of a read in the tables of a file."""

    place: tuple[int, int]  # read table and row: the order on disk
    n_samples: int
    calibration: list[float]  # `FIELDS`, the start in samples; range / digitisation as float32 is the file's scale
    pieces: list[int]  # rows of the signal tables


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


#: Signal tables with cached offsets.
_MOST_TABLES = 1 << 14


@dataclass
class ReadTable:
    """Columns of a read table."""

    keys: NDArray[np.void]  # shape (n,): UUIDs
    n_samples: NDArray[np.uint64]  # shape (n,)
    calibration: NDArray[np.float64]  # shape (n, 5)
    first_piece: NDArray[np.int64]  # index of a read's first row in `pieces`
    n_pieces: NDArray[np.int64]
    pieces: NDArray[np.integer]

    @classmethod
    def of(cls, batch: pod5.reader.ReadRecordBatch) -> ReadTable:
        columns = batch.columns
        runs = columns.run_info.indices.to_numpy()
        digitisation, sampling_rate = np.empty(len(runs), np.float32), np.empty(len(runs))
        of_run, first = np.unique(runs, return_index=True)
        for run, row in zip(of_run.tolist(), first.tolist(), strict=True):
            info = batch.get_read(row).run_info
            digitisation[runs == run] = info.adc_max - info.adc_min + 1
            sampling_rate[runs == run] = info.sample_rate
        scale = columns.calibration_scale.to_numpy().astype(np.float32)
        span = scale * digitisation
        # range / digitisation must reproduce the stored scale to the bit
        with np.errstate(divide="ignore", invalid="ignore"):
            exact = span / digitisation == scale
        calibration = np.stack(
            [
                np.where(exact, digitisation, np.float32(1)),
                columns.calibration_offset.to_numpy(),
                np.where(exact, span, scale),
                sampling_rate,
                columns.start.to_numpy(),
            ],
            axis=1,
        )
        signal = columns.signal
        pieces = signal.values.to_numpy()
        offsets = signal.offsets.to_numpy().astype(np.int64).clip(0, len(pieces))  # if they are damaged
        return cls(
            keys_of_table(batch),
            columns.num_samples.to_numpy(),
            calibration.astype(np.float64),
            offsets[:-1],
            np.maximum(np.diff(offsets), 0),
            pieces,
        )


@dataclass
class SignalTable:
    """Columns of a signal table: row i is ``values[offsets[i]:offsets[i + 1]]``."""

    values: NDArray
    offsets: NDArray[np.int64]
    lengths: NDArray[np.integer]
    place: int  # offset of `values` in bytes from the table's first column

    @classmethod
    def of(cls, batch: Any, compressed: bool) -> SignalTable:
        stored = batch.column("signal")
        lengths = batch.column("samples").to_numpy()
        if not compressed:
            values = stored.values.to_numpy()
            return cls(values, stored.offsets.to_numpy(), lengths, _place(batch, stored.values.buffers()[1]))
        _, offsets, values = stored.buffers()
        rows = slice(stored.offset, stored.offset + len(stored) + 1)
        offsets = np.frombuffer(offsets, np.int64)[rows]
        return cls(np.frombuffer(values or b"", np.uint8), offsets, lengths, _place(batch, values))


def _place(batch: Any, buffer: Any) -> int:
    """Return the offset of a buffer in its table, in bytes."""
    addresses = [one.address for column in batch.columns for one in column.buffers() if one is not None and one.size]
    return 0 if buffer is None or not buffer.size else buffer.address - min(addresses)


def keys_of_table(batch: pod5.reader.ReadRecordBatch) -> NDArray[np.void]:
    """Return the UUIDs of a read table."""
    column = batch.read_id_column
    return np.frombuffer(column.buffers()[1], "V16")[column.offset : column.offset + len(column)]


class ChunkOffsets:
    """Offsets of signal chunks in a memory-mapped file, computed once per table.

    Parameters
    ----------
    tables : pyarrow.ipc.RecordBatchFileReader
        The compressed signal tables in the mapped file.
    begin : int
        Address of the file's first byte.
    n_rows : int
        Of each table but the last.
    """

    def __init__(self, tables: Any, begin: int, n_rows: int) -> None:
        self._tables = tables
        self._begin = begin
        self._n_rows = n_rows
        self._forget()

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the offsets of some chunks; see `f5py.io.signals.pod5._pod5_file.Pod5File.places_of`."""
        is_there = (rows >= 0) & (rows < len(self._places))
        wanted = rows[is_there]
        tables = np.unique(wanted // self._n_rows)
        if self._is_known.sum() > _MOST_TABLES:
            self._forget()
        for table in tables[~self._is_known[tables]].tolist():
            self._look_at(table)
        places = np.full((len(rows), 3), -1)
        places[is_there] = self._places[wanted]
        return places

    def _forget(self) -> None:
        n = self._tables.num_record_batches
        self._is_known = np.zeros(n, np.bool_)
        self._places = np.zeros((n * self._n_rows, 3), np.int64)

    def _look_at(self, number: int) -> None:
        """Fill in the offsets of a table's chunks."""
        self._is_known[number] = True
        places = self._places[number * self._n_rows :][: self._n_rows]
        places[:] = -1
        try:
            table = SignalTable.of(self._tables.get_batch(number), True)
        except Exception:  # decoding reports it
            return
        lengths = table.lengths[: self._n_rows]
        begins, ends = table.offsets[: len(lengths)], table.offsets[1 : len(lengths) + 1]
        good = (begins >= 0) & (begins <= ends) & (ends <= len(table.values))
        at = table.values.ctypes.data - self._begin
        places[: len(lengths)][good] = np.stack([at + begins, at + ends, lengths], axis=1)[good]
