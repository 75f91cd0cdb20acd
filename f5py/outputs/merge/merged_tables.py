"""Tables of one kind as one: rows of one after those of the other."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, BinaryIO

from f5py.errors import InputFileError, UsageError
from f5py.io.arrow.arrow import import_arrow
from f5py.io.arrow.parquet_text import PROBLEMS
from f5py.io.arrow.table import ParquetOutput
from f5py.io.bytes.byte_input import open_bytes, shown_name
from f5py.io.files.complete_file import complete_text_output
from f5py.outputs.events.eventalign_arrow import parquet_layout

_LONGEST_LINE = 1 << 20
#: Arrow's names of types, and ours.
_TYPES = {"float": "float32", "double": "float64", "list<element: float>": "list:float32"}


def merge_texts(paths: Sequence[str], path: str, n_threads: int) -> None:
    """Write tables with the same first line one after the other, that line once.

    Raises
    ------
    InputFileError
        A file is damaged, or has another first line.
    OutputFileError
        The file cannot be written.
    """
    header: bytes | None = None
    with complete_text_output(path, n_threads) as out:
        for one in paths:
            with open_bytes(one) as source:
                first = source.readline(_LONGEST_LINE)
                if header is None:
                    header = first
                    _check_header(shown_name(one), first)
                    out.write(first)
                elif first.rstrip(b"\n") != header.rstrip(b"\n"):
                    raise InputFileError(
                        f"{shown_name(one)}: has other columns than {shown_name(paths[0])}; merge tables of one kind"
                    )
                shutil.copyfileobj(source, out)


def _check_header(shown: str, first: bytes) -> None:
    if b"called_sites" in first:
        raise UsageError(f"{shown}: is a table of frequencies; f5py freq-merge adds these up")
    if not first.startswith((b"chromosome\t", b"contig\t", b"read_name\t", b"read_index\t")):
        raise InputFileError(f"{shown}: is no table of f5py: the first line is not a header")


def merge_parquets(paths: Sequence[str], out: BinaryIO, n_threads: int) -> None:
    """Write Parquet tables with the same columns one after the other, as one run would.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    InputFileError
        A file is damaged, or has other columns.
    """
    arrow, parquet = import_arrow()
    fields: list[tuple[str, str]] = []
    output: ParquetOutput | None = None
    with ExitStack() as outputs:
        for one in paths:
            try:
                with parquet.ParquetFile(one, page_checksum_verification=True) as file:
                    here = [(field.name, _type_of(field.type, arrow)) for field in file.schema_arrow]
                    if output is None:
                        fields = here
                        layout = parquet_layout([name for name, _ in fields])
                        output = outputs.enter_context(ParquetOutput(out, fields, n_threads=n_threads, **layout))
                    if here != fields:
                        raise InputFileError(f"{one}: has other columns than {paths[0]}; merge tables of one kind")
                    for batch in file.iter_batches():
                        output.write(batch.columns)
            except (*PROBLEMS, arrow.ArrowException) as problem:
                raise InputFileError(f"{one}: damaged or no Parquet table of f5py ({problem})") from None


def _type_of(kind: Any, arrow: Any) -> str:
    if arrow.types.is_dictionary(kind):
        return "names"
    return _TYPES.get(str(kind), str(kind))
