"""Reader of fast5 files, single-read and multi-read, through h5py's low-level interface.

It is three times as fast as ``h5py.File``. ISA-L inflates plain gzip, in half the time of HDF5's zlib. HDF5 reads
everything else, but neither compares a chunk's length with the needed one nor stops at its end.
"""

from __future__ import annotations

import math
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate

import numpy as np
from h5py import _errors, h5a, h5d, h5f, h5g, h5p, h5pl, h5s, h5t, h5z
from isal import isal_zlib
from numpy.typing import NDArray

from f5py.errors import MissingDependencyError, SignalError, pip_install, unavailable
from f5py.io.signals.source import CALIBRATION, FIELDS, MAX_SAMPLES, FileReader, ReadOrCause, UnreadableError
from f5py.io.signals.system_limits import reraise_system_error


class Fast5Reader(FileReader):
    """Reader of fast5 files; VBZ needs its decoder."""

    @staticmethod
    def open_file(path: str) -> Fast5File | str:
        if not path:
            return "has no signal file in the index; run f5py index with the folder that holds it"
        try:
            return Fast5File(path)
        except UnreadableError as problem:
            reraise_system_error(problem, path)
            return str(problem)


#: Highest possible compression of gzip, and of VBZ for a constant.
_MOST_COMPRESSION, _MOST_COMPRESSION_VBZ = 1100, 60_000
_SMALL = 1 << 16
#: Metadata cache per open file.
METADATA_CACHE_BYTES = 256 * 1024

_HDF5_ERRORS = (OSError, KeyError, RuntimeError, ValueError, TypeError, MemoryError)
#: Groups with a run's metadata; the later one takes precedence.
_RUN_GROUPS = (b"/context_tags", b"/tracking_id")
_CALIBRATION = tuple(what.encode() for what in CALIBRATION)
_START = FIELDS[-1].encode()


def silence_hdf5() -> None:
    """Keep HDF5 from printing its error stack.

    h5py does so on import, but in thread-safe builds of HDF5 the setting belongs to the thread.
    """
    _errors.silence_errors()


