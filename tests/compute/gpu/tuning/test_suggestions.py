"""The values that are suggested for each state of the decision trees."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.compute.gpu.tuning.decision_trees import LoadState, MemoryState, TunedOptions, load_balance, memory_balance
from f5py.compute.gpu.tuning.suggestions import BOUNDS, SPELLING, advise, as_typed, two_digits

from ....abea.batch_reports import GPU_BOUND, OPTIONS, REPORTS, cpu_bound, used
from ....examples import examples


def ways(state, report, cores=16):
    advice = advise(state, report, cores)
    return None if advice is None else list(advice.ways)


def test_suggestion_events_underused():
    # 80 % and 40 %: half the events per base would have used both equally.
    assert ways(MemoryState.EVENTS_UNDERUSED, used(80, 40)) == [{"cuda_avg_epk": 1.0}, {"cuda_max_epk": 7.5}]
    # Without any events there is no telling how many are missing.
    assert ways(MemoryState.EVENTS_UNDERUSED, used(80, 0)) == [{"cuda_avg_epk": 1.0}, {"cuda_max_epk": 7.5}]


def test_suggestion_bases_underused():
    report = used(45, 90)
    assert report.events_per_base == 2.0
    # 5 * 45 / 90 would be below 1.25 times the mean, which keeps ordinary reads on the GPU.
    assert ways(MemoryState.BASES_UNDERUSED, report) == [{"cuda_avg_epk": 4.0}, {"cuda_max_epk": 2.5}]
    low = replace(report, options=TunedOptions(cuda_max_epk=2.2))
    assert ways(MemoryState.BASES_UNDERUSED, low) == [{"cuda_avg_epk": 4.0}]


def test_suggestion_larger_batches():
    by_bases = used(45, 30)
    assert ways(MemoryState.CUT_BY_BASES, by_bases) == [{"max_bases": 10_000_000}]  # 90 / 45
    assert ways(MemoryState.CUT_BY_READS, by_bases) == [{"batchsize": 1000}]  # 1024, two digits
    assert ways(MemoryState.CUT_BY_READS, used(0, 60)) == [{"batchsize": 760}]  # 768; events count as well
    assert ways(MemoryState.CUT_BY_BASES, used(1, 1)) == [{"max_bases": 20_000_000}]  # at most four times
    assert ways(MemoryState.CUT_BY_BASES, used(0, 0)) == [{"max_bases": 20_000_000}]
    tiny = replace(used(70, 0), options=TunedOptions(batchsize=1))
    assert ways(MemoryState.CUT_BY_READS, tiny) == [{"batchsize": 16}]


def test_suggestion_no_memory():
    options = TunedOptions(batchsize=1000)
    by_reads = cpu_bound(n_reads=1000, gpu_reads=600, n_cpu_no_memory=250, options=options)
    # 600 of the 850 fitted: 705 reads and 70.5 % of the bases.
    assert ways(LoadState.NO_MEMORY, by_reads) == [{"batchsize": 700}, {"max_bases": 2_800_000}]
    by_bases = replace(by_reads, n_reads=900, n_bases=5_000_000)
    assert ways(LoadState.NO_MEMORY, by_bases) == [{"max_bases": 3_500_000}, {"batchsize": 630}]
    nothing_fits = replace(by_reads, gpu_reads=0)
    assert ways(LoadState.NO_MEMORY, nothing_fits) == [{"batchsize": 16}, {"max_bases": 100_000}]


def test_suggestion_long_reads():
    # Mean read 10 kb; 100 reads of 50 kb on the CPU: about half of them are shorter than 5 times the mean.
    report = cpu_bound(n_reads=900, n_bases=9_000_000, gpu_reads=800, gpu_bases=4_000_000, n_cpu_long=100)
    assert ways(LoadState.LONG_READS, report) == [{"cuda_max_lf": 5.0}]
    near = replace(report, gpu_bases=7_000_000)  # 20 kb: a quarter more than now at least
    assert ways(LoadState.LONG_READS, near) == [{"cuda_max_lf": 3.8}]
    far = replace(report, gpu_bases=0, n_cpu_long=10)  # 90 times: at most four times of now
    assert ways(LoadState.LONG_READS, far) == [{"cuda_max_lf": 12.0}]


def test_suggestion_many_events():
    report = cpu_bound(n_cpu_many_events=100)
    assert ways(LoadState.MANY_EVENTS, report) == [{"cuda_max_epk": 7.5}]
    assert ways(LoadState.MANY_EVENTS, replace(report, options=TunedOptions(cuda_max_epk=12))) == [
        {"cuda_max_epk": 15.0}
    ]


def test_suggestion_slow_cpu():
    # Four times as long with 8 threads; a mean of 7.8 kb, so that 23 kb are too long for the GPU.
    assert ways(LoadState.CPU_SLOW, cpu_bound(), cores=64) == [{"ultra_thresh": 50_000}, {"threads": 32}]
    assert ways(LoadState.CPU_SLOW, cpu_bound(), cores=12) == [{"ultra_thresh": 50_000}, {"threads": 12}]
    assert ways(LoadState.CPU_SLOW, cpu_bound(), cores=8) == [{"ultra_thresh": 50_000}]
    assert ways(LoadState.CPU_SLOW, cpu_bound(), cores=2) == [{"ultra_thresh": 50_000}]
    assert ways(LoadState.CPU_SLOW, replace(cpu_bound(), gpu_seconds=0), cores=12)[1] == {"threads": 12}
    long_reads = cpu_bound(n_reads=100, n_bases=3_000_000)  # the GPU takes reads up to 90 kb
    assert ways(LoadState.CPU_SLOW, long_reads, cores=8) == [{"ultra_thresh": 90_000}]
    longer_reads = cpu_bound(n_reads=100, n_bases=4_000_000)
    assert ways(LoadState.CPU_SLOW, longer_reads, cores=8) is None


def test_suggestion_slow_gpu():
    # (1 + 4) / (2 * 4) of the GPU's work
    assert ways(LoadState.GPU_SLOW, GPU_BOUND) == [
        {"cuda_max_lf": 1.8, "cuda_max_epk": 3.1},
        {"ultra_thresh": 200_000},
    ]
    at_the_end = replace(GPU_BOUND, options=TunedOptions(cuda_max_lf=1.0, cuda_max_epk=2.0, ultra_thresh=10_000_000))
    assert ways(LoadState.GPU_SLOW, at_the_end) is None


def test_options_without_limit_are_left_so():
    unlimited = TunedOptions(cuda_max_lf=float("inf"), cuda_max_epk=float("inf"))
    assert ways(LoadState.GPU_SLOW, replace(GPU_BOUND, options=unlimited)) == [{"ultra_thresh": 200_000}]
    assert ways(LoadState.LONG_READS, cpu_bound(n_cpu_long=100, options=unlimited)) is None


@pytest.mark.parametrize(
    ("value", "rounded"), [(0.4, 0), (7.9, 7), (99, 99), (109, 100), (705.8, 700), (123_456, 120_000)]
)
def test_two_digits(value, rounded):
    assert two_digits(value) == rounded


def test_values_as_typed():
    assert as_typed("max_bases", 3_500_000) == "3.5M"
    assert as_typed("max_bases", 200_000_000) == "200M"
    assert as_typed("max_bases", 120_000) == "120K"
    assert as_typed("max_bases", 999) == "999"
    assert as_typed("ultra_thresh", 50_000) == "50000"
    assert as_typed("batchsize", 65_536) == "65536"
    assert as_typed("cuda_max_epk", 6.25) == "6.25"


def test_spelling_is_the_command_line():
    from f5py.cli import command_of

    command = command_of("call-methylation")

    spelled = {param.name: param.opts for param in command.params}
    for name, option in SPELLING.items():
        assert option in spelled[name]
    assert SPELLING.keys() == vars(TunedOptions()).keys()


@settings(max_examples=examples(200), deadline=None)
@given(report=REPORTS, options=OPTIONS, cores=st.integers(1, 256))
def test_every_suggestion_is_a_move_within_bounds(report, options, cores):
    report = replace(report, options=options)
    for state in (memory_balance(report), load_balance(report)):
        advice = None if state is None else advise(state, report, cores)
        for way in () if advice is None else advice.ways:
            assert way
            for name, value in way.items():
                low, high = BOUNDS.get(name, (1, cores))
                assert low <= value <= high
                assert value != getattr(options, name)
                assert f"{SPELLING[name]} from " in advice.text


@pytest.mark.parametrize("state", [*MemoryState, *LoadState])
@settings(max_examples=examples(60), deadline=None)
@given(share=st.floats(0.01, 0.99))
def test_directions(state, share):
    """Every leaf moves its options the way the tree says, where the state really holds."""
    report = {
        MemoryState.EVENTS_UNDERUSED: used(71 + 29 * share, 40 * share),
        MemoryState.BASES_UNDERUSED: used(50, 85 + 14 * share),
        MemoryState.CUT_BY_BASES: used(70 * share, 0, n_bases=5_000_000, n_reads=1),
        MemoryState.CUT_BY_READS: used(0, 70 * share, n_bases=1),
        LoadState.NO_MEMORY: cpu_bound(n_cpu_no_memory=60),
        LoadState.LONG_READS: cpu_bound(n_cpu_long=60, gpu_bases=int(4_000_000 * share)),
        LoadState.MANY_EVENTS: cpu_bound(n_cpu_many_events=60),
        LoadState.CPU_SLOW: replace(cpu_bound(), gpu_seconds=2 * share),
        LoadState.GPU_SLOW: replace(GPU_BOUND, cpu_seconds=2 * share),
    }[state]
    up = {
        MemoryState.EVENTS_UNDERUSED: {"cuda_avg_epk": False, "cuda_max_epk": True},
        MemoryState.BASES_UNDERUSED: {"cuda_avg_epk": True, "cuda_max_epk": False},
        MemoryState.CUT_BY_BASES: {"max_bases": True},
        MemoryState.CUT_BY_READS: {"batchsize": True},
        LoadState.NO_MEMORY: {"batchsize": False, "max_bases": False},
        LoadState.LONG_READS: {"cuda_max_lf": True},
        LoadState.MANY_EVENTS: {"cuda_max_epk": True},
        LoadState.CPU_SLOW: {"ultra_thresh": False, "threads": True},
        LoadState.GPU_SLOW: {"cuda_max_lf": False, "cuda_max_epk": False, "ultra_thresh": True},
    }[state]
    assert state in (memory_balance(report), load_balance(report))
    advice = advise(state, report, 64)
    directions = {name: value > getattr(report.options, name) for way in advice.ways for name, value in way.items()}
    assert directions == up
