"""UUIDs of POD5 reads as bytes and as text."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names

_LENGTH = 36
#: Positions of dashes and digits in the text.
_DASHES = np.array([8, 13, 18, 23])
_DIGITS = np.delete(np.arange(_LENGTH), _DASHES)
#: Digit values of characters; 255 for others.
_VALUES = np.full(256, 255, np.uint8)
_VALUES[np.frombuffer(b"0123456789ABCDEF", np.uint8)] = np.arange(16)
_VALUES[np.frombuffer(b"abcdef", np.uint8)] = np.arange(10, 16)


def keys_of_names(names: Sequence[str]) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
    """Parse UUIDs to V16, zeros for other names; also return which names are UUIDs."""
    names = Names.of(names)
    is_uuid = np.diff(names.offsets) == _LENGTH
    text = names.text[names.offsets[:-1][is_uuid, np.newaxis] + np.arange(_LENGTH)]
    digits = _VALUES[text[:, _DIGITS]]
    good = (text[:, _DASHES] == ord("-")).all(axis=1) & (digits < 16).all(axis=1)
    is_uuid[is_uuid] = good
    keys = np.zeros((len(names), 16), np.uint8)
    keys[is_uuid] = digits[good, ::2] << 4 | digits[good, 1::2]
    return keys.view("V16").ravel(), is_uuid


def names_of_keys(keys: NDArray[np.bytes_]) -> list[str]:
    """Format UUIDs of 16 bytes each."""
    digits = np.frombuffer(keys.tobytes().hex().encode(), "S32")
    text = np.full((len(keys), _LENGTH), ord("-"), np.uint8)
    text[:, _DIGITS] = digits.view(np.uint8).reshape(-1, 32)
    line = text.tobytes().decode()
    return [line[at : at + _LENGTH] for at in range(0, len(line), _LENGTH)]
