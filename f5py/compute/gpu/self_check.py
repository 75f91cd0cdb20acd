"""Synthetic batch for comparing a GPU with the CPU threads."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from f5py.compute.gpu.sources import source_folder
from f5py.core.batch import ReadBatch
from f5py.core.names import Names
from f5py.core.offsets import offsets_of, used_elements
from f5py.jit.cache_folder import cache_folder
from f5py.pore_model.model import PoreModel

_N_READS = 6
_BASES = 420
#: All that is the same whoever computes it.
_FIELDS = (
    "status", "cause", "verdict", "events.offsets", "events.mean", "events.start", "events.length", "events.stdv",
    "base_map.first_event", "base_map.last_event", "n_pairs", "events_per_base", "n_calibration", "shift", "scale",
    "var", "calls.n", "rows.n",
)  # fmt: skip
#: Of these, slots are used up to a number.
_OF_CALLS = ("calls.first", "calls.last", "calls.methylated", "calls.unmethylated")
_OF_ROWS = ("rows.event", "rows.position", "rows.state")

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PACKAGE = Path(__file__).resolve().parents[2]
_anew: ContextVar[bool] = ContextVar("anew", default=False)


@contextmanager
def without_cache() -> Iterator[None]:
    """Disable the cache of checks."""
    token = _anew.set(True)
    try:
        yield
    finally:
        _anew.reset(token)


def check_once(number: int, what: bytes | None, check: Callable[[], None]) -> None:
    """Run a check unless the cache has it.

    `what` is the key of computation and settings; None disables the cache. `check` raises if results differ.
    """
    file = None if what is None or _anew.get() else _file_of(number, what)
    if file is not None and file.exists():
        return
    check()
    if file is not None:
        with suppress(OSError):  # then the next run checks again
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()


def _file_of(number: int, what: bytes) -> Path | None:
    """Return the cache file of a check; None if device or boot cannot be identified."""
    import cupy

    runtime = cupy.cuda.runtime
    try:
        device = bytes(runtime.getDeviceProperties(number)["uuid"])
        versions = runtime.driverGetVersion(), runtime.runtimeGetVersion(), cupy.__version__
        boot = _BOOT.read_text()
    except (AttributeError, KeyError, TypeError, OSError):
        return None
    digest = hashlib.sha256(b"\0".join([device, repr(versions).encode(), boot.encode(), what]))
    for line in _code():
        digest.update(line.encode())
    return Path(cache_folder(), "f5py", "checks", digest.hexdigest()[:40])


def _code() -> Iterator[str]:
    """Yield name, size and time of all sources of the package and the kernels."""
    for folder in (_PACKAGE, source_folder()):
        for parent, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(names):
                if name.endswith((".py", ".cu", ".cuh")):
                    state = os.stat(os.path.join(parent, name))
                    yield f"{name} {state.st_size} {state.st_mtime_ns}\n"


def synthetic_batch(model: PoreModel, rna: bool) -> ReadBatch:
    """Make a fixed batch of reads of a few hundred bases.

    One of them is noise, one has spikes, and their bases have a site now and then.
    """
    rng = np.random.default_rng(5)
    n, k = _N_READS, model.k
    codes = rng.integers(0, 4, n * _BASES)
    sites = rng.integers(0, len(codes) - 1, len(codes) // 16)
    codes[sites], codes[sites + 1] = 1, 2
    letters = np.frombuffer(b"ACGT", np.uint8)[codes]
    base_offsets = offsets_of(np.full(n, _BASES))
    windows = np.lib.stride_tricks.sliding_window_view(codes.reshape(n, _BASES), k, axis=1)
    ranks = windows @ 4 ** np.arange(k)[::-1]
    if rna:
        ranks = ranks[:, ::-1]  # the 3' end comes first
    ranks = ranks.reshape(-1)
    repeats = rng.integers(*((18, 40) if rna else (6, 14)), len(ranks))
    level = np.repeat(model.level_mean[ranks], repeats)
    level = level + np.repeat(model.level_stdv[ranks], repeats) * rng.normal(0, 0.5, len(level))
    sample_offsets = offsets_of(repeats.reshape(n, -1).sum(axis=1))
    level[sample_offsets[1] : sample_offsets[2]] = rng.uniform(40, 160, sample_offsets[2] - sample_offsets[1])
    level[sample_offsets[2] + rng.integers(0, 2000, 5)] = 0.7
    unit, offset = np.float32(0.17), np.float32(8.0)
    everything = np.arange(n + 1)
    return ReadBatch(
        number=0,
        names=Names.of([f"check{i}" for i in range(n)]),
        read_index=np.arange(n),
        status=np.zeros(n, np.uint8),
        contig=np.zeros(n, np.int32),
        reference_start=np.arange(n, dtype=np.int64),
        reference_end=np.arange(n, dtype=np.int64) + _BASES,
        reverse=np.zeros(n, np.bool_),
        cigar=np.full(n, _BASES * 16, np.uint32),
        cigar_offsets=everything,
        reference=np.insert(letters, base_offsets[1:], ord("A")),
        reference_offsets=offsets_of(np.full(n, _BASES + 1)),
        bases=letters,
        base_offsets=base_offsets,
        samples=np.round(level / unit - offset).astype(np.int16),
        sample_offsets=sample_offsets,
        offset=np.full(n, offset),
        unit=np.full(n, unit),
        sampling_rate=np.full(n, 4000, np.float32),
    )


def differences(one: ReadBatch, other: ReadBatch) -> list[str]:
    """Return the names of the arrays that differ in any bit; unused slots do not count."""
    compared: list[tuple[str, Any]] = [(name, slice(None)) for name in _FIELDS]
    if len(other.calls.n):
        compared += [(name, used_elements(other.calls.offsets, other.calls.n)) for name in _OF_CALLS]
    if len(other.rows.n):
        compared += [(name, used_elements(other.events.offsets, other.rows.n)) for name in _OF_ROWS]
    return [
        name
        for name, used in compared
        for value in [attrgetter(name)]
        if value(one)[used].tobytes() != value(other)[used].tobytes()
    ]
