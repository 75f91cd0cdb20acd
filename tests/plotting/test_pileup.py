"""Signals of several reads over the same bases: data as in eventalign's table, and pictures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import f5py
from f5py.commands.plot_region import collect_signals
from f5py.errors import F5pyError, InputFileError, UsageError
from f5py.options.plot_commands import PlotRegionOptions

from ..made_data import ReadSet

START, END = 1000, 1040  # 0-based, half-open


@pytest.fixture(scope="module")
def inputs(made: ReadSet) -> dict[str, Any]:
    return {"reads": str(made.reads), "bam": (str(made.bam),), "genome": str(made.genome)}


def options(inputs: dict[str, Any], **more: Any) -> PlotRegionOptions:
    window = f"simulated:{START + 1}-{END}"
    return PlotRegionOptions(**{"window": window, "output": "", "signals": "events", **inputs, **more})


def test_means_are_those_of_eventalign(inputs: dict[str, Any]) -> None:
    """Of the table, scaled to the model; the strands are apart, and the levels are the model's."""
    data = collect_signals(options(inputs))
    given = {**inputs, "bam": inputs["bam"][0]}
    table = f5py.eventalign(**given, returns="pandas", print_read_names=True, scale_events=True)
    table = table[(table.position >= START) & (table.position < END)].copy()
    n_traces = 0
    for strand in data.strands:
        for trace in strand.traces:
            rows = table[table.read_name == trace.name]
            of_read = (rows.event_level_mean * rows.event_length).groupby(rows.position).sum()
            means = of_read / rows.event_length.groupby(rows.position).sum()
            expected = np.full(END - START, np.nan)
            expected[means.index.to_numpy() - START] = means
            np.testing.assert_allclose(trace.mean, expected, atol=0.02)
            levels = rows.groupby("position")[["model_mean", "model_stdv"]].max()
            levels = levels[levels.model_mean > 0]  # NNNNNN: an event that fits no k-mer
            at = levels.index.to_numpy() - START
            np.testing.assert_allclose(strand.level[at], levels.model_mean, atol=0.01)
            np.testing.assert_allclose(strand.level_stdv[at], levels.model_stdv, atol=0.01)
            n_traces += 1
    assert n_traces == table.read_name.nunique() >= 3
    assert [strand.strand for strand in data.strands] == ["+", "-"]
    complement = bytes.maketrans(b"ACGT\0", b"TGCA\0")
    plus, minus = (strand.letters.tobytes() for strand in data.strands)
    both = [(a, b) for a, b in zip(plus, minus.translate(complement), strict=True) if a and b]
    assert both
    assert all(a == b for a, b in both)


def test_samples_are_stretched_over_the_bases(inputs: dict[str, Any]) -> None:
    samples, events = (collect_signals(options(inputs, signals=kind)) for kind in ("samples", "events"))
    for with_samples, with_events in zip(samples.strands, events.strands, strict=True):
        for trace, other in zip(with_samples.traces, with_events.traces, strict=True):
            np.testing.assert_array_equal(trace.mean, other.mean)
            base = np.floor(trace.position).astype(np.int64) - START
            assert (np.diff(trace.position) > 0).all()
            assert set(base.tolist()) == set(np.flatnonzero(np.isfinite(other.mean)).tolist())
            means = (
                np.bincount(base, trace.current, minlength=END - START)
                / np.maximum(np.bincount(base), 1)[: END - START]
            )
            seen = np.isfinite(other.mean)
            assert np.abs(means[seen] - other.mean[seen]).max() < 3  # points of a base are of about as many samples


def test_the_longest_overlaps_of_each_sample_are_drawn(inputs: dict[str, Any], made: ReadSet) -> None:
    chosen = {**inputs, "bam": (), "sample": (f"a={made.bam}", f"b={made.bam}")}
    data = collect_signals(options(chosen, max_reads=2))
    assert data.sample_names == ("a", "b")
    names = [[trace.name for one in data.strands for trace in one.traces if trace.sample == i] for i in (0, 1)]
    assert names[0] == names[1]
    assert len(names[0]) == 2
    assert data.n_left_out > 0
    assert data.caption[-1] == f"{data.n_left_out} more reads are not drawn"


@pytest.mark.parametrize("kind", ["samples", "events"])
def test_pictures(inputs: dict[str, Any], kind: str, tmp_path: Path) -> None:
    picture = f5py.plot_region(**inputs, window=("simulated", START, END), signals=kind)
    for name in ("a.html", "a.svg"):
        picture.save(tmp_path / name)
        first = (tmp_path / name).read_bytes()
        picture.save(tmp_path / name)
        assert (tmp_path / name).read_bytes() == first
    shown = json.loads(re.search(r'id="data">(.*?)</script>', picture.page())[1])
    assert shown["kind"] == kind
    assert all(len(strand["level"]) == END - START for strand in shown["strands"])


def test_wrong_input(inputs: dict[str, Any]) -> None:
    for kind, message, more in (
        (UsageError, "at most 1,000, or draw", {"window": "simulated:1-2000"}),
        (F5pyError, "no read there has events", {"min_mapq": 255}),
        (InputFileError, "no such file", {"bam": ("missing.bam",)}),
        (UsageError, "--signals events needs --genome", {"genome": None}),
        (UsageError, "exclude each other; it is for calls", {"smooth": 3}),
        (UsageError, "--reads needs --signals", {"signals": None}),
    ):
        with pytest.raises(kind, match=message):
            collect_signals(options(inputs, **more))
