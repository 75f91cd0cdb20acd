"""Event table as a Parquet file or Arrow tables."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.kmers import kmer_letters, trim_ranks
from f5py.core.offsets import offsets_of
from f5py.io.arrow.arrow import import_arrow
from f5py.io.arrow.table import (
    ROWS_PER_GROUP,
    ParquetOutput,
    RowTarget,
    arrow_sink,
    dictionary_column,
    distinct_column,
    list_column,
    short_strings,
)
from f5py.outputs.events.table_columns import (
    MARKS,
    RowColumns,
    TableLayout,
    fill_samples,
    round_as_printed,
    table_columns,
)
from f5py.outputs.sink import ArrowTable
from f5py.pore_model.model import PoreModel
from f5py.threads.ordered import OrderedWork

#: Rows whose columns are made in one piece.
_ROWS_PER_PIECE = 1 << 17
_STRAND = b"t"
#: Up to so many k-mers, of nine bases and what stands for none, the pieces of a file have one dictionary.
_MOST_SHARED = (1 << 18) + 8
#: Threads that make columns: more would take a lot of memory.
_MOST_THREADS = 8
#: Of zstd.
_LEVEL = 3
#: Counters hardly change from row to row. All other columns have few different values and get dictionaries.
_COUNTERS = ("position", "event_index", "start_idx", "end_idx")
_COUNTER_ENCODING = "DELTA_BINARY_PACKED"
#: What readers look rows up by. To find the ranges of all columns takes a third of the time of encoding.
_LOOKED_UP_BY = ("contig", "position", "read_name", "read_index")

#: Name and Arrow type of a column, and the function that makes it.
_Column = tuple[str, str, Callable[[ReadBatch, RowColumns], Any]]


def parquet_layout(names: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of `ParquetOutput` for a table with these columns."""
    if "event_index" not in names:
        return {}
    encodings = {name: _COUNTER_ENCODING for name in names if name in _COUNTERS}
    ranges_of = [name for name in names if name in _LOOKED_UP_BY]
    return {"encodings": encodings, "level": _LEVEL, "ranges_of": ranges_of, "rows_per_group": ROWS_PER_GROUP}


