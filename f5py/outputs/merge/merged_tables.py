"""Merge tables of one kind by concatenating their rows."""

import csv
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from f5py.compute.provenance import ENTRY, metadata_in_common
from f5py.errors import InputFileError, UsageError
from f5py.io.arrow.parquet_table import ParquetTable
from f5py.io.arrow.table import Fields, ParquetOutput
from f5py.io.arrow.text_input import display_name, open_bytes
from f5py.io.bytes.byte_pieces import whole_lines
from f5py.io.files.complete_file import complete_text_output
from f5py.io.files.output import TextOutput
from f5py.outputs.calls.calls_arrow import PARQUET_LAYOUT
from f5py.outputs.events.eventalign_arrow import parquet_layout
from f5py.outputs.sites.bedmethyl import write_totals
from f5py.site_frequencies.bedmethyl_rows import bedmethyl_rows
from f5py.site_frequencies.site_counts import SiteCounts

_LONGEST_LINE = _PIECE = 1 << 20
_ROWS_AT_ONCE = 1 << 16
_FIRST_COLUMNS = (b"chromosome", b"contig", b"read_name", b"read_index")


def merge_bedmethyls(paths: Sequence[str], path: str, n_threads: int) -> None:
    """Add up the counts of sites, ordered by chromosome name (bytes) and position.

    The files are of one modification, and all with or all without combined strands. Failed calls of a site are lost in
    files where it has no valid call, and so no row.
    """
    counts = SiteCounts()
    contigs: dict[str, int] = {}
    kinds: set[tuple[str, bool]] = set()
    for one in paths:
        with open_bytes(one) as source:
            for rows in bedmethyl_rows(source, display_name(one), contigs):
                kinds |= {(code, bool(rows.combined.any())) for code in rows.codes}
                if len(kinds) > 1:
                    raise InputFileError(
                        f"{display_name(one)}: has other modifications than the files before, or strands that are "
                        "combined where theirs are not; merge files of one kind"
                    )
                counts.join(rows.sites)
    code, combined = next(iter(kinds), ("m", False))
    texts = [name.encode() for name in contigs]
    write_totals(path, counts.totals(texts), texts, {}, code, combined, n_threads)


def merge_texts(paths: Sequence[str], path: str, n_threads: int) -> None:
    """Concatenate tables with the same header line."""
    header: bytes | None = None
    with complete_text_output(path, n_threads) as out:
        for one in paths:
            with open_bytes(one) as source:
                first = source.readline(_LONGEST_LINE).rstrip(b"\n")
                if header is None:
                    header = first
                    _check_header(display_name(one), first)
                    out.write(first + b"\n")
                elif first != header:
                    raise InputFileError(
                        f"{display_name(one)}: has other columns than {display_name(paths[0])}; merge tables of one "
                        "kind"
                    )
                _copy_rows(source, display_name(one), header, out)


def _copy_rows(source: BinaryIO, shown: str, header: bytes, out: TextOutput) -> None:
    """Copy the rows of a table; a last line with all columns gets a missing line end."""
    n_lines = 1
    for piece in whole_lines(source, _PIECE):
        is_ended = piece.endswith(b"\n")
        n_lines += piece.count(b"\n") + (not is_ended)
        if not is_ended and (n := _n_columns(piece, header)) != (wanted := _n_columns(header, header)):
            raise InputFileError(
                f"{shown}: line {n_lines} has {n} columns instead of {wanted}; the file was cut short, copy or make it "
                "again"
            )
        out.write(piece if is_ended else piece + b"\n")


def _n_columns(line: bytes, header: bytes) -> int:
    if b"\t" in header:
        return line.count(b"\t") + 1
    return len(next(csv.reader([line.decode("latin-1")])))


def _check_header(shown: str, first: bytes) -> None:
    if b"called_sites" in first:
        raise UsageError(f"{shown}: is a table of frequencies; f5py freq-merge adds these up")
    if not first.startswith(tuple(name + mark for name in _FIRST_COLUMNS for mark in (b"\t", b","))):
        raise InputFileError(f"{shown}: is no table of f5py: the first line is not a header")


def merge_parquets(paths: Sequence[str], out: BinaryIO) -> None:
    """Concatenate Parquet tables with the same columns."""
    fields: list[tuple[str, str]] = []
    facts = []
    for one in paths:
        with ParquetTable(one) as table:
            facts.append(table.about(ENTRY))
            here = table.kinds(with_lists=True)
            if not fields:
                _check_header(one, "\t".join([*table.names, ""]).encode())
                fields = here
            if here != fields:
                raise InputFileError(f"{one}: has other columns than {paths[0]}; merge tables of one kind")
    with _output_of(fields, out, metadata_in_common(facts)) as output:
        for one in paths:
            with ParquetTable(one) as table:
                output.append(table)


def _output_of(fields: Fields, out: BinaryIO, metadata: Mapping[str, str]) -> ParquetOutput:
    """Open a Parquet file in the layout of f5py's table with these columns."""
    kinds = dict(fields)
    layout: dict[str, Any] = PARQUET_LAYOUT if "log_lik_ratio" in kinds else parquet_layout(list(kinds))
    encoded = {
        name: how
        for name, how in layout.get("encodings", {}).items()
        if how == "PLAIN" or kinds.get(name, "").startswith("int")
    }
    return ParquetOutput(out, fields, metadata=metadata, **layout | {"encodings": encoded})
