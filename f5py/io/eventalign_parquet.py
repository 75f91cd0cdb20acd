"""The table of events aligned to the reference as a Parquet file."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.io.arrow_table import dictionary_column, import_arrow
from f5py.pipeline.batch import ReadBatch, offsets_of
from f5py.pore_model.model import PoreModel
from f5py.signal.scaling import base_codes

_ROWS_PER_GROUP = 1 << 20
_STRAND = ["t"]
# Counters hardly change from row to row; of measured levels few are equal but many are near each other.
_ENCODINGS = {
    **dict.fromkeys(("position", "event_index", "start_idx", "end_idx"), "DELTA_BINARY_PACKED"),
    **dict.fromkeys(("event_level_mean", "event_stdv", "model_mean", "standardized_level"), "BYTE_STREAM_SPLIT"),
}


@dataclass(frozen=True)
class TableColumns:
    """Rows of the event table as arrays of one length.

    Attributes
    ----------
    read, contig : int32
        The read's place in the batch and the contig's index.
    reference_rank : int32
        Rank of the k-mer in the reference's direction.
    position, event : int32
        0-based reference position of the k-mer's first base; number of the (first) event.
    model_rank : int32
        Rank of the k-mer in the read's direction; -1 if the event fits no k-mer.
    start, end : int64
        First sample and the one behind the last.
    level, stdv, seconds, model_level, model_stdv, standardized : float32
        Not rounded to the text's decimals; pA, or the model's scale if the events are scaled, and seconds.
    """

    read: NDArray[np.int32]
    contig: NDArray[np.int32]
    reference_rank: NDArray[np.int32]
    position: NDArray[np.int32]
    event: NDArray[np.int32]
    model_rank: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    level: NDArray[np.float32]
    stdv: NDArray[np.float32]
    seconds: NDArray[np.float32]
    model_level: NDArray[np.float32]
    model_stdv: NDArray[np.float32]
    standardized: NDArray[np.float32]


def table_columns(
    batch: ReadBatch,
    model: PoreModel,
    first: int,
    end: int,
    scale_events: bool = False,
    collapse_events: bool = False,
) -> TableColumns:
    """The rows of reads `first` to `end` - 1 of a batch as columns.

    Parameters
    ----------
    batch : ReadBatch
        With the rows of an event alignment, its events and reference segments and, for `collapse_events`, its samples.
    model : PoreModel
        The nucleotide model that the events were aligned with.
    first, end : int
    scale_events, collapse_events : bool
        As for `f5py.io.eventalign_table.EventalignTable`.
    """
    from f5py.io._eventalign_columns_numba import fill_columns

    capacity = int(batch.n_rows[first:end].sum())
    types = 5 * [np.int32] + 2 * [np.int64] + 6 * [np.float32]
    columns: list[NDArray] = [np.empty(capacity, dtype) for dtype in types]
    n = fill_columns(
        first, end,
        batch.n_rows, batch.event_offsets, batch.row_event, batch.row_position, batch.row_state,
        batch.event_start, batch.event_length, batch.event_mean, batch.event_stdv,
        batch.reference, batch.reference_offsets, batch.reference_start, batch.reverse,
        batch.samples, batch.sample_offsets, batch.offset, batch.unit, batch.sampling_rate,
        batch.shift, batch.scale, batch.var,
        model.k, base_codes(), model.level_mean, model.level_stdv, scale_events, collapse_events,
        *columns,
    )  # fmt: skip
    filled = [column[:n] for column in columns]
    return TableColumns(filled[0], batch.contig[filled[0]], *filled[1:])


class EventalignParquet:
    """Writes the rows of batches as Parquet; a context manager, which ends the file even after an error.

    Columns have the names and the order of the text table. Contigs, k-mers, the strand and read names are
    dictionary-encoded strings, positions and event numbers int32, read numbers and sample indices int64, all levels
    and lengths float32 that are not rounded to the text's decimals, and samples lists of float32. Compressed with
    zstd, in row groups of about a million rows.

    Parameters
    ----------
    out : binary file
        Stays open. It is complete after `close`.
    contigs : list of str
        Names by contig index.
    model : PoreModel
        The nucleotide model that the events were aligned with.
    print_read_names, scale_events, samples, signal_index, collapse_events : bool
        As for `f5py.io.eventalign_table.EventalignTable`.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    """

    def __init__(
        self,
        out: BinaryIO,
        contigs: list[str],
        model: PoreModel,
        print_read_names: bool = False,
        scale_events: bool = False,
        samples: bool = False,
        signal_index: bool = False,
        collapse_events: bool = False,
    ) -> None:
        self._arrow, parquet = import_arrow()
        self._contigs = contigs
        self._model = model
        self._read_names = print_read_names
        self._scaled = scale_events
        self._collapsed = collapse_events
        arrow = self._arrow
        names = arrow.dictionary(arrow.int32(), arrow.string())
        fields: list[tuple[str, Any]] = [
            ("contig", names),
            ("position", arrow.int32()),
            ("reference_kmer", names),
            ("read_name", names) if print_read_names else ("read_index", arrow.int64()),
            ("strand", names),
            ("event_index", arrow.int32()),
            ("event_level_mean", arrow.float32()),
            ("event_stdv", arrow.float32()),
            ("event_length", arrow.float32()),
            ("model_kmer", names),
            ("model_mean", arrow.float32()),
            ("model_stdv", arrow.float32()),
            ("standardized_level", arrow.float32()),
        ]
        if signal_index:
            fields += [("start_idx", arrow.int64()), ("end_idx", arrow.int64())]
        if samples:
            fields.append(("samples", arrow.list_(arrow.float32())))
        self._schema = arrow.schema(fields)
        encodings = {name: encoding for name, encoding in _ENCODINGS.items() if name in self._schema.names}
        others = [name for name in self._schema.names if name not in encodings]
        others = ["samples.list.element" if name == "samples" else name for name in others]
        self._writer = parquet.ParquetWriter(
            out, self._schema, compression="zstd", use_dictionary=others, column_encoding=encodings
        )
        self._tables: list[Any] = []
        self._n_rows = 0

    def __enter__(self) -> EventalignParquet:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:  # the library would do so later, when `out` may be gone
            with suppress(OSError, ValueError):
                self._writer.close()

    def write(self, batch: ReadBatch) -> None:
        """Write the rows of one batch, in the order of its reads."""
        behind = np.cumsum(batch.n_rows)
        first = 0
        while first < len(batch):
            done = behind[first - 1] if first else 0
            end = max(first + 1, int(np.searchsorted(behind, done + _ROWS_PER_GROUP, side="right")))
            self._take(batch, first, end)
            first = end

    def _take(self, batch: ReadBatch, first: int, end: int) -> None:
        rows = table_columns(batch, self._model, first, end, self._scaled, self._collapsed)
        if len(rows.read) == 0:
            return
        columns: dict[str, Callable[[], Any]] = {
            "contig": lambda: _dictionary(rows.contig, lambda used: [self._contigs[i] for i in used]),
            "position": lambda: rows.position,
            "reference_kmer": lambda: _dictionary(rows.reference_rank, self._kmers),
            "read_name": lambda: _dictionary(rows.read, lambda used: [batch.names[i] for i in used]),
            "read_index": lambda: batch.read_index[rows.read],
            "strand": lambda: dictionary_column(np.zeros(len(rows.read), np.int32), _STRAND),
            "event_index": lambda: rows.event,
            "event_level_mean": lambda: rows.level,
            "event_stdv": lambda: rows.stdv,
            "event_length": lambda: rows.seconds,
            "model_kmer": lambda: _dictionary(rows.model_rank, self._kmers),
            "model_mean": lambda: rows.model_level,
            "model_stdv": lambda: rows.model_stdv,
            "standardized_level": lambda: rows.standardized,
            "start_idx": lambda: rows.start,
            "end_idx": lambda: rows.end,
            "samples": lambda: self._samples(batch, rows),
        }
        arrays = [self._arrow.array(columns[field.name](), field.type) for field in self._schema]
        self._tables.append(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        self._n_rows += len(rows.read)
        if self._n_rows >= _ROWS_PER_GROUP:
            self._flush()

    def _kmers(self, ranks: NDArray) -> list[str]:
        """The texts of k-mers by rank."""
        k = self._model.k
        digits = ranks[:, np.newaxis] // 4 ** np.arange(k - 1, -1, -1) % 4
        letters = np.frombuffer(self._model.alphabet.encode(), np.uint8)[digits]
        letters[ranks < 0] = ord("N")
        return letters.view(f"S{k}")[:, 0].astype(str).tolist()

    def _samples(self, batch: ReadBatch, rows: TableColumns) -> Any:
        from f5py.io._eventalign_columns_numba import fill_samples

        offsets = offsets_of(rows.end - rows.start)
        values = np.empty(offsets[-1], np.float32)
        fill_samples(
            rows.read, rows.start, rows.end,
            batch.samples, batch.sample_offsets, batch.offset, batch.unit, batch.shift, batch.scale, values,
        )  # fmt: skip
        return self._arrow.ListArray.from_arrays(offsets.astype(np.int32), values)

    def _flush(self) -> None:
        if self._tables:
            table = self._arrow.concat_tables(self._tables).unify_dictionaries().combine_chunks()
            self._writer.write_table(table, row_group_size=max(len(table), 1))
        self._tables = []
        self._n_rows = 0

    def close(self) -> None:
        """Write what is left and the end of the file. Without it, the file is not a Parquet file."""
        self._flush()
        self._writer.close()


def _dictionary(codes: NDArray[np.int32], texts: Callable[[NDArray], list[str]]) -> Any:
    """A dictionary column of `codes`, which are not below -1, with only the texts that occur."""
    used = np.flatnonzero(np.bincount(codes + 1))
    place = np.zeros(used[-1] + 1, np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    return dictionary_column(place[codes + 1], texts(used - 1))
