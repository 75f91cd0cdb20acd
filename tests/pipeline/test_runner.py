"""Properties of the three concurrent stages that hold for any input."""

from __future__ import annotations

import gc
import signal
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.io.complete_file import complete_output
from f5py.pipeline.runner import Outputs, run_pipeline, stages_running


class Broken(Exception):
    pass


def pause(milliseconds: int) -> None:
    time.sleep(milliseconds / 1000)


@settings(max_examples=60, deadline=None)
@given(
    n_items=st.integers(0, 10),
    pauses=st.tuples(*[st.sampled_from([0, 0, 1, 3])] * 4),
    ahead=st.booleans(),
    synchronous=st.booleans(),
)
def test_all_items_in_order(n_items, pauses, ahead, synchronous):
    """The stages of an item in turn; with `ahead` the next item is started before it is computed."""
    done = []
    written = []

    def load():
        for item in range(n_items):
            pause(pauses[0])
            yield item

    def start(item):
        pause(pauses[1])
        done.append(("start", item))

    def compute(item):
        pause(pauses[2])
        done.append(("compute", item))

    def write(item):
        pause(pauses[3])
        assert ("compute", item) in done
        written.append(item)

    run_pipeline(load(), compute, write, start=start, ahead=lambda: ahead, synchronous=synchronous)
    assert written == list(range(n_items))
    lead = int(ahead)
    expected = [("start", item) for item in range(min(lead, n_items))]
    for item in range(n_items):
        expected += [("start", item + lead)] * (item + lead < n_items)
        expected += [("compute", item)]
    assert done == expected
    assert not stages_running()


@settings(max_examples=100, deadline=None)
@given(
    n_items=st.integers(1, 8),
    data=st.data(),
    stage=st.sampled_from(["load", "start", "compute", "write"]),
    pauses=st.fixed_dictionaries(dict.fromkeys(["load", "start", "compute", "write"], st.sampled_from([0, 0, 2]))),
    ahead=st.booleans(),
)
def test_an_error_is_raised_and_what_was_before_it_is_written(n_items, data, stage, pauses, ahead):
    broken = data.draw(st.integers(0, n_items - 1))
    written = []
    closed_by = []

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
        run_pipeline(load(), step("compute"), write, start=step("start"), ahead=lambda: ahead)
    assert written == list(range(broken))
    assert len(closed_by) <= 1
    assert threading.current_thread() not in closed_by
    assert not stages_running()


def test_an_error_of_the_last_write_is_raised():
    def write(item):
        pause(20)
        raise Broken

    with pytest.raises(Broken):
        run_pipeline([1], lambda _: None, write)


def test_not_more_than_one_item_is_loaded_ahead():
    loaded = 0
    ahead = []

    def load():
        nonlocal loaded
        for item in range(6):
            loaded += 1
            yield item

    def compute(item):
        pause(20)
        ahead.append(loaded - item - 1)

    run_pipeline(load(), compute, lambda _: None)
    assert max(ahead) <= 1


def test_stages_run_at_the_same_time():
    def load():
        for item in range(5):
            pause(40)
            yield item

    started = time.perf_counter()
    run_pipeline(load(), lambda _: pause(40), lambda _: pause(40))
    assert time.perf_counter() - started < 0.8 * 15 * 0.04


def test_an_interrupt_writes_what_was_put():
    written = []

    def compute(item):
        if item == 2:
            raise KeyboardInterrupt

    def write(item):
        pause(50)
        written.append(item)

    with pytest.raises(KeyboardInterrupt):
        run_pipeline(range(5), compute, write)
    assert written == [0, 1]
    assert not stages_running()


@pytest.mark.parametrize("stuck", ["load", "write"])
def test_an_interrupt_does_not_wait_for_a_stuck_stage(stuck):
    release = threading.Event()

    def load():
        yield 0
        if stuck == "load":
            release.wait()
        yield 1

    def write(item):
        if stuck == "write":
            release.wait()

    def compute(item):
        raise KeyboardInterrupt

    def compute_second(item):
        if item == 1:
            raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_pipeline(load(), compute if stuck == "load" else compute_second, write)
    assert time.monotonic() - started < 1.9
    assert stages_running()
    release.set()
    deadline = time.monotonic() + 5
    while stages_running():
        assert time.monotonic() < deadline
        pause(5)


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
        run_pipeline(range(3), compute, lambda item: write(item, outputs.stopping))


def interrupt_second(item):
    if item == 1:
        raise KeyboardInterrupt


def test_outputs_are_closed_after_a_run_and_after_an_error(tmp_path):
    output = Output()
    run_with_outputs(output, tmp_path / "whole", lambda *_: None, lambda _: None)
    assert output.closed
    assert (tmp_path / "whole").read_bytes() == b"begun"

    def fail(item):
        raise Broken

    output = Output()
    with pytest.raises(Broken):
        run_with_outputs(output, tmp_path / "broken", lambda *_: pause(50), fail)
    assert output.closed
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_outputs_of_a_writer_that_stops_when_asked_are_closed(tmp_path):
    def write(item, stopping):
        assert stopping.wait(5)

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
            assert began.wait(5)
            if at == "pipeline":
                raise KeyboardInterrupt
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            raise Broken

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_with_outputs(output, tmp_path / "x", write, compute)
        assert time.monotonic() - started < 1.9
        assert not output.closed
        assert list(tmp_path.iterdir()) == []
        assert stages_running()
        gc.collect()
        assert not output.closed
    finally:
        signal.signal(signal.SIGALRM, before)
        release.set()
    deadline = time.monotonic() + 5
    while stages_running():
        assert time.monotonic() < deadline
        pause(5)
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
            run_pipeline(load(), interrupt, lambda _: None)

    try:
        with pytest.raises(KeyboardInterrupt):
            run()
        assert output.closed
    finally:
        release.set()
    deadline = time.monotonic() + 5
    while stages_running():
        assert time.monotonic() < deadline
        pause(5)
