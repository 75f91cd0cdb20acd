"""One POD5 file through the package pod5, a table of reads at a time.

The package's objects for single reads are not used: they make several Arrow scalars for every value that is asked for.
Its loader with threads (``preload``) is not used either: on two cores it took 1.4 times the processor time of decoding
here, no less wall time for 512 reads of a file, and twice as long for 4, which is what a sorted BAM file asks of one.

Imported from inside functions only, because it imports pod5 and pyarrow.
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
from f5py.io.signals.pod5._pod5_extents import fetch_all_but_signals
from f5py.io.signals.pod5._pod5_tables import PiecePlaces, ReadTable, SignalTable, keys_of_table
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
        self._reads: Recent[int, ReadTable] = Recent(lambda i: ReadTable.of(self._file.get_batch(i)), _MOST_READ_TABLES)
        self._signals: Recent[int, SignalTable] = Recent(self._signal_table, _MOST_SIGNAL_TABLES)
        self._places: PiecePlaces | None = None

    def close(self) -> None:
        """Close the file."""
        self._reads.clear()
        self._signals.clear()
        self._places = None
        self._file.close()

    def all_keys(self) -> NDArray[np.void]:
        """Return the 16 bytes of each read's UUID, in the file's order; shape (n,), dtype ``V16``.

        Raises `Unreadable` if the table of reads is damaged; the text is about the file.
        """
        try:
            tables = [keys_of_table(self._file.get_batch(i)) for i in range(self._file.batch_count)]
        except Exception as error:
            raise Unreadable(f"has a damaged table of reads ({_one_line(error)})") from None
        return np.concatenate([np.empty(0, "V16"), *tables])

    def find(self, keys: NDArray[np.void]) -> list[FoundReads]:
        """Look up what the tables say of the reads, one table after the other.

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
            ends = np.cumsum(per_table, dtype=np.int64)
            some = np.flatnonzero(per_table)
            return [
                FoundReads.of(self._reads.get(table), table, rows[end - n : end].astype(np.int64))
                for table, end, n in zip(some.tolist(), ends[some].tolist(), per_table[some].tolist(), strict=True)
            ]
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

    def places_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find where pieces of signals are in the file, if they are compressed.

        Parameters
        ----------
        rows : int64, shape (n,)
            Of the tables of signals.

        Returns
        -------
        int64, shape (n, 3)
            Where each piece begins and ends, and its samples; -1 for one of which that cannot be told: decoding its
            read says what is wrong.
        """
        if not self._file.is_vbz_compressed:
            return np.full((len(rows), 3), -1)
        try:
            if self._places is None:
                self._places = PiecePlaces(*self._mapped, self._file.signal_batch_row_count)
            return self._places.of(rows)
        except Exception:  # of whatever kind, as where the file cannot be mapped
            return np.full((len(rows), 3), -1)

    def stretches_of_tables(self, reads: FoundReads) -> list[Stretches]:
        """List what must be fetched to know where the signals of reads are, if the file is fetched as it is read."""
        if self._remote is None or self._extents is None or not len(reads.keys):
            return []
        tables = np.unique(reads.pieces // self._file.signal_batch_row_count)
        extents = self._extents[tables[tables < len(self._extents)]]
        n_around = _AROUND + _AROUND_PER_ROW * self._file.signal_batch_row_count
        begins, ends = extents[:, [0, 2]].ravel(), extents[:, [1, 2]].ravel()
        begins[1::2] -= n_around  # after the signals
        ends[::2] += n_around  # before them
        return [(self._remote, np.maximum(begins, 0), ends)]

    def stretches_of_signals(self, reads: FoundReads) -> list[Stretches]:
        """List what must be fetched to decode reads; what `stretches_of_tables` says must be there."""
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

    def _signal_table(self, number: int) -> SignalTable:
        signals = SignalTable.of(self._file.signal_table.get_batch(number), self._file.is_vbz_compressed)
        if self._remote is not None:  # all but the signals may go and not come again
            signals.offsets, signals.lengths = signals.offsets.copy(), signals.lengths.copy()
        return signals

    @property
    def _mapped(self) -> tuple[Any, int]:
        """Return the tables of signals in the mapped file, which keep it mapped, and the address of its first byte."""
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


class FoundReads(NamedTuple):
    """Some reads as the tables of a file describe them."""

    keys: NDArray[np.void]  # V16, shape (n,): UUIDs
    # table, row: int64, shape (n,): which table of reads, and the row in it: the order on the disk
    table: NDArray[np.int64]
    row: NDArray[np.int64]
    n_samples: NDArray[np.uint64]  # shape (n,)
    # shape (n, 5): the values of `f5py.io.signals.source.FIELDS`, the start in samples; as float32, range /
    # digitisation is the file's scale
    calibration: NDArray[np.float64]
    # pieces, piece_offsets: read i has the rows ``pieces[piece_offsets[i]:piece_offsets[i + 1]]`` of the tables of
    # signals
    pieces: NDArray[np.int64]
    piece_offsets: NDArray[np.int64]

    @classmethod
    def of(cls, reads: ReadTable, table: int, rows: NDArray[np.int64]) -> FoundReads:
        """Take some rows of a table."""
        n_pieces = reads.n_pieces[rows]
        return cls(
            reads.keys[rows], np.full(len(rows), table), rows, reads.n_samples[rows], reads.calibration[rows],
            reads.pieces[elements_of(reads.first_piece[rows], n_pieces)].astype(np.int64), offsets_of(n_pieces),
        )  # fmt: skip

    @classmethod
    def none(cls) -> FoundReads:
        """Make those of no read."""
        nothing = np.empty(0, np.int64)
        n_samples, calibration = np.empty(0, np.uint64), np.empty((0, 5))
        return cls(np.empty(0, "V16"), nothing, nothing, n_samples, calibration, nothing, offsets_of([]))

    def one(self, i: int) -> StoredRead:
        """Return a single read."""
        begin, end = self.piece_offsets[i : i + 2].tolist()
        return StoredRead(
            (int(self.table[i]), int(self.row[i])), int(self.n_samples[i]), self.calibration[i].tolist(),
            self.pieces[begin:end].tolist(),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoredRead:
    """A read as the tables of a file describe it."""

    place: tuple[int, int]  # number of the table of reads, and the row in it: the order on the disk
    n_samples: int
    # the values of `f5py.io.signals.source.FIELDS`, the start in samples; as float32, range / digitisation is the
    # file's scale
    calibration: list[float]
    pieces: list[int]  # the rows of the signal tables that hold the signal


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
