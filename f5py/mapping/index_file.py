"""The index of a reference in a file, whose arrays are mapped into memory.

The file begins with its version, the size of a header and that header as JSON, and has the arrays and a checksum of all
that behind it.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from f5py.errors import DamagedValueError, InputFileError
from f5py.io.files.complete_file import complete_output
from f5py.io.files.json_values import MOST, JsonObject
from f5py.io.files.mapped_file import MappedFile
from f5py.io.sequences.read_records import sequence_batches
from f5py.mapping.index.reference_index import ReferenceIndex, codes_of
from f5py.mapping.mem.fm_index import FmIndex

_MAGIC = b"f5py map index 2\n"
_ANY_VERSION = b"f5py map index "
_CHECKSUM_BYTES = 4
_ALIGNMENT = 64
_ARRAYS = {"bases": np.uint8, "offsets": np.int64, "table": np.uint64, "places": np.int64, "counts": np.int32}
#: Those of an FM-index, whose table is made anew; without one, all are empty.
_FM_ARRAYS = {"fm_blocks": np.uint64, "fm_ends": np.int64, "fm_first_rows": np.int64, "fm_places": np.int32}
_ALL_ARRAYS = {**_ARRAYS, **_FM_ARRAYS}
#: A k-mer must fit into the bits of a key; a window into a byte, as minimap2 has them.
_MOST_BASES, _MOST_WINDOW = 28, 255
_MINIMAP2_MAGIC = b"MMI\2"


def is_index_file(path: str) -> bool:
    """Return whether a file is an index. Raises `InputFileError` if it is one of minimap2's, or of another version."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        beginning = file.read(len(_MAGIC))
    if beginning != _MAGIC and beginning.startswith(_ANY_VERSION):
        raise InputFileError(f"{path}: is an index of another version of f5py; write the index again with -d")
    if beginning.startswith(_MINIMAP2_MAGIC):
        raise InputFileError(f"{path}: is minimap2's index; give the FASTA file that it was made of")
    return beginning == _MAGIC


