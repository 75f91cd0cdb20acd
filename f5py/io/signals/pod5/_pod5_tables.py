"""Columns of POD5 tables as arrays. Imported inside functions only, because it imports pod5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pod5
from numpy.typing import NDArray

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
