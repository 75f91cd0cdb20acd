"""Rows that parts keep for a Parquet file: whatever the parts, the file is the same."""

from __future__ import annotations

import errno
import io
import random
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from f5py.errors import InputFileError
from f5py.io.arrow.table import ParquetOutput, dictionary_column
from f5py.outputs.part_rows import PartRows, append_rows

_ROWS_PER_GROUP = 100
_FIELDS = [("name", "names"), ("number", "int64")]
_N = 1234


@dataclass
class Place:
    first_row: int | None
    n_rows: int = 0


def columns(begin: int, end: int) -> list:
    numbers = np.arange(begin, end)
    return [dictionary_column((numbers // 30 % 3).astype(np.int32), ["a", "b", "c"]), numbers]


def keep(path: Path, place: Place, begin: int, end: int, step: int = 37) -> None:
    with PartRows(str(path), place).of(_FIELDS, rows_per_group=_ROWS_PER_GROUP) as rows:
        for first in range(begin, end, step):
            rows.write(columns(first, min(first + step, end)))


def joined(parts: list[Path]) -> bytes:
    out = io.BytesIO()
    with ParquetOutput(out, _FIELDS, rows_per_group=_ROWS_PER_GROUP, n_threads=2) as output:
        for part in parts:
            append(part, output)
    return out.getvalue()


def append(part: Path, output: ParquetOutput) -> None:
    with ExitStack() as files:
        groups, last = (
            files.enter_context(path.open("rb")) if path.exists() else None
            for path in (part.with_name(part.name + ".groups"), part.with_name(part.name + ".last"))
        )
        append_rows(output, files.enter_context(part.open("rb")), groups, last)


def whole() -> bytes:
    out = io.BytesIO()
    with ParquetOutput(out, _FIELDS, rows_per_group=_ROWS_PER_GROUP) as output:
        output.write(columns(0, _N))
    return out.getvalue()


def has_groups(part: Path) -> bool:
    return part.with_name(part.name + ".groups").exists()


# in the middle of groups, at their ends, without rows, within one group, and one row more than a group
@pytest.mark.parametrize(
    "ends", [[_N], [150, 420, _N], [100, 300, 700, _N], [0, 0, 500, 500, _N], [10, 20, 30, 99, 201, _N]]
)
@pytest.mark.parametrize("unknown", [None, 0, 1, 2])
def test_parts_make_the_same_file(tmp_path: Path, ends: list[int], unknown: int | None):
    """Also where one part does not know what comes before it."""
    parts = []
    begin = 0
    for i, end in enumerate(ends):
        parts.append(tmp_path / str(i))
        place = Place(None if i == unknown else begin)
        keep(parts[-1], place, begin, end)
        assert place.n_rows == end - begin
        n_whole = end // _ROWS_PER_GROUP - -(-begin // _ROWS_PER_GROUP)
        if i == unknown or n_whole > 0:
            assert has_groups(parts[-1]) == (i != unknown)
        begin = end
    assert joined(parts) == whole()


def test_a_part_that_was_made_for_another_place(tmp_path: Path):
    keep(tmp_path / "0", Place(0), 0, 150)
    keep(tmp_path / "1", Place(151), 150, _N)
    with pytest.raises(InputFileError, match="work on the part again"):
        joined([tmp_path / "0", tmp_path / "1"])


@pytest.mark.parametrize("ending", ["", ".groups", ".last"])
def test_damaged_files(tmp_path: Path, ending: str):
    """Whatever is wrong, the error is one of the file; rows may be others where only their values have changed."""
    keep(tmp_path / "0", Place(50), 0, _N)
    path = tmp_path / f"0{ending}"
    sound = path.read_bytes()
    n_told = 0
    rng = random.Random(ending)
    for _ in range(60):
        damaged = bytearray(sound)
        at = rng.randrange(len(damaged)) if rng.random() < 0.5 else len(damaged) - 1 - rng.randrange(200)
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged if rng.random() < 0.8 else damaged[:at])
        try:
            joined([tmp_path / "0"])
        except InputFileError as problem:
            assert str(tmp_path) in str(problem)  # noqa: PT017
            n_told += 1
    assert n_told > 5


def test_rows_of_another_table(tmp_path: Path):
    with PartRows(str(tmp_path / "0"), Place(None)).of([("name", "names"), ("number", "int32")]) as rows:
        rows.write([columns(0, 10)[0], np.arange(10, dtype=np.int32)])
    with pytest.raises(InputFileError, match="has other columns than the table"):
        joined([tmp_path / "0"])


def test_a_full_disk_is_not_blamed_on_the_part(tmp_path: Path):
    keep(tmp_path / "0", Place(0), 0, _N)

    class Full(io.BytesIO):
        def write(self, piece) -> int:
            if self.tell() > 1000:
                raise OSError(errno.ENOSPC, "no space")
            return super().write(piece)

    with (
        pytest.raises(OSError, match="no space"),
        ParquetOutput(Full(), _FIELDS, rows_per_group=_ROWS_PER_GROUP) as output,
    ):
        append(tmp_path / "0", output)


def test_nothing_is_left_by_an_error(tmp_path: Path):
    def fail() -> None:
        with PartRows(str(tmp_path / "0"), Place(0)).of(_FIELDS, rows_per_group=10) as rows:
            rows.write(columns(0, 55))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []
