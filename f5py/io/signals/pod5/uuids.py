"""UUIDs of POD5 reads as bytes and as text."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_UUID = re.compile("-".join(f"[0-9a-fA-F]{{{n}}}" for n in (8, 4, 4, 4, 12)))
_DIGITS = re.compile("(.{8})(.{4})(.{4})(.{4})(.{12})")


def keys_of_names(names: Sequence[str]) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
    """Parse UUIDs to V16, zeros for other names; also return which names are UUIDs."""
    known = [name if _UUID.fullmatch(name) else "" for name in names]
    keys = b"".join(bytes.fromhex(name.replace("-", "")) or bytes(16) for name in known)
    return np.frombuffer(keys, "V16"), np.array(known, np.bool_)


def names_of_keys(keys: NDArray[np.bytes_]) -> list[str]:
    """Format UUIDs of 16 bytes each."""
    return _DIGITS.sub(r"\1-\2-\3-\4-\5 ", keys.tobytes().hex()).split()