class Fast5File:
    """An open fast5 file; raises `UnreadableError` if it cannot be opened or has another layout."""

    def __init__(self, path: str) -> None:
        silence_hdf5()
        self.path = path
        if _is_pipe(path):
            raise UnreadableError("is in a pipe; signals are read from files")
        try:
            self._file = _open_hdf5(os.fsencode(path))
        except _HDF5_ERRORS as error:
            raise UnreadableError(f"is in a file that {_why_not_opened(path, error)}") from None
        try:
            self.multi = _is_multi_read(self._file)
            self._single = b"" if self.multi else _single_read_group(self._file)
        except BaseException:
            self._file.close()
            raise
        self._value = np.empty((), np.float64)
        self._name = h5f.get_name(self._file)
        self._size = os.path.getsize(path)

    def close(self) -> None:
        self._file.close()

    def reads(self, names: Sequence[str]) -> Iterator[ReadOrCause]:
        """Read some reads, in this order."""
        silence_hdf5()
        for name in names:
            try:
                yield self.read(name)
            except UnreadableError as problem:
                reraise_system_error(problem, self.path)
                yield str(problem)

    def read(self, name: str) -> tuple[NDArray[np.int16], list[float]]:
        """Read a read's samples and its values of `FIELDS`, the start in samples.

        Single-read files ignore the name, as in f5c. Raises `UnreadableError` if the read is missing or damaged,
        `MissingDependencyError` if the VBZ filter is needed and not installed.
        """
        group = b"read_" + name.encode(errors="surrogateescape")
        raw, channel = group + b"/Raw", group + b"/channel_id"
        if not self.multi:
            group = raw = self._single
            channel = b"UniqueGlobalKey/channel_id"
        try:
            return self._samples(group, raw + b"/Signal"), [*self._calibration(channel), self._start(raw)]
        except (UnreadableError, OSError, KeyError, RuntimeError, ValueError, TypeError) as error:
            self._check_unchanged()
            if isinstance(error, UnreadableError):
                raise
            raise UnreadableError(f"has a damaged entry ({hdf5_reason(error)})") from error

    def _check_unchanged(self) -> None:
        """Raise `SignalError` if the file has changed, so that errors of reads mean nothing."""
        try:
            size = os.path.getsize(self.path)
        except OSError as problem:
            raise SignalError(f"{self.path}: cannot be read any more ({problem.strerror}); run again") from None
        if size != self._size:
            raise SignalError(f"{self.path}: was changed while it was read; run again when it is complete")

    def _start(self, group: bytes) -> float:
        """Return a read's start in samples, NaN if missing."""
        try:
            h5a.open(self._file, _START, obj_name=group).read(self._value, h5t.NATIVE_DOUBLE)
            return float(self._value)
        except _HDF5_ERRORS:
            return math.nan

    def run_info(self, name: str) -> dict[str, str]:
        """Return context tags and tracking id, in lower case; raise `UnreadableError` for a missing read."""
        silence_hdf5()
        above = b"read_" + name.encode(errors="surrogateescape") if self.multi else b"UniqueGlobalKey"
        try:
            h5g.open(self._file, above)
        except _HDF5_ERRORS:
            raise UnreadableError("is not in this file") from None
        found: dict[str, str] = {}
        for part in _RUN_GROUPS:
            try:
                found.update(_attributes(h5g.open(self._file, above + part)))
            except _HDF5_ERRORS:
                continue
        return found

    def _samples(self, group: bytes, path: bytes) -> NDArray[np.int16]:
        """Read the samples at a path below the read's group."""
        try:
            dataset = h5d.open(self._file, path)
        except _HDF5_ERRORS as error:
            raise UnreadableError(self._why_no_signal(group, path, error)) from None
        shape = dataset.shape
        if len(shape) != 1 or shape[0] > MAX_SAMPLES:
            raise UnreadableError(f"has a signal of impossible shape {shape}")
        kind = dataset.get_type()
        if kind.get_class() != h5t.INTEGER:
            raise UnreadableError("has a signal that is not of whole numbers")
        self._check_storage(dataset, shape[0] * kind.get_size())
        with suppress(*_HDF5_ERRORS):  # HDF5 reports the error
            if (samples := read_chunks(dataset)) is not None:
                return samples
        is_int16 = kind.get_size() == 2 and kind.get_sign() == h5t.SGN_2
        samples = self._values(dataset, np.empty(shape, np.int16 if is_int16 else dataset.dtype))
        return samples if is_int16 else _as_int16(samples)

    def _check_storage(self, dataset: h5d.DatasetID, size: int) -> None:
        """Reject samples outside the file, or impossibly many, before memory is allocated."""
        stored = dataset.get_storage_size()
        if size > stored * _MOST_COMPRESSION + _SMALL and (
            size > stored * _MOST_COMPRESSION_VBZ or VBZ_FILTER not in filters_of(dataset.get_create_plist())
        ):
            raise UnreadableError(
                f"has a signal of {size} bytes by its header, of which {stored} are stored; it is damaged"
            )
        if h5f.get_name(dataset) != self._name:
            raise UnreadableError("has a signal that is a link to another file")
        if stored >= size or not stored:  # not compressed, so perhaps external
            layout = dataset.get_create_plist()
            if layout.get_layout() == h5d.VIRTUAL or layout.get_external_count():
                raise UnreadableError("has a signal that is kept in another file")

    def _values(self, dataset: h5d.DatasetID, out: NDArray) -> NDArray:
        try:
            dataset.read(h5s.ALL, h5s.ALL, out)
        except _HDF5_ERRORS as error:
            # checked late, because listing the filters of every dataset is slow
            if VBZ_FILTER not in filters_of(dataset.get_create_plist()) or h5z.filter_avail(VBZ_FILTER):
                raise UnreadableError(f"has damaged signal data ({hdf5_reason(error)})") from None
            _load_vbz(self.path)
            return self._values(dataset, out)
        return out

    def _calibration(self, group: bytes) -> list[float]:
        try:
            channel = h5g.open(self._file, group)
        except _HDF5_ERRORS:
            raise UnreadableError("has no channel_id group and so no calibration") from None
        return [self._number(channel, what) for what in _CALIBRATION]

    def _number(self, group: h5g.GroupID, what: bytes) -> float:
        try:
            attribute = h5a.open(group, what)
        except _HDF5_ERRORS:
            raise UnreadableError(f"has no calibration attribute {what.decode()}") from None
        try:
            values = np.empty(attribute.shape, np.float64)
            attribute.read(values, h5t.NATIVE_DOUBLE)
            return float(values.item())
        except _HDF5_ERRORS:
            raise UnreadableError(f"has a calibration attribute {what.decode()} that is not a number") from None

    def _why_no_signal(self, group: bytes, path: bytes, error: Exception) -> str:
        for at in accumulate(path.split(b"/"), lambda above, step: above + b"/" + step):
            try:
                found = self._file.links.exists(at)
            except _HDF5_ERRORS:
                break
            if not found:
                return "is not in this file" if at == group else "has no Signal dataset"
        return f"has a damaged entry ({hdf5_reason(error)})"


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _open_hdf5(path: bytes) -> h5f.FileID:
    try:
        return h5f.open(path, h5f.ACC_RDONLY, _file_access(locking=True))
    except OSError as error:
        if "lock" not in str(error):
            raise
    # some network file systems refuse locks; all openers of a file in a process must agree, so locks are tried first
    return h5f.open(path, h5f.ACC_RDONLY, _file_access(locking=False))


