"""Provenance of a run: command, chemistry, models, options."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from f5py import __version__
from f5py.compute.chemistry import Chemistry
from f5py.options import Group, Kind, Option, Options, declarations

#: Under which a Parquet file has all of it.
ENTRY = "f5py"
#: Groups of options that change results; of the outputs' those that do not name a file.
_GROUPS = (Group.SELECTION, Group.MODEL, Group.LIMITS, Group.OUTPUT)
#: What is said in other words: the chemistry, the models, names and kinds of outputs, and another name of --noise.
_SAID_ELSEWHERE = frozenset(
    ("pore", "rna", "kmer_model", "meth_model", "accurate", "sample", "output_format", "modbam_output_name")
)
#: Options without a meaning unless another is given.
_ONLY_WITH = {
    "ultra_thresh": ("skip_ultra",),
    "window_mode": ("window",),
    "modbam_style": ("modbam",),
    "prior": ("modbam",),
    "sam_out_version": ("sam",),
    "m6anet_min_reads": ("m6anet_json",),
    "m6anet_max_reads": ("m6anet_json",),
}
#: Options whose default, in words, is one of their values.
_WORDS_ARE_VALUES = frozenset(
    ("methylation", "noise", "rescale", "window_mode", "prior", "call_threshold", "sam_out_version")
)


@dataclass(frozen=True)
class Provenance:
    """Chemistry, models and options of a run; independent of threads, batches and GPUs."""

    command: str
    chemistry: Chemistry
    models: Mapping[str, str]  # names of the pore models by what they are for
    options: Mapping[str, Any]  # see `effective`
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


def effective(options: Options) -> dict[str, Any]:
    """Return the options that change results by their names, with the values that hold.

    Options that are not given have their default; those without one, or without a meaning beside the others, are left
    out. Threads, batch sizes and names of outputs do not change results, and are left out, too.
    """
    shown: dict[str, Any] = {}
    for name, declared in declarations(type(options)).items():
        is_file = declared.kind in (Kind.FILE, Kind.PATH)
        if declared.group not in _GROUPS or declared.refused or is_file or name in _SAID_ELSEWHERE:
            continue
        if any(not getattr(options, other) for other in _ONLY_WITH.get(name, ())):
            continue
        value = _value(options, name, declared)
        if value is not None and not (declared.kind is Kind.FLAG and not value):
            shown[name] = value
    return shown


def in_words(options: Options) -> str:
    """Say the same as `effective` in a line, as it would be given on the command line."""
    declared, words = declarations(type(options)), []
    for name, value in effective(options).items():
        spelling = declared[name].names[-1]
        if declared[name].kind is Kind.YES_NO:
            spelling += " yes" if value else " no"
        elif declared[name].kind is not Kind.FLAG:
            spelling += f" {value:g}" if isinstance(value, float) else f" {value}"
        words.append(spelling)
    return ", ".join(words)


def _value(options: Any, name: str, declared: Option) -> Any:
    """Determine the value of an option, also if it is not given."""
    if name == "noise" and options.is_correlated:
        return "correlated"
    value = getattr(options, name)
    if declared.repeated:
        return " ".join(map(str, value)) or None
    if value is not None or name not in _WORDS_ARE_VALUES or (name == "methylation" and options.motif is not None):
        return value
    words = declared.default_words
    if declared.kind is Kind.YES_NO:
        return words == "yes"
    if declared.kind is Kind.NUMBER:
        return float(str(words))
    return next((choice for choice in declared.choices if str(choice) == words), words)


def metadata_in_common(texts: Sequence[bytes | None]) -> dict[str, str]:
    """Merge the `ENTRY` metadata of several Parquet files, ignoring their windows. Empty if they differ otherwise."""
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
