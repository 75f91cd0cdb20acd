"""Batches of made reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from f5py.core.batch import ReadBatch


def read_batch(n: int, **fields: Any) -> ReadBatch:
    """Make a batch of `n` reads: without bases, alignments and samples unless given."""
    nothing: dict[str, Any] = {
        name: np.zeros(n + 1, np.int64)
        for name in ("cigar_offsets", "reference_offsets", "base_offsets", "sample_offsets")
    }
    nothing |= {name: np.zeros(n, np.int64) for name in ("reference_start", "reference_end")}
    nothing |= {name: np.empty(0, np.uint8) for name in ("reference", "bases")}
    return ReadBatch(
        **{
            "number": 0,
            "names": [f"read{i}" for i in range(n)],
            "read_index": np.arange(n),
            "status": np.zeros(n, np.uint8),
            "contig": np.zeros(n, np.int32),
            "reverse": np.zeros(n, np.bool_),
            "cigar": np.empty(0, np.uint32),
            "samples": np.empty(0, np.int16),
            "offset": np.zeros(n, np.float32),
            "unit": np.ones(n, np.float32),
            "sampling_rate": np.full(n, 4000, np.float32),
            **nothing,
            **fields,
        }
    )
