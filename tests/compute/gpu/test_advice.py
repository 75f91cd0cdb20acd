"""The decision trees on batches, with the side of each threshold on which a leaf begins, and their suggestions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from f5py.compute.gpu import advice
from f5py.compute.gpu.advice import BatchReport, GpuAdvisor, balance_load, balance_memory
from f5py.compute.gpu.arena import ArenaSize
from f5py.compute.gpu.batch_slice import BatchTiming
from f5py.compute.gpu.placement import Placement, PlacementReason
from f5py.errors import UsageError
from f5py.options.signal_commands import CallOptions

from ...abea.batch_maker import made_batch

CHOSEN = CallOptions(bam="b", genome="g", batchsize=512, threads=8)
#: Says nothing in either tree: 80 % and 80 % used, equal times.
FINE = BatchReport(
    n_reads=512, n_bases=4_000_000, gpu_reads=500, gpu_bases=3_999_500, gpu_events=8_000_000,
    capacity_bases=5_000_000, capacity_events=10_000_000, n_cpu_long=0, n_cpu_many_events=0, n_cpu_no_memory=0,
    cpu_seconds=1.0, gpu_seconds=1.0,
)  # fmt: skip
#: The same in round numbers, so that percent can be given.
SQUARE = replace(FINE, gpu_reads=0, capacity_bases=1_000_000, capacity_events=1_000_000)
GPU_BOUND = replace(FINE, cpu_seconds=1.0, gpu_seconds=4.0)


def used(bases: float, events: float, **others: Any) -> BatchReport:
    """Make the report of a batch that uses so many percent of the GPU's memory."""
    return replace(SQUARE, gpu_bases=round(bases * 10_000), gpu_events=round(events * 10_000), **others)


def cpu_bound(**others: Any) -> BatchReport:
    return replace(FINE, cpu_seconds=4.0, gpu_seconds=1.0, **others)


def state(found: advice.Advice | None) -> str | None:
    return None if found is None else found.state


@pytest.fixture(autouse=True)
def _cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "usable_cores", lambda: 12)


@pytest.mark.parametrize(
    ("bases", "events", "expected"),
    [
        (70.0001, 70.0001, None),
        (100, 100, None),
        # bases used, events not: strictly more than 30 percent apart
        (100, 70, None),
        (100, 69.9999, "events underused"),
        (77.1, 47.1, None),  # in floating point the difference is above 30
        (70.0001, 40.0001, None),
        (70.0001, 40, "events underused"),
        (70, 0, None),  # 70 is not above 70
        (71, 0, "events underused"),
        # the other way round
        (70, 100, None),
        (69.9999, 100, "bases underused"),
        (47.1, 77.1, None),
        (40, 70.0001, "bases underused"),
        (0, 70, None),
        (0, 71, "bases underused"),
    ],
)
def test_memory_where_an_array_is_used(bases: float, events: float, expected: str | None) -> None:
    full = {"n_reads": 511, "n_bases": 4_999_999}  # no limit reached: the lower branch is silent
    assert state(balance_memory(used(bases, events, **full), CHOSEN)) == expected


@pytest.mark.parametrize(
    ("n_reads", "n_bases", "expected"),
    [
        (511, 4_999_999, None),
        (511, 5_000_000, "cut by max_bases"),
        (511, 5_000_001, "cut by max_bases"),
        (512, 4_999_999, "cut by batchsize"),
        (513, 4_999_999, "cut by batchsize"),
        (512, 5_000_000, None),
    ],
)
@pytest.mark.parametrize("percent", [(70, 70), (70, 0), (0, 70), (0, 0)])
def test_memory_where_no_array_is_used(
    percent: tuple[int, int], n_reads: int, n_bases: int, expected: str | None
) -> None:
    assert state(balance_memory(used(*percent, n_reads=n_reads, n_bases=n_bases), CHOSEN)) == expected
    assert balance_memory(used(70.0001, 70.0001, n_reads=n_reads, n_bases=n_bases), CHOSEN) is None


def test_a_read_takes_one_base_more_than_it_has() -> None:
    just = used(70, 0, n_reads=511)
    assert balance_memory(just, CHOSEN) is None
    assert state(balance_memory(replace(just, gpu_reads=1), CHOSEN)) == "events underused"
    assert balance_memory(replace(FINE, capacity_bases=0, capacity_events=0), CHOSEN) is None


