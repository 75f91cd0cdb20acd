"""Protocol of signal sources: what holds for every one. A new format adds one function to SOURCES."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.io.remote.ranged_file import _folders, show_urls_below
from f5py.io.signals import open_source
from f5py.io.signals.fast5.fast5_writer import fast5_writer
from f5py.io.signals.slow5.reader import Slow5Source
from f5py.io.signals.source import Calibration, IndexedSource

from ...examples import examples
from .made_signals import (
    GZIP,
    VBZ,
    assert_holds,
    assert_same_block,
    assert_unreadable,
    write_multi,
    write_single,
)
from .made_slow5 import write_blow5, write_slow5


def _single_files(folder, reads, **storage):
    paths = {}
    for i, read in enumerate(reads):
        paths |= write_single(folder / f"{i}.fast5", read, **GZIP, **storage)
    return paths


def _two_files(folder, reads):
    return write_multi(folder / "a.fast5", reads[:3], **GZIP) | write_multi(folder / "b.fast5", reads[3:])


def _vbz(folder, reads):
    pytest.importorskip("vbz_h5py_plugin", reason="needs vbz-h5py-plugin")
    return write_multi(folder / "reads.fast5", reads, **VBZ)


def _own_writer(folder, reads):
    with fast5_writer(folder / "reads.fast5") as file:
        for read in reads:
            file.write(read.name, read.samples, Calibration(**read.calibration()))
    return {read.name: str(folder / "reads.fast5") for read in reads}


def _with_pod5(function, folder, reads, n_processes=1):
    pytest.importorskip("pod5", reason="needs pod5")
    from . import made_pod5

    return getattr(made_pod5, function)(folder, reads, n_processes)


#: Each source by name, and the format that its reports name.
SOURCES = {
    "single": ("fast5", lambda folder, reads: open_source(_single_files(folder, reads, chunks=(100,)))),
    "three processes": ("fast5", lambda folder, reads: open_source(_single_files(folder, reads), 3)),
    "multi": ("fast5", lambda folder, reads: open_source(write_multi(folder / "a.fast5", reads))),
    "gzip shuffle": (
        "fast5",
        lambda folder, reads: open_source(
            write_multi(folder / "a.fast5", reads, shuffle=True, fletcher32=True, **GZIP), 2
        ),
    ),
    "vbz": ("fast5", lambda folder, reads: open_source(_vbz(folder, reads))),
    "two files": ("fast5", lambda folder, reads: open_source(_two_files(folder, reads))),
    "own writer": ("fast5", lambda folder, reads: open_source(_own_writer(folder, reads))),
    "pod5": ("pod5", lambda folder, reads: _with_pod5("pod5_files", folder, reads)),
    "pod5, two processes": ("pod5", lambda folder, reads: _with_pod5("pod5_files", folder, reads, 2)),
    "fast5 and pod5": ("pod5", lambda folder, reads: _with_pod5("fast5_and_pod5_files", folder, reads, 2)),
    "slow5": ("slow5", lambda folder, reads: Slow5Source(write_slow5(folder / "a.slow5", reads))),
    "blow5": ("slow5", lambda folder, reads: Slow5Source(write_blow5(folder / "a.blow5", reads[::-1]))),
    "blow5, three threads": (
        "slow5",
        lambda folder, reads: Slow5Source(write_blow5(folder / "a.blow5", reads, zipped=False), 3),
    ),
}


@pytest.fixture(scope="module", params=SOURCES)
def source(request, tmp_path_factory, made_reads):
    source = SOURCES[request.param][1](tmp_path_factory.mktemp("signals"), made_reads)
    yield source
    source.close()


def test_arrays_are_flat_and_of_the_promised_types(source, made_reads):
    block = source.fetch([read.name for read in made_reads])
    assert block.samples.dtype == np.int16
    assert block.offsets.dtype == np.int64
    assert block.offsets[0] == 0
    assert block.samples.shape == (block.offsets[-1],)
    assert block.calibration.dtype == np.float32
    assert block.calibration.shape == (5, 7)
    assert block.calibration.flags.c_contiguous


def test_no_reads(source):
    block = source.fetch([])
    assert block.samples.shape == (0,)
    assert block.offsets.tolist() == [0]
    assert block.problems == {}


@settings(max_examples=examples(25), deadline=None)
@given(picks=st.lists(st.integers(-1, 6), max_size=30))
def test_any_request_is_the_sum_of_its_reads(source, made_reads, picks):
    block = source.fetch([made_reads[i].name if i >= 0 else "nobody" for i in picks])
    for i, read in enumerate(picks):
        if read >= 0:
            assert_holds(block, i, made_reads[read])
        else:
            assert_unreadable(block, i, "nobody")


def test_fetching_again_gives_the_same_and_does_not_touch_the_first(source, made_reads):
    names = [read.name for read in made_reads] + ["nobody"]
    first = source.fetch(names)
    before = first.samples.copy()
    assert_same_block(source.fetch(names), first)
    first.samples[:] = 0  # the block belongs to the caller
    again = source.fetch(names)
    np.testing.assert_array_equal(again.samples, before)


def test_run_info_is_a_table_of_texts(source, made_reads):
    """What stands in it differs from format to format; of a read that is not there nothing is known."""
    found = source.run_info(["nowhere", made_reads[2].name])
    assert all(isinstance(key, str) and isinstance(value, str) and value for key, value in found.items())
    assert all(key == key.lower() for key in found)
    assert source.run_info(["nowhere"]) == {}
    assert source.run_info([]) == {}


@pytest.mark.parametrize(("kind", "make"), SOURCES.values(), ids=SOURCES)
def test_its_kind_and_closing_it_twice(kind, make, tmp_path, made_reads):
    source = make(tmp_path, made_reads)
    assert source.kind == kind
    source.fetch([made_reads[0].name])
    source.close()
    source.close()


def test_a_place_is_the_url_that_a_file_stands_for():
    source = IndexedSource({"a": "/tmp/runs/7f/0/s3:/bucket/x.fast5", "b": "/data/y.fast5"})
    show_urls_below("/tmp/runs")
    try:
        assert [source.place(name) for name in "abc"] == ["s3://bucket/x.fast5", "/data/y.fast5", ""]
    finally:
        _folders.pop("/tmp/runs")
