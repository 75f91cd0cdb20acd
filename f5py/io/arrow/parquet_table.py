"""Validated reading of Parquet tables of any origin."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, BinaryIO

from f5py.errors import InputFileError
from f5py.io.arrow.arrow import import_arrow
from f5py.io.bytes.byte_pieces import BytePieces

MAGIC = b"PAR1"
#: Errors of the library for damaged files, besides its own classes.
_PROBLEMS = (OSError, ValueError, TypeError, KeyError, IndexError, OverflowError, RuntimeError, MemoryError)


class ParquetTable(AbstractContextManager["ParquetTable"]):
    """Columns of a Parquet file; a context manager. An open file stays open.

    Raises `MissingDependencyError` without pyarrow, `InputFileError` if the file is damaged or its column names are not
    unique. `what` names the feature that needs pyarrow.
    """

    def __init__(self, file: str | BinaryIO, what: str = "Parquet and Arrow tables") -> None:
        self._arrow, parquet = import_arrow(what)
        self.path = path = file if isinstance(file, str) else file.name
        with self._wrap_errors():
            self._file = parquet.ParquetFile(file, page_checksum_verification=True)
            self._schema = self._file.schema_arrow
            self.names: list[str] = self._schema.names
        if not self.names:
            self.close()
            raise InputFileError(f"{path}: has no columns; make the table again")
        if repeated := [name for name, n in Counter(self.names).items() if n > 1]:
            self.close()
            raise InputFileError(f"{path}: has two columns {repeated[0]}; make the table again")

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. May be called twice."""
        self._file.close()

    def about(self, entry: str) -> bytes | None:
        """Return an entry of the file's metadata."""
        found: bytes | None = (self._schema.metadata or {}).get(entry.encode())
        return found

    def kinds(self, with_lists: bool = False) -> list[tuple[str, str]]:
        """Return names and types of all columns, as in `f5py.io.arrow.table.Fields`.

        Raises `InputFileError` for a type that no f5py table has; `with_lists` accepts lists of numbers.
        """
        return [(name, self._kind(name, with_lists)) for name in self.names]

    def batches(self, n_rows: int, types: Mapping[str, Any] | None = None, with_lists: bool = False) -> Iterator[Any]:
        """Yield the rows as `pyarrow.RecordBatch` of at most `n_rows`; `with_lists` as for `kinds`.

        Missing values of float columns become NaN, as pandas writes them. `types` are the result types of the columns
        to read; by default all are read as they are. Raises `InputFileError` if the file is damaged, a column has an
        unsupported type, or a value is missing or not of its type.
        """
        for name in types or self.names:
            self._kind(name, with_lists)
        rows = iter(self._file.iter_batches(n_rows, columns=None if types is None else list(types)))
        while True:
            with self._wrap_errors():
                batch = next(rows, None)
                if batch is None:
                    return
                batch.validate(full=True)
                batch = self._typed(self._filled(batch), types)
            yield batch

    def _filled(self, batch: Any) -> Any:
        arrow = self._arrow
        columns = batch.columns
        for i, field in enumerate(batch.schema):
            if _lacks_values(arrow, columns[i]):
                if not arrow.types.is_floating(field.type):
                    raise InputFileError(f"{self.path}: a row has no value of {field.name}; make the table again")
                columns[i] = columns[i].fill_null(float("nan"))
        return arrow.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _typed(self, batch: Any, types: Mapping[str, Any] | None) -> Any:
        if types is None:
            return batch
        columns = [batch.column(name) for name in types]
        columns = [one.dictionary_decode() if self._arrow.types.is_dictionary(one.type) else one for one in columns]
        columns = [column.cast(kind) for column, kind in zip(columns, types.values(), strict=True)]
        return self._arrow.RecordBatch.from_arrays(columns, names=list(types))

    def _kind(self, name: str, with_lists: bool) -> str:
        field = self._schema.field(name)
        kind = _kind_of(self._arrow.types, field.type)
        if not kind or (kind.startswith("list:") and not with_lists):
            raise InputFileError(
                f"{self.path}: column {name} is of the type {_shown(field.type)}, not numbers or text; "
                "make the table again"
            )
        return kind

    @contextmanager
    def _wrap_errors(self) -> Iterator[None]:
        """Turn errors of the library into an `InputFileError`."""
        try:
            yield
        except (*_PROBLEMS, self._arrow.ArrowException) as problem:
            reason = " ".join(str(problem).split())
            raise InputFileError(
                f"{self.path}: damaged or no Parquet table of f5py ({reason}); make the file again"
            ) from problem


