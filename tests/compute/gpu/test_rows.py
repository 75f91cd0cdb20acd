"""The alignment of events to the reference on a GPU, a played and a real one: the rows of the CPU threads."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from f5py.core.batch import ReadBatch, ReadStatus
from f5py.core.offsets import offsets_of, used_elements
from f5py.event_alignment.align import align_events
from f5py.pore_model import builtin
from f5py.threads.pool import WorkerPool

from ...abea.batch_maker import made_batch

DNA = builtin("r9.4_450bps.nucleotide.6mer")
_MATCH, _INSERTION, _DELETION, _INTRON, _SOFT, _HARD, _PAD, _EQUAL, _MISMATCH = range(9)


def _cigar(rng, n_bases: int, spliced: bool) -> tuple[list[int], int]:
    """Operations of an alignment of so many bases, as BAM stores them, and the length on the reference."""
    operations, left, reference = [], n_bases, 0
    if rng.random() < 0.5:
        clip = int(rng.integers(1, 30))
        operations.append(clip * 16 + int(rng.choice([_SOFT, _HARD])))
        left -= clip
    while left > 0:
        length = min(int(rng.integers(1, 160)), left)
        operations.append(length * 16 + int(rng.choice([_MATCH, _EQUAL, _MISMATCH])))
        left, reference = left - length, reference + length
        if left == 0:
            break
        kind = rng.choice([_DELETION, _INSERTION, _PAD, _INTRON if spliced else _DELETION])
        length = int(rng.integers(100, 900)) if kind == _INTRON else int(rng.geometric(0.2))
        if kind == _INSERTION:
            length = min(length, left)
            left -= length
        elif kind != _PAD:
            length = 300 if rng.random() < 0.05 else length  # longer than a block
            reference += length
        operations.append(length * 16 + int(kind))
    return operations, reference


def made_batch_with_rows(seed: int, n_reads: int, spliced: bool = False, events_per_base: float = 1.7) -> ReadBatch:
    """Make reads of both strands whose events have the levels of their own bases, now and then those of others."""
    rng = np.random.default_rng(seed)
    batch = made_batch(rng, n_reads)
    lengths = rng.integers(30, 900, n_reads)
    batch.reverse = rng.random(n_reads) < 0.5
    batch.reference_start = rng.integers(0, 100_000, n_reads)
    codes = np.frombuffer(b"ACGT", np.uint8)
    cigars, references, events, firsts = [], [], [], []
    for read in range(n_reads):
        cigar, n_reference = _cigar(rng, int(lengths[read]), spliced)
        cigars.append(cigar)
        references.append(rng.choice(codes, n_reference + 1))
        n_kmers = lengths[read] - 5
        counts = rng.poisson(events_per_base, n_kmers)
        firsts.append(np.where(counts > 0, np.cumsum(counts) - counts, -1).astype(np.int32))
        ranks = rng.integers(0, 4**6, max(int(counts.sum()), 1))
        events.append(DNA.level_mean[ranks] + rng.normal(0, 2, len(ranks)).astype(np.float32))
    batch.cigar = np.concatenate(cigars).astype(np.uint32)
    batch.cigar_offsets = offsets_of(np.array([len(cigar) for cigar in cigars]))
    batch.reference = np.concatenate(references)
    batch.reference_offsets = offsets_of(np.array([len(reference) for reference in references]))
    batch.bases = np.zeros(lengths.sum(), np.uint8)
    batch.base_offsets = offsets_of(lengths)
    first_event = np.full(lengths.sum(), -1, np.int32)
    batch.base_map = batch.base_map._replace(offsets=batch.base_offsets, first_event=first_event)
    for read, first in enumerate(firsts):
        batch.base_map.first_event[batch.base_offsets[read] : batch.base_offsets[read] + len(first)] = first
    batch.events = batch.events._replace(mean=np.concatenate(events).astype(np.float32))
    batch.events = batch.events._replace(offsets=offsets_of(np.array([len(one) for one in events])))
    batch.shift = rng.normal(0, 3, n_reads).astype(np.float32)
    batch.scale = rng.normal(1, 0.05, n_reads).astype(np.float32)
    batch.var = rng.uniform(0.7, 1.7, n_reads).astype(np.float32)
    batch.events_per_base = rng.uniform(0.9, 2.5, n_reads)
    batch.status[::9] = ReadStatus.NO_ALIGNMENT
    return batch


class _Aligner:
    """The part of an arena as it is left by what comes before the rows."""

    def __init__(self, batch: ReadBatch, trace_share: float = 1.0) -> None:
        from f5py.compute.gpu.arena import Density
        from f5py.compute.gpu.buffers import ArenaPart, DeviceTables
        from f5py.compute.gpu.results.rows import GpuRows
        from f5py.compute.gpu.sources import functions

        self.part = ArenaPart(Density(6.0, 1.0, rows=True).size(60_000, 64), zero_copy=False)
        self.reads = np.flatnonzero(batch.status == ReadStatus.OK)

        def of_reads(values, offsets):
            return np.concatenate([values[offsets[read] : offsets[read + 1]] for read in self.reads])

        p, q = offsets_of(batch.read_length[self.reads]), offsets_of(batch.n_events[self.reads])
        with self.part.stream:
            self.part.put("p", p)
            self.part.put("q", q)
            self.part.put("event_mean", of_reads(batch.events.mean, batch.events.offsets))
            self.part.put("first_event", of_reads(batch.base_map.first_event, batch.base_offsets))
            for name in ("shift", "scale", "var"):
                self.part.put(f"fit_{name}", getattr(batch, name)[self.reads])
        self.part.stream.synchronize()
        self.pool = WorkerPool(1)
        self._rows = GpuRows(self.part, DeviceTables(functions(0, ("-DW=100",), "rows")), self.reads, self.pool)
        self.n_failed = 0

    def rows(self, batch):
        from f5py.compute.gpu.results.part_results import reads_that_fit

        self.chosen = reads_that_fit(batch, self.reads, batch.status == ReadStatus.OK, self.part)
        return self.chosen

    def begin_rows(self, batch, model, ln_var, log_transitions):
        self._rows.begin(batch, self.chosen, model, ln_var, log_transitions)

    def fetch_rows(self, batch):
        failed = self._rows.fetch(batch)
        self.pool.close()
        self.n_failed = int(failed.sum())
        return failed


def _rows(batch: ReadBatch, pool, elsewhere=None, model=DNA) -> dict[str, np.ndarray]:
    batch = copy.copy(batch)
    align_events(batch, model, pool, None, elsewhere)
    used = used_elements(batch.events.offsets, batch.rows.n)
    found = {name: getattr(batch.rows, name)[used] for name in ("event", "position", "state")}
    return found | {"n": batch.rows.n}


def _assert_same(one: dict, other: dict) -> None:
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


@pytest.mark.parametrize(
    ("seed", "spliced", "events_per_base"),
    [(1, False, 1.7), (2, True, 1.7), (3, False, 0.5), (4, True, 5.0), (5, False, 1.0)],
)
def test_the_same_rows(device, pool, seed, spliced, events_per_base):
    batch = made_batch_with_rows(seed, 30, spliced, events_per_base)
    expected = _rows(batch, pool)
    aligner = _Aligner(batch)
    _assert_same(_rows(batch, pool, aligner), expected)
    assert aligner.chosen.sum() > 20
    assert aligner.n_failed < len(aligner.reads) * 2 / 3
    assert (expected["n"] > 50).sum() > 8


def test_marked_references(device, pool):
    """With a model over ACGMT, as in training."""
    from f5py.core.kmers import METHYLATED, OPPOSITE

    batch = made_batch_with_rows(6, 30)
    rng = np.random.default_rng(7)
    batch.reference[rng.integers(0, len(batch.reference), 200)] = METHYLATED
    batch.reference[rng.integers(0, len(batch.reference), 200)] = OPPOSITE
    model = builtin("r9.4_450bps.cpg.6mer")
    _assert_same(_rows(batch, pool, _Aligner(batch), model), _rows(batch, pool, model=model))


def test_blocks_that_do_not_fit_are_given_back(device, pool):
    """Reads with many events in few k-mers, whose tables are larger than the memory of their directions."""
    batch = made_batch_with_rows(8, 30, events_per_base=0.05)
    aligner = _Aligner(batch)
    _assert_same(_rows(batch, pool, aligner), _rows(batch, pool))
    batch = made_batch_with_rows(9, 30)
    batch.base_map.first_event[batch.base_map.first_event > 20] = -1  # one block for nearly all events
    aligner = _Aligner(batch)
    _assert_same(_rows(batch, pool, aligner), _rows(batch, pool))


def test_reads_whose_reference_does_not_fit_are_left_to_the_cpu(device, pool):
    batch = made_batch_with_rows(10, 30, spliced=True)
    batch.reference_offsets = batch.reference_offsets.copy()
    aligner = _Aligner(batch)
    assert aligner.rows(batch).sum() == len(aligner.reads)
    size = aligner.part.size
    object.__setattr__(aligner.part, "size", type("Small", (), {"references": 9000, "cigars": size.cigars})())
    assert 0 < aligner.rows(batch).sum() < len(aligner.reads)
    _assert_same(_rows(batch, pool, aligner), _rows(batch, pool))


def test_the_order_of_the_lanes_does_not_matter(played_gpu, pool, monkeypatch):
    monkeypatch.setenv("F5PY_PLAYED_LANES", "descending")
    batch = made_batch_with_rows(11, 20, spliced=True)
    _assert_same(_rows(batch, pool, _Aligner(batch)), _rows(batch, pool))