class EventalignArrow(ArrowTable):
    """Write the rows of batches as Parquet or Arrow tables; a context manager.

    Columns have the names and the order of the text table. Contigs, k-mers, the strand and read names are
    dictionary-encoded strings, positions and event numbers int32, read numbers and sample indices int64, and samples
    lists of float32. Levels and lengths are float32 with the decimals of the text table, which halves the file.
    Compressed with zstd, in row groups of a quarter of a million rows. `out` is the file, complete once the context is
    left without an error, or a consumer of tables. Raises `MissingDependencyError` without pyarrow.
    """

    def __init__(
        self,
        out: RowTarget,
        contigs: list[str],
        model: PoreModel,
        layout: TableLayout = TableLayout(),  # noqa: B008 - immutable
        n_threads: int = 1,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        self._model = model
        self._scaled = layout.scale_events
        self._collapsed = layout.collapse_events
        self._trim = layout.trimmed(model.k)
        self._shown_k = model.k - 2 * self._trim
        self._columns: list[_Column] = [
            ("contig", "names", lambda batch, rows: _named(batch.contig[rows.read], contigs)),
            ("position", "int32", lambda _, rows: rows.position + np.int32(self._trim)),
            ("reference_kmer", "names", lambda _, rows: self._kmer_column(rows.reference_rank)),
            ("read_name", "names", lambda batch, rows: _named(rows.read, batch.names))
            if layout.print_read_names
            else ("read_index", "int64", lambda batch, rows: batch.read_index[rows.read]),
            ("strand", "names", lambda _, rows: distinct_column(np.zeros(len(rows.read), np.int32), self._strands)),
            ("event_index", "int32", lambda _, rows: rows.event),
            ("event_level_mean", "float32", lambda _, rows: _shown(rows.level, 2)),
            ("event_stdv", "float32", lambda _, rows: _shown(rows.stdv, 3)),
            ("event_length", "float32", lambda _, rows: _shown(rows.seconds, 5)),
            ("model_kmer", "names", lambda _, rows: self._kmer_column(rows.model_rank)),
            ("model_mean", "float32", lambda _, rows: _shown(rows.model_level, 2)),
            ("model_stdv", "float32", lambda _, rows: _shown(rows.model_stdv, 2)),
            ("standardized_level", "float32", lambda _, rows: _shown(rows.standardized, 2)),
        ]
        if layout.signal_index:
            self._columns.append(("start_idx", "int64", lambda _, rows: rows.start))
            self._columns.append(("end_idx", "int64", lambda _, rows: rows.end))
        if layout.samples:
            self._columns.append(("samples", "list:float32", _samples))
        if layout.mark_kmers:
            self._columns.append(("kmer_mark", "names", _marks))
        fields = [(name, kind) for name, kind, _ in self._columns]
        layout_of_file = parquet_layout([name for name, _ in fields])
        self._output = arrow_sink(out, fields, metadata=metadata, **layout_of_file)
        self._strands = short_strings(np.frombuffer(_STRAND, np.uint8)[np.newaxis])
        # all k-mers, where the pieces of a file share these: they need not be compared then
        self._all_kmers: Any = None
        n_threads = min(n_threads, _MOST_THREADS)
        self._pieces = OrderedWork(n_threads, self._make_columns, self._take, "f5py-columns", n_threads + 1)

    def __exit__(self, *problem: Any) -> None:
        self._pieces.close()
        super().__exit__(*problem)

    def write(self, batch: ReadBatch) -> None:
        """Write the rows of a batch in read order."""
        self._share_kmers()
        ends = np.cumsum(batch.rows.n)
        first = 0
        while first < len(batch):
            done = ends[first - 1] if first else 0
            end = max(first + 1, int(np.searchsorted(ends, done + _ROWS_PER_PIECE, side="right")))
            self._pieces.add(batch, first, end)
            first = end
        self._pieces.finish()

    def _share_kmers(self) -> None:
        """Spell all k-mers once for a file; tables have only those that occur."""
        n = 4**self._shown_k + len(MARKS)
        if self._all_kmers is None and isinstance(self._output, ParquetOutput) and n <= _MOST_SHARED:
            self._all_kmers = self._spelled(np.arange(n, dtype=np.int32))

    def _take(self, columns: list[Any]) -> None:
        if columns:
            self._output.write(columns)

    def _make_columns(self, batch: ReadBatch, first: int, end: int) -> list[Any]:
        """Make the columns of the rows of some reads; empty without rows."""
        rows = table_columns(batch, self._model, first, end, self._scaled, self._collapsed)
        return [make(batch, rows) for _, _, make in self._columns] if len(rows.read) else []

    def _kmer_column(self, ranks: NDArray[np.int32]) -> Any:
        if self._trim:
            ranks = np.where(ranks < 0, ranks, trim_ranks(ranks, self._model.k, self._trim))
        codes = ranks + np.int32(len(MARKS))
        if self._all_kmers is not None:
            return distinct_column(codes, self._all_kmers)
        numbers, used = _numbered(codes)
        return distinct_column(numbers, self._spelled(used))

    def _spelled(self, codes: NDArray[np.int32]) -> Any:
        """Spell k-mers by rank, after the marks of events without one."""
        ranks = codes - np.int32(len(MARKS))
        letters = kmer_letters(ranks, self._shown_k)
        letters[ranks < 0] = np.frombuffer(MARKS, np.uint8)[-1 - ranks[ranks < 0]][:, None]
        return short_strings(letters)


def _samples(batch: ReadBatch, rows: RowColumns) -> Any:
    offsets = offsets_of(rows.end - rows.start)
    values = np.empty(offsets[-1], np.float32)
    fill_samples(rows.read, rows.start, rows.end, batch.signals, batch.scaling, values)
    return list_column(offsets, values)


def _shown(values: NDArray[np.float32], decimals: int) -> NDArray[np.float32]:
    """Round a column in place, as double precision would cost more time."""
    round_as_printed(values, 10.0**decimals)
    return values


def _marks(batch: ReadBatch, rows: RowColumns) -> Any:
    at = batch.reference_offsets[rows.read] + rows.position - batch.reference_start[rows.read]
    numbers, used = _numbered(batch.kmer_marks[at].astype(np.int32))
    return dictionary_column(numbers, [chr(mark) for mark in used.tolist()])


def _named(codes: NDArray[np.int32], names: Sequence[str]) -> Any:
    """Make a dictionary column of the names that occur."""
    numbers, used = _numbered(codes)
    return dictionary_column(numbers, [names[i] for i in used.tolist()])


def _numbered(codes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Renumber codes by first occurrence; return the numbers, and their codes."""
    arrow, _ = import_arrow()
    encoded = arrow.array(codes).dictionary_encode()
    return encoded.indices.to_numpy(), encoded.dictionary.to_numpy()
