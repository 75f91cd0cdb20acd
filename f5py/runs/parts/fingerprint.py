"""Fingerprints of inputs, for detecting changes after planning."""

import hashlib
import os
from collections.abc import Iterable
from typing import Any

from f5py.errors import InputFileError
from f5py.io.remote import is_url
from f5py.io.remote.urls import samples, stat_url
from f5py.io.signals.search import walk_folder
from f5py.messages import console
from f5py.options.input_names import BESIDE_SLOW5

#: Stretches of a file that are looked at, and their bytes.
_N_SAMPLES, _SAMPLE_BYTES = 16, 1 << 16


def fingerprints(paths: Iterable[str | None]) -> dict[str, dict[str, Any]]:
    """Return size, time and sampled checksums of the existing paths. Raises `InputFileError`.

    Of a folder the names, sizes and times of all files below count.
    """
    found = {path: _fingerprint(path) for path in dict.fromkeys(paths) if path}
    return {path: one for path, one in found.items() if one is not None}


def check_unchanged(known: dict[str, dict[str, Any]], what: str) -> None:
    """Raise `InputFileError` if an input has changed. `what` names its origin, such as the plan, in messages.

    A rewritten file with the same size and samples, such as a copy, is reported.
    """
    for path, then in known.items():
        now = _fingerprint(path)
        if now is None:
            raise InputFileError(f"{path}: no such file; it was there when {what} was made")
        if now["bytes"] != then["bytes"]:
            raise InputFileError(
                f"{path}: has changed since {what} was made: {now['bytes']:,} bytes, then {then['bytes']:,}; "
                "make a new plan"
            )
        if now["sha256"] != then["sha256"]:
            raise InputFileError(f"{path}: has changed since {what} was made: other content; make a new plan")
        if now["modified"] != then["modified"]:
            console.warning(
                "plan", f"{path} has been written again since {what} was made; its size and samples of it are the same"
            )


def _fingerprint(path: str) -> dict[str, Any] | None:
    if is_url(path):
        return _fingerprint_url(path)
    if not os.path.exists(path):
        return None
    try:
        if os.path.isdir(path):
            return _fingerprint_folder(path)
        about = os.stat(path)
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            for place in _offsets(about.st_size):
                file.seek(place)
                digest.update(file.read(_SAMPLE_BYTES))
        return {"bytes": about.st_size, "modified": about.st_mtime_ns, "sha256": digest.hexdigest()}
    except OSError as problem:
        raise InputFileError(f"{path}: cannot be read: {problem.strerror}") from None


def _offsets(size: int) -> list[int]:
    """Choose the offsets of samples."""
    return [max(size - _SAMPLE_BYTES, 0) * i // (_N_SAMPLES - 1) for i in range(_N_SAMPLES)]


def _fingerprint_url(url: str) -> dict[str, Any] | None:
    about = stat_url(url)
    if about is None:
        return None
    digest = hashlib.sha256()
    if about.files is not None:
        for name, size in about.files:
            digest.update(f"{name}\0{size}\n".encode(errors="surrogateescape"))
    else:
        for piece in samples(url, [(place, min(place + _SAMPLE_BYTES, about.size)) for place in _offsets(about.size)]):
            digest.update(piece)
    return {"bytes": about.size, "modified": about.identity, "sha256": digest.hexdigest()}


def _refuse(problem: OSError) -> None:
    raise problem


def _fingerprint_folder(path: str) -> dict[str, Any]:
    digest = hashlib.sha256()
    size, modified = 0, 0
    for folder, _, names in walk_folder(path, _refuse):
        for name in names:
            if name.endswith(BESIDE_SLOW5):  # which a run may make
                continue
            try:
                about = os.stat(os.path.join(folder, name))
            except FileNotFoundError:  # a link that leads nowhere, which no search for signals takes
                continue
            digest.update(f"{os.path.relpath(folder, path)}/{name}\0{about.st_size}\n".encode(errors="surrogateescape"))
            size += about.st_size
            modified = max(modified, about.st_mtime_ns)
    return {"bytes": size, "modified": modified, "sha256": digest.hexdigest()}
