"""Level and dwell time of every read and position, collapsed from event tables."""

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import concatenate_tuples
from f5py.errors import InputFileError
from f5py.io.arrow.arrow import import_arrow, read_rows
from f5py.io.arrow.parquet_table import MAGIC, ParquetTable
from f5py.io.arrow.text_input import display_name, open_bytes
from f5py.io.bounds import POSITION_BITS, check_positions
from f5py.io.bytes.byte_pieces import whole_lines
from f5py.io.files.table_output import CSV_GIVEN, is_csv_header

_PIECE = 1 << 24
#: Columns of all layouts of the table.
_NUMBERS = ("event_length", "model_mean", "model_stdv", "standardized_level")
_WANTED = ("contig", "position", "reference_kmer", "model_kmer", *_NUMBERS)
_READ = ("read_index", "read_name")


class ReadLevels(NamedTuple):
    """Entries per alignment and position; shape (n,) each."""

    place: NDArray[np.int64]  # ((contig << 1) | is_reverse) << POSITION_BITS | position
    kmer: NDArray[np.int32]  # index of the k-mer on the read's strand
    level: NDArray[np.float64]  # mean weighted by event length, in standard deviations from `model_mean`
    dwell: NDArray[np.float64]  # total event length in seconds
    model_mean: NDArray[np.float64]
    model_stdv: NDArray[np.float64]


class LevelCollector:
    """Collector of one sample's rows; adds names to the indices `contigs` and `kmers`.

    `n_rows` have a level; `n_unusable` of them are excluded for NaN, infinity or a negative length in other columns.
    """

    def __init__(self, contigs: dict[str, int], kmers: dict[str, int]) -> None:
        self._contigs = contigs
        self._kmers = kmers
        nothing = np.empty(0)
        self._parts = [ReadLevels(np.empty(0, np.int64), np.empty(0, np.int32), *4 * (nothing,))]
        self._held: Any = None
        self.n_rows = self.n_unusable = 0

    def add(self, rows: Any) -> None:
        """Add a `pyarrow.Table` of rows; those of a read are consecutive, also across tables."""
        arrow, _ = import_arrow()
        if not rows.num_rows:
            return
        read = next(name for name in _READ if name in rows.column_names)
        rows = rows.select([*_WANTED, read]).combine_chunks()
        if self._held is not None:
            rows = arrow.concat_tables([self._held, rows]).combine_chunks()
        changes = np.flatnonzero(_changes(rows[read]))
        begin = int(changes[-1]) + 1 if len(changes) else 0
        self._held = rows.slice(begin)
        if begin:
            self._collapse(rows.slice(0, begin), read)

    def finish(self) -> ReadLevels:
        """Return all entries in the order of the rows."""
        if self._held is not None:
            self._collapse(self._held, next(name for name in _READ if name in self._held.column_names))
            self._held = None
        return concatenate_tuples(self._parts)

    def _collapse(self, rows: Any, read: str) -> None:
        contig = _codes(rows["contig"], self._contigs)
        position = rows["position"].to_numpy().astype(np.int64)
        kmer_names: dict[str, int] = {}
        reference, model = (_codes(rows[name], kmer_names) for name in ("reference_kmer", "model_kmer"))
        dwell, model_mean, model_stdv, level = (rows[name].to_numpy().astype(np.float64) for name in _NUMBERS)
        fits = np.isfinite(level) & (model != kmer_names.get("N" * len(next(iter(kmer_names))), -1))
        is_sound = np.isfinite(dwell) & (dwell >= 0) & np.isfinite(model_mean) & np.isfinite(model_stdv)
        self.n_rows += int(fits.sum())
        self.n_unusable += int((fits & ~is_sound).sum())
        fits &= is_sound
        new_read = np.concatenate([[True], _changes(rows[read]) | (contig[1:] != contig[:-1])])
        of_read = np.cumsum(new_read) - 1
        reverse = np.zeros(of_read[-1] + 1, np.bool_)
        reverse[of_read[fits & (model != reference)]] = True
        if not fits.any():
            return
        place = (contig.astype(np.int64) << 1 | reverse[of_read]) << POSITION_BITS | position
        place, of_read, dwell, level = place[fits], of_read[fits], dwell[fits], level[fits]
        starts = np.concatenate([[True], (place[1:] != place[:-1]) | (of_read[1:] != of_read[:-1])])
        first = np.flatnonzero(starts)
        # Rounded, so that sums in another order still tie.
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.add.reduceat(dwell, first).round(7)
            weight = np.maximum(dwell, 1e-9)
            mean = (np.add.reduceat(level * weight, first) / np.add.reduceat(weight, first)).round(6)
        holds = np.isfinite(total) & np.isfinite(mean)  # no overflow
        self.n_unusable += int((~holds).sum())
        first, total, mean = first[holds], total[holds], mean[holds]
        shared = np.array([self._kmers.setdefault(name, len(self._kmers)) for name in kmer_names], np.int32)
        of_model = shared[model[fits][first]], mean, total, model_mean[fits][first], model_stdv[fits][first]
        self._parts.append(ReadLevels(place[first], *of_model))


