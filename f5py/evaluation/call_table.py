"""Columns of tables of calls, read piece by piece."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, BinaryIO

import numpy as np

from f5py.errors import InputFileError
from f5py.io.arrow.arrow import import_arrow, read_rows
from f5py.io.arrow.text_input import check_read_once, display_name, open_bytes
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_records import record_names
from f5py.io.bam.modifications.modified_sites import SiteSelection, TagCounts, iterate_sites
from f5py.io.bounds import check_positions
from f5py.io.bytes.byte_pieces import whole_lines
from f5py.io.files.table_output import CSV_GIVEN, is_csv_header
from f5py.options.cores import usable_cores

_PIECE = 1 << 24
_COLUMNS = (
    "chromosome", "strand", "start", "end", "read_name", "log_lik_ratio", "log_lik_methylated", "log_lik_unmethylated",
    "num_calling_strands", "num_motifs", "sequence",
)  # fmt: skip
#: Column names of nanopolish and before f5c's version 2.
_OTHER_NAMES = {"num_cpgs": "num_motifs"}


def read_modbam(
    path: str, wanted: SiteSelection, genome: str | None = None, counts: TagCounts | None = None, beginning: bytes = b""
) -> Iterator[Any]:
    """Read the calls of a modification at the motif's sites in the bases of the reads.

    Yields `pyarrow.RecordBatch` with ``chromosome``, ``strand``, ``read_name``, ``start``, ``end`` (equal),
    ``log_lik_ratio`` and ``num_motifs`` (1). `genome` is the reference of CRAM; `counts` are added to.
    """
    arrow, _ = import_arrow("calls")
    counts = TagCounts() if counts is None else counts
    n_calls = 0
    with closing(AlignmentFile(path, genome, min_mapq=0, secondary=False, beginning=beginning)) as alignments:
        contigs, strands = arrow.array(alignments.contigs, arrow.string()), arrow.array(["+", "-"])
        for data, starts, sites in iterate_sites(alignments, wanted, counts, usable_cores()):
            listed = np.flatnonzero(sites.value >= 0)  # not implicit
            if not len(listed):
                continue
            n_calls += len(listed)
            record, which = np.unique(sites.record[listed], return_inverse=True)
            names = [
                name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                for name in record_names(data, starts, record)
            ]
            start = arrow.array(sites.position[listed])
            probability = (sites.value[listed] + 0.5) / 256  # middle of the interval of an ML value
            columns = {
                "chromosome": arrow.DictionaryArray.from_arrays(sites.contig[listed], contigs).dictionary_decode(),
                "strand": strands.take(arrow.array(sites.reverse[listed].astype(np.int8))),
                "read_name": arrow.DictionaryArray.from_arrays(which.astype(np.int32), names).dictionary_decode(),
                "start": start,
                "end": start,
                "log_lik_ratio": arrow.array(np.log(probability / (1 - probability))),
                "num_motifs": arrow.array(np.ones(len(listed), np.int32)),
            }
            yield arrow.RecordBatch.from_arrays(list(columns.values()), list(columns))
    if not n_calls:
        motif = wanted.motif
        raise InputFileError(
            f"{display_name(path)}: no read has calls {motif.canonical}+{wanted.codes[0]} at {motif.pattern} in MM and "
            "ML tags"
        )


def is_call_header(line: bytes) -> bool:
    """Return whether a line is the header of a table of calls."""
    names = line.rstrip(b"\r\n").decode("latin-1").split("\t")
    return {"read_name", "log_lik_ratio"} <= set(names)


def read_calls(
    paths: Sequence[str], wanted: Sequence[str], advance: Callable[[int], object] = lambda size: None,
    motif: str | None = None, beginning: bytes = b"",
) -> Iterator[Any]:  # fmt: skip
    """Read tables of calls, plain, compressed or Parquet, as `pyarrow.RecordBatch` pieces.

    Columns are named as in f5c; ``strand`` is optional in tables. `motif` selects rows from tables of several motifs.
    `beginning` are bytes already read from standard input.
    """
    check_read_once(paths)
    import_arrow("tables of calls")
    for path in paths:
        with open_bytes(path, advance, beginning if path == "-" else b"") as source:
            yield from _batches(source, display_name(path), wanted, motif)


def _batches(source: BinaryIO, name: str, wanted: Sequence[str], motif: str | None) -> Iterator[Any]:
    import pyarrow
    import pyarrow.compute

    header = source.readline(4096)
    if is_csv_header(header):
        raise InputFileError(f"{name}: {CSV_GIVEN}")
    if not is_call_header(header):
        raise InputFileError(
            f"{name}: is no table of calls: the first line is not its header; give a table of call-methylation"
        )
    names = [_OTHER_NAMES.get(one, one) for one in header.decode("latin-1").rstrip("\r\n").split("\t")]
    if missing := [one for one in _COLUMNS if one not in names and one not in ("strand", "sequence")]:
        raise InputFileError(f"{name}: is no table of calls: has no column {missing[0]}")
    types = {
        "chromosome": pyarrow.string(), "strand": pyarrow.string(), "start": pyarrow.int64(), "end": pyarrow.int64(),
        "read_name": pyarrow.string(), "log_lik_ratio": pyarrow.float64(), "num_motifs": pyarrow.int32(),
        "sequence": pyarrow.string(), "motif": pyarrow.string(),
    }  # fmt: skip
    rows = _without_headers(whole_lines(source, _PIECE), b"\n" + header.rstrip(b"\n") + b"\n")
    for table in read_rows(rows, name, names, types, (*wanted, "motif")):
        for column in {"start", "end"} & set(table.column_names):
            check_positions(table[column].to_numpy(), name, column)
        if "motif" in names:
            if motif is not None:
                table = table.filter(pyarrow.compute.equal(table["motif"], motif))
            table = table.drop_columns(["motif"])
        yield from table.combine_chunks().to_batches()


def _without_headers(pieces: Iterator[bytes], header: bytes) -> Iterator[bytes]:
    """Remove repeated headers, as of concatenated tables."""
    for piece in pieces:
        text = b"\n" + piece
        while header in text:
            text = text.replace(header, b"\n")
        if len(text) > 1 and text != header[:-1]:
            yield text[1:]
