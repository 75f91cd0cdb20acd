"""Rows of text as CSV: what Python's own reader of CSV finds in them."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.io.files.table_output import CsvOutput, complete_table, convert_to_csv, open_table

from ...examples import examples

#: What a table of text can have in a field.
FIELDS = st.text(st.sampled_from("ab, \"\r;'é"), max_size=6)


def read(text: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.decode(), newline=""), strict=True))


def rows_of(table: list[list[str]]) -> bytes:
    return "".join("\t".join(row) + "\n" for row in table).encode()


@given(st.lists(st.lists(FIELDS, min_size=2, max_size=4), max_size=5), st.lists(st.integers(0, 99), max_size=4))
@settings(max_examples=examples(200))
def test_csv_has_what_the_rows_have(table: list[list[str]], cuts: list[int]) -> None:
    """Whatever the pieces in which they come."""
    rows, out = rows_of(table), io.BytesIO()
    csv_output = CsvOutput(out)
    ends = sorted(min(cut, len(rows)) for cut in cuts)
    for begin, end in zip([0, *ends], [*ends, len(rows)], strict=True):
        csv_output.write(memoryview(rows)[begin:end])
        assert not out.getvalue() or out.getvalue().endswith(b"\n")  # whole rows only
    csv_output.finish()
    assert read(out.getvalue()) == table


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (b"", b""),
        (b"a\tb\n", b"a,b\n"),
        (b"1,2\t\t3\n", b'"1,2",,3\n'),
        (b'a"b\tc\n', b'"a""b",c\n'),
        (b'"\t,\n\n', b'"""",","\n\n'),
        (b"a\t1,2", b'a,"1,2"'),
    ],
)
def test_quotes_are_where_they_are_needed(rows: bytes, expected: bytes) -> None:
    assert bytes(convert_to_csv(rows)) == expected


def test_a_last_row_without_an_end(tmp_path: Path) -> None:
    for name, opened in (("a.csv", open_table), ("b.csv.gz", complete_table)):
        with opened(str(tmp_path / name), 1) as out:
            out.write(b"a\tb\n1\t")
            out.write(b"2,3")
    assert (tmp_path / "a.csv").read_bytes() == gzip.decompress((tmp_path / "b.csv.gz").read_bytes()) == b'a,b\n1,"2,3"'


def test_other_names_keep_tabs(tmp_path: Path) -> None:
    with open_table(str(tmp_path / "x.tsv")) as out:
        out.write(b"a,b\tc\n")
    with open_table(str(tmp_path / "x.csv"), is_csv=False) as out:
        out.write(b"a,b\tc\n")
    assert (tmp_path / "x.tsv").read_bytes() == (tmp_path / "x.csv").read_bytes() == b"a,b\tc\n"


def test_an_error_leaves_whole_rows(tmp_path: Path) -> None:
    def end_early() -> None:
        with open_table(str(tmp_path / "x.csv")) as out:
            out.write(b"a\tb\n1\t2\n3\t")
            raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        end_early()
    assert not (tmp_path / "x.csv").exists()
    assert next(tmp_path.iterdir()).read_bytes() == b"a,b\n1,2\n"
