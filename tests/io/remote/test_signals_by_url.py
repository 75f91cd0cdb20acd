"""Signals that are fetched as they are read: those of the whole file, and not much more of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from f5py.io.remote import ranged_file
from f5py.io.signals import open_signals
from f5py.pipeline.remote_inputs import RemoteInputs

from ...made_data import write_signals
from ..signals.made_pod5 import write_pod5
from ..signals.made_signals import MadeRead, assert_same_block

pytest.importorskip("pod5")
fsspec = pytest.importorskip("fsspec")
N_READS = 700


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteInputs]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with RemoteInputs() as one:
        yield one
    fsspec.filesystem("memory").rm("/run", recursive=True)


@pytest.fixture(scope="module")
def reads() -> list[MadeRead]:
    """Make reads, some with more samples than a piece of a POD5 file has."""
    generator = np.random.default_rng(5)
    made = []
    for i in range(N_READS):
        n = 150_000 if i % 50 == 7 else int(generator.integers(1, 30_000))
        samples = np.cumsum(generator.integers(-20, 21, n)).clip(-2000, 2000).astype(np.int16)
        made.append(MadeRead(f"{i:08x}-0000-4000-8000-000000000000", samples, 2048.0, 3.0, 1400.0, 4000.0))
    return made


@pytest.mark.parametrize("form", ["pod5", "uncompressed pod5", "blow5"])
def test_random_reads(
    tmp_path: Path, inputs: RemoteInputs, reads: list[MadeRead], form: str, capfd: pytest.CaptureFixture[str]
):
    memory = fsspec.filesystem("memory")
    halves = {"0": reads[::2], "1": reads[1::2]}
    if form == "blow5":
        local = str(write_signals(tmp_path / "all.blow5", reads))
        open_signals(None, slow5=[local]).close()  # makes the index
        memory.put(local, "/run/all.blow5")
        memory.put(f"{local}.idx", "/run/all.blow5.idx")
        path = inputs.slow5("memory://run/all.blow5")
        paths = [path]
    else:
        names = {}
        (tmp_path / "pod5").mkdir()
        for name, half in halves.items():
            file = tmp_path / "pod5" / f"{name}.pod5"
            names |= write_pod5(file, half, compressed=form == "pod5")
            memory.put(str(file), f"/run/pod5/{name}.pod5")
        local = str(tmp_path / "pod5")
        path = inputs.pod5("memory://run/pod5")
        paths = [f"{path}/{name}.pod5" for name in halves]
    option = "slow5" if form == "blow5" else "pod5"
    near, far = (open_signals(None, **{option: [where]}, n_processes=1, n_threads=2) for where in (local, path))
    known = list(near.first_names(N_READS))
    assert known == list(far.first_names(N_READS))
    chance = np.random.default_rng(3)
    n_whole = sum(os.path.getsize(one) for one in paths)
    for size in (1, 5, 40):
        some = chance.choice(known, size).tolist()
        expected, found = near.fetch(some), far.fetch(some)
        assert not found.problems
        assert_same_block(expected, found)
        n_there = sum(os.stat(one).st_blocks * 512 for one in paths)
        assert n_there < 0.5 * n_whole, "whole files were fetched"
    for one in paths:
        file = ranged_file(one)
        assert file is not None
        file.forget()
    again = known[::-1]  # what has gone comes again
    assert_same_block(near.fetch(again), far.fetch(again))
    file.files._most = 100_000  # from now on it goes before each fetch
    for size in (3, 30, 100):
        some = chance.choice(known, size).tolist()
        assert_same_block(near.fetch(some), far.fetch(some))
    near.close()
    far.close()
    assert "sparse" not in capfd.readouterr().err
