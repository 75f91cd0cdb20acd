"""Random access to BGZF files through their ``.gzi`` block index (SAM specification, section 4.1)."""

import os

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import elements_of, offsets_of
from f5py.errors import InputFileError, blamed_on
from f5py.io.bytes.bgzf_blocks import (
    END_BLOCK,
    HEADER_SIZE,
    HEADER_START,
    MAX_BLOCK,
    DamagedBlocksError,
    first_block,
    inflate_blocks,
    is_bgzf,
)
from f5py.io.bytes.byte_pieces import read_at
from f5py.io.bytes.file_state import FileState
from f5py.jit.c_memory import address_of_data, call_with_four, pread_function
from f5py.jit.kernel import exact_kernel

#: Bytes of a block's header that are those of `HEADER_START`: all but time, level and system.
_FIXED = [*range(4), *range(10, 16)]


@exact_kernel
def read_stretches(pread, descriptor, starts, offsets, out):
    """Read stretches of a file, one after the other; return whether all are whole.

    Parameters
    ----------
    pread : int
        Address of the function.
    starts, offsets : int64, shape (n,), shape (n + 1,)
        Of the stretches in the file and in `out`.
    """
    address = address_of_data(out)
    for i in range(starts.shape[0]):
        size = offsets[i + 1] - offsets[i]
        if call_with_four(pread, descriptor, address + offsets[i], size, starts[i]) != size:
            return False
    return True


class BlockReader:
    """Reader of text ranges of a BGZF file with `size` bytes of text. For one thread at a time.

    Raises `InputFileError` if a file is damaged or the two do not belong together.
    """

    def __init__(self, path: str, index_path: str) -> None:
        self.path = path
        self._packed_at, self._text_at = _load_block_index(index_path)
        self._descriptor = os.open(path, os.O_RDONLY)
        self._state = FileState(self._descriptor, path)
        try:
            # a mismatch of the last block, which the index ends before, shows an index of another file
            text, size = self._block_at(int(self._packed_at[-1]))
            self._packed_at = np.append(self._packed_at, self._packed_at[-1] + size)
            self._text_at = np.append(self._text_at, self._text_at[-1] + len(text))
            self.size = int(self._text_at[-1])
            after = read_at(self._descriptor, MAX_BLOCK, int(self._packed_at[-1]))
            if after != (END_BLOCK if text else b""):  # some writers list the end block too
                raise InputFileError(self._complaint("is truncated, or its .gzi is of another file"))
        except BaseException:
            self.close()
            raise

    def check(self) -> None:
        """Raise `InputFileError` if the file has changed."""
        self._state.check()

    def close(self) -> None:
        """Close the file. May be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def read(self, begin: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Inflate the blocks of non-empty ranges; return their text and the offset of each range in it."""
        first = np.searchsorted(self._text_at, begin, side="right") - 1
        last = np.searchsorted(self._text_at, end - 1, side="right") - 1
        blocks = np.unique(elements_of(first, last - first + 1))
        offsets = offsets_of(self._text_at[blocks + 1] - self._text_at[blocks])
        text = self._inflate_at_once(blocks, offsets)
        if text is None:
            text = b"".join(map(self._inflate, blocks.tolist()))
        return np.frombuffer(text, np.uint8), offsets[np.searchsorted(blocks, first)] + begin - self._text_at[first]

    def _inflate_at_once(self, blocks: NDArray[np.int64], offsets: NDArray[np.int64]) -> bytes | None:
        """Inflate blocks with texts at `offsets`; None if one is damaged or unusual."""
        if not len(blocks):
            return b""
        starts = self._packed_at[blocks]
        places = offsets_of(self._packed_at[blocks + 1] - starts)
        sizes = np.diff(places)
        if sizes.min() < len(END_BLOCK) or sizes.max() > MAX_BLOCK:
            return None
        packed = np.empty(places[-1], np.uint8)
        if not read_stretches(pread_function(), self._descriptor, starts, places, packed):
            return None
        headers = packed[places[:-1, None] + np.arange(HEADER_SIZE)]
        n_text = packed[places[1:, None] + np.arange(-4, 0)].view("<u4")[:, 0]
        usual = np.frombuffer(HEADER_START, np.uint8)
        if (
            np.any(headers[:, _FIXED] != usual[_FIXED])
            or np.any(headers[:, len(usual) :].view("<u2")[:, 0] != sizes - 1)
            or np.any(n_text != np.diff(offsets))
        ):
            return None
        return inflate_blocks(packed, int(offsets[-1]))

    def _inflate(self, number: int) -> bytes:
        start, end = self._packed_at[number : number + 2].tolist()
        text, size = self._block_at(start, end - start)
        if len(text) != self._text_at[number + 1] - self._text_at[number] or size != end - start:
            raise InputFileError(self._complaint("does not fit its .gzi"))
        return text

    def _block_at(self, start: int, n_bytes: int = MAX_BLOCK) -> tuple[bytes, int]:
        """Inflate a block of at most `n_bytes`; return its text and size."""
        with blamed_on(self.path):
            data = read_at(self._descriptor, n_bytes, start)
        if not is_bgzf(data):
            raise InputFileError(self._complaint("has no block where its .gzi says"))
        try:
            return first_block(data)
        except DamagedBlocksError as problem:
            raise InputFileError(self._complaint(f"is damaged at byte {start}")) from problem

    def _complaint(self, what: str) -> str:
        return f"{self.path}: {what}; run f5py index again"


def _load_block_index(path: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read a ``.gzi``: the file offset and text offset of every block, int64, shape (blocks,) each."""
    with blamed_on(path), open(path, "rb") as file:
        raw = file.read()
    listed = len(raw) // 16
    if len(raw) % 16 != 8 or int.from_bytes(raw[:8], "little") != listed:
        raise InputFileError(f"{path}: not a complete BGZF index; run f5py index again")
    pairs = np.zeros((listed + 1, 2), np.int64)
    pairs[1:] = np.frombuffer(raw, "<i8", offset=8).reshape(-1, 2)
    steps = np.diff(pairs, axis=0)
    if np.any(steps[:, 0] <= 0) or np.any(steps[:, 1] < 0):
        raise InputFileError(f"{path}: the blocks are not in order; run f5py index again")
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
