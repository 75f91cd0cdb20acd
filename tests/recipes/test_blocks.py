"""Every block of commands in README and docs is run, here or by another test, or the page's source says why not.

A block that is not run has ``<!-- not run: REASON -->`` on the line above it. All others are run with small made files
that have the names in the document; a block of Python is run as it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ..made_data import run_command
from . import stage
from .shell import ROOT, is_installed, run

_FENCE = re.compile(r"^([ ]*)```(\S*)[^\n]*\n(.*?)^\1```[ ]*$", re.MULTILINE | re.DOTALL)
_REASON = re.compile(r"<!-- not run: (.+?) -->\n\s*\Z")
_COMMANDS = ("sh", "bash", "console", "python")
#: Languages of what is no command: output, data, and files.
_OTHERS = ("", "text", "json", "toml", "yaml", "groovy", "snakemake", "mermaid", "r")
_LOOKS_LIKE_A_COMMAND = re.compile(r"^\s*(\$ |f5py |pip |m6anet |samtools |import f5py)", re.MULTILINE)
_OPERATORS = frozenset("|&;<>$`")


class Block(NamedTuple):
    """A block of a page."""

    page: str
    line: int
    language: str
    text: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks() -> Iterator[Block]:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        yield from blocks_of(str(path.relative_to(ROOT)), path.read_text())


def blocks_of(page: str, text: str) -> Iterator[Block]:
    for found in _FENCE.finditer(text):
        reason = _REASON.search(text[: found.start()])
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, found[2], found[3], None if reason is None else reason[1])


def is_run_elsewhere(block: Block) -> bool:
    """Return whether another test runs it."""
    tests = Path(__file__).parent
    name = Path(block.page).stem
    if block.page.startswith("docs/tutorials/"):
        return block.language == "sh" and f'run_tutorial("{name}"' in (tests / "test_tutorials.py").read_text()
    if block.page == "docs/recipes.md":
        return block.language == "sh" and "def test_all_recipes_are_here" in (tests / "test_recipes.py").read_text()
    if block.page == "docs/python.md":
        examples = (tests.parent / "api" / "test_examples.py").read_text()
        return block.text.startswith(">>> ") and '"python.md"' in examples
    return False


ALL = list(blocks())
HERE = [one for one in ALL if one.language in _COMMANDS and one.reason is None and not is_run_elsewhere(one)]


def test_reasons_belong_to_the_next_block() -> None:
    text = "<!-- not run: needs a GPU -->\n```sh\nf5py gpu-check\n```\n\n```sh\nf5py demo\n```\n"
    text += "  ```\n  f5py demo\n  ```\n"
    found = list(blocks_of("page", text))
    assert [(one.line, one.language, one.reason) for one in found] == [
        (2, "sh", "needs a GPU"),
        (6, "sh", None),
        (9, "", None),
    ]
    assert [bool(_LOOKS_LIKE_A_COMMAND.search(one.text)) for one in found] == [True, True, True]
    assert not any(map(is_run_elsewhere, found))


def test_all_blocks_say_what_they_are() -> None:
    """No command escapes the tests as text, and no language is unknown."""
    for block in ALL:
        assert block.language in (*_COMMANDS, *_OTHERS), f"{block}: {block.language}"
        if block.language not in _COMMANDS:
            assert not _LOOKS_LIKE_A_COMMAND.search(block.text), f"{block}: has a command; call it sh"
    assert len(ALL) > 50


def test_reasons_are_reasons() -> None:
    for block in ALL:
        if block.reason is not None:
            assert len(block.reason.split()) >= 2, f"{block}: {block.reason}"
            assert block.language in _COMMANDS, f"{block}: is never run; leave the reason out"


@pytest.fixture(scope="session")
def dna_stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pod5")
    folder = tmp_path_factory.mktemp("stage_dna")
    stage.make_dna(folder)
    return folder


@pytest.fixture(scope="session")
def rna_stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pod5")
    pytest.importorskip("zstandard")
    folder = tmp_path_factory.mktemp("stage_rna")
    stage.make_rna(folder)
    return folder


@pytest.mark.parametrize("block", HERE, ids=str)
def test_block(block: Block, dna_stage: Path, rna_stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = {"dna": stage.copied(dna_stage, tmp_path / "dna")}
    text = block.text
    for word, other in stage.STAND_INS.items():
        text = text.replace(word, other)
    text = re.sub(r"\b(READ_ID|0a6c2d4e-read)\b", stage.first_read(folders["dna"]), text)
    monkeypatch.chdir(folders["dna"])
    if block.language == "python":
        exec(compile(text, str(block), "exec"), {})
        return
    missing = []
    for line in commands(text):
        kind = "rna" if "transcripts.fa" in line or "native." in line or "m6anet" in line or "xpore" in line else "dna"
        if kind not in folders:
            folders[kind] = stage.copied(rna_stage, tmp_path / "rna")
        tool = line.split()[0]
        if not is_installed(tool):
            missing.append(tool)
            continue
        monkeypatch.chdir(folders[kind])
        if tool == "f5py" and not _OPERATORS & set(line):
            assert run_command(*shlex.split(line)[1:]) == 0, line
        else:
            run(folders[kind], line)
    if missing:
        pytest.skip(f"needs {' and '.join(dict.fromkeys(missing))}; all other lines were run")


def commands(text: str) -> list[str]:
    """Split a block into its command lines: without comments, and those that go on joined."""
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [line for line in (re.sub(r"(^|\s)#.*$", "", one).strip() for one in lines) if line]
