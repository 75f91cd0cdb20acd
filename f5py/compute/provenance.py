"""Provenance of a run: command, chemistry, models, options."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from f5py import __version__
from f5py.compute.chemistry import Chemistry

#: Under which a Parquet file has all of it.
ENTRY = "f5py"


@dataclass(frozen=True)
class Provenance:
    """Chemistry, models and options of a run; independent of threads, batches and GPUs."""

    command: str
    chemistry: Chemistry
    models: Mapping[str, str]  # names of the pore models by what they are for
    options: Mapping[str, Any]  # see `f5py.options.effective.effective`
    option_words: str  # the same in words

    def with_models(self, models: Mapping[str, str]) -> Provenance:
        """Return a copy with further models."""
        return replace(self, models={**self.models, **models})

    @property
    def short_line(self) -> str:
        """Chemistry and models in one line."""
        about = self.chemistry
        known = f" ({about.known_from})" if about.known_from else ""
        return f"chemistry {about.name}{known}{''.join(f'; {what} {name}' for what, name in self.models.items())}"

    @property
    def line(self) -> str:
        """Chemistry, models and options in one line."""
        return f"{self.short_line}; {self.option_words}"

    def as_json(self) -> dict[str, Any]:
        about = self.chemistry
        return {
            "chemistry": about.name,
            "pore": about.pore,
            "rna": about.rna,
            "known_from": about.known_from,
            "models": dict(self.models),
            "options": dict(self.options),
        }

    @property
    def metadata(self) -> dict[str, str]:
        """Key-value metadata of a Parquet file."""
        return {ENTRY: json.dumps({"version": __version__, "command": self.command, **self.as_json()})}


def metadata_in_common(texts: Sequence[bytes | None]) -> dict[str, str]:
    """Merge the `ENTRY` metadata of several Parquet files, ignoring their windows; empty if they differ otherwise."""
    if len(set(texts)) > 1:
        texts = [_without_window(text) for text in texts]
    first = texts[0]
    if first is None or any(text != first for text in texts):
        return {}
    return {ENTRY: first.decode("utf-8", "replace")}


def _without_window(text: bytes | None) -> bytes | None:
    try:
        about = json.loads(text or b"")
        for name in ("window", "window_mode"):
            about["options"].pop(name, None)
        return json.dumps(about).encode()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # not of f5py