@pytest.mark.parametrize(
    ("cpu", "gpu", "expected"),
    [
        (13, 7, None),  # exactly 0.3
        (13.001, 7, "CPU slow"),
        (7, 13, None),
        (7, 13.001, "GPU slow"),
        (1, 1, None),
        (1, 0, "CPU slow"),
        (0, 1, "GPU slow"),
        (0, 0, None),
    ],
)
def test_load_by_times(cpu: float, gpu: float, expected: str | None) -> None:
    assert state(balance_load(replace(FINE, cpu_seconds=cpu, gpu_seconds=gpu), CHOSEN)) == expected


@pytest.mark.parametrize(("waited_share", "expected"), [(0.5, None), (0.501, "GPU slow")])
def test_a_gpu_that_is_not_waited_for_is_not_slow(waited_share: float, expected: str | None) -> None:
    report = replace(FINE, cpu_seconds=0, gpu_seconds=1, waited_share=waited_share)
    assert state(balance_load(report, CHOSEN)) == expected


@pytest.mark.parametrize(
    ("no_memory", "long", "many", "expected"),
    [
        (11, 11, 11, "no memory"),
        (10, 11, 11, "long reads"),  # 10 of 100 are not more than a tenth
        (10, 10, 11, "many events"),
        (10, 10, 10, "CPU slow"),
        (0, 0, 0, "CPU slow"),
    ],
)
def test_load_by_reasons(no_memory: int, long: int, many: int, expected: str) -> None:
    counts = {"n_cpu_no_memory": no_memory, "n_cpu_long": long, "n_cpu_many_events": many}
    assert state(balance_load(cpu_bound(n_reads=100, **counts), CHOSEN)) == expected
    assert balance_load(replace(FINE, n_reads=100, **counts), CHOSEN) is None
    assert state(balance_load(replace(GPU_BOUND, n_reads=100, **counts), CHOSEN)) == "GPU slow"


#: 600 of the 850 reads fitted: 705 of 1,000 reads and 70.5 % of the bases.
NO_MEMORY = cpu_bound(n_reads=1000, gpu_reads=600, n_cpu_no_memory=250)
#: Mean read 10 kb; 100 reads of 50 kb on the CPU: about half of them are shorter than 5 times the mean.
LONG = cpu_bound(n_reads=900, n_bases=9_000_000, gpu_reads=800, gpu_bases=4_000_000, n_cpu_long=100)
THRESH = "lower --ultra-thresh from 100000 to 50000 (works with --skip-ultra)"
UNLIMITED = {"cuda_max_lf": float("inf"), "cuda_max_epk": float("inf")}


