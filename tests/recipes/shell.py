"""Shell commands of documents, run where their tools are installed.

Tools are looked for in PATH, and in the folders that the variable F5PY_RECIPE_PATH names, which has the form of PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ..forked import in_programs
from ..patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
_PLACES = [str(Path(sys.executable).parent), os.environ["PATH"], os.environ.get("F5PY_RECIPE_PATH", "")]
_ENVIRONMENT = {**os.environ, "PATH": os.pathsep.join(filter(None, _PLACES)), "MPLBACKEND": "agg", "LC_ALL": "C.UTF-8"}


def shell_blocks(text: str) -> list[str]:
    """Find the blocks of shell commands in a document, or in a part of it, but those that say why they are not run."""
    found = re.finditer(r"^(<!-- not run: .+ -->\n)?```sh\n(.+?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block[2] for block in found if block[1] is None]


def is_installed(tool: str) -> bool:
    return shutil.which(tool, path=_ENVIRONMENT["PATH"]) is not None


def run(folder: Path, commands: str) -> str:
    """Run commands in a folder; return what they print."""
    with in_programs(_ENVIRONMENT) as variables:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands], cwd=folder, capture_output=True, text=True,
            timeout=PATIENCE, check=False, env=_ENVIRONMENT | variables,
        )  # fmt: skip
    assert done.returncode == 0, f"{commands}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def needs(tool: str) -> None:
    if not is_installed(tool):
        pytest.skip(f"needs {tool}; F5PY_RECIPE_PATH may name its folder")
