"""Local folder of a run's remote inputs."""

import fcntl
import os
import secrets
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import IO, Any

import numpy as np

from f5py.errors import F5pyError, InputFileError, OutputFileError, UsageError
from f5py.io.bam.bam_index import index_names
from f5py.io.bam.bam_records import header_size
from f5py.io.bam.record_ranges import range_file
from f5py.io.bytes.bgzf_blocks import BLOCK_MAGIC, MAX_BLOCK, DamagedBlocksError
from f5py.io.files.disk import remove_folder
from f5py.io.files.signal_format import BINARY_HEADER_AT, BLOW5_MAGIC, POD5_MAGIC
from f5py.io.remote.copies import copy_into, limit
from f5py.io.remote.ranged_file import RangedFile, RangedFiles, show_urls_below, shown
from f5py.io.remote.urls import file_system, reading, redact_url
from f5py.jit.cache_folder import cache_folder
from f5py.messages import console

#: Bytes fetched first, at a file's start and at a POD5 file's end.
_BEGINNING, _POD5_END = 1 << 16, 1 << 18
#: Largest size of cached ranges.
_MOST_KEPT = 1 << 30
_LOCK = "lock"


class RemoteInputs(AbstractContextManager["RemoteInputs"]):
    """Local files for URLs, removed at the end. Raises `UsageError` as `f5py.io.remote.copies.limit`."""

    def __init__(self) -> None:
        limit()
        kept = os.path.join(cache_folder(), "f5py", "remote")
        self._copies = os.path.join(kept, "copies")
        runs = os.path.join(kept, "runs")
        try:
            os.makedirs(runs, exist_ok=True)
        except OSError as problem:
            raise OutputFileError(
                f"{runs}: cannot write: {problem.strerror}; name another folder with XDG_CACHE_HOME"
            ) from None
        self._folder = os.path.join(runs, secrets.token_hex(8))
        with open(os.path.join(kept, _LOCK), "w") as lock:  # protects the new folder from `_remove_left`
            _lock(lock)
            _remove_left(runs)
            os.mkdir(self._folder, 0o700)
            self._lock = open(os.path.join(self._folder, _LOCK), "w")  # noqa: SIM115 - closed at the end
            _lock(self._lock)
        show_urls_below(runs)
        self._groups: list[RangedFiles] = []
        self._n_inputs = 0  # each has its own folder

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, *_: object) -> None:
        if isinstance(problem, F5pyError):
            problem.args = tuple(shown(part) if isinstance(part, str) else part for part in problem.args)
        for group in self._groups:
            group.close()
        remove_folder(self._folder)
        self._lock.close()

    def file(self, url: str, beside: Sequence[str] = ()) -> str:
        """Copy a file, and existing files with its name and one of these suffixes; return the path."""
        self._n_inputs += 1
        path = self._path(url)
        copy_into(self._copies, url, self._about(url), path)
        for ending in beside:
            self._copy_if_there(f"{redact_url(url)}{ending}")
        return path

    def alignments(self, url: str) -> str:
        """Make a sparse file for BAM, or a copy for other formats, with any index; return the path."""
        self._n_inputs += 1
        about = self._about(url)
        file = self._ranged(url, [(url, about)])[0]
        file.fetch_ranges(0, MAX_BLOCK, stay=True)
        with open(file.path, "rb") as opened:
            is_bgzf = opened.read(len(BLOCK_MAGIC)) == BLOCK_MAGIC
        n_header = _header_end(file.path) if is_bgzf else None
        if n_header is None:  # SAM or CRAM: htslib reads it
            self._give_up(file)
            return self.file(url, [".crai"])
        file.fetch_ranges(0, n_header, stay=True)
        for name in index_names(redact_url(url)):
            self._copy_if_there(name)
        return file.path

    def slow5(self, url: str) -> str:
        """Make a sparse file for indexed BLOW5, or a copy for other files; return the path."""
        self._n_inputs += 1
        about = self._about(url)
        index = f"{redact_url(url)}.idx"
        if not self._copy_if_there(index):
            console.info("open_slow5", f"{index}: not found; the whole file is copied, to be indexed")
            return self.file(url)
        file = self._ranged(url, [(url, about)])[0]
        file.fetch_ranges(0, _BEGINNING, stay=True)
        with open(file.path, "rb") as opened:
            start = opened.read(BINARY_HEADER_AT + 4)
        if not start.startswith(BLOW5_MAGIC):  # SLOW5 text
            self._give_up(file)
            return self.file(url)
        file.fetch_ranges(0, len(start) + int.from_bytes(start[BINARY_HEADER_AT:], "little"), stay=True)
        return file.path

    def pod5(self, url: str) -> str:
        """Make sparse files for a POD5 file or a folder of them; return the path."""
        self._n_inputs += 1
        found = self._below(url, ".pod5")
        files = self._ranged(url, found)
        ends = [(file, np.array([0, file.size - _POD5_END]), np.array([len(POD5_MAGIC), file.size])) for file in files]
        self._groups[-1].fetch(ends, stay=True)
        return self._path(url)

    def fast5(self, url: str) -> str:
        """Copy a fast5 file or a folder of them, because HDF5 cannot be read by ranges; return the path."""
        self._n_inputs += 1
        found = self._below(url, ".fast5")
        size = sum(about["size"] for _, about in found)
        if size > limit():
            raise InputFileError(
                f"{redact_url(url)}: {len(found)} fast5 files of {size:,} bytes would have to be copied, and "
                f"{limit():,} bytes may be kept; make one BLOW5 file of them, which is read in parts"
            )
        for name, about in found:
            copy_into(self._copies, name, about, self._path(name))
        return self._path(url)

    def _below(self, url: str, ending: str) -> list[tuple[str, dict[str, Any]]]:
        """List a file, or the files below a folder with this suffix, with their descriptions."""
        system, name = file_system(url)
        with reading(url):
            if system.isfile(name):
                return [(url, self._about(url))]
            found = system.find(name, detail=True)
        base = redact_url(url).rstrip("/")
        below = [
            (base + path[len(name.rstrip("/")) :], about)
            for path, about in sorted(found.items())
            if path.endswith(ending)
        ]
        if not below:
            raise InputFileError(f"{redact_url(url)}: there is no file, and none below it is named *{ending}")
        return below

    def _about(self, url: str) -> dict[str, Any]:
        system, name = file_system(url)
        with reading(url):
            about: dict[str, Any] = system.info(name)
        if about.get("type") == "directory":
            raise InputFileError(f"{redact_url(url)}: is a folder; name a file")
        if about.get("size") is None:
            raise InputFileError(f"{redact_url(url)}: its server does not say how long it is; copy it")
        return about

    def _ranged(self, url: str, files: Sequence[tuple[str, dict[str, Any]]]) -> list[RangedFile]:
        group = RangedFiles(file_system(url)[0], min(_MOST_KEPT, limit()))
        self._groups.append(group)
        return [
            group.add(redact_url(name), file_system(name)[1], about["size"], self._path(name)) for name, about in files
        ]

    def _give_up(self, file: RangedFile) -> None:
        """Drop the last sparse file."""
        self._groups.pop().close()
        os.unlink(file.path)

    def _copy_if_there(self, url: str) -> bool:
        system, name = file_system(url)
        with reading(url):
            if not system.isfile(name):
                return False
        copy_into(self._copies, url, self._about(url), self._path(url))
        return True

    def _path(self, url: str) -> str:
        """Return the local path of a URL; it contains the URL's parts, so that `shown` can restore them."""
        parts = redact_url(url).rstrip("/").split("/")
        if ".." in parts:
            raise UsageError(f"{redact_url(url)}: leads out of its folder; name the file directly")
        return os.path.join(self._folder, str(self._n_inputs), *(part for part in parts if part))


def _header_end(path: str) -> int | None:
    """Return about the file offset of a BAM header's end; None for other files."""
    with range_file(path, None) as file:
        try:
            header_size(file)
        except DamagedBlocksError:
            return None
        return file.tell()


def _lock(file: IO[str]) -> None:
    """Lock a file; without locks no run removes the folders of others."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX)


def _remove_left(runs: str) -> None:
    """Remove the folders of killed runs."""
    for entry in os.scandir(runs):
        with suppress(OSError), open(os.path.join(entry.path, _LOCK)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(entry.path, ignore_errors=True)