def read_events(path: str, advance: Callable[[int], object] = lambda size: None) -> Iterator[Any]:
    """Read a table of events, text (plain or compressed) or Parquet, as `pyarrow.Table` pieces."""
    arrow, _ = import_arrow("tables of events")
    if path == "-" or not _is_parquet(path):
        with open_bytes(path, advance) as source:
            yield from _text(source, display_name(path))
        return
    with ParquetTable(path) as table:
        _check_columns(table.names, path)
        types = {name: kind for name, kind in _types().items() if name in table.names}
        for batch in table.batches(1 << 20, types):
            advance(batch.nbytes)
            rows = arrow.Table.from_batches([batch])
            check_positions(rows["position"].to_numpy(), path, "position")
            yield rows


def _is_parquet(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as problem:
        raise InputFileError(f"{path}: cannot be opened ({problem.strerror}); check the name") from problem


def _text(source: BinaryIO, name: str) -> Iterator[Any]:
    header = source.readline(4096)
    if is_csv_header(header):
        raise InputFileError(f"{name}: {CSV_GIVEN}")
    names = header.decode("latin-1").rstrip("\r\n").split("\t")
    _check_columns(names, name)
    for rows in read_rows(whole_lines(source, _PIECE), name, names, _types(), (*_WANTED, *_READ)):
        check_positions(rows["position"].to_numpy(), name, "position")
        yield rows


def _types() -> dict[str, Any]:
    """Return the types of the columns that are read."""
    import pyarrow

    types = dict.fromkeys(_NUMBERS, pyarrow.float64())
    types |= dict.fromkeys(("contig", "reference_kmer", "model_kmer", "read_name"), pyarrow.string())
    return types | {"position": pyarrow.int64(), "read_index": pyarrow.int64()}


def _check_columns(names: list[str], shown: str) -> None:
    missing = [name for name in _WANTED if name not in names]
    if missing or not set(_READ) & set(names):
        raise InputFileError(
            f"{shown}: is no table of f5py eventalign: has no column {missing[0] if missing else 'read_index'}; "
            "give such a table, or alignments"
        )


def _changes(column: Any) -> NDArray[np.bool_]:
    """Mark the values that differ from the previous one."""
    import pyarrow.compute

    column = column.combine_chunks()
    return pyarrow.compute.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)


def _codes(column: Any, index: dict[str, int]) -> NDArray[np.int32]:
    """Return the index of every value; new ones are added to `index`."""
    coded = column.combine_chunks().dictionary_encode()
    codes = np.array([index.setdefault(name, len(index)) for name in coded.dictionary.to_pylist()], np.int32)
    return codes[coded.indices.to_numpy()]
