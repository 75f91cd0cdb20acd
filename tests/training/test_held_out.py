"""Held-out bases: stretches where reads pile up, reads elsewhere, and never what is learnt from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from f5py.core.batch import Alignments
from f5py.core.names import Names
from f5py.core.windows import Windows
from f5py.training.held_out import BLOCK, LEARNT, TESTED, UNUSED, HeldOut, reads_with


@dataclass
class Batch:
    """Reads of one length on one contig, as far as is looked at."""

    starts: list[int]
    length: int

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def names(self) -> Names:
        return Names.of([f"read-{start}-{i}" for i, start in enumerate(self.starts)])

    @property
    def alignments(self) -> Alignments:
        n = len(self)
        offsets = np.arange(n + 1) * self.length
        none = np.zeros(0, np.uint32)
        return Alignments(
            np.zeros(n, np.int32), np.array(self.starts, np.int64), np.zeros(n, np.bool_), none,
            np.zeros(n + 1, np.int64), np.full(n * self.length, ord("A"), np.uint8), offsets,
        )  # fmt: skip


def chosen(batch: Batch, share: float = 0.1, length: int = 1_000_000) -> HeldOut:
    held_out = HeldOut(share, ["x", "y"], [length, 300])
    start = np.array(batch.starts)
    held_out.count(np.zeros(len(batch), np.int64), start, start + batch.length)
    held_out.choose()
    return held_out


def uses_of(batch: Batch, held_out: HeldOut, windows: Windows | None = None) -> np.ndarray:
    uses = held_out.uses(batch, held_out.numbers_of(["x", "y"]), windows)  # type: ignore[arg-type]
    return uses.reshape(len(batch), batch.length)


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_stretches_where_reads_pile_up(share: float):
    batch = Batch([40_000 + 37 * i for i in range(28)], 9_000)
    held_out = chosen(batch, share)
    uses = uses_of(batch, held_out)
    position = np.array(batch.starts)[:, None] + np.arange(batch.length)
    depth = np.bincount((position // BLOCK).ravel())
    assert held_out.n_stretches == (np.unique(position // BLOCK, return_counts=True)[1] > 0).sum()
    n_tested = int(held_out._is_tested.sum())
    assert n_tested == pytest.approx(share * held_out.n_stretches, abs=2)
    assert n_tested >= 1
    # no place is learnt from in one read and tested in another
    learnt, tested = (np.unique(position[uses == use]) for use in (LEARNT, TESTED))
    assert len(tested)
    assert len(learnt) > len(tested)
    assert not np.intersect1d(learnt, tested).size
    assert (depth[np.unique(tested // BLOCK)] > 0).all()


def test_reads_elsewhere():
    batch = Batch([5_000 * i for i in range(150)], 4_000)
    uses = uses_of(batch, chosen(batch))
    assert (uses == uses[:, :1]).all()
    assert 5 <= (uses[:, 0] == TESTED).sum() <= 30
    assert (uses_of(batch, chosen(batch, 0.0)) == LEARNT).all()


def test_a_single_pile_has_something_of_both():
    batch = Batch([2_000] * 9, 1_500)
    uses = uses_of(batch, chosen(batch, 0.01))
    assert (uses == TESTED).any(axis=1).all()
    assert (uses == LEARNT).any(axis=1).all()


def test_contigs_are_known_by_name_and_ends_are_no_matter():
    held_out = HeldOut(0.5, ["x", "y"], [1_000, 300])
    assert held_out.numbers_of(["y", "other", "x"]).tolist() == [1, -1, 0]
    # past the end of a contig, on none, and empty
    held_out.count(np.array([1, -1, 0] * 9), np.array([100, 5, 7] * 9), np.array([5_000, 10, 7] * 9))
    held_out.choose()
    assert held_out.n_stretches == 1


def test_windows():
    batch = Batch([1_000, 3_000], 2_000)
    uses = uses_of(batch, chosen(batch, 0.0), Windows([(0, 2_500, 3_100)]))
    position = np.array(batch.starts)[:, None] + np.arange(batch.length)
    np.testing.assert_array_equal(uses != UNUSED, (position >= 2_500) & (position < 3_100))
    assert reads_with(batch, uses.ravel(), LEARNT).tolist() == [True, True]  # type: ignore[arg-type]
    assert reads_with(batch, uses.ravel(), TESTED).tolist() == [False, False]  # type: ignore[arg-type]