@cache
def _file_access(locking: bool) -> h5p.PropFAID:
    """Return the access properties of files."""
    access = h5p.create(h5p.FILE_ACCESS)
    if not locking and hasattr(access, "set_file_locking"):
        access.set_file_locking(False, True)
    # by default HDF5 caches over 90 MB of metadata per file of 4,000 reads
    metadata = access.get_mdc_config()
    metadata.set_initial_size = True
    metadata.initial_size = metadata.min_size = metadata.max_size = METADATA_CACHE_BYTES
    metadata.incr_mode = metadata.flash_incr_mode = metadata.decr_mode = 0
    access.set_mdc_config(metadata)
    return access


def _why_not_opened(path: str, error: Exception) -> str:
    try:
        with open(path, "rb") as file:
            if not file.read(1):
                return "is empty"
        if not h5f.is_hdf5(os.fsencode(path)):
            return "is not HDF5"
    except (OSError, ValueError) as problem:
        reraise_system_error(problem, path)
        return f"cannot be opened ({getattr(problem, 'strerror', None) or problem})"
    if "truncated file" in str(error):
        return "is truncated; copy it again"
    return f"is damaged ({hdf5_reason(error)})"


def hdf5_reason(error: Exception) -> str:
    """Return the system's reason of an HDF5 error, or the bracketed part of h5py's message."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    text = " ".join(str(error.args[0] if error.args else error).split())
    start, end = text.find("("), text.rfind(")")
    return text[start + 1 : end] if 0 <= start < end else text or type(error).__name__


def _is_multi_read(file: h5f.FileID) -> bool:
    """Return whether the file has groups of reads; the attribute ``file_version`` is unreliable."""
    try:
        root = h5g.open(file, b"/")
        if b"Raw" in root:
            return False
        is_found = False

        def look(name: bytes) -> bool | None:
            nonlocal is_found
            is_found = name.startswith(b"read_")
            return is_found or None  # None goes on

        root.links.iterate(look)
        return is_found
    except _HDF5_ERRORS as error:
        raise UnreadableError(f"is in a file that is damaged ({hdf5_reason(error)})") from None


def _single_read_group(file: h5f.FileID) -> bytes:
    try:
        reads = h5g.open(file, b"Raw/Reads")
        if reads.get_num_objs() == 0:
            raise UnreadableError("is in a single-read file with an empty /Raw/Reads")
        return b"Raw/Reads/" + reads.get_objname_by_idx(0)
    except _HDF5_ERRORS:
        raise UnreadableError("is in a file without /Raw/Reads, or which is no fast5 file") from None


def _attributes(group: h5g.GroupID) -> dict[str, str]:
    """Return the non-empty attributes of a group that are single texts or numbers."""
    found = {}
    for i in range(h5a.get_num_attrs(group)):
        try:
            attribute = h5a.open(group, index=i)
            value = np.empty(attribute.shape, attribute.dtype)
            attribute.read(value)
            item = value.item()
        except _HDF5_ERRORS:
            continue
        text = (item.decode(errors="replace") if isinstance(item, bytes) else str(item)).strip("\0 ")
        if text:
            found[attribute.name.decode(errors="replace").lower()] = text
    return found


def _as_int16(samples: NDArray) -> NDArray[np.int16]:
    limits = np.iinfo(np.int16)
    if samples.size and (samples.min() < limits.min or samples.max() > limits.max):
        raise UnreadableError(f"has a signal of type {samples.dtype} with values beyond 16 bits")
    return samples.astype(np.int16)


def _load_vbz(path: str) -> None:
    """Register the filter of vbz-h5py-plugin with HDF5."""
    try:
        from vbz_h5py_plugin import get_vbz_resource_path
    except ImportError as problem:
        need = f"{path}: the signals are VBZ-compressed, which needs the decoder"
        raise unavailable(problem, need, "vbz_h5py_plugin", "vbz") from None
    h5pl.prepend(os.fsencode(get_vbz_resource_path()))
    if not h5z.filter_avail(VBZ_FILTER):
        raise MissingDependencyError(
            f"{path}: the signals are VBZ-compressed and HDF5 cannot load the installed decoder; "
            f"try: {pip_install('vbz', again=True)}"
        )


#: VBZ (variable-byte integers and zstd) in the HDF Group's registry.
VBZ_FILTER = 32020
_TOO_SHORT = "has damaged signal data (a chunk is too short)"
_CHECKSUM_BYTES = 4
#: VBZ begins with the decoded length.
_LENGTH_BYTES = 4
#: Errors for a missing or damaged chunk, which HDF5 reads as fill values or rejects.
_PROBLEMS = (OSError, RuntimeError, ValueError, TypeError, KeyError, MemoryError, isal_zlib.error)


def filters_of(created: h5p.PropDCID) -> list[int]:
    """Return the numbers of a dataset's filters in the order of application."""
    return [created.get_filter(i)[0] for i in range(created.get_nfilters())]


