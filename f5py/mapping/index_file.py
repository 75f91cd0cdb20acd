"""Index file of a reference, with arrays that are mapped into memory.

The file begins with its version, the size of a header and that header as JSON, and has the arrays behind it, each at a
page. Checksums of all that, block by block, are at its end, with one of their own.
"""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.errors import DamagedValueError, InputFileError
from f5py.io.files.complete_file import complete_output
from f5py.io.files.json_values import MOST, JsonObject
from f5py.io.files.mapped_file import MappedFile
from f5py.io.reads.indexed_fasta import FastaIndex
from f5py.io.sequences.read_records import sequence_batches
from f5py.mapping.index.mmi_file import MAGIC as MMI_MAGIC
from f5py.mapping.index.packed_bases import PackedBases, count_marks
from f5py.mapping.index.reference_index import BUCKET_BITS, ReferenceIndex, codes_of
from f5py.mapping.mem.fm_index import FmIndex, is_sound
from f5py.threads.pool import CallingThread, WorkerPool

_MAGIC = b"f5py map index 3\n"
_ANY_VERSION = b"f5py map index "
_ALIGNMENT = 4096
#: Bytes that a checksum is of.
_BLOCK = 16 << 20
#: Bytes behind minimap2's magic from this one on are text.
_MOST_MMI_VERSION = 32
#: Elements of arrays that a thread checks at a time.
_CHECKED = 1 << 20
_ARRAYS_OF_BASES = {
    "words": np.uint64, "unknown": np.uint64, "ranks": np.int64, "masks": np.uint64, "offsets": np.int64,
    "ambiguous": np.int64,
}  # fmt: skip
_ARRAYS = {
    **_ARRAYS_OF_BASES,
    "directory": np.uint32, "entries": np.uint64, "places": np.int64, "counts": np.int64,
}  # fmt: skip
#: Those of an FM-index, whose table is made anew; without one, all are empty.
_FM_ARRAYS = {"fm_blocks": np.uint64, "fm_ends": np.int64, "fm_first_rows": np.int64, "fm_places": np.int32}
_ALL_ARRAYS = {**_ARRAYS, **_FM_ARRAYS}
#: A k-mer must fit into the bits of a key; a window into a byte, as minimap2 has them.
_MOST_BASES, _MOST_WINDOW = 28, 255


def index_writer(path: str) -> str:
    """Recognize the program that wrote an index: "f5py", "minimap2", or "" for any other file.

    Raises `InputFileError` if it is an index of another version of f5py, or cannot be read.
    """
    if not os.path.isfile(path):
        return ""
    try:
        with open(path, "rb") as file:
            beginning = file.read(len(_MAGIC))
    except OSError as problem:
        raise InputFileError(f"{path}: cannot read the reference: {problem.strerror}") from None
    if beginning != _MAGIC and beginning.startswith(_ANY_VERSION):
        raise InputFileError(f"{path}: is an index of another version of f5py; write the index again with -d")
    if beginning[:3] == MMI_MAGIC and max(beginning[3:4], default=0) < _MOST_MMI_VERSION:
        return "minimap2"
    return "f5py" if beginning == _MAGIC else ""


