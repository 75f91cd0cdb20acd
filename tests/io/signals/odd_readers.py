"""Readers for the tests of reader processes; imported there, so this imports little."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from f5py.core.large_arrays import recycled_array
from f5py.errors import MissingDependencyError
from f5py.io.signals.source import BlockBuilder


class LongReader:
    """The read called n has n samples: n, n + 1, ... in 16 bits; the path is not opened."""

    def read(self, names, paths, room=recycled_array):
        block = BlockBuilder(names, paths, room)
        for i, name in enumerate(names):
            n = int(name)
            block.add(i, (np.arange(n, 2 * n).astype(np.int16), (1.0, float(i), 2.0, 4000.0)))
        return block.build()

    def prepare(self, path):
        pass

    def close(self):
        pass


class ModulesReader(LongReader):
    """Says which modules its process has imported."""

    def read(self, names, paths, room=recycled_array):
        block = BlockBuilder(names, paths, room)
        for i in range(len(names)):
            block.add(i, " ".join(sys.modules))
        return block.build()


class StuckReader(LongReader):
    """Writes its process number into a file beside the path, and never comes back."""

    def read(self, names, paths, room=recycled_array):
        Path(paths[0], str(os.getpid())).touch()
        while True:
            time.sleep(60)


class WaitingReader(LongReader):
    """Reads once there is a file at the path, and computes nothing before."""

    def read(self, names, paths, room=recycled_array):
        while not Path(paths[0]).exists():
            time.sleep(0.01)
        return super().read(names, paths, room)


class BrokenReader(LongReader):
    def read(self, names, paths, room=recycled_array):
        raise ZeroDivisionError("first line\nsecond line")


class LackingReader(LongReader):
    def read(self, names, paths, room=recycled_array):
        raise MissingDependencyError("install it")


class HostileReader(LongReader):
    """Aborts at reads called abort-N, loops at loop-N, and gives fine-N six samples of N."""

    def read(self, names, paths, room=recycled_array):
        block = BlockBuilder(names, paths, room)
        for i, name in enumerate(names):
            what, number = name.split("-")
            self._meet(what)
            block.add(i, (np.full(6, int(number), np.int16), (1.0, 0.0, 2.0, 4000.0)))
        return block.build()

    def run_info(self, name, path):
        self._meet(name.split("-")[0])
        return {"name": name}

    def _meet(self, what):
        if what == "abort":
            os.abort()
        while what == "loop":
            pass


def odd_names(path):
    """List the reads of a file whose name says what happens."""
    if "abort" in path:
        os.abort()
    if "kill" in path:
        killed(path)
    while "loop" in path:
        pass
    return [Path(path).stem]


def killed(path):
    os.kill(os.getpid(), signal.SIGKILL)


class OddLister(LongReader):
    def list_reads(self, path):
        return np.frombuffer(odd_names(path)[0].encode().ljust(16, b"-"), "V16")


class OddNames(LongReader):
    list_reads = staticmethod(odd_names)


class KilledReader(LongReader):
    list_reads = staticmethod(killed)
