"""Which aligner a run uses: the CPU threads, or a GPU from when it pays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from f5py import console
from f5py.core.batch import ReadBatch
from f5py.gpu.device import GpuUnavailableError
from f5py.gpu.placement import Aligner

_WHO = "init_cuda"
#: Loading the CUDA libraries, making a context and allocating the arena takes about this long. A GPU is started when
#: the CPU threads have spent as much time on alignment: a run is then never slowed down by more than it may gain, and a
#: short one is not slowed down at all.
_START_SECONDS = 2.0


class BatchLimits(Protocol):
    """Where batches come from: what the tuning may change there."""

    batch_size: int
    max_bases: int


class GpuWhenItPays:
    """Aligns on the CPU until a GPU aligner, made in a thread meanwhile, is ready; both give the same result.

    Parameters
    ----------
    cpu : Aligner
    open_gpu : callable
        Makes the GPU aligner, or raises `GpuUnavailableError`.
    at_once : bool
        Start it now and wait for it, rather than when the run has proved long enough.
    """

    def __init__(self, cpu: Aligner, open_gpu: Callable[[], Aligner], at_once: bool = False) -> None:
        self._cpu = cpu
        self._open_gpu = open_gpu
        self._gpu: Aligner | None = None
        self._error: Exception | None = None
        self._aligner_of: dict[int, Aligner] = {}
        self._cpu_seconds = 0.0
        self._lock = threading.Lock()  # batches come from several threads
        self._thread: threading.Thread | None = None
        if at_once:
            self._start_gpu()
            self._join()

    def start(self, batch: ReadBatch, reads: NDArray[np.int64], keep_pairs: bool) -> float:
        """See `Aligner.start`."""
        aligner = self._gpu or self._cpu
        self._aligner_of[id(batch)] = aligner
        started = time.perf_counter()
        seconds = aligner.start(batch, reads, keep_pairs)
        if aligner is self._cpu:
            with self._lock:
                self._cpu_seconds += time.perf_counter() - started
                if self._thread is None and self._cpu_seconds >= _START_SECONDS:
                    self._start_gpu()
        return seconds

    def finish(self, batch: ReadBatch) -> float:
        """See `Aligner.finish`."""
        return self._aligner_of.pop(id(batch)).finish(batch)

    def close(self) -> None:
        """Wait for a GPU that is being started, and close it."""
        if self._thread is None:
            console.note(
                _WHO,
                f"the CPU threads aligned all events in {self._cpu_seconds:.1f} sec; a GPU would not have paid "
                "(--disable-cuda=no starts it at once)",
            )
        self._join()
        if self._gpu is not None:
            self._gpu.close()

    def _start_gpu(self) -> None:
        self._thread = threading.Thread(target=self._run, name="f5py-gpu-start", daemon=True)
        self._thread.start()

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._gpu = self._open_gpu()
        except GpuUnavailableError as problem:
            console.info(_WHO, f"no GPU is used: {problem}; events are aligned by the CPU threads")
        except Exception as problem:
            self._error = problem
