"""Messages and changes after a batch on the GPU."""

from types import SimpleNamespace

import numpy as np
import pytest

from f5py.compute.gpu.arena import ArenaSize
from f5py.compute.gpu.backend import GpuLimits
from f5py.compute.gpu.placement import Placement, Reason
from f5py.compute.gpu.share import BatchTiming
from f5py.compute.gpu.tuning.watch import GpuWatch

from ....abea.batch_maker import made_batch


def _watch(auto_tune=False, verbose=0):
    aligner = SimpleNamespace(
        limits=GpuLimits(), capacity=ArenaSize(10**6, 2 * 10**6, 512), size=ArenaSize(10**6, 2 * 10**6, 512)
    )
    source = SimpleNamespace(batch_size=512, max_bases=900_000)
    options = SimpleNamespace(ultra_thresh=100_000, threads=2, auto_tune=auto_tune, verbose=verbose)
    return GpuWatch(aligner, source, options), aligner, source


def _observe(watch, times):
    batch = made_batch(np.random.default_rng(1), 60)
    reason = np.where(batch.read_length >= 1.2 * batch.read_length.mean(), Reason.LONG, Reason.GPU).astype(np.uint8)
    placement = Placement(np.arange(60), reason)
    assert placement.count(Reason.LONG) > 6
    for _ in range(times):
        # Four times as long on the CPU as on the GPU, with long reads among those that the CPU got.
        watch.observe(batch, placement, BatchTiming(pack=0.0, gpu=0.1, cpu=0.4, unpack=0.0))


def test_shares_and_times_are_printed_with_v(capfd):
    watch, *_ = _watch()
    _observe(watch, 1)
    assert capfd.readouterr().err == ""
    watch, *_ = _watch(verbose=1)
    _observe(watch, 1)
    told = capfd.readouterr().err
    assert "[align_cuda] Load : CPU 9 entries (0.0M bases), GPU 51 entries (0.0M bases)" in told
    assert "[load_balance] Processing time : CPU 0.400 sec, GPU 0.100 sec" in told


@pytest.mark.parametrize("auto_tune", [False, True])
def test_options_change_only_with_auto_tune(auto_tune, capfd):
    watch, aligner, source = _watch(auto_tune)
    before = (aligner.limits.max_lf, aligner.limits.max_epk, source.batch_size, source.max_bases)
    _observe(watch, 3)
    assert "advisor" not in capfd.readouterr().err
    _observe(watch, 1)
    assert ("--auto-tune sets" in capfd.readouterr().err) == auto_tune
    watch.summarise(True)
    assert ("_advisor::INFO]" in capfd.readouterr().err) != auto_tune
    after = (aligner.limits.max_lf, aligner.limits.max_epk, source.batch_size, source.max_bases)
    assert (after != before) == auto_tune
    assert aligner.limits.avg_epk == 2.0


def test_several_devices_are_watched_as_one(capfd):
    """Their limits are the same object, so that a change holds for all of them."""
    watch, aligner, _ = _watch(auto_tune=True)
    assert watch.limits is aligner.limits
    _observe(watch, 4)
    assert "--auto-tune sets" in capfd.readouterr().err
