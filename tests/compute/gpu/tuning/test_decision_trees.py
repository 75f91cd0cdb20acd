"""Every leaf of both decision trees, and on which side of each threshold it begins."""

from dataclasses import replace

import pytest

from f5py.compute.gpu.tuning.decision_trees import LoadState, MemoryState, load_balance, memory_balance

from ....abea.batch_reports import FINE, GPU_BOUND, cpu_bound, used


@pytest.mark.parametrize(
    ("bases", "events", "state"),
    [
        (70.0001, 70.0001, None),
        (100, 100, None),
        # bases used, events not: strictly more than 30 percent apart
        (100, 70, None),
        (100, 69.9999, MemoryState.EVENTS_UNDERUSED),
        (77.1, 47.1, None),  # in floating point the difference is above 30
        (70.0001, 40.0001, None),
        (70.0001, 40, MemoryState.EVENTS_UNDERUSED),
        (70, 0, None),  # 70 is not above 70
        (71, 0, MemoryState.EVENTS_UNDERUSED),
        # the other way round
        (70, 100, None),
        (69.9999, 100, MemoryState.BASES_UNDERUSED),
        (47.1, 77.1, None),
        (40, 70.0001, MemoryState.BASES_UNDERUSED),
        (0, 70, None),
        (0, 71, MemoryState.BASES_UNDERUSED),
    ],
)
def test_memory_tree_where_an_array_is_used(bases, events, state):
    full = {"n_reads": 511, "n_bases": 4_999_999}  # no limit reached: the lower branch is silent
    assert memory_balance(used(bases, events, **full)) is state


@pytest.mark.parametrize(
    ("n_reads", "n_bases", "state"),
    [
        (511, 4_999_999, None),
        (511, 5_000_000, MemoryState.CUT_BY_BASES),
        (511, 5_000_001, MemoryState.CUT_BY_BASES),
        (512, 4_999_999, MemoryState.CUT_BY_READS),
        (513, 4_999_999, MemoryState.CUT_BY_READS),
        (512, 5_000_000, None),
    ],
)
@pytest.mark.parametrize("percent", [(70, 70), (70, 0), (0, 70), (0, 0)])
def test_memory_tree_where_no_array_is_used(percent, n_reads, n_bases, state):
    assert memory_balance(used(*percent, n_reads=n_reads, n_bases=n_bases)) is state
    assert memory_balance(used(70.0001, 70.0001, n_reads=n_reads, n_bases=n_bases)) is None


def test_a_read_takes_one_base_more_than_it_has():
    just = used(70, 0, n_reads=511)
    assert memory_balance(just) is None
    assert memory_balance(replace(just, gpu_reads=1)) is MemoryState.EVENTS_UNDERUSED


def test_memory_tree_without_memory():
    assert memory_balance(replace(FINE, capacity_bases=0, capacity_events=0)) is None


@pytest.mark.parametrize(
    ("cpu", "gpu", "state"),
    [
        (13, 7, None),  # exactly 0.3
        (13.001, 7, LoadState.CPU_SLOW),
        (7, 13, None),
        (7, 13.001, LoadState.GPU_SLOW),
        (1, 1, None),
        (1, 0, LoadState.CPU_SLOW),
        (0, 1, LoadState.GPU_SLOW),
        (0, 0, None),
    ],
)
def test_load_tree_by_times(cpu, gpu, state):
    assert load_balance(replace(FINE, cpu_seconds=cpu, gpu_seconds=gpu)) is state


@pytest.mark.parametrize(("waited_share", "state"), [(0.5, None), (0.501, LoadState.GPU_SLOW)])
def test_a_gpu_that_is_not_waited_for_is_not_slow(waited_share, state):
    assert load_balance(replace(FINE, cpu_seconds=0, gpu_seconds=1, waited_share=waited_share)) is state


@pytest.mark.parametrize(
    ("no_memory", "long", "many", "state"),
    [
        (11, 11, 11, LoadState.NO_MEMORY),
        (10, 11, 11, LoadState.LONG_READS),  # 10 of 100 are not more than a tenth
        (10, 10, 11, LoadState.MANY_EVENTS),
        (10, 10, 10, LoadState.CPU_SLOW),
        (0, 0, 0, LoadState.CPU_SLOW),
    ],
)
def test_load_tree_by_reasons(no_memory, long, many, state):
    counts = {"n_cpu_no_memory": no_memory, "n_cpu_long": long, "n_cpu_many_events": many}
    assert load_balance(cpu_bound(n_reads=100, **counts)) is state
    assert load_balance(replace(FINE, n_reads=100, **counts)) is None
    assert load_balance(replace(GPU_BOUND, n_reads=100, **counts)) is LoadState.GPU_SLOW
