"""Text that is made in threads is written in order and whole."""

from __future__ import annotations

import io
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from f5py.outputs.formatted_text import OrderedFormatter, WritingStoppedError, pieces
from f5py.text.encoding import PartialTextError


@given(st.lists(st.integers(0, 120_000), max_size=40))
def test_pieces_cover_all_reads_once(sizes):
    ranges = pieces(np.array(sizes, np.int64))
    assert [read for first, end in ranges for read in range(first, end)] == list(range(len(sizes)))
    assert all(sum(sizes[first : end - 1]) <= 50_000 for first, end in ranges)


@pytest.mark.parametrize("n_threads", [1, 4])
def test_order_is_that_of_the_reads(n_threads):
    out = io.BytesIO()
    seen = set()

    def format_reads(batch, first, end):
        seen.add(threading.current_thread().name)
        time.sleep(0.02 if first % 2 == 0 else 0.0)
        return b"".join(b"%d," % read for read in range(first, end))

    formatter = OrderedFormatter(n_threads)
    formatter.write(out, None, format_reads, np.full(30, 20_000))
    formatter.close()
    assert out.getvalue() == b"".join(b"%d," % read for read in range(30))
    assert threading.current_thread().name not in seen


def test_an_error_in_a_thread_reaches_the_writer():
    def fail(batch, first, end):
        raise ValueError("no")

    formatter = OrderedFormatter(2)
    with pytest.raises(ValueError, match="no"):
        formatter.write(io.BytesIO(), None, fail, np.ones(3, np.int64))
    formatter.close()


def test_text_before_a_problem_is_written_and_nothing_behind():
    out = io.BytesIO()

    def format_reads(batch, first, end):
        if first == 2:
            raise PartialTextError(b"2a\n", KeyError("no"))
        return b"%d\n" % first

    formatter = OrderedFormatter(3)
    with pytest.raises(KeyError, match="no"):
        formatter.write(out, None, format_reads, np.full(6, 100_000))
    formatter.close()
    assert out.getvalue() == b"0\n1\n2a\n"


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
