"""Every way in which HDF5 can store the samples of a read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import h5py
import numpy as np

from .made_signals import VBZ

#: Filters by name, as `h5py.Group.create_dataset` takes them.
FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "shuffle": {"shuffle": True},
    "fletcher32": {"fletcher32": True},
    "gzip": {"compression": "gzip", "compression_opts": 1},
    "gzip 9": {"compression": "gzip", "compression_opts": 9},
    "shuffle gzip": {"shuffle": True, "compression": "gzip"},
    "gzip fletcher32": {"compression": "gzip", "fletcher32": True},
    "shuffle gzip fletcher32": {"shuffle": True, "compression": "gzip", "fletcher32": True},
    "lzf": {"compression": "lzf"},
    "scale-offset": {"scaleoffset": 0},
    "vbz 0": VBZ,
    "vbz 1": VBZ | {"compression_opts": (1, 2, 1, 1)},
    "vbz without zstd": VBZ | {"compression_opts": (0, 2, 1, 0)},
    "vbz fletcher32": VBZ | {"fletcher32": True},
}
#: Those that can read a chunk of another length. (The plugin reads no VBZ behind a checksum at all.)
LENGTH_IS_FREE = [name for name in FILTERS if name not in ("lzf", "scale-offset", "vbz fletcher32")]
Storage = Literal["contiguous", "compact", "chunks"]
Last = Literal["full", "short", "cut", "left out", "unfiltered"]


@dataclass(frozen=True)
class Layout:
    """How samples are stored.

    Attributes
    ----------
    storage : {"contiguous", "compact", "chunks"}
    filters : str
        One of `FILTERS`, for chunks.
    length : int
        Samples of a chunk; may be more than the signal has.
    last : {"full", "short", "cut", "left out", "unfiltered"}
        The last chunk: filled up, or with just the samples that are left, one fewer, not there, or stored as it is.
    kind : str
        Type of the samples.
    """

    storage: Storage = "chunks"
    filters: str = "gzip"
    length: int = 1000
    last: Last = "full"
    kind: str = "<i2"

    def write(self, raw: h5py.Group, samples: np.ndarray) -> bool:
        """Replace the signal of a read; return whether the samples are all there."""
        del raw["Signal"]
        samples = samples.astype(self.kind)
        n = len(samples)
        if self.storage == "contiguous":
            raw.create_dataset("Signal", data=samples)
            return True
        if self.storage == "compact":
            created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            created.set_layout(h5py.h5d.COMPACT)
            made = h5py.h5d.create(
                raw.id, b"Signal", h5py.h5t.py_create(samples.dtype), h5py.h5s.create_simple((n,)), created
            )
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, samples)
            return True
        signal = raw.create_dataset(
            "Signal", (n,), self.kind, chunks=(self.length,), maxshape=(None,), **FILTERS[self.filters]
        )
        begin = (n - 1) // self.length * self.length
        if self.last == "full":
            signal[:] = samples
            return True
        signal[:begin] = samples[:begin]
        rest = samples[begin : n - (self.last == "cut")]
        if self.last == "left out":
            return True
        if self.last == "unfiltered":
            full = np.zeros(self.length, self.kind)
            full[: len(rest)] = rest
            mask = (1 << signal.id.get_create_plist().get_nfilters()) - 1
            signal.id.write_direct_chunk((begin,), full.tobytes(), filter_mask=mask)
        elif len(rest):
            mask, stored = _stored(rest, FILTERS[self.filters])
            signal.id.write_direct_chunk((begin,), stored, filter_mask=mask)
        return self.last != "cut" or not len(rest)


def _stored(samples: np.ndarray, filters: dict[str, Any]) -> tuple[int, bytes]:
    """Return the mask of omitted filters and the bytes that a chunk of just these samples has in a file."""
    with h5py.File("chunk", "w", driver="core", backing_store=False) as file:
        signal = file.create_dataset("Signal", data=samples, chunks=samples.shape, **filters)
        file.flush()
        return signal.id.read_direct_chunk((0,))
