"""--auto-tune: which options are set, within which bounds, and that there is an end to it."""

from dataclasses import replace
from itertools import groupby, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.compute.gpu.tuning.advisor import Advisor, TunedOptions
from f5py.compute.gpu.tuning.auto_tune import MAX_FLIPS, MAX_IN_FLIGHT, TRIAL, Tuner
from f5py.compute.gpu.tuning.suggestions import BOUNDS, Advice

from ....abea.batch_reports import FINE, OPTIONS, REPORTS, cpu_bound, cut_by_reads, spoken, used
from ....examples import examples


def drive(advisor, make_report, n_batches, lag=0, options=None):
    """Run batches whose options follow the advisor `lag` batches late; return the options after each."""
    pending = [options or TunedOptions()] * (lag + 1)
    history = []
    for number in range(n_batches):
        pending.append(advisor.observe(make_report(number, pending.pop(0))))
        history.append(pending[-1])
    return history


def changes(history):
    return sum(one != other for one, other in pairwise(history))


def test_without_auto_tune_the_options_are_the_report_s():
    given = TunedOptions(batchsize=3, cuda_max_lf=99.0)
    history = drive(Advisor(), lambda _, options: cut_by_reads(options), 20, options=given)
    assert history == [given] * 20


@pytest.mark.parametrize("lag", [0, 3])
def test_auto_tune_raises_the_batch_until_memory_is_used(lag, capsys):
    def batch(_, options):
        # 10 kb reads; X holds 3,000 of them
        n = options.batchsize
        return used(100 * n / 3000, 100 * n / 3000, n_reads=n, n_bases=n * 10_000, options=options)

    start = TunedOptions(max_bases=100_000_000)
    history = drive(Advisor(auto_tune=True), batch, 60, lag, start)
    assert history[2] == start
    assert history[3] == replace(start, batchsize=2000)
    assert history[-1] == replace(start, batchsize=2600)  # just below 90 %
    assert changes(history) == 2
    assert "--auto-tune sets -K 2000\n" in capsys.readouterr().err


def test_auto_tune_never_leaves_bounds(capsys):
    history = drive(Advisor(auto_tune=True), lambda _, options: cut_by_reads(options), 100)
    assert history[-1].batchsize == 65_536
    capsys.readouterr()
    assert spoken([cut_by_reads(history[-1])] * 8, Advisor(auto_tune=True), capsys) == []


def test_narrower_bounds_and_fixed_options():
    tuned = drive(
        Advisor(auto_tune=True, bounds={"batchsize": (100, 600)}), lambda _, options: cut_by_reads(options), 30
    )
    assert tuned[-1] == TunedOptions(batchsize=600)
    fixed = drive(Advisor(auto_tune=True, fixed=["cuda_avg_epk"]), lambda _, options: used(80, 40, options=options), 30)
    assert fixed[-1] == TunedOptions(cuda_max_epk=15.0)
    with pytest.raises(ValueError, match="batch_size: not the name"):
        Advisor(auto_tune=True, bounds={"batch_size": (1, 2)})
    with pytest.raises(ValueError, match="cuda-max-lf: not the name"):
        Advisor(auto_tune=True, fixed=["cuda-max-lf"])


def test_a_value_of_the_user_s_outside_of_bounds_stays():
    beyond = TunedOptions(batchsize=100_000)
    history = drive(Advisor(auto_tune=True), lambda _, options: cut_by_reads(options), 20, options=beyond)
    assert history[-1] == beyond


def test_ultra_thresh_is_tuned_only_on_request(capsys):
    def slow_cpu(_, options):
        return cpu_bound(options=options)

    advisor = Advisor(auto_tune=True, cores=64)
    assert drive(advisor, slow_cpu, 40)[-1] == TunedOptions()
    advisor.summarise(True)
    assert "lower --ultra-thresh from 100000 to 50000" in capsys.readouterr().err
    tuned = drive(Advisor(auto_tune=True, cores=64, fixed=()), slow_cpu, 40)
    # Down to three times the mean length, where the GPU's reads begin; never to more threads.
    assert tuned[-1] == TunedOptions(ultra_thresh=23_000)


def test_one_step_at_a_time():
    """A step by one tree makes the other one begin again, even in the batch of the step."""

    def batch(number, options):
        both = replace(cut_by_reads(options), cpu_seconds=1, gpu_seconds=4)
        return both if number < 4 else replace(both, gpu_bases=800_000, gpu_events=800_000)

    history = drive(Advisor(auto_tune=True), batch, 8)
    raised = replace(TunedOptions(), batchsize=2000)
    assert history[2:7] == [TunedOptions(), raised, raised, raised, raised]
    assert history[7] == replace(raised, cuda_max_lf=1.8, cuda_max_epk=3.1)


def test_every_step_needs_four_batches_of_its_own():
    start = TunedOptions(batchsize=16)
    history = drive(Advisor(auto_tune=True), lambda _, options: cut_by_reads(options), 12, options=start)
    sizes = [options.batchsize for options in history]
    assert sizes == [16] * 3 + [64] * 4 + [250] * 4 + [1000]


