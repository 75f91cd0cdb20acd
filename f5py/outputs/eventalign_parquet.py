"""The table of events aligned to the reference as a Parquet file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.kmers import base_codes
from f5py.core.offsets import offsets_of
from f5py.outputs.arrow_table import ParquetOutput, dictionary_column, list_column
from f5py.pore_model.model import PoreModel

_ROWS_PER_GROUP = 1 << 20
_STRAND = ["t"]
#: Of zstd; higher ones take much longer for hardly smaller files.
_LEVEL = 9
#: Counters hardly change from row to row. All other columns have few different values and get dictionaries.
_COUNTERS = ("position", "event_index", "start_idx", "end_idx")
_COUNTER_ENCODING = "DELTA_BINARY_PACKED"


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
        First sample and the one after the last.
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
        As for `f5py.outputs.eventalign_table.EventalignTable`.
    """
    from f5py.outputs._eventalign_columns_numba import fill_columns

    capacity = int(batch.n_rows[first:end].sum())
    types = 5 * [np.int32] + 2 * [np.int64] + 6 * [np.float32]
    columns: list[NDArray] = [np.empty(capacity, dtype) for dtype in types]
    parameters = (model.k, base_codes(), model.level_mean, model.level_stdv)
    n = fill_columns(
        first, end, batch.rows, batch.events, batch.alignments, batch.signals, batch.scaling, parameters, scale_events,
        collapse_events, columns[0], columns[1], tuple(columns[2:]),
    )  # fmt: skip
    filled = [column[:n] for column in columns]
    return TableColumns(filled[0], batch.contig[filled[0]], *filled[1:])


class EventalignParquet:
    """Writes the rows of batches as Parquet; a context manager.

    Columns have the names and the order of the text table. Contigs, k-mers, the strand and read names are
    dictionary-encoded strings, positions and event numbers int32, read numbers and sample indices int64, and samples
    lists of float32. Levels and lengths are float32 with the decimals of the text table: with all of their digits the
    file would be twice as large. Compressed with zstd, in row groups of about a million rows.

    Parameters
    ----------
    out : binary file
        Stays open. It is complete after the context is left without an error.
    contigs : list of str
        Names by contig index.
    model : PoreModel
        The nucleotide model that the events were aligned with.
    print_read_names, scale_events, samples, signal_index, collapse_events : bool
        As for `f5py.outputs.eventalign_table.EventalignTable`.

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
        self._contigs = contigs
        self._model = model
        self._scaled = scale_events
        self._collapsed = collapse_events
        self._fields = [
            ("contig", "names"),
            ("position", "int32"),
            ("reference_kmer", "names"),
            ("read_name", "names") if print_read_names else ("read_index", "int64"),
            ("strand", "names"),
            ("event_index", "int32"),
            ("event_level_mean", "float32"),
            ("event_stdv", "float32"),
            ("event_length", "float32"),
            ("model_kmer", "names"),
            ("model_mean", "float32"),
            ("model_stdv", "float32"),
            ("standardized_level", "float32"),
        ]
        if signal_index:
            self._fields += [("start_idx", "int64"), ("end_idx", "int64")]
        if samples:
            self._fields.append(("samples", "list:float32"))
        encodings = {name: _COUNTER_ENCODING for name, _ in self._fields if name in _COUNTERS}
        self._output = ParquetOutput(out, self._fields, encodings, _LEVEL, _ROWS_PER_GROUP)

    def __enter__(self) -> EventalignParquet:
        return self

    def __exit__(self, *problem: Any) -> None:
        self._output.__exit__(*problem)

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
            "event_level_mean": lambda: _as_printed(rows.level, 2),
            "event_stdv": lambda: _as_printed(rows.stdv, 3),
            "event_length": lambda: _as_printed(rows.seconds, 5),
            "model_kmer": lambda: _dictionary(rows.model_rank, self._kmers),
            "model_mean": lambda: _as_printed(rows.model_level, 2),
            "model_stdv": lambda: _as_printed(rows.model_stdv, 2),
            "standardized_level": lambda: _as_printed(rows.standardized, 2),
            "start_idx": lambda: rows.start,
            "end_idx": lambda: rows.end,
            "samples": lambda: self._samples(batch, rows),
        }
        self._output.write([columns[name]() for name, _ in self._fields])

    def _kmers(self, ranks: NDArray) -> list[str]:
        """The texts of k-mers by rank."""
        k = self._model.k
        digits = ranks[:, np.newaxis] // 4 ** np.arange(k - 1, -1, -1) % 4
        letters = np.frombuffer(self._model.alphabet.encode(), np.uint8)[digits]
        letters[ranks < 0] = ord("N")
        return letters.view(f"S{k}")[:, 0].astype(str).tolist()

    def _samples(self, batch: ReadBatch, rows: TableColumns) -> Any:
        from f5py.outputs._eventalign_columns_numba import fill_samples

        offsets = offsets_of(rows.end - rows.start)
        values = np.empty(offsets[-1], np.float32)
        fill_samples(
            rows.read, rows.start, rows.end,
            batch.samples, batch.sample_offsets, batch.offset, batch.unit, batch.shift, batch.scale, values,
        )  # fmt: skip
        return list_column(offsets, values)


def _as_printed(values: NDArray[np.float32], decimals: int) -> NDArray[np.float32]:
    """What the text table shows of the values. The products are exact, so that they are rounded as printf does."""
    power = 10.0**decimals
    return (np.rint(values.astype(np.float64) * power) / power).astype(np.float32)


def _dictionary(codes: NDArray[np.int32], texts: Callable[[NDArray], list[str]]) -> Any:
    """A dictionary column of `codes`, which are not below -1, with only the texts that occur."""
    used = np.flatnonzero(np.bincount(codes + 1))
    place = np.zeros(used[-1] + 1, np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    return dictionary_column(place[codes + 1], texts(used - 1))
