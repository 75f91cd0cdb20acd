"""Events and maps that stay on the GPU, which scores them itself, but for those of reads that the CPU threads score."""

from __future__ import annotations

import numpy as np
import pytest

from f5py.compute.gpu import backend as backend_module
from f5py.compute.gpu import batch_slice
from f5py.compute.gpu.backend import GpuBackend, GpuLimits
from f5py.compute.gpu.self_check import differences, synthetic_batch
from f5py.core.batch import BaseMap, Events, ReadBatch, ReadStatus
from f5py.core.motifs import Motif, parse_motif
from f5py.methylation.calls import call_methylation

from .test_backend import ALL, DNA, stages_of
from .test_scores import CPG, Small

#: What limits the arena, the motif, whether its sites are called one by one, and how many of the reads the GPU scores.
_CASES = {
    "all": ({}, "CG", False, 5),
    "all sites": ({}, "CG", True, 5),
    "references that do not fit": ({"references": 1300}, "CG", False, 2),
    "groups that do not fit": ({"trace_words": 40_000}, "CG", False, 3),
    "windows that do not fit": ({"sites": 7}, "CG", True, 2),
    "sites that may overlap": ({}, "AA:0", True, 0),
}


def _computed(batch: ReadBatch, backend) -> ReadBatch:
    backend.compute(batch)
    return batch


@pytest.mark.parametrize("case", _CASES)
def test_calls_of_events_that_stay(device, pool, monkeypatch, case):
    limits, text, per_site, n_left = _CASES[case]
    motif: Motif = parse_motif(text)
    monkeypatch.setattr(backend_module, "_SMALL_RATIO", 0.0)
    taken: list[np.ndarray] = []
    scatter_reads = batch_slice.scatter_reads
    monkeypatch.setattr(
        batch_slice, "scatter_reads", lambda *arguments: [taken.append(arguments[2]), scatter_reads(*arguments)][1]
    )

    def finish(batch, on_gpu):
        return call_methylation(batch, motif, CPG, pool, per_site, elsewhere=on_gpu)

    stages = stages_of(
        pool, means_only=True, skip_event_copy=True, results="sites" if per_site else "calls", finish=finish
    )
    backend = GpuBackend(device, stages, GpuLimits(**ALL), 64, 20_000)
    for part in backend._parts:
        part.size = Small(part.size, **limits)
    taken.clear()  # of the check at the start
    expected, found = _computed(synthetic_batch(DNA, False), stages), _computed(synthetic_batch(DNA, False), backend)
    backend.close()
    is_ok = expected.status == ReadStatus.OK
    fetched = np.isin(np.arange(len(expected)), np.concatenate([np.empty(0, np.int64), *taken]))
    assert is_ok.sum() == 5
    assert (is_ok & ~fetched).sum() == n_left
    for read in np.flatnonzero(fetched).tolist():
        of_read = slice(*expected.events.offsets[read : read + 2])
        np.testing.assert_array_equal(found.events.mean[of_read], expected.events.mean[of_read])
        if is_ok[read]:
            of_read = slice(expected.base_offsets[read], expected.base_offsets[read + 1] - DNA.k + 1)
            first_event = expected.base_map.first_event[of_read]
            np.testing.assert_array_equal(found.base_map.first_event[of_read], first_event)
            assert (first_event >= 0).sum() > 100
    found.events = expected.events = Events.none()
    found.base_map = expected.base_map = BaseMap.none()
    assert differences(found, expected) == []
    assert expected.calls.n.sum() > 20
