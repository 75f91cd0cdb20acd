"""Values of options from Python, other names of them, and what errors and types say."""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import f5py
from f5py.api.call import FUNCTIONS
from f5py.commands.summary import SummaryReport
from f5py.commands.train import TrainingSummary
from f5py.commands.validate import Agreement, ValidationReport
from f5py.compute.chemistry import chemistry_of
from f5py.compute.methylation import builtin_methylation
from f5py.core.motifs import motif_named
from f5py.errors import UsageError

from ..made_data import ReadSet

ROOT = Path(f5py.__file__).parent


@pytest.fixture
def inputs(made: ReadSet) -> dict[str, Any]:
    return {"reads": made.reads, "bam": made.bam, "genome": made.genome, "threads": 2, "iop": 1}


def test_sizes_as_on_the_command_line(inputs: dict[str, Any]) -> None:
    calls = f5py.call_methylation(**inputs)
    assert f5py.call_methylation(**inputs, max_bases="2K").equals(calls)
    for wrong, why in (("lots", "is not a number such as"), ("5T", "is not a number such as"), ("0", "at least 1")):
        with pytest.raises(UsageError, match=f"max.bases.*{why}"):
            f5py.call_methylation(**inputs, max_bases=wrong)


def test_homes_in_paths(made: ReadSet, inputs: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(made.folder))
    at_home = {**inputs, "bam": f"~/{made.bam.name}", "genome": Path("~") / made.genome.name}
    calls = f5py.call_methylation(**at_home)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert calls.equals(f5py.call_methylation(**inputs))
    f5py.call_methylation(**inputs, output="~/calls.tsv", report=["~/a.html"])
    assert (tmp_path / "calls.tsv").exists()
    assert (tmp_path / "a.html").exists()


