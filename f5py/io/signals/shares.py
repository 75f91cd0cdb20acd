"""Division of a batch's reads among processes."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def share_out(paths: Sequence[str], n_shares: int) -> list[NDArray[np.int64]]:
    """Divide reads into shares of equal size, keeping the reads of a file together where possible.

    A file has its home share by a checksum of its path, the same in every call. What is too much for a home
    goes, file by file, to the shares that have room.

    Parameters
    ----------
    paths : sequence of str, length n
        The file of each read.
    n_shares : int
        How many shares to make.

    Returns
    -------
    list of int64 arrays
        The indices of each share; none has more than ``ceil(n / n_shares)``.
    """
    by_file: dict[str, list[int]] = {}
    for i, path in enumerate(paths):
        by_file.setdefault(path, []).append(i)
    room = [-(-len(paths) // n_shares)] * n_shares
    shares: list[list[int]] = [[] for _ in range(n_shares)]
    homeless: list[int] = []
    for path, reads in by_file.items():
        home = zlib.crc32(os.fsencode(path)) % n_shares
        shares[home] += reads[: room[home]]
        homeless += reads[room[home] :]
        room[home] -= min(room[home], len(reads))
    for share, space in zip(shares, room, strict=True):
        share += homeless[:space]
        del homeless[:space]
    return [np.array(share, np.int64) for share in shares]
