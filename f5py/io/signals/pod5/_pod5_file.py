"""One POD5 file through the package pod5, a table of reads at a time.

The package's objects for single reads are not used: they make several Arrow scalars for every value that is asked for.
Its loader with threads (``preload``) is not used either: on two cores it took 1.4 times the processor time of decoding
here, no less wall time for 512 reads of a file, and twice as long for 4, which is what a sorted BAM file asks of one.

Imported from inside functions only, because it imports pod5 and pyarrow.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import lib_pod5
import numpy as np
import pod5
import pyarrow as pa
from numpy.typing import NDArray

from f5py.errors import F5pyError
from f5py.io.files.memory_file import memory_file
from f5py.io.remote import ranged_file
from f5py.io.remote.ranged_file import Stretches
from f5py.io.signals.content import POD5_MAGIC
from f5py.io.signals.pod5._pod5_extents import fetch_all_but_signals
from f5py.io.signals.recent import Recent
from f5py.io.signals.source import Unreadable

#: Tables of a file kept at hand. One of 1,000 reads takes 35 KB, and 0.2 ms to make; one of signals 1.4 KB and 0.02 ms.
_MOST_READ_TABLES = 256
_MOST_SIGNAL_TABLES = 2048
#: Beside the signals a table has its reads' names and where their signals are: so many bytes, and so many for a row.
_AROUND, _AROUND_PER_ROW = 1 << 12, 48
#: Fields of a run in POD5 and what fast5 calls them.
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
    """An open POD5 file. Raises `Unreadable` if the file cannot be opened; the text is about the file."""

    def __init__(self, path: str) -> None:
        self._remote = ranged_file(path)
        try:
            #: Of a file that is fetched as it is read, where its tables of signals are.
            self._extents = None if self._remote is None else fetch_all_but_signals(self._remote)
            with nullcontext() if self._remote is None else _no_word_of_holes():
                self._file = pod5.Reader(path)
        except F5pyError:
            raise
        except Exception as error:  # whatever the layers below raise: Arrow, the C++ library, Python
            raise Unreadable(_why_not_opened(path, error)) from None
        self._path = path
        self._reads: Recent[int, _Reads] = Recent(lambda i: _Reads.of(self._file.get_batch(i)), _MOST_READ_TABLES)
        self._signals: Recent[int, _Signals] = Recent(self._signal_table, _MOST_SIGNAL_TABLES)
        self._mapped_signals: Recent[int, _Signals] = Recent(self._mapped_signal_table, _MOST_SIGNAL_TABLES)

    def close(self) -> None:
        """Close the file."""
        self._reads.clear()
        self._signals.clear()
        self._mapped_signals.clear()
        self.__dict__.pop("_mapped", None)
        self._file.close()

    def all_keys(self) -> NDArray[np.void]:
        """Return the 16 bytes of each read's UUID, in the file's order; shape (n,), dtype ``V16``.

        Raises `Unreadable` if the table of reads is damaged; the text is about the file.
        """
        try:
            tables = [_keys(self._file.get_batch(i)) for i in range(self._file.batch_count)]
        except Exception as error:
            raise Unreadable(f"has a damaged table of reads ({_one_line(error)})") from None
        return np.concatenate([np.empty(0, "V16"), *tables])

    def find(self, keys: NDArray[np.void]) -> dict[bytes, StoredRead]:
        """Return what the tables say of the reads, by the UUID's bytes. Each table is looked at once.

        Parameters
        ----------
        keys : V16, shape (n,)
            UUIDs, each once. Those that are not in the file are not in the answer.
        """
        rows = np.empty(len(keys), np.uint32)
        per_table = np.zeros(self._file.batch_count, np.uint32)
        wanted = np.ascontiguousarray(keys).view(np.uint8).reshape(-1, 16)
        try:
            self._file.inner_file_reader.plan_traversal(wanted, per_table, rows)
            at = np.concatenate([[0], np.cumsum(per_table, dtype=np.int64)])
            found = {}
            for table in np.flatnonzero(per_table).tolist():
                reads = self._reads.get(table)
                for row in rows[at[table] : at[table + 1]].tolist():
                    found[reads.keys[row].tobytes()] = reads.stored(table, row)
            return found
        except Exception as error:
            raise Unreadable(f"is in a file that has a damaged table of reads ({_one_line(error)})") from None

    def decode(self, read: StoredRead, samples: NDArray[np.int16]) -> None:
        """Write the raw ADC values of a read to `samples`, which has room for `read.n_samples`.

        Raises `Unreadable` if the read is damaged.
        """
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
            raise Unreadable(f"has damaged signal data ({_one_line(error)})") from None

    def find_pieces(self, read: StoredRead, numbers: NDArray[np.int64]) -> None:
        """Find where the pieces of a read's signal are in the file, if they are compressed.

        Parameters
        ----------
        numbers : int64, shape (n, 3)
            Filled for each piece: where it begins and ends, and its samples; zeros remain from the first damaged one.
        """
        if not self._file.is_vbz_compressed:
            return
        try:
            for i, at in enumerate(read.pieces):
                number, row = divmod(at, self._file.signal_batch_row_count)
                table = self._mapped_signals.get(number)
                begin, end = table.offsets[row : row + 2].tolist()
                if not 0 <= begin <= end <= len(table.values):
                    return
                numbers[i] = table.place + begin, table.place + end, int(table.lengths[row])
        except Exception:  # of whatever kind: decoding the read says what is wrong
            return

    def stretches_of_tables(self, reads: Sequence[StoredRead]) -> list[Stretches]:
        """List what must be fetched to know where the signals of reads are, if the file is fetched as it is read."""
        if self._remote is None or self._extents is None or not reads:
            return []
        tables = np.unique(_chunks_of(reads) // self._file.signal_batch_row_count)
        extents = self._extents[tables[tables < len(self._extents)]]
        n_around = _AROUND + _AROUND_PER_ROW * self._file.signal_batch_row_count
        begins, ends = extents[:, [0, 2]].ravel(), extents[:, [1, 2]].ravel()
        begins[1::2] -= n_around  # after the signals
        ends[::2] += n_around  # before them
        return [(self._remote, np.maximum(begins, 0), ends)]

    def stretches_of_signals(self, reads: Sequence[StoredRead]) -> list[Stretches]:
        """List what must be fetched to decode reads; what `stretches_of_tables` says must be there."""
        if self._remote is None or self._extents is None or not reads:
            return []
        tables, rows = np.divmod(_chunks_of(reads), self._file.signal_batch_row_count)
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
        """Return what the file says of the read's run, with the attribute names of fast5 files, in lower case.

        The tags that were taken over from fast5 (``context_tags``, ``tracking_id``) are there too; where a field of
        POD5's own says the same and is not empty, it counts. Empty values are left out.
        """
        try:
            table, row = read.place
            info = self._file.get_batch(table).get_read(row).run_info
        except Exception:
            return {}  # the damage is reported for the read when its signal is asked for
        tags = [*info.context_tags.items(), *info.tracking_id.items()]
        own = [(name, str(getattr(info, field))) for field, name in _RUN_FIELDS.items()]
        return {key.lower(): value for key, value in tags + own if value}

    def _signal_table(self, number: int) -> _Signals:
        signals = _Signals.of(self._file.signal_table.get_batch(number), self._file.is_vbz_compressed)
        if self._remote is not None:  # all but the signals may go and not come again
            signals.offsets, signals.lengths = signals.offsets.copy(), signals.lengths.copy()
        return signals

    def _mapped_signal_table(self, number: int) -> _Signals:
        """As `_signal_table`, of the file as it is mapped; `place` is in the file."""
        tables, begin = self._mapped
        signals = _Signals.of(tables.get_batch(number), True)
        signals.place = signals.values.ctypes.data - begin
        return signals

    @cached_property
    def _mapped(self) -> tuple[Any, int]:
        """Map the file; return the tables of signals in there, and the address of its first byte."""
        with pa.memory_map(self._path) as file:
            whole = file.read_buffer()
        of_tables = self._file.inner_file_reader.get_file_signal_table_location()
        part = whole.slice(of_tables.offset, of_tables.length)
        return pa.ipc.open_file(pa.BufferReader(part)), whole.address

    def _chunk(self, at: int) -> tuple[NDArray, int]:
        """Return a piece of signal as stored and its number of samples. All tables but the last are equally long."""
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


@dataclass(frozen=True, slots=True)
class StoredRead:
    """A read as the tables of a file describe it."""

    place: tuple[int, int]  # number of the table of reads, and the row in it: the order on the disk
    n_samples: int
    # the values of `f5py.io.signals.source.FIELDS`, the start in samples; as float32, range / digitisation is the
    # file's scale
    calibration: list[float]
    pieces: list[int]  # the rows of the signal tables that hold the signal


@dataclass
class _Reads:
    """The columns of a table of reads."""

    keys: NDArray[np.void]  # shape (n,): UUIDs
    n_samples: NDArray[np.integer]  # shape (n,)
    calibration: NDArray[np.float64]  # shape (n, 5)
    # chunk_offsets, chunk_rows: read i has the rows ``chunk_rows[chunk_offsets[i]:chunk_offsets[i + 1]]`` of the signal
    # tables
    chunk_offsets: NDArray[np.integer]
    chunk_rows: NDArray[np.integer]

    @classmethod
    def of(cls, batch: pod5.reader.ReadRecordBatch) -> _Reads:
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
        # The converter has divided, in whatever precision; the quotient must be what it has stored, to the bit.
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
        pieces = columns.signal
        return cls(
            _keys(batch),
            columns.num_samples.to_numpy(),
            calibration.astype(np.float64),
            pieces.offsets.to_numpy(),
            pieces.values.to_numpy(),
        )

    def stored(self, table: int, row: int) -> StoredRead:
        begin, end = self.chunk_offsets[row : row + 2].tolist()
        return StoredRead(
            (table, row), int(self.n_samples[row]), self.calibration[row].tolist(), self.chunk_rows[begin:end].tolist()
        )


@dataclass
class _Signals:
    """The columns of a table of signal: row i has ``values[offsets[i]:offsets[i + 1]]``, of ``lengths[i]`` samples."""

    values: NDArray
    offsets: NDArray[np.int64]
    lengths: NDArray[np.integer]
    #: Where `values` are, in bytes after the table's first column.
    place: int

    @classmethod
    def of(cls, batch: Any, compressed: bool) -> _Signals:
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
    """Compute how many bytes after the first one of a table a buffer is."""
    addresses = [one.address for column in batch.columns for one in column.buffers() if one is not None and one.size]
    return 0 if buffer is None or not buffer.size else buffer.address - min(addresses)


def _chunks_of(reads: Sequence[StoredRead]) -> NDArray[np.int64]:
    """List the rows of the tables of signals that reads have."""
    return np.array([row for read in reads for row in read.pieces], np.int64)


def _keys(batch: pod5.reader.ReadRecordBatch) -> NDArray[np.void]:
    column = batch.read_id_column
    return np.frombuffer(column.buffers()[1], "V16")[column.offset : column.offset + len(column)]


@contextmanager
def _no_word_of_holes() -> Iterator[None]:
    """Keep the library's warning that a file has holes, which is as it should be, from standard error."""
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
                if b"st_blocks" not in line:  # what other threads have said
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