@pytest.mark.parametrize(("returns", "kind"), [(None, pa.Table), ("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_kinds_of_tables_of_iterators(inputs: dict[str, Any], returns: Any, kind: type) -> None:
    for function in (f5py.iter_calls, f5py.iter_events):
        tables = list(function(**inputs, batchsize=8, returns=returns))
        assert len(tables) == 2
        assert all(isinstance(table, kind) for table in tables)
    with pytest.raises(UsageError, match="returns: "):
        next(f5py.iter_calls(**inputs, returns="csv"))


def test_a_model_of_a_training(inputs: dict[str, Any]) -> None:
    model = builtin_methylation(chemistry_of("r9", False, {}, False), motif_named("cpg"))
    assert model is not None
    trained = TrainingSummary(model, np.ones(len(model.level_mean)), [], None, 0, {})
    calls = f5py.call_methylation(**inputs)
    assert f5py.call_methylation(**inputs, meth_model=trained).equals(calls)
    with pytest.raises(UsageError, match="kmer_model: "):
        f5py.call_methylation(**inputs, kmer_model=object())


def test_names_of_the_command_line(inputs: dict[str, Any], tmp_path: Path) -> None:
    """A keyword can be any long name of the option."""
    window = ("simulated", 1000, 5000)
    calls = f5py.call_methylation(**inputs, window=window)
    assert f5py.call_methylation(**inputs, region=window).equals(calls)
    given = {name: value for name, value in inputs.items() if name != "genome"}
    assert f5py.call_methylation(**given, reference=inputs["genome"], region=window).equals(calls)
    with pytest.raises(TypeError, match="multiple values for option 'window'"):
        f5py.call_methylation(**inputs, window=window, region=window)
    with pytest.raises(TypeError, match="no option 'regions'"):
        f5py.call_methylation(**inputs, regions=window)
    for i, name in enumerate(("genome", "reference")):
        shape = {"n_reads": 2, "median_length": "1K", "seed": 1, name: inputs["genome"]}
        assert f5py.simulate(output=tmp_path / str(i), **shape).n_reads == 2
    assert (tmp_path / "0" / "truth.tsv").read_bytes() == (tmp_path / "1" / "truth.tsv").read_bytes()


def _wrong_calls(inputs: dict[str, Any]) -> list[Any]:
    return [
        lambda: f5py.call_methylation(**inputs, window=[]),
        lambda: f5py.call_methylation(**inputs, returns="csv"),
        lambda: f5py.call_methylation(**inputs, prior=0.3),
        lambda: f5py.map_reads("ref.fa", "reads.fa"),
        lambda: next(f5py.iter_calls(**inputs, min_mapq="x")),
        lambda: f5py.frequencies("calls.tsv", output="x.docx"),
        lambda: f5py.plot_region(bam="x.bam", window="x.bed", output="x.png"),
        lambda: f5py.call_methylation(genom="x"),
        lambda: f5py.index("a", "b"),
    ]


def test_tracebacks_have_one_frame_of_ours(inputs: dict[str, Any]) -> None:
    for call in _wrong_calls(inputs):
        with pytest.raises((UsageError, TypeError)) as caught:
            call()
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert sum(Path(frame.filename).is_relative_to(ROOT) for frame in frames) <= 1
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


def test_reports_have_the_fields_of_their_types(inputs: dict[str, Any], tmp_path: Path) -> None:
    f5py.call_methylation(**inputs, output=tmp_path / "calls.tsv")
    f5py.frequencies(tmp_path / "calls.tsv", output=tmp_path / "sites.tsv")
    assert set(f5py.summary(tmp_path / "calls.tsv")) == set(SummaryReport.__annotations__)
    truth = inputs["genome"].parent / "truth.tsv"
    found = f5py.validate(tmp_path / "calls.tsv", truth) | f5py.validate(tmp_path / "sites.tsv", truth)
    assert set(found) == set(ValidationReport.__annotations__) - {"tags"}
    assert set(found["frequencies"]) == set(Agreement.__annotations__)


# -- types

#: A call of each function, and the type of its result.
_CALLS = """
f5py.call_methylation(bam="b", genome="g", pod5=["a", "b"], max_bases="5M", window=[("c", 1, 2), "c:3-4"])  # Arrow
f5py.call_methylation(bam="b", genome="g", returns="pandas", meth_model=f5py.train(genome="g"))  # Pandas
f5py.call_methylation(bam="b", genome="g", returns="polars")  # Polars
f5py.call_methylation(bam="b", genome="g", output="x")  # RunCounts
f5py.call_methylation(bam="b", genome="g", output_format="none", bedmethyl="x")  # RunCounts
f5py.call_methylation(reads="r", genome="g", modbam_output_name="x")  # RunCounts
f5py.iter_calls(bam="b", genome="g")  # Iterator[f5py.Arrow]
f5py.iter_calls(bam="b", genome="g", returns="pandas")  # Iterator[f5py.Pandas]
f5py.eventalign(bam="b", genome="g")  # Arrow
f5py.eventalign(bam="b", genome="g", m6anet_json="folder")  # RunCounts
f5py.iter_events(bam="b", genome="g", returns="polars")  # Iterator[f5py.Polars]
f5py.resquiggle("r", ["a", "b"], read_ids=["x"])  # Arrow
f5py.resquiggle("r", "a", paf=True, output="x")  # RunCounts
f5py.frequencies(["a", "b"], returns="pandas")  # Pandas
f5py.frequencies(f5py.iter_calls(bam="b", genome="g"))  # Arrow
f5py.merge_frequencies(["a", "b"])  # Arrow
f5py.compare("a", "b", output="x")  # Arrow
f5py.extract("a.bam", returns="pandas")  # Pandas
f5py.regions("a.bed", ["a", "b"])  # Arrow
f5py.fast5_check(reads="r")  # Arrow
f5py.fast5_check(reads="r", output="x")  # tuple[int, int]
f5py.index("r", slow5=["a", "b"])  # IndexSummary
f5py.map_reads("g", "r", output="x")  # MapCounts
f5py.simulate(output="x", genome="g")  # SimulationSummary
f5py.train(genome="g")  # TrainingSummary
f5py.summary("x")["calls"]  # int
f5py.validate("a", "b")["frequencies"]["correlation"]  # float | None
f5py.plot("r", bam="b", genome="g", pod5="p")  # Picture
f5py.plot_region(bam="b", window="c:1-2")  # Picture
f5py.plan("p")  # str
f5py.finish("p")  # RunCounts
f5py.frequencies("x").num_rows  # int
""".strip().splitlines()
#: Functions that return nothing.
_OTHERS = ["f5py.run_part('p', '0-1')", "f5py.merge(['a', 'b'], output='x')"]


def test_types_of_results(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="needs mypy")
    assert all(any(f"f5py.{name}(" in line for line in (*_CALLS, *_OTHERS)) for name in FUNCTIONS if name[0] != "_")
    lines = ["import f5py", *(f"reveal_type({line.partition('  # ')[0]})" for line in _CALLS), *_OTHERS]
    (tmp_path / "calls_of_all.py").write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "calls_of_all.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    revealed = [line.partition("Revealed type is ")[2] for line in done.stdout.splitlines() if "Revealed" in line]
    assert len(revealed) == len(_CALLS)
    for line, kind in zip(_CALLS, revealed, strict=True):
        assert line.partition("  # ")[2].rpartition(".")[2] in kind, line
        assert "Any" not in kind, line
