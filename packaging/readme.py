"""Description of the distribution: README.md with links that work on a package index, too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|#)([^)]+)\)")


def absolute_links(text: str, repository: str, version: str) -> str:
    """Let links and pictures lead to the files of a version in the repository."""

    def absolute(found: re.Match[str]) -> str:
        picture, label, path = found.groups()
        return f"{picture}{label}({repository}/{'raw' if picture else 'blob'}/v{version}/{path})"

    return _LINK.sub(absolute, text)


class ReadmeHook(MetadataHookInterface):
    """Hook of the build: the description, with the links of `repository` in pyproject.toml."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description; links stay as they are while the repository has no address."""
        text = (ROOT / "README.md").read_text()
        if repository := self.config["repository"]:
            text = absolute_links(text, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
