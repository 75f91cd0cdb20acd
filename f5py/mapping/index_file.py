"""The index of a reference in a file, whose arrays are mapped into memory."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from f5py.errors import InputFileError
from f5py.io.bytes.mapped_file import MappedFile
from f5py.io.files.complete_file import complete_output
from f5py.mapping.reference_index import ReferenceIndex

_MAGIC = b"f5py map index 1\n"
_ALIGNMENT = 64
_ARRAYS = ("bases", "offsets", "table", "places", "counts")
_MINIMAP2_MAGIC = b"MMI\2"


def is_index_file(path: str) -> bool:
    """Whether a file is an index.

    Raises
    ------
    InputFileError
        It is one of minimap2's.
    """
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        beginning = file.read(len(_MAGIC))
    if beginning.startswith(_MINIMAP2_MAGIC):
        raise InputFileError(f"{path}: is minimap2's index; give the FASTA file that it was made of")
    return beginning == _MAGIC


def write_index(index: ReferenceIndex, reference: str, path: str) -> None:
    """Write an index.

    Parameters
    ----------
    index : ReferenceIndex
    reference : str
        FASTA file that it was made of.
    path : str

    Raises
    ------
    OutputFileError
        The file cannot be written.
    """
    about = os.stat(reference)
    header: dict[str, Any] = {
        "names": index.names, "k": index.k, "w": index.w, "hpc": index.hpc, "reference": os.path.realpath(reference),
        "size": about.st_size, "time": about.st_mtime_ns,
    }  # fmt: skip
    arrays = {name: np.ascontiguousarray(getattr(index, name)) for name in _ARRAYS}
    header["arrays"] = {name: [array.dtype.str, len(array)] for name, array in arrays.items()}
    text = json.dumps(header).encode()
    with complete_output(path) as out:
        out.write(_MAGIC + len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            out.write(bytes(-out.tell() % _ALIGNMENT))
            out.write(array.data)


def read_index(path: str) -> tuple[ReferenceIndex, str | None]:
    """Map an index into memory.

    Returns
    -------
    index : ReferenceIndex
    reference : str or None
        Its FASTA file, if that is still there.

    Raises
    ------
    InputFileError
        The file is damaged, or the FASTA file has changed since.
    """
    try:
        content = MappedFile(path).text  # writable for compiled code, which is made for such arrays only
        at = len(_MAGIC)
        size = int.from_bytes(content[at : at + 8].tobytes(), "little")
        header = json.loads(content[at + 8 : at + 8 + size].tobytes())
        at += 8 + size
        arrays: dict[str, Any] = {}
        for name, (kind, length) in header["arrays"].items():
            at += -at % _ALIGNMENT
            n_bytes = np.dtype(kind).itemsize * length
            if at + n_bytes > len(content):
                raise ValueError("truncated")
            # a view of another class would be another type for compiled code
            arrays[name] = np.frombuffer(content, kind, length, at) if length else np.empty(0, kind)
            at += n_bytes
        numbers = {name: header[name] for name in ("k", "w", "hpc")}
        index = ReferenceIndex(names=header["names"], **arrays, **numbers)
        reference, stamp = header["reference"], (header["size"], header["time"])
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InputFileError(f"{path}: is damaged ({problem}); write the index again with -d") from None
    if not os.path.exists(reference):
        return index, None
    about = os.stat(reference)
    if (about.st_size, about.st_mtime_ns) != stamp:
        raise InputFileError(f"{path}: {reference} has changed since; write the index again with -d")
    return index, reference