def test_a_step_that_makes_batches_slower_is_undone(capsys):
    def batch(_, options):
        seconds = 1.0 if options.batchsize == 512 else 2.0 * options.max_bases / 5_000_000
        return cut_by_reads(options, cpu_seconds=seconds, gpu_seconds=seconds)

    advisor = Advisor(auto_tune=True)
    history = drive(advisor, batch, 200)
    advisor.summarise(True)
    # 512 to 2000; back; half of the way; back; a quarter; back; enough
    sizes = [size for size, _ in groupby(options.batchsize for options in history)]
    assert sizes == [512, 2000, 512, 1256, 512, 884, 512]
    assert changes(history[:3]) == 0
    assert changes(history[3 + 6 * TRIAL :]) == 0
    err = capsys.readouterr().err
    undone = "[auto_tune::INFO] back to -K 512: the last change made a megabase take 0.4 s instead of 0.2 s\n"
    assert err.count(undone) == 3
    assert "[auto_tune::INFO] -K stays at 512 from now on" in err
    assert "raise -K from 512 to 2000 (" in err.splitlines()[-1]  # the advice goes on


def test_a_step_that_is_a_little_slower_stays():
    def batch(_, options):
        seconds = 1.0 if options.batchsize == 512 else 1.1
        return cut_by_reads(options, cpu_seconds=seconds, gpu_seconds=seconds)

    assert drive(Advisor(auto_tune=True), batch, 40)[-1].batchsize == 65_536


def test_turning_back_halves_the_step_and_ends():
    def batch(_, options):
        # too large for the memory, or too small, with nothing between
        if options.batchsize > 600:
            return cpu_bound(n_reads=options.batchsize, n_cpu_no_memory=options.batchsize // 2, gpu_reads=300,
                             options=options, n_bases=800_000)  # fmt: skip
        return cut_by_reads(options, cpu_seconds=25, gpu_seconds=25)

    history = drive(Advisor(auto_tune=True, fixed=("max_bases", "ultra_thresh")), batch, 400)
    sizes = [size for size, _ in groupby(options.batchsize for options in history)]
    steps = [abs(b - a) for a, b in pairwise(sizes)]
    assert len(steps) >= MAX_FLIPS
    assert changes(history[200:]) == 0
    flips = sum((b > a) != (c > b) for a, b, c in zip(sizes, sizes[1:], sizes[2:], strict=False))
    assert flips == MAX_FLIPS - 1


def test_the_second_step_after_a_flip_is_halved():
    tuner = Tuner(options=None)
    tuner.accept(FINE)

    def follow(target):
        tuner.follow(Advice("", tuner.options, ({"batchsize": target},)))
        for _ in range(TRIAL):
            tuner.accept(replace(FINE, options=tuner.options))
        assert not tuner.undo_if_slower()
        return tuner.options.batchsize

    assert follow(1000) == 1000
    assert follow(600) == 800  # half
    assert follow(400) == 600  # the same way, still by halves
    assert follow(1000) == 700  # a quarter
    assert follow(300) == 700  # no more


def test_batches_under_way_are_left_out_of_account():
    old, new = TunedOptions(), TunedOptions(batchsize=2000)
    advisor = Advisor(auto_tune=True)
    for _ in range(4):
        last = advisor.observe(cut_by_reads(old))
    assert last == new
    slow = cut_by_reads(old, cpu_seconds=100, gpu_seconds=100)
    for _ in range(8):
        assert advisor.observe(slow) == new
    for _ in range(10):
        assert advisor.observe(replace(FINE, n_bases=5_000_000, options=new)) == new


def test_a_caller_that_cannot_follow(capsys):
    advisor = Advisor(auto_tune=True)
    report = cut_by_reads()
    seen = [advisor.observe(report).batchsize for _ in range(100)]
    assert seen == [512] * 3 + [2000] * (1 + MAX_IN_FLIGHT) + [512] * (100 - 4 - MAX_IN_FLIGHT)
    assert "-K stays at 512" in capsys.readouterr().err


# Runs of equal batches, because three in a row never do anything.
_SEQUENCES = st.lists(st.tuples(REPORTS, st.integers(1, 10)), max_size=12)


@settings(max_examples=examples(150), deadline=None)
@given(start=OPTIONS, sequence=_SEQUENCES, lag=st.integers(0, 3))
def test_options_stay_in_bounds_whatever_comes(start, sequence, lag):
    batches = [report for report, times in sequence for _ in range(times)]

    def make(number, options):
        return replace(batches[number], options=options)

    first, second = (
        drive(Advisor(auto_tune=True, cores=64, fixed=()), make, len(batches), lag, start) for _ in range(2)
    )
    assert first == second
    for options in first:
        assert options.threads == start.threads
        for name, (low, high) in BOUNDS.items():
            begun = getattr(start, name)
            value = getattr(options, name)
            assert min(low, begun) <= value <= max(high, begun)
            assert type(value) is type(begun)


@settings(max_examples=examples(100), deadline=None)
@given(start=OPTIONS, reports=st.lists(REPORTS, min_size=1, max_size=3))
def test_tuning_comes_to_an_end(start, reports):
    # The same few kinds of batches for ever, each for long enough to be acted upon.
    def make(number, options):
        return replace(reports[number // (TRIAL + 1) % len(reports)], options=options)

    history = drive(Advisor(auto_tune=True, cores=64, fixed=()), make, 1500, 0, start)
    assert changes(history[1200:]) == 0
