"""Duties of every output of a run: to be completed by itself, leave nothing if not opened, keep its parts."""

from __future__ import annotations

import io
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from f5py.errors import InputFileError, OutputFileError
from f5py.io.files.complete_file import complete_output
from f5py.io.files.output import open_output
from f5py.outputs.formatted_text import OrderedFormatter, WritingStoppedError
from f5py.outputs.sink import PartFiles, Sink, Sinks


class Lines(Sink):
    """A table of the sizes of batches."""

    part_name = "sizes.tsv"

    def _open(self, part: PartFiles | None) -> None:
        self._out = self.files.enter_context(open_output(self.path))
        self._out.write(b"size\n")

    def write(self, batch: Any) -> None:
        self._out.write(f"{len(batch)}\n".encode())

    def append(self, part: Any) -> None:
        with part.open(self.part_name) as file:
            self._out.write(file.read().partition(b"\n")[2])


class Whole(Lines):
    """The same, but the file appears when it is complete."""

    part_name = "whole.tsv"

    def _open(self, part: PartFiles | None) -> None:
        self._out = self.files.enter_context(complete_output(self.path))
        self._out.write(b"size\n")


class Failing(Whole):
    """Cannot be completed."""

    def finish(self) -> None:
        raise OutputFileError("the disk is full")


class Unopened(Lines):
    def _open(self, part: PartFiles | None) -> None:
        raise OSError("no such place")


@pytest.mark.parametrize("order", ["abc", "bca"])
def test_no_output_gets_its_name_if_another_cannot_be_completed(tmp_path: Path, order: str):
    kinds = {"a": Failing, "b": Lines, "c": Whole}
    sinks = Sinks([kinds[name](str(tmp_path / name)) for name in order])
    sinks.write([1, 2])
    with pytest.raises(OutputFileError, match="full"):
        sinks.finish()
    with pytest.raises(OutputFileError, match="full") if order == "abc" else nullcontext():
        sinks.abandon(OutputFileError, problem := OutputFileError("full"), problem.__traceback__)
    (rows,) = tmp_path.iterdir()
    assert rows.name == ".unfinished-b"
    assert rows.read_text() == "size\n2\n"


def test_nothing_is_left_if_the_next_one_cannot_be_opened(tmp_path: Path):
    with pytest.raises(OSError, match="place"):
        Sinks([Whole(str(tmp_path / "a")), Unopened(str(tmp_path / "b"))])
    assert list(tmp_path.iterdir()) == []


def test_an_error_keeps_rows_and_no_incomplete_file(tmp_path: Path):
    sinks = Sinks([Lines(str(tmp_path / "rows")), Whole(str(tmp_path / "whole"))])
    sinks.write([1])
    with pytest.raises(InputFileError, match=r"^damaged; the rows until then are in .*unfinished-rows$"):
        sinks.abandon(InputFileError, InputFileError("damaged"), None)
    (rows,) = tmp_path.iterdir()
    assert rows.name == ".unfinished-rows"
    assert rows.read_text() == "size\n1\n"


def test_batches_without_reads_are_for_those_that_want_them(tmp_path: Path):
    class Counting(Lines):
        accepts_empty = True

    sinks = Sinks([Lines(str(tmp_path / "a")), Counting(str(tmp_path / "b"))])
    sinks.write([])
    sinks.finish()
    assert [(tmp_path / name).read_text() for name in "ab"] == ["size\n", "size\n0\n"]


def test_it_stops_behind_a_piece_when_asked_to():
    stopping = threading.Event()
    out = io.BytesIO()

    def format_reads(batch, first, end):
        if first == 1:
            time.sleep(0.1)
        return b"%d\n" % first

    class Stopping:
        def write(self, text):
            stopping.set()
            return out.write(text)

        def flush(self):
            raise AssertionError("not reached")

    formatter = OrderedFormatter(1, stopping)
    with pytest.raises(WritingStoppedError):
        formatter.write(Stopping(), None, format_reads, np.full(4, 100_000))
    formatter.close()
    assert out.getvalue() == b"0\n"
