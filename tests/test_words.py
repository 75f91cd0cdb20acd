"""The words of the package: names of classes, and sentences of docstrings."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TREES = {path.relative_to(ROOT): ast.parse(path.read_text()) for path in sorted((ROOT / "f5py").rglob("*.py"))}
WIDTH = 100
#: A clause that stands for a noun.
CLAUSE = re.compile(r"\b(what|who|whose|whom)\b", re.IGNORECASE)
#: Code, and the line of a parameter.
NOT_PROSE = re.compile(r"`+[^`]*`+|^\w+( \w+)* :.*$", re.MULTILINE)


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield place and text of the docstrings of modules, classes and functions."""
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            is_documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if is_documented and (text := ast.get_docstring(node)):
                yield f"{path}:{getattr(node, 'lineno', 1)}", text


def test_every_class_has_a_name_of_its_own():
    names = Counter(node.name for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert {name for name, n in names.items() if n > 1} == set()


def test_first_sentences_are_short():
    firsts = {place: re.split(r"(?<=\.)\s|\n\s*\n", text)[0].replace("\n", " ") for place, text in docstrings()}
    assert {place: first for place, first in firsts.items() if len(first) > WIDTH} == {}


def test_no_clause_stands_for_a_noun():
    found = [
        f"{place}: {sentence}"
        for place, text in docstrings()
        for sentence in re.split(r"(?<=[.!?:;])\s+", NOT_PROSE.sub("", text))
        if CLAUSE.search(sentence)
    ]
    assert found == []
