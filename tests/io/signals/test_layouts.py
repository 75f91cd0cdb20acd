"""Every layout in which HDF5 can store a signal is read as h5py reads it; a signal that is too short is damaged."""

from __future__ import annotations

import zlib
from contextlib import closing
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.io.signals.source import SignalBlock

from ...examples import examples
from .made_layouts import FILTERS, LENGTH_IS_FREE, Layout
from .made_signals import GZIP, MadeRead, assert_holds, assert_unreadable, fast5_source, write_multi, write_single

pytest.importorskip("vbz_h5py_plugin", reason="needs vbz-h5py-plugin")

SAMPLES = np.random.default_rng(7).integers(-3000, 3000, 5000).astype(np.int16)
WRITERS = {
    "multi": (write_multi, "read_r/Raw"),
    "single": (lambda path, reads, **storage: write_single(path, reads[0], **storage), "Raw/Reads/Read_17"),
}
IN_CHUNKS = st.builds(
    Layout,
    filters=st.sampled_from(list(FILTERS)),
    length=st.integers(1, 3000),
    last=st.sampled_from(["full", "short", "left out", "unfiltered"]),
    kind=st.sampled_from(["<i2", "<i2", ">i2", "<u2", "<i4", ">i8"]),
)
LAYOUTS = IN_CHUNKS | st.builds(
    Layout, storage=st.sampled_from(["contiguous", "compact"]), kind=st.sampled_from(["<i2", ">i2", "<i4"])
)
SHORT = st.builds(
    Layout,
    filters=st.sampled_from(LENGTH_IS_FREE),
    length=st.integers(2, 3000),
    last=st.just("cut"),
    kind=st.sampled_from(["<i2", ">i2", "<i4"]),
)


@st.composite
def signals(draw: st.DrawFn) -> np.ndarray:
    n = draw(st.integers(1, 40) | st.integers(1, 2500))
    values = np.random.default_rng(draw(st.integers(0, 9))).integers(0, draw(st.sampled_from([1, 300, 30_000])), n)
    return values.astype(np.int16)


def write(path: Path, samples: np.ndarray, layout: Layout, form: str = "multi") -> bool:
    """Write a file with one read, ``r``; return whether its samples are all there."""
    write_read, group = WRITERS[form]
    write_read(path, [MadeRead("r", samples)])
    with h5py.File(path, "r+") as file:
        return layout.write(file[group], samples)


def read_by_f5py(path: Path) -> SignalBlock:
    with closing(fast5_source({"r": str(path)})) as source:
        return source.fetch(["r"])


def assert_as_h5py(path: Path, form: str = "multi") -> np.ndarray | None:
    """Read ``r`` and compare it with h5py's values, which are returned; where h5py fails, there must be none."""
    with h5py.File(path) as file:
        try:
            expected = file[f"{WRITERS[form][1]}/Signal"][...]
        except (OSError, RuntimeError):
            expected = None
    block = read_by_f5py(path)
    if expected is None:
        assert_unreadable(block, 0, path.name, "damaged")
    else:
        assert_holds(block, 0, MadeRead("r", expected))
    return expected


@given(signals(), LAYOUTS, st.sampled_from(list(WRITERS)))
@settings(max_examples=examples(400), deadline=None)
def test_any_layout(tmp_path_factory, samples, layout, form):
    path = tmp_path_factory.getbasetemp() / "any.fast5"
    write(path, samples, layout, form)
    expected = assert_as_h5py(path, form)
    if layout.last != "left out" and layout.filters in LENGTH_IS_FREE:
        np.testing.assert_array_equal(expected, samples)


@given(signals(), SHORT, st.sampled_from(list(WRITERS)))
@settings(max_examples=examples(200), deadline=None)
def test_a_chunk_that_is_too_short(tmp_path_factory, samples, layout, form):
    path = tmp_path_factory.getbasetemp() / "short.fast5"
    if write(path, samples, layout, form):  # nothing is stored of a chunk of one sample
        assert_as_h5py(path, form)
        return
    assert_unreadable(read_by_f5py(path), 0, path.name, "damaged signal data", "too short")


def test_layouts_of_archives(tmp_path):
    """Sequencers of 2016 to 2018 stored the samples that there were in a chunk longer than any signal."""
    for form in WRITERS:
        for filters in ("gzip", "shuffle gzip"):
            assert write(tmp_path / "a.fast5", SAMPLES, Layout(filters=filters, length=201_536, last="short"), form)
            np.testing.assert_array_equal(assert_as_h5py(tmp_path / "a.fast5", form), SAMPLES)


@pytest.mark.parametrize("filters", LENGTH_IS_FREE)
def test_a_constant_signal(tmp_path, filters):
    """It may be compressed thousands of times."""
    samples = np.full(200_000, 500, np.int16)
    write(tmp_path / "a.fast5", samples, Layout(filters=filters, length=200_000))
    np.testing.assert_array_equal(assert_as_h5py(tmp_path / "a.fast5"), samples)


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_damaged_chunk(tmp_path, shuffle):
    """Every byte of a chunk, changed in two ways: h5py's samples, or damage where h5py finds it."""
    path = tmp_path / "a.fast5"
    write_multi(path, [MadeRead("r", SAMPLES[:40])], chunks=(40,), shuffle=shuffle, **GZIP)
    with h5py.File(path) as file:
        chunk = file["read_r/Raw/Signal"].id.get_chunk_info(0)
    whole = path.read_bytes()
    n_damaged = 0
    for at in range(chunk.byte_offset, chunk.byte_offset + chunk.size):
        for flip in (0xFF, 1 << at % 8):
            damaged = bytearray(whole)
            damaged[at] ^= flip
            path.write_bytes(damaged)
            n_damaged += assert_as_h5py(path) is None
    assert n_damaged > chunk.size


def test_a_damaged_index_of_chunks(tmp_path):
    """The read is damaged, not the run."""
    path = tmp_path / "a.fast5"
    write_multi(path, [MadeRead("r", SAMPLES)], chunks=(100,), **GZIP)
    content = bytearray(path.read_bytes())
    at = -1
    while (at := content.find(b"TREE\x01", at + 1)) >= 0:  # trees of chunks, not those of groups
        content[at] ^= 1
    path.write_bytes(content)
    assert_unreadable(read_by_f5py(path), 0, path.name, "damaged entry", "B-tree")


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("length", [80, 81, 82, 1000])
@pytest.mark.parametrize("after", [b"", b"more"])
def test_a_chunk_that_holds_more(tmp_path, length, shuffle, after):
    """More bytes than the 80 of a chunk, or bytes after their end."""
    path = tmp_path / "a.fast5"
    write_multi(path, [MadeRead("r", SAMPLES[:40])], chunks=(40,), shuffle=shuffle, **GZIP)
    with h5py.File(path, "r+") as file:
        text = SAMPLES.tobytes()[:length]
        file["read_r/Raw/Signal"].id.write_direct_chunk((0,), zlib.compress(text) + after)
    assert len(assert_as_h5py(path)) == 40