def read_chunks(dataset: h5d.DatasetID) -> NDArray[np.int16] | None:
    """Return the samples of a one-dimensional dataset, or None if HDF5 must read them.

    Chunks may exceed the signal; a stored chunk needs only the samples left. Raises `UnreadableError` if one has fewer.
    """
    created = dataset.get_create_plist()
    if created.get_layout() != h5d.CHUNKED or not hasattr(dataset, "read_direct_chunk"):
        return None
    filters = filters_of(created)
    kind = dataset.get_type()
    size = kind.get_size()
    (n,), (length,) = dataset.shape, created.get_chunk()
    if not filters:  # HDF5 returns no stored lengths then
        if dataset.get_storage_size() < (dataset.get_num_chunks() * length - -n % length) * size:
            raise UnreadableError(_TOO_SHORT)
        return None
    is_shuffled = len(filters) == 2 and filters[0] == h5z.FILTER_SHUFFLE and tuple(created.get_filter(0)[2]) == (size,)
    is_plain_gzip = filters[-1] == h5z.FILTER_DEFLATE and (len(filters) == 1 or is_shuffled)
    needs_hdf5 = not is_plain_gzip or not kind.equal(h5t.STD_I16LE) or sys.byteorder != "little"
    chunks = [np.empty(0, np.int16)]
    for begin in range(0, n, length):
        n_samples = min(length, n - begin)
        try:
            left_out, stored = dataset.read_direct_chunk((begin,))
            applied = [number for i, number in enumerate(filters) if not left_out >> i & 1]
            needs_hdf5 |= applied != filters
            n_bytes, expanded = _expand(stored, applied, n_samples * size)
        except _PROBLEMS:
            needs_hdf5 = True
            continue
        if n_bytes is not None and n_bytes < n_samples * size:
            raise UnreadableError(_TOO_SHORT)
        if not needs_hdf5:
            n_whole = len(expanded) // 2
            if is_shuffled:
                expanded = np.frombuffer(expanded, np.uint8, 2 * n_whole).reshape(2, n_whole).T.tobytes()
            chunks.append(np.frombuffer(expanded, np.int16, n_samples))
    if needs_hdf5:
        return None
    return chunks[1] if len(chunks) == 2 else np.concatenate(chunks)


def _expand(stored: bytes, filters: Sequence[int], n_bytes: int) -> tuple[int | None, bytes]:
    """Undo the filters of a chunk but VBZ and shuffling; also return its unfiltered length if known."""
    for number in reversed(filters):
        if number == h5z.FILTER_FLETCHER32:
            stored = stored[:-_CHECKSUM_BYTES]
        elif number == h5z.FILTER_DEFLATE:
            stored = isal_zlib.decompress(stored, isal_zlib.MAX_WBITS, n_bytes)
        elif number == VBZ_FILTER and number == filters[0]:
            return int.from_bytes(stored[:_LENGTH_BYTES], "little"), stored
        elif number != h5z.FILTER_SHUFFLE:
            return None, stored
    return len(stored), stored