def _kind_of(types: Any, kind: Any) -> str:
    """Return the name of a type in `f5py.io.arrow.table.Fields`, "" for an unsupported one."""
    if types.is_dictionary(kind):
        return "names" if types.is_string(kind.value_type) or types.is_large_string(kind.value_type) else ""
    if types.is_list(kind):
        return f"list:{inner}" if (inner := _kind_of(types, kind.value_type)) in ("float32", "float64") else ""
    if types.is_float32(kind) or types.is_float64(kind):
        return f"float{kind.bit_width}"
    is_plain = types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)
    return str(kind) if is_plain else ""


def _lacks_values(arrow: Any, column: Any) -> bool:
    """Return whether a column, its dictionary or its lists have nulls."""
    if arrow.types.is_dictionary(column.type):
        return bool(column.null_count or column.dictionary.null_count)
    return bool(column.null_count or (arrow.types.is_list(column.type) and column.flatten().null_count))


def _shown(kind: Any) -> str:
    text = str(kind)
    return text if len(text) <= 60 else f"{text[:57]}..."


_ROWS_AT_ONCE = 1 << 16
#: Decimals of columns in the text table; Parquet has all digits.
_DECIMALS = {"log_lik_ratio": 2}


class ParquetText(BytePieces):
    """Stream of a Parquet file as tab-separated text with a header; raises as `ParquetTable`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._table = ParquetTable(path, f"{path}: tables in Parquet")
        super().__init__(self._text())

    def close(self) -> None:
        if not self.closed:
            self._table.close()
        super().close()

    def _text(self) -> Iterator[bytes]:
        header = "\t".join(self._table.names)
        if header.count("\t") != len(self._table.names) - 1 or "\n" in header or "\r" in header:
            raise InputFileError(f"{self._path}: a column's name has a tab or an end of a line; make the table again")
        yield header.encode() + b"\n"
        for batch in self._table.batches(_ROWS_AT_ONCE):
            if len(batch):
                yield self._lines(batch)

    def _lines(self, batch: Any) -> bytes:
        import numpy as np
        import pyarrow
        import pyarrow.compute

        text = pyarrow.large_string()
        columns = [_round_as_text(field, batch.column(i)).cast(text) for i, field in enumerate(batch.schema)]
        end = pyarrow.array(["\n"] * len(batch), text)
        rows = pyarrow.compute.binary_join_element_wise(*columns, pyarrow.scalar("\t", text))
        lines = pyarrow.compute.binary_join_element_wise(rows, end, pyarrow.scalar("", text))
        _, offsets, pieces = lines.buffers()
        joined: bytes = pieces.slice(0, int(np.frombuffer(offsets, np.int64)[len(batch)])).to_pybytes()
        if (joined.count(b"\n"), joined.count(b"\t")) != (len(batch), len(batch) * (len(columns) - 1)):
            raise InputFileError(f"{self._path}: a value has a tab or an end of a line; make the table again")
        return joined


def _round_as_text(field: Any, column: Any) -> Any:
    """Round a column as the text table does; the products are exact, so rounding equals printf's."""
    import numpy as np
    import pyarrow

    if pyarrow.types.is_dictionary(field.type):
        return column.dictionary_decode()
    if field.name in _DECIMALS and pyarrow.types.is_floating(field.type):
        power = 10.0 ** _DECIMALS[field.name]
        return pyarrow.array(np.rint(column.to_numpy(zero_copy_only=False).astype(np.float64) * power) / power)
    return column