def write_index(index: ReferenceIndex, reference: str | None, path: str, fm_index: FmIndex | None = None) -> None:
    """Write an index. Raises `OutputFileError` if the file cannot be written.

    Parameters
    ----------
    reference : str, optional
        FASTA file that it was made of.
    fm_index : FmIndex, optional
        Of the same reference.
    """
    about = None if reference is None else os.stat(reference)
    header: dict[str, Any] = {
        "names": index.names, "k": index.k, "w": index.w, "hpc": index.hpc,
        "reference": "" if reference is None else os.path.realpath(reference),
        "size": 0 if about is None else about.st_size, "time": 0 if about is None else about.st_mtime_ns,
    }  # fmt: skip
    own = index.bases._asdict() | index._asdict()
    arrays = {name: np.ascontiguousarray(own[name]).ravel() for name in _ARRAYS}
    for name, kind in _FM_ARRAYS.items():
        array = np.empty(0, kind) if fm_index is None else getattr(fm_index, name.removeprefix("fm_"))
        arrays[name] = np.ascontiguousarray(array).ravel()
    header["arrays"] = {name: [array.dtype.str, len(array)] for name, array in arrays.items()}
    text = json.dumps(header).encode()
    with complete_output(path) as out:
        size, checksums = 0, [0]

        def put(piece: bytes | memoryview) -> None:
            nonlocal size
            view = memoryview(piece).cast("B")
            while view:
                some = view[: _BLOCK - size % _BLOCK]
                out.write(some)
                checksums[-1] = isal_zlib.crc32(some, checksums[-1])
                size += len(some)
                if size % _BLOCK == 0:
                    checksums.append(0)
                view = view[len(some) :]

        put(_MAGIC + len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            put(bytes(-size % _ALIGNMENT))
            if len(array):
                put(array.data)
        if size % _BLOCK == 0:
            checksums.pop()
        table = np.array(checksums, "<u4").tobytes()
        out.write(table + isal_zlib.crc32(table).to_bytes(4, "little"))


def _check_blocks(content: NDArray[np.uint8], end: int, read: int, n_threads: int) -> None:
    """Raise `DamagedValueError` if a block up to byte `read` differs from its checksum behind `end`."""
    checksums, own = content[end:-4].tobytes(), content[end:][-4:].tobytes()
    is_good = len(checksums) == 4 * -(-end // _BLOCK) and isal_zlib.crc32(checksums) == int.from_bytes(own, "little")
    if not is_good:
        raise DamagedValueError("its checksums do not fit, or it is truncated")
    blocks = [content[at : min(at + _BLOCK, end)] for at in range(0, read, _BLOCK)]
    with ThreadPoolExecutor(n_threads) as threads:
        if list(threads.map(isal_zlib.crc32, blocks)) != np.frombuffer(checksums, "<u4")[: len(blocks)].tolist():
            raise DamagedValueError("its checksum does not fit")


def _arrays(described: JsonObject, content: NDArray[np.uint8], at: int) -> tuple[dict[str, Any], int]:
    """Read the arrays of an index, which begin behind a place; also return the end of the last one."""
    described.check_names(_ALL_ARRAYS)
    arrays: dict[str, Any] = {}
    for name, kind in _ALL_ARRAYS.items():
        about = described.members[name]
        if not isinstance(about, list) or len(about) != 2 or about[0] != np.dtype(kind).str:
            raise DamagedValueError(f"arrays.{name} is not of its type")
        length = JsonObject({"length": about[1]}, f"arrays.{name}").integer("length")
        at += -at % _ALIGNMENT
        if at + np.dtype(kind).itemsize * length > len(content):
            raise DamagedValueError("it is truncated")
        # a view of another class would be another type for compiled code
        arrays[name] = np.frombuffer(content, kind, length, at) if length else np.empty(0, kind)
        at += arrays[name].nbytes
    return arrays, at


def _check(index: ReferenceIndex, n_threads: int) -> None:
    """Raise `DamagedValueError` if compiled code would leave the arrays."""
    directory, entries, places, counts = index.directory, index.entries, index.places, index.counts
    belong = len(directory) > 1 and len(directory) == (1 << index.bits) + 1 and len(entries) > 0
    if not belong or not min(BUCKET_BITS, 2 * index.k) <= index.bits <= 2 * index.k <= index.bits + 32:
        raise DamagedValueError("its arrays do not belong together")
    lengths = np.diff(index.offsets)

    def is_sound(first: int) -> bool:
        some = slice(first, first + _CHECKED + 1)
        buckets, starts = directory[some], entries[some] & np.uint64(0xFFFFFFFF)
        contig, last = places[some] >> 32, (places[some] & 0xFFFFFFFF) >> 1
        is_inside = (buckets[:-1] <= buckets[1:]).all() and (starts[:-1] < starts[1:]).all()
        is_inside = is_inside and (contig >= 0).all() and (contig < len(lengths)).all()
        return bool(is_inside and (last >= index.k - 1).all() and (last < lengths[contig]).all())

    with ThreadPoolExecutor(n_threads) as threads:
        are_sound = all(threads.map(is_sound, range(0, max(len(directory), len(entries), len(places)), _CHECKED)))
    ends = directory[0] == 0 and directory[-1] == len(entries) - 1 and entries[0] & 0xFFFFFFFF == 0
    is_complete = entries[-1] == len(places) and counts[:, 1].sum() == index.n_keys
    if not (are_sound and ends and is_complete) or (counts < 0).any() or (np.diff(counts[:, 0]) <= 0).any():
        raise DamagedValueError("its places are outside of the reference")


def _fm_index(arrays: dict[str, Any], n_bases: int) -> FmIndex | None:
    """Read a file's FM-index, if any; raise `DamagedValueError` if it points outside of its arrays."""
    blocks, ends, first_rows, places = (arrays[name] for name in _FM_ARRAYS)
    if not any(map(len, (blocks, ends, first_rows, places))):
        return None
    if len(blocks) != 4 * (len(places) // 64 + 1) or len(first_rows) != 4:
        raise DamagedValueError("the arrays of its FM-index do not belong together")
    index = FmIndex(blocks.reshape(-1, 4), ends, first_rows, places, np.empty((0, 2), np.uint32), 0)
    if not is_sound(index, n_bases):
        raise DamagedValueError("its FM-index leads elsewhere")
    return index


class _IndexFile:
    """A file that is mapped into memory; of its blocks those with the bases are checked, or all."""

    def __init__(self, path: str, n_threads: int, is_whole: bool) -> None:
        self.mapped = MappedFile(path)
        content = self.mapped.text  # writable for compiled code, which is made for such arrays only
        at = len(_MAGIC)
        size = int.from_bytes(content[at : at + 8].tobytes(), "little")
        if at + 8 + size > len(content):
            raise DamagedValueError("it is truncated")
        self.header = JsonObject.of_text(content[at + 8 : at + 8 + size].tobytes())
        self.header.check_names(("names", "k", "w", "hpc", "reference", "size", "time", "arrays"))
        self.arrays, end = _arrays(self.header.object("arrays"), content, at + 8 + size)
        of_bases = at + 8 + size + sum(self.arrays[name].nbytes + _ALIGNMENT for name in _ARRAYS_OF_BASES)
        _check_blocks(content, end, end if is_whole else min(of_bases, end), n_threads)
        self.names = self.header.texts("names")
        self._stamp = self.header.integer("size"), self.header.integer("time", -MOST)
        self.offsets = self.arrays["offsets"]
        self.bases = PackedBases(*(self.arrays[name] for name in PackedBases._fields))
        self._check()

    def _check(self) -> None:
        """Raise `DamagedValueError` if compiled code would leave the bases."""
        bases, offsets, ambiguous = self.bases, self.offsets, self.arrays["ambiguous"]
        belong = len(offsets) == len(self.names) + 1 and len(offsets) > 1 and offsets[0] == 0
        belong = belong and bool((np.diff(offsets) >= 0).all()) and 0 <= offsets[-1] < 1 << 33
        belong = belong and len(bases.words) == 2 * -(-offsets[-1] // 64)
        belong = belong and len(bases.unknown) == len(bases.ranks) == -(-offsets[-1] // 4096)
        belong = belong and bool((np.diff(ambiguous) > 0).all())
        ranks = offsets_of(count_marks(bases.unknown))
        if not belong or not np.array_equal(bases.ranks, ranks[:-1]) or len(bases.masks) != ranks[-1]:
            raise DamagedValueError("its arrays do not belong together")

    def fasta(self) -> str | None:
        """Return the FASTA file that it was made of, if that is still there."""
        path = self.header.text("reference")
        return path if os.path.exists(path) else None

    def is_of(self, reference: str) -> bool:
        """Return whether a FASTA file is, or has the same contigs as, that which the index was made of."""
        about = os.stat(reference)
        is_same = about.st_mtime_ns == self._stamp[1]
        return about.st_size == self._stamp[0] and (is_same or self._has_contigs_of(reference))

    def _has_contigs_of(self, reference: str) -> bool:
        names: list[str] = []
        n_bases, most = 0, int(self.offsets[-1])
        for batch in sequence_batches(reference, 1 << 23):
            names += batch.names
            codes = codes_of(batch.bases)
            end = n_bases + len(codes)
            if end > most or not np.array_equal(codes, self.bases.codes(n_bases, end)):
                return False
            n_bases = end
        return names == self.names and n_bases == most


@contextmanager
def _blaming(path: str) -> Iterator[None]:
    """Turn problems with a file into an `InputFileError`."""
    try:
        yield
    except OSError as problem:
        raise InputFileError(f"{path}: cannot be read: {problem.strerror}") from None
    except DamagedValueError as problem:
        raise InputFileError(f"{path}: is damaged ({problem}); write the index again with -d") from None


def read_index(path: str, pool: WorkerPool) -> tuple[ReferenceIndex, str | None, FmIndex | None]:
    """Map an index into memory. Raises `InputFileError` if the file is damaged, or the FASTA file has changed since.

    Returns
    -------
    index : ReferenceIndex
    reference : str or None
        Its FASTA file, if that is still there.
    fm_index : FmIndex or None
        If the file has one; without its table.
    """
    with _blaming(path):
        file = _IndexFile(path, pool.n_threads, True)
        arrays, header = file.arrays, file.header
        if len(arrays["counts"]) % 2:
            raise DamagedValueError("its arrays do not belong together")
        index = ReferenceIndex(
            file.names, file.bases, counts=arrays["counts"].reshape(-1, 2),
            **{name: arrays[name] for name in ("offsets", "directory", "entries", "places", "ambiguous")},
            k=header.integer("k", 1, _MOST_BASES), w=header.integer("w", 1, _MOST_WINDOW), hpc=header.flag("hpc"),
        )  # fmt: skip
        _check(index, pool.n_threads)
        fm_index = _fm_index(arrays, index.n_bases)
        reference = file.fasta()
        is_same = reference is None or file.is_of(reference)
    if not is_same:
        raise InputFileError(f"{path}: {reference} has changed since; write the index again with -d")
    return index, reference, fm_index


class IndexBases:
    """Contigs of an index file, with the interface of `IndexedFasta`.

    Raises `InputFileError` if the file is damaged.
    """

    def __init__(self, path: str, n_threads: int) -> None:
        with _blaming(path):
            self._file = _IndexFile(path, n_threads, False)
        self.index = FastaIndex.of_sequences(Names.of(self._file.names), self._file.offsets)

    def fetch(
        self, rows: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], pool: WorkerPool | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
        """Fetch stretches in upper case; of an unknown base the first one that it may be."""
        from f5py.mapping.index.packed_bases import gather_letters

        begins, lengths = self._file.offsets[rows] + start, np.maximum(end - start, 0)
        offsets = offsets_of(lengths)
        letters = np.empty(offsets[-1], np.uint8)
        wanted = np.flatnonzero(lengths)
        (CallingThread() if pool is None else pool).run(
            gather_letters, wanted, self._file.bases, self._file.arrays["ambiguous"], begins, offsets, letters
        )
        self._file.mapped.check()
        return letters, offsets, np.zeros(len(rows), np.bool_)

    def close(self) -> None:
        """Close the file."""
        self._file.mapped.close()
