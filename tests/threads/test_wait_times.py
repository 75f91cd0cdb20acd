"""Waiting times of a pipeline, and what is said of them."""

from __future__ import annotations

import time

import pytest

from f5py.options.signal_commands import CallOptions
from f5py.runs import outcome
from f5py.threads.pipeline import WaitTimes, run_pipeline

_SLOW = 0.05


@pytest.mark.parametrize("slow", ["loading", "computing", "writing"])
def test_the_slow_stage_is_the_bound(slow: str) -> None:
    def load():
        for i in range(12):
            time.sleep(_SLOW * (slow == "loading"))
            yield i

    def compute(i: int) -> None:
        time.sleep(2 * _SLOW * (slow == "computing"))

    def write(i: int) -> None:
        time.sleep(_SLOW * (slow == "writing"))

    waits = WaitTimes()
    run_pipeline(load(), compute, write, waits=waits)
    assert waits.bound == slow
    assert waits.total > 6 * _SLOW


@pytest.mark.parametrize(
    ("waits", "options", "kind", "phrase"),
    [
        (WaitTimes(loading=9), {"iop": 2}, "fast5", "for loading 100% of the time; raise --iop from 2 to 16"),
        (WaitTimes(loading=9, computing=1), {"threads": 4}, "slow5", "loading 90% of the time; raise -t from 4 to 16"),
        (WaitTimes(computing=9), {"threads": 1}, "pod5", "raise -t from 1 to 16"),
        (WaitTimes(writing=9), {"threads": 1, "output": "a.tsv.gz"}, "slow5", "for writing 100% of the time; raise -t"),
    ],
)
def test_the_option_that_helps(monkeypatch, waits: WaitTimes, options: dict, kind: str, phrase: str) -> None:
    monkeypatch.setattr(outcome, "usable_cores", lambda: 16)
    assert phrase in outcome.speed_advice(CallOptions(bam="-", genome="-", **options), waits, kind)


@pytest.mark.parametrize(
    ("waits", "options"),
    [
        (WaitTimes(loading=9), {"threads": 16}),
        (WaitTimes(writing=9), {"threads": 1}),
        (WaitTimes(loading=4.9), {"threads": 1}),
        (WaitTimes(5, 5, 5), {"threads": 1}),
    ],
    ids=["nothing helps", "a pipe", "short", "balanced"],
)
def test_silence(monkeypatch, waits: WaitTimes, options: dict) -> None:
    monkeypatch.setattr(outcome, "usable_cores", lambda: 16)
    assert outcome.speed_advice(CallOptions(bam="-", genome="-", **options), waits, "slow5") == ""


def test_a_gpu_that_is_left_out(monkeypatch) -> None:
    monkeypatch.setattr(outcome, "is_present", lambda: True)
    monkeypatch.setattr(outcome.importlib.util, "find_spec", lambda name: name)
    options = CallOptions(bam="-", genome="-", gpu="off")
    assert "leave out --gpu off" in outcome.speed_advice(options, WaitTimes(computing=9), "slow5")
