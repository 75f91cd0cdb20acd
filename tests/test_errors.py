"""Messages about optional packages."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import f5py
from f5py.errors import MissingDependencyError, unavailable
from f5py.io.remote.urls import file_system


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (ModuleNotFoundError("No module named 'pod5'", name="pod5"), "POD5 needs pod5; install it: pip install pod5"),
        (
            ModuleNotFoundError("No module named 'lib_pod5'", name="lib_pod5"),
            "POD5 needs pod5, which is installed but cannot be loaded: No module named 'lib_pod5'",
        ),
        (
            ImportError("libarrow.so.2: cannot open\nshared object file"),
            "POD5 needs pod5, which is installed but cannot be loaded: libarrow.so.2: cannot open shared object file",
        ),
    ],
)
def test_missing_and_broken_packages_are_told_apart(problem: ImportError, words: str):
    assert str(unavailable(problem, "POD5 needs", "pod5", "pod5")) == words


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (ModuleNotFoundError("No module named 's3fs'", name="s3fs"), "the package s3fs; install it: pip install"),
        (
            ImportError("libssl.so.9: cannot open"),
            "the package s3fs, which is installed but cannot be loaded: libssl.so.9",
        ),
    ],
)
def test_packages_of_urls(cause: ImportError | None, words: str, monkeypatch: pytest.MonkeyPatch):
    """fsspec asks for a package whatever the reason is that it cannot be imported."""
    core = pytest.importorskip("fsspec.core")

    def broken(*_: object, **__: object) -> object:
        raise ImportError("Install s3fs to access S3") from cause

    monkeypatch.setattr(core, "url_to_fs", broken)
    with pytest.raises(MissingDependencyError, match=words):
        file_system("s3://bucket/reads.bam")


def test_no_reason_of_an_import_is_lost():
    """What catches that a package cannot be imported says whether it is missing or broken, and why."""
    handlers = [
        (path, node)
        for path in sorted(Path(f5py.__file__).parent.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler) and node.type is not None and "ImportError" in ast.unparse(node.type)
    ]
    assert len(handlers) > 5
    for path, node in handlers:
        body = ast.unparse(node)
        if [ast.unparse(one) for one in node.body] == ["raise"]:
            continue
        told = ("unavailable(problem", "not_loaded(problem", "_needs_package(shown")
        assert any(one in body for one in told), f"{path}, line {node.lineno}"
