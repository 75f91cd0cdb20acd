"""The examples of the documentation."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest

import f5py

ROOT = Path(__file__).resolve().parents[2]


def test_examples_of_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(
        str(ROOT / "docs" / "python.md"), module_relative=False, optionflags=doctest.ELLIPSIS
    )
    assert tried > 15
    assert failed == 0


#: Each in the folder with the files of those before.
_ORDER = (
    "simulate", "index", "map_reads", "call_methylation", "iter_calls", "frequencies", "merge_frequencies", "extract",
    "regions", "eventalign", "iter_events", "resquiggle", "summary", "validate", "compare", "fast5_check",
    "plot_region", "plot", "run_part", "plan", "finish", "merge",
)  # fmt: skip


def test_examples_of_the_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue's; that of training would take too long."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("matplotlib")
    assert {*_ORDER} == {*f5py.__all__} - {"train", "F5pyError", "UsageError"}
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"f5py": f5py}
    for name in _ORDER:
        text = getattr(f5py, name).__doc__
        assert "Examples\n--------\n>>> " in text
        test = doctest.DocTestParser().get_doctest(text, names, name, None, None)
        assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0, name
        names = test.globs
