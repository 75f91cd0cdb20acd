"""Reading of NumPy files that may be damaged or misstate sizes.

Sources of the formats: NumPy, numpy/lib/format.py (versions 1.0 to 3.0), and PKWARE's APPNOTE.TXT for ``.npz``.
"""

import io
import math
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from f5py.errors import DamagedValueError

#: Errors of NumPy's and zip's readers for damaged files.
_DAMAGE = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, SyntaxError, EOFError, OverflowError, RecursionError,
    MemoryError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_MOST_HEADER = 10_000


def read_arrays(
    file: BinaryIO, most_bytes: int, wanted: Callable[[str], bool] = lambda name: True
) -> dict[str, NDArray[Any]]:
    """Read the `wanted` arrays of a ``.npz`` file, of at most `most_bytes` together.

    Raises `DamagedValueError` if the file is damaged, has objects, or is too large.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            chosen = {name: info for name, info in members.items() if wanted(name)}
            if sum(info.file_size for info in chosen.values()) > most_bytes:
                raise DamagedValueError(f"its arrays have more than {most_bytes >> 20} MB")
            found = {}
            for name, info in chosen.items():
                with archive.open(info) as member:  # limited to the stated size
                    text = io.BytesIO(member.read())
                found[name] = read_array(text, len(text.getbuffer()))
                if text.read(1):
                    raise DamagedValueError(f"{name} has more than its array")
            return found
    except DamagedValueError:
        raise
    except _DAMAGE as problem:
        raise DamagedValueError(str(problem) or type(problem).__name__) from None


def read_array(file: BinaryIO, n_bytes: int) -> NDArray[Any]:
    """Read one array of numbers or texts, and nothing after it, from a file with `n_bytes` left.

    Raises `DamagedValueError` if it is damaged, has objects, or exceeds the file.
    """
    try:
        version = npy.read_magic(file)
        read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, is_fortran, kind = read_header(file, max_header_size=_MOST_HEADER)
        size = math.prod(shape) * kind.itemsize
        if kind.hasobject or kind.names or kind.kind not in "biufSU" or not 0 <= size <= n_bytes:
            raise DamagedValueError(f"an array of {kind} with shape {shape} cannot be there")
        data = file.read(size)
        array = np.frombuffer(data, kind, math.prod(shape)) if size else np.zeros(math.prod(shape), kind)
        return array.reshape(shape, order="F" if is_fortran else "C").copy()
    except DamagedValueError:
        raise
    except _DAMAGE as problem:
        raise DamagedValueError(str(problem) or type(problem).__name__) from None


def arrays_until_end(file: BinaryIO, n_bytes: int) -> Iterator[NDArray[Any]]:
    """Yield the arrays of a file with `n_bytes`; see `read_array`."""
    begin = file.tell()
    while (left := n_bytes - (file.tell() - begin)) > 0:
        yield read_array(file, left)


def check_column(
    array: NDArray[Any], kind: Any, n: int, width: int | None = None, end: int | None = None, least: int = 0
) -> None:
    """Raise `DamagedValueError` unless an array is a column of a table of `n` rows.

    A row has `width` numbers; without it, the array has one dimension. Integers are from `least` to before `end`.
    """
    if array.dtype != np.dtype(kind) or array.shape != ((n,) if width is None else (n, width)):
        raise DamagedValueError(
            f"an array of {array.dtype} with shape {array.shape} where {np.dtype(kind)} is expected"
        )
    has_integers = array.dtype.kind in "iu" and array.size > 0
    if has_integers and (array.min() < least or (end is not None and array.max() >= end)):
        raise DamagedValueError("a number in an array is out of range")
