"""Text that is made in threads is written in order and whole."""

from __future__ import annotations

import io
import threading
import time

import numpy as np
import pytest

from f5py.outputs.formatted_text import OrderedFormatter, WritingStoppedError


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
