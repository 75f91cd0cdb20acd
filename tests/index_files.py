"""Small made-up fast5 files and reads for the tests of indexing. They hold names only, no signals."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from f5py.commands.index import IndexSummary, run
from f5py.options.table_commands import IndexOptions


def index_reads(reads: Path | str, *directories: Path | str, **more: Any) -> IndexSummary:
    """Index reads and signals as ``f5py index`` does."""
    return run(IndexOptions(reads=(str(reads),), directories=tuple(map(str, directories)), **{"threads": 1} | more))


def index_quietly(reads: Path | str, *directories: Path | str, **more: Any) -> None:
    """Index reads for a test of something else, without messages."""
    with redirect_stderr(io.StringIO()):
        index_reads(reads, *directories, **more)


def single_fast5(path: Path, name: str, version: object = np.float64(0.6), read_id: object = None) -> Path:
    """Write a single-read file as MinKNOW did: the version is a number, the name a fixed-length text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        if version is not None:
            file.attrs["file_version"] = version
        file.create_group("UniqueGlobalKey/tracking_id")  # nanopolish does not take it otherwise
        read = file.create_group("Raw/Reads/Read_7")
        read.attrs["read_id"] = np.bytes_(name) if read_id is None else read_id
    return path


def multi_fast5(path: Path, names: Sequence[str], version: object = "2.0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        if version is not None:
            file.attrs["file_version"] = version
        for name in names:
            file.create_group(f"read_{name}")
    return path


def fasta(path: Path, names: Sequence[str]) -> Path:
    path.write_text("".join(f">{name}\nACGTACGT\n" for name in names))
    return path


def readdb(reads: Path) -> list[tuple[str, str]]:
    lines = Path(f"{reads}.index.readdb").read_text().splitlines()
    return [tuple(line.split("\t")) for line in lines]
