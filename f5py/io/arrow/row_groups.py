"""Tables as row groups of a Parquet file, which are encoded apart from each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from f5py.io.arrow.arrow import import_arrow
from f5py.io.arrow.column_chunks import PHYSICAL_TYPES, Chunk, ChunkEncoder
from f5py.io.arrow.encodings import Numbered
from f5py.io.arrow.numbering import numbered
from f5py.io.arrow.parquet_groups import EncodedGroup, chunks_of, one_group, placed_chunk

#: The encoding of numbers by their differences, as the Parquet library calls it.
BY_DIFFERENCES = "DELTA_BINARY_PACKED"


class GroupLayout(NamedTuple):
    """How row groups are encoded; see `f5py.io.arrow.table.ParquetOutput`."""

    encodings: Mapping[str, str]
    level: int | None
    ranges_of: Sequence[str] | None


class GroupEncoder:
    """Encodes row groups; may be used by several threads.

    Numbers and names are encoded here, in all of their columns that lack no value. The Parquet library encodes all
    others; it takes two to four times as long.

    Parameters
    ----------
    schema : pyarrow.Schema
    fields : sequence of two str
        Names and types of the columns, as `f5py.io.arrow.table.Fields`.
    """

    def __init__(self, schema: Any, fields: Sequence[tuple[str, str]], layout: GroupLayout) -> None:
        self._arrow, self._parquet = import_arrow()
        self._schema = schema
        self._kinds = dict(fields)
        self._layout = layout
        leaves = {name: f"{name}.list.element" if kind.startswith("list:") else name for name, kind in fields}
        self._settings = {
            "compression": "zstd",
            "compression_level": layout.level,
            "write_page_checksum": True,
            "write_statistics": True if layout.ranges_of is None else list(layout.ranges_of),
        }
        self._with_dictionary = {name: leaf for name, leaf in leaves.items() if name not in layout.encodings}

    def encode(self, tables: Sequence[Any]) -> EncodedGroup:
        """Encode the rows of all tables, which are of the schema; there is at least one row."""
        columns = {name: [chunk for table in tables for chunk in table.column(name).chunks] for name in self._kinds}
        encoder = ChunkEncoder(self._layout.level)
        here = {
            name: self._encoded(encoder, name, pieces) for name, pieces in columns.items() if self._fits(name, pieces)
        }
        others = [name for name in self._kinds if name not in here]
        if others:
            here |= self._by_library(others, columns)
        chunks = [here[name] for name in self._kinds]
        return _group_of(chunks, sum(map(len, tables)))

    def file(self, rows: Any) -> memoryview:
        """Write a Parquet file in memory by the library, of one row group or, without rows, of none."""
        names = rows.schema.names
        out = self._arrow.BufferOutputStream()
        settings = self._settings | {
            "use_dictionary": [leaf for name, leaf in self._with_dictionary.items() if name in names],
            "column_encoding": {name: how for name, how in self._layout.encodings.items() if name in names},
        }
        with self._parquet.ParquetWriter(out, rows.schema, **settings) as writer:
            if len(rows):
                writer.write_table(rows, row_group_size=len(rows))
        return memoryview(out.getvalue())

    def _fits(self, name: str, pieces: list[Any]) -> bool:
        kind, encoding = self._kinds[name], self._layout.encodings.get(name)
        is_known = encoding is None or (encoding == BY_DIFFERENCES and kind.startswith("int"))
        if kind not in PHYSICAL_TYPES or not is_known or any(piece.null_count for piece in pieces):
            return False
        return kind != "names" or not any(piece.dictionary.null_count for piece in pieces)

    def _encoded(self, encoder: ChunkEncoder, name: str, pieces: list[Any]) -> Chunk:
        ranges_of = self._layout.ranges_of
        has_range = ranges_of is None or name in ranges_of
        if self._kinds[name] == "names":
            return encoder.names(name, joined_names(pieces), has_range)
        column = np.concatenate([piece.to_numpy() for piece in pieces])
        return encoder.numbers(name, column, name in self._layout.encodings, has_range)

    def _by_library(self, names: list[str], columns: Mapping[str, list[Any]]) -> dict[str, Chunk]:
        fields = [self._schema.field(name) for name in names]
        arrays = [
            self._arrow.chunked_array(columns[name], field.type) for name, field in zip(names, fields, strict=True)
        ]
        rows = self._arrow.Table.from_arrays(arrays, schema=self._arrow.schema(fields))
        rows = rows.unify_dictionaries().combine_chunks()
        made = {}
        for name, (data, about, raw_size) in zip(names, chunks_of(self.file(rows)), strict=True):
            made[name] = Chunk([bytes(data)], about, len(data), raw_size)
        return made


def joined_names(pieces: Sequence[Any]) -> Numbered:
    """Join Arrow dictionary arrays of strings; values are in the order of their first rows, without others."""
    arrow, _ = import_arrow()
    dictionaries = [piece.dictionary for piece in pieces]
    indices = [piece.indices.to_numpy() for piece in pieces]
    values = dictionaries[0]
    if any(not one.equals(values) for one in dictionaries[1:]):
        distinct = arrow.concat_arrays(dictionaries).dictionary_encode()
        values, number_of = distinct.dictionary, distinct.indices.to_numpy()
        first = 0
        for i, one in enumerate(dictionaries):
            indices[i] = number_of[first : first + len(one)][indices[i]]
            first += len(one)
    codes, used = numbered(np.concatenate(indices), len(values))
    return Numbered(codes, values.take(arrow.array(used)))


def _group_of(chunks: Sequence[Chunk], n_rows: int) -> EncodedGroup:
    abouts, size = [], 0
    for chunk in chunks:
        abouts.append(placed_chunk(chunk.about, size))
        size += chunk.size
    content = b"".join(piece for chunk in chunks for piece in chunk.pieces)
    return EncodedGroup(content, one_group(abouts, n_rows, size, sum(chunk.raw_size for chunk in chunks)))
