"""The CUDA kernels of the aligner, built by g++ and run on the CPU.

`cuda_on_cpu/cuda_on_cpu.h` plays the thread blocks. Here are the host's duties: packing reads into the arena's
arrays, the sizes of the buffers, and three launches.
"""

from __future__ import annotations

import ctypes
import platform
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from f5py.abea.align import model_table, transition_penalties
from f5py.compute.gpu.arena import trace_words
from f5py.compute.gpu.sources import source_folder
from f5py.pore_model import PoreModel

from ..played_gpu import gxx
from .made_reads import Read

SOURCES = Path(__file__).resolve().parent / "cuda_on_cpu"

#: What the results hold before the kernels run: a value that no kernel writes.
UNTOUCHED = -77
_LANES = 32


def build(source: str, *options: str) -> ctypes.CDLL:
    """Build a file of `cuda_on_cpu/` and load it; skip the test where that cannot be done."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++ to build the CUDA kernels for the CPU")
    if platform.system() != "Linux":
        pytest.skip("the player of thread blocks is made for glibc's contexts")
    kernels = Path(source_folder())
    headers = [*sorted(SOURCES.glob("*.h")), *sorted(kernels.glob("*.cu*"))]
    return ctypes.CDLL(str(gxx.build((SOURCES / source).read_text(), options, headers)))


def call(function, *arguments) -> None:
    """Call a launching function; numpy arrays are passed as pointers, integers as int. A mistake fails the test."""
    function.restype = ctypes.c_char_p
    for argument in arguments:
        assert not isinstance(argument, np.ndarray) or argument.flags.c_contiguous
    mistake = function(*(a.ctypes.data_as(ctypes.c_void_p) if isinstance(a, np.ndarray) else a for a in arguments))
    if mistake is not None:
        raise RuntimeError(mistake.decode())


@dataclass
class Alignments:
    """Results as the kernels leave them: per-base arrays of all reads one after another, offsets `p`.

    `best_event` and `corner` go from the core kernel to the post kernel: the event of the best end cell, or -1, and
    the last band's lower left k-mer.
    """

    p: np.ndarray
    kmers: np.ndarray
    first_event: np.ndarray
    last_event: np.ndarray
    n_pairs: np.ndarray
    span: np.ndarray
    verdict: np.ndarray
    best_event: np.ndarray
    corner: np.ndarray

    def of(self, read: int, n_kmers: int) -> tuple[int, int, int, list[int], list[int]]:
        """Verdict, number of pairs, span, first and last event of each k-mer."""
        here = slice(self.p[read], self.p[read] + n_kmers)
        return (
            int(self.verdict[read]),
            int(self.n_pairs[read]),
            int(self.span[read]),
            self.first_event[here].tolist(),
            self.last_event[here].tolist(),
        )


class Kernels:
    """The three kernels, compiled for one band width."""

    def __init__(self, bandwidth: int) -> None:
        self.bandwidth = bandwidth
        self._library = build("harness.cpp", f"-DW={bandwidth}")

    def scaled_kmers(
        self, reads: Sequence[Read], model: PoreModel, threads: int = 64, descending: bool = False
    ) -> np.ndarray:
        """Compute what the pre kernel makes of the reads: float32, shape (bases, 4)."""
        p = _offsets([len(read.bases) for read in reads])
        bases = np.concatenate([read.bases for read in reads])
        table = model_table(model)
        shift = np.array([read.shift for read in reads], np.float32)
        scale = np.array([read.scale for read in reads], np.float32)
        kmers = np.full((p[-1], 4), UNTOUCHED, np.float32)
        call(
            self._library.run_pre, threads, int(descending), bases, p, len(reads), model.k, table, shift, scale, kmers
        )  # fmt: skip
        return kmers

    def align(self, reads: Sequence[Read], model: PoreModel, descending: bool = False, spare: int = 0) -> Alignments:
        """Align all reads in one launch of each kernel.

        Parameters
        ----------
        reads : sequence of Read
        model : PoreModel
        descending : bool
            In which order the lanes of a block run between two meetings; it must not matter.
        spare : int
            Blocks more than reads.
        """
        n, k = len(reads), model.k
        n_kmers = np.array([len(read.bases) - k + 1 for read in reads])
        n_events = np.array([len(read.events) for read in reads])
        assert min(n_kmers) > 0
        assert min(n_events) > 0
        p = _offsets([len(read.bases) for read in reads])
        q = _offsets(n_events)
        lp_step, lp_stay = transition_penalties(n_events, n_kmers)
        order = np.argsort(-(n_events + n_kmers), kind="stable").astype(np.int32)
        events = np.concatenate([read.events for read in reads])
        kmers = self.scaled_kmers(reads, model, descending=descending)

        n_words = trace_words(int(p[-1]), int(q[-1]), n, self._library.pack(), self._library.words())
        trace = np.full(n_words + _LANES, 0xDEADBEEF, np.uint32)  # the words after the end must stay
        best_event, corner = (np.full(n, UNTOUCHED, np.int32) for _ in range(2))
        call(
            self._library.run_core, n + spare, int(descending), events, kmers, p, q, order, n, k, lp_step, lp_stay,
            trace, best_event, corner,
        )  # fmt: skip
        assert (trace[n_words:] == 0xDEADBEEF).all(), "directions were written after their buffer"

        found = Alignments(
            p,
            kmers,
            *(np.full(p[-1], UNTOUCHED, np.int32) for _ in range(2)),
            *(np.full(n, UNTOUCHED, np.int32) for _ in range(3)),
            best_event,
            corner,
        )
        call(
            self._library.run_post, n + spare, int(descending), trace, events, kmers, p, q, order, n, k, best_event,
            corner, found.first_event, found.last_event, found.n_pairs, found.span, found.verdict,
        )  # fmt: skip
        beyond = np.concatenate([np.arange(end - k + 1, end) for end in p[1:]])
        assert (found.first_event[beyond] == UNTOUCHED).all(), "a read's last k - 1 bases have no k-mer"
        assert (found.last_event[beyond] == UNTOUCHED).all()
        return found


def _offsets(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