def write_index(index: ReferenceIndex, reference: str, path: str, fm_index: FmIndex | None = None) -> None:
    """Write an index. Raises `OutputFileError` if the file cannot be written.

    Parameters
    ----------
    reference : str
        FASTA file that it was made of.
    fm_index : FmIndex, optional
        Of the same reference.
    """
    about = os.stat(reference)
    header: dict[str, Any] = {
        "names": index.names, "k": index.k, "w": index.w, "hpc": index.hpc, "reference": os.path.realpath(reference),
        "size": about.st_size, "time": about.st_mtime_ns,
    }  # fmt: skip
    arrays = {name: np.ascontiguousarray(getattr(index, name)) for name in _ARRAYS}
    for name, kind in _FM_ARRAYS.items():
        array = np.empty(0, kind) if fm_index is None else getattr(fm_index, name.removeprefix("fm_"))
        arrays[name] = np.ascontiguousarray(array).ravel()
    header["arrays"] = {name: [array.dtype.str, len(array)] for name, array in arrays.items()}
    text = json.dumps(header).encode()
    with complete_output(path) as out:
        size = checksum = 0

        def put(piece: bytes | memoryview) -> None:
            nonlocal size, checksum
            out.write(piece)
            checksum = isal_zlib.crc32(piece, checksum)
            size += memoryview(piece).nbytes

        put(_MAGIC + len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            put(bytes(-size % _ALIGNMENT))
            put(array.data)
        out.write(checksum.to_bytes(_CHECKSUM_BYTES, "little"))


def _arrays(described: JsonObject, content: NDArray[np.uint8], at: int) -> dict[str, Any]:
    """Read the arrays of an index, which begin behind a place."""
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
    return arrays


def _check(index: ReferenceIndex) -> None:
    """Raise `DamagedValueError` if compiled code would leave the arrays."""
    from f5py.mapping.index._reference_index_numba import is_sound

    n_slots = len(index.table) // 2
    if len(index.offsets) != len(index.names) + 1 or len(index.table) != 2 * n_slots or n_slots.bit_count() != 1:
        raise DamagedValueError("its arrays do not belong together")
    if not is_sound(index.bases, index.offsets, index.table, index.places, index.k):
        raise DamagedValueError("its places are outside of the reference")


def _fm_index(arrays: dict[str, Any], n_bases: int) -> FmIndex | None:
    """Read the FM-index of a file, if any; raise `DamagedValueError` if compiled code would leave its arrays."""
    from f5py.mapping.mem._fm_index_numba import is_sound

    blocks, ends, first_rows, places = (arrays[name] for name in _FM_ARRAYS)
    if not any(map(len, (blocks, ends, first_rows, places))):
        return None
    if len(blocks) != 4 * (len(places) // 64 + 1) or len(first_rows) != 4:
        raise DamagedValueError("the arrays of its FM-index do not belong together")
    blocks = blocks.reshape(-1, 4)
    if not is_sound(blocks, ends, first_rows, places, n_bases):
        raise DamagedValueError("its FM-index leads elsewhere")
    return FmIndex(blocks, ends, first_rows, places, np.empty((0, 2), np.uint32), 0)


def _is_of(index: ReferenceIndex, reference: str) -> bool:
    """Return whether a FASTA file, which has another time than that the index was made of, has the same contigs."""
    names: list[str] = []
    n_bases = 0
    for batch in sequence_batches(reference, 1 << 23):
        names += batch.names
        codes = codes_of(batch.bases)
        if not np.array_equal(codes, index.bases[n_bases : n_bases + len(codes)]):
            return False
        n_bases += len(codes)
    return names == index.names and n_bases == len(index.bases)


def read_index(path: str) -> tuple[ReferenceIndex, str | None, FmIndex | None]:
    """Map an index into memory. Raises `InputFileError` if the file is damaged, or the FASTA file has changed since.

    Returns
    -------
    index : ReferenceIndex
    reference : str or None
        Its FASTA file, if that is still there.
    fm_index : FmIndex or None
        If the file has one; without its table.
    """
    try:
        content = MappedFile(path).text  # writable for compiled code, which is made for such arrays only
        content, checksum = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
        if isal_zlib.crc32(content) != int.from_bytes(checksum.tobytes(), "little"):
            raise DamagedValueError("its checksum does not fit")
        at = len(_MAGIC)
        size = int.from_bytes(content[at : at + 8].tobytes(), "little")
        if at + 8 + size > len(content):
            raise DamagedValueError("it is truncated")
        header = JsonObject.of_text(content[at + 8 : at + 8 + size].tobytes())
        header.check_names(("names", "k", "w", "hpc", "reference", "size", "time", "arrays"))
        arrays = _arrays(header.object("arrays"), content, at + 8 + size)
        index = ReferenceIndex(
            header.texts("names"), **{name: arrays[name] for name in _ARRAYS},
            k=header.integer("k", 1, _MOST_BASES), w=header.integer("w", 1, _MOST_WINDOW), hpc=header.flag("hpc"),
        )  # fmt: skip
        _check(index)
        fm_index = _fm_index(arrays, len(index.bases))
        reference, stamp = header.text("reference"), (header.integer("size"), header.integer("time", -MOST))
    except OSError as problem:
        raise InputFileError(f"{path}: cannot be read: {problem.strerror}") from None
    except DamagedValueError as problem:
        raise InputFileError(f"{path}: is damaged ({problem}); write the index again with -d") from None
    if not os.path.exists(reference):
        return index, None, fm_index
    about = os.stat(reference)
    is_same = (about.st_size, about.st_mtime_ns) == stamp or (about.st_size == stamp[0] and _is_of(index, reference))
    if not is_same:
        raise InputFileError(f"{path}: {reference} has changed since; write the index again with -d")
    return index, reference, fm_index
