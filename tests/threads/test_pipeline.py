"""Properties of the three concurrent stages that hold for any input."""

from __future__ import annotations

import gc
import signal
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.io.files.complete_file import complete_output
from f5py.io.files.output import Outputs
from f5py.threads.pipeline import run_pipeline, stages_running

from ..examples import examples
from ..patience import PATIENCE


class Broken(Exception):
    pass


def pause(milliseconds: int) -> None:
    time.sleep(milliseconds / 1000)


@settings(max_examples=examples(60), deadline=None)
@given(n_items=st.integers(0, 10), pauses=st.tuples(*[st.sampled_from([0, 0, 1, 3])] * 4), n_lanes=st.integers(1, 4))
def test_all_items_in_order(n_items, pauses, n_lanes):
    """`settle` and `write` see the items in order, after they have been computed; no more than `n_lanes` at a time."""
    computed = []
    settled = []
    written = []
    inside = []

    def load():
        for item in range(n_items):
            pause(pauses[0])
            yield item

    def compute(item):
        inside.append(item)
        assert len(inside) <= n_lanes
        pause(pauses[1] * (1 + item % 3))
        computed.append(item)
        inside.remove(item)

    def settle(item):
        pause(pauses[2])
        assert item in computed
        settled.append(item)

    def write(item):
        pause(pauses[3])
        assert item in settled
        written.append(item)

    run_pipeline(load(), compute, write, settle=settle, n_lanes=n_lanes)
    assert settled == written == list(range(n_items))
    assert sorted(computed) == written
    assert not stages_running()


@settings(max_examples=examples(100), deadline=None)
@given(
    n_items=st.integers(1, 8),
    data=st.data(),
    stage=st.sampled_from(["load", "compute", "settle", "write"]),
    pauses=st.fixed_dictionaries(dict.fromkeys(["load", "compute", "settle", "write"], st.sampled_from([0, 0, 2]))),
    n_lanes=st.integers(1, 3),
)
def test_an_error_is_raised_and_what_was_before_it_is_written(n_items, data, stage, pauses, n_lanes):
    broken = data.draw(st.integers(0, n_items - 1))
    written = []
    closed_by = []
    stopped = []

    def step(where):
        def fail(item):
            pause(pauses[where])
            if where == stage and item == broken:
                raise Broken(item)

        return fail

    def load():
        try:
            for item in range(n_items):
                step("load")(item)
                yield item
        finally:
            closed_by.append(threading.current_thread())

    def write(item):
        step("write")(item)
        written.append(item)

    with pytest.raises(Broken, match=f"^{broken}$"):
        run_pipeline(
            load(), step("compute"), write, settle=step("settle"), stop=lambda: stopped.append(1), n_lanes=n_lanes
        )
    assert written == list(range(broken))
    assert len(closed_by) <= 1
    assert threading.current_thread() not in closed_by
    assert len(stopped) == (stage != "write" or broken < n_items - 1) or stage == "write"
    wait_for_the_end()


def wait_for_the_end():
    deadline = time.monotonic() + PATIENCE
    while stages_running():
        assert time.monotonic() < deadline
        pause(1)


def test_an_error_of_computing_does_not_wait_for_a_stuck_loader():
    release = threading.Event()

    def load():
        yield 0
        release.wait()

    def compute(item):
        raise Broken

    with pytest.raises(Broken):
        run_pipeline(load(), compute, lambda _: None)
    release.set()
    wait_for_the_end()


def test_what_is_computed_is_written_while_the_loader_waits():
    written, release = threading.Event(), threading.Event()

    def load():
        yield 0
        assert written.wait(PATIENCE)
        yield 1

    run_pipeline(load(), lambda _: None, lambda _: written.set())
    release.set()


@pytest.mark.parametrize("n_lanes", [1, 3])
def test_not_more_than_one_item_is_loaded_ahead(n_lanes):
    loaded = 0
    settled = 0
    ahead = []

    def load():
        nonlocal loaded
        for item in range(6):
            loaded += 1
            yield item

    def compute(item):
        pause(20)
        ahead.append(loaded - settled)

    def settle(item):
        nonlocal settled
        settled += 1

    run_pipeline(load(), compute, lambda _: None, settle=settle, n_lanes=n_lanes)
    assert max(ahead) <= n_lanes + 3  # being loaded, or loaded and waiting; or computed before another one


def test_stages_run_at_the_same_time():
    """Every stage waits for another one to be inside of its own item."""
    meeting = threading.Barrier(3, timeout=PATIENCE)

    def load():
        yield 0
        yield 1
        meeting.wait()

    run_pipeline(
        load(), lambda item: item == 1 and meeting.wait(), lambda item: item == 0 and meeting.wait(), n_lanes=2
    )


class Output:
    """A context manager that knows whether it was closed."""

    def __init__(self):
        self.closed = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True


def run_with_outputs(output, path, write, compute):
    with Outputs() as outputs:
        outputs.enter_context(output)
        file = outputs.enter_context(complete_output(str(path)))
        file.write(b"begun")
        run_pipeline(range(3), lambda _: None, lambda item: write(item, outputs.stopping), settle=compute)


def interrupt_second(item):
    if item == 1:
        raise KeyboardInterrupt


def test_outputs_of_a_writer_that_stops_when_asked_are_closed(tmp_path):
    def write(item, stopping):
        assert stopping.wait(PATIENCE)

    output = Output()
    with pytest.raises(KeyboardInterrupt):
        run_with_outputs(output, tmp_path / "x", write, interrupt_second)
    assert output.closed
    assert list(tmp_path.iterdir()) == []
    assert not stages_running()


@pytest.mark.parametrize("at", ["pipeline", "interrupt while the error of a stage is waited for"])
def test_outputs_of_a_stuck_writer_are_left_alone(tmp_path, at):
    """Nothing is closed or left behind, and the interrupt goes on soon."""
    release, began = threading.Event(), threading.Event()
    output = Output()
    closed_during_write = []

    def write(item, stopping):
        began.set()
        release.wait()
        closed_during_write.append(output.closed)

    def compute(item):
        if item == 1:
            assert began.wait(PATIENCE)
            if at == "pipeline":
                raise KeyboardInterrupt
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            raise Broken

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_with_outputs(output, tmp_path / "x", write, compute)
        assert not output.closed
        assert list(tmp_path.iterdir()) == []
        assert stages_running()
        gc.collect()
        assert not output.closed
    finally:
        signal.signal(signal.SIGALRM, before)
        release.set()
    wait_for_the_end()
    assert closed_during_write == [False]


def test_an_idle_writer_does_not_count_as_stuck():
    """After an interrupt while the loader is stuck."""
    release = threading.Event()
    output = Output()

    def load():
        yield 0
        release.wait()

    def interrupt(item):
        raise KeyboardInterrupt

    def run():
        with Outputs() as outputs:
            outputs.enter_context(output)
            run_pipeline(load(), lambda _: None, lambda _: None, settle=interrupt)

    try:
        with pytest.raises(KeyboardInterrupt):
            run()
        assert output.closed
    finally:
        release.set()
    wait_for_the_end()


def test_items_are_computed_while_one_before_them_is_not_done():
    later = threading.Event()
    written = []

    def compute(item):
        if item == 0:
            assert later.wait(PATIENCE)
        if item == 3:
            later.set()

    run_pipeline(range(6), compute, written.append, n_lanes=2)
    assert written == list(range(6))