@pytest.mark.parametrize(
    ("report", "options", "ways"),
    [
        # 80 % and 40 %: half the events per base would have used both equally
        (used(80, 40), {}, "lower --cuda-avg-epk from 2 to 1; or raise --cuda-max-epk from 5 to 7.5"),
        (used(80, 0), {}, "lower --cuda-avg-epk from 2 to 1; or raise --cuda-max-epk from 5 to 7.5"),
        # 5 * 45 / 90 would be below 1.25 times the mean, which keeps ordinary reads on the GPU
        (used(45, 90), {}, "raise --cuda-avg-epk from 2 to 4; or lower --cuda-max-epk from 5 to 2.5"),
        (used(45, 90), {"cuda_max_epk": 2.2}, "raise --cuda-avg-epk from 2 to 4"),
        (used(45, 30, n_reads=1, n_bases=5_000_000), {}, "raise -B from 5M to 10M"),  # 90 / 45
        (used(45, 30), {}, "raise -K from 512 to 1000"),  # 1024, two digits
        (used(0, 60), {}, "raise -K from 512 to 760"),  # events count as well
        (used(1, 1, n_reads=1, n_bases=5_000_000), {}, "raise -B from 5M to 20M"),  # at most four times
        (used(0, 0), {"batchsize": 1}, "raise -K from 1 to 16"),
        (used(0, 0, n_reads=65_536), {"batchsize": 65_536}, None),
        (NO_MEMORY, {"batchsize": 1000}, "lower -K from 1000 to 700; or lower -B from 5M to 2.8M"),
        (replace(NO_MEMORY, n_reads=900, n_bases=5_000_000), {"batchsize": 1000},
         "lower -B from 5M to 3.5M; or lower -K from 1000 to 630"),
        (replace(NO_MEMORY, gpu_reads=0), {"batchsize": 1000}, "lower -K from 1000 to 16; or lower -B from 5M to 0.1M"),
        (LONG, {}, "raise --cuda-max-lf from 3 to 5"),
        (replace(LONG, gpu_bases=7_000_000), {}, "raise --cuda-max-lf from 3 to 3.8"),  # a quarter more at least
        (replace(LONG, gpu_bases=0, gpu_events=0, n_cpu_long=91), {}, "raise --cuda-max-lf from 3 to 9.9"),
        (cpu_bound(n_cpu_many_events=100), {}, "raise --cuda-max-epk from 5 to 7.5"),
        (cpu_bound(n_cpu_many_events=100), {"cuda_max_epk": 12.0}, "raise --cuda-max-epk from 12 to 15"),
        (cpu_bound(), {}, f"{THRESH}; or raise -t from 8 to 12"),
        (cpu_bound(), {"threads": 12}, THRESH),
        (cpu_bound(n_reads=100, n_bases=3_000_000), {"threads": 12}, THRESH.replace("50000", "90000")),
        (cpu_bound(n_reads=100, n_bases=4_000_000), {"threads": 12}, None),
        # (1 + 4) / (2 * 4) of the GPU's work
        (GPU_BOUND, {}, "lower --cuda-max-lf from 3 to 1.8 and lower --cuda-max-epk from 5 to 3.1; or raise "
         "--ultra-thresh from 100000 to 200000 (works with --skip-ultra)"),
        (GPU_BOUND, {"cuda_max_lf": 1.0, "cuda_max_epk": 2.0, "ultra_thresh": 10_000_000}, None),
        (GPU_BOUND, UNLIMITED, "raise --ultra-thresh from 100000 to 200000 (works with --skip-ultra)"),
        (cpu_bound(n_cpu_long=100), UNLIMITED, None),
    ],
)  # fmt: skip
def test_suggestions(report: BatchReport, options: dict[str, Any], ways: str | None) -> None:
    chosen = replace(CHOSEN, **options)
    (found,) = filter(None, (tree(report, chosen) for tree in (balance_memory, balance_load)))
    assert found.text(chosen) == (f"{found.finding}: {ways}" if ways else "")


def observed(times: int, is_bound: bool = True, **options: Any) -> None:
    """Show a batch, of which the CPU had long reads and needed four times as long as the GPU."""
    advisor = GpuAdvisor(ArenaSize(10**6, 2 * 10**6, 512), replace(CHOSEN, max_bases=900_000, **options))
    batch = made_batch(np.random.default_rng(1), 60)
    reason = np.where(
        batch.read_length >= 1.2 * batch.read_length.mean(), PlacementReason.LONG, PlacementReason.GPU
    ).astype(np.uint8)
    for _ in range(times):
        advisor.observe(batch, Placement(np.arange(60), reason), BatchTiming(gpu=0.1, cpu=0.4))
    advisor.summarize(is_bound)


def test_the_end_says_what_held_for_most_batches(capsys: pytest.CaptureFixture[str]) -> None:
    observed(4)
    assert capsys.readouterr().err == (
        "[load_balance_advisor::INFO] the GPU waits for the CPU (CPU 0.40 s, GPU 0.10 s); 9 of 60 reads are too long "
        "for it: raise --cuda-max-lf from 3 to 4.3 (4 of 4 batches were so)\n"
    )
    observed(3)
    observed(4, is_bound=False)
    assert capsys.readouterr().err == ""


def test_shares_and_times_are_printed_with_v(capsys: pytest.CaptureFixture[str]) -> None:
    observed(1, verbose=1)
    assert capsys.readouterr().err == (
        "[align_cuda] Load : CPU 9 entries (0.0M bases), GPU 51 entries (0.0M bases)\n"
        "[load_balance] Processing time : CPU 0.400 sec, GPU 0.100 sec\n"
    )


@pytest.mark.parametrize("value", [True, False])
def test_tuning_by_itself_is_refused(value: bool) -> None:
    given = {"bam": "b", "genome": "g", "auto_tune": value}
    if not value:
        assert not CallOptions(**given).auto_tune
        return
    with pytest.raises(UsageError, match=r"--auto-tune is not possible: .* -K, -B and --cuda-max-lf"):
        CallOptions(**given)
