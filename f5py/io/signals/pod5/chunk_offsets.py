"""Reader of chunk offsets in POD5 files, for a separate process.

Only the tables are left to the library, which may crash on damage; `DirectPod5Source` reads and expands the chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.large_arrays import recycled_array
from f5py.core.names import numbered
from f5py.core.offsets import concatenate_tuples, elements_of, offsets_of
from f5py.io.signals.pod5.reader import MAX_SAMPLES, NO_UUID, Pod5Reader, keys_of_names, look_up, rows_of
from f5py.io.signals.source import FIELDS, NO_FILE, Room, SignalBlock

if TYPE_CHECKING:
    from f5py.io.signals.pod5._pod5_file import ReadEntries

#: int64 values per chunk, and their size in samples.
N_NUMBERS = 3
N_ELEMENTS = N_NUMBERS * np.dtype(np.int64).itemsize // np.dtype(np.int16).itemsize
_FILE_BYTES, _KEY_BYTES = 4, 16


class ChunkOffsetReader(Pod5Reader):
    """Reader of chunk offsets in place of samples: rows of `N_NUMBERS` int64 per read and per chunk.

    A read's row has its number of samples and zeros. A chunk's row has its start and end in the file and its samples,
    or -1 if unknown or unusual.
    """

    def read(self, names: Sequence[str], paths: Sequence[str], room: Room = recycled_array) -> SignalBlock:
        keys, is_uuid = keys_of_names(names)
        all_files, files = numbered(paths)
        has_file = np.array([bool(path) for path in all_files], np.bool_)[files]
        causes = dict.fromkeys(np.flatnonzero(~has_file).tolist(), NO_FILE)
        causes.update(dict.fromkeys(np.flatnonzero(has_file & ~is_uuid).tolist(), NO_UUID))
        looked_for = np.flatnonzero(has_file & is_uuid)
        wanted, of_wanted = np.unique(_in_files(files[looked_for], keys[looked_for]), return_inverse=True)
        found, places, whys = self._look_up(wanted, all_files)

        of_reads = np.full(len(names), -1)
        of_reads[looked_for] = at = _matches(wanted, found.keys)[of_wanted]
        for read in looked_for[at < 0].tolist():
            causes[read] = whys[files[read]]
        reads = np.flatnonzero(of_reads >= 0)
        n_samples = found.n_samples[of_reads[reads]]
        for i in np.flatnonzero(n_samples > MAX_SAMPLES).tolist():
            causes[int(reads[i])] = f"has damaged signal data ({n_samples[i]} samples)"

        sizes = np.full(len(names), -1)
        sizes[reads] = np.where(n_samples > 0, N_ELEMENTS * (1 + np.diff(found.piece_offsets)[of_reads[reads]]), 0)
        calibration = np.full((len(names), len(FIELDS)), np.nan)
        calibration[reads] = found.calibration[of_reads[reads]]
        block = SignalBlock.empty(names, paths, sizes, calibration, causes, room)
        block.samples[:] = _rows_of(block, of_reads, found, places).view(np.int16).ravel()
        return block

    def _look_up(
        self, wanted: NDArray[Any], paths: Sequence[str]
    ) -> tuple[ReadEntries, NDArray[np.int64], dict[int, str]]:
        """Look reads up in their files.

        Parameters
        ----------
        wanted : S20, shape (n,)
            From `_in_files`; sorted.
        paths : sequence of str
            The files.

        Returns
        -------
        found : ReadEntries
            With keys as in `wanted`.
        places : int64, shape (n_pieces, 3)
            See `f5py.io.signals.pod5._pod5_file.Pod5File.places_of`.
        whys : dict of int to str
            Reason for missing reads by file.
        """
        from f5py.io.signals.pod5._pod5_file import ReadEntries

        raw = wanted.view(np.uint8).reshape(-1, _FILE_BYTES + _KEY_BYTES)
        files = raw[:, :_FILE_BYTES].copy().view(">u4").ravel().astype(np.int64)
        keys = raw[:, _FILE_BYTES:].copy().view(f"V{_KEY_BYTES}").ravel()
        bounds = np.flatnonzero(np.diff(files, prepend=-1, append=-1)).tolist()
        parts, places, whys = [ReadEntries.none()._replace(keys=wanted[:0])], [np.empty((0, N_NUMBERS), np.int64)], {}
        for begin, end in pairwise(bounds):
            number = int(files[begin])
            file = self._files.get(paths[number])
            if isinstance(file, str):
                whys[number] = file
                continue
            of_file, whys[number] = look_up(file, keys[begin:end], paths[number])
            for part in of_file:
                parts.append(part._replace(keys=_in_files(np.full(len(part.keys), number), part.keys)))
                places.append(file.places_of(part.pieces))
        return concatenate_tuples(parts), np.concatenate(places), whys


def _in_files(files: NDArray[np.int64], keys: NDArray[np.void]) -> NDArray[Any]:
    """Join file numbers and UUIDs to texts, S20, that sort by file."""
    raw = np.empty((len(keys), _FILE_BYTES + _KEY_BYTES), np.uint8)
    raw[:, :_FILE_BYTES] = files.astype(">u4").view(np.uint8).reshape(-1, _FILE_BYTES)
    raw[:, _FILE_BYTES:] = np.ascontiguousarray(keys).view(np.uint8).reshape(-1, _KEY_BYTES)
    return raw.view(f"S{raw.shape[1]}").ravel()


def _matches(wanted: NDArray[Any], found: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index in `found` of each wanted text, sorted; -1 if missing."""
    at = np.full(len(wanted), -1)
    place = rows_of(wanted, found)
    at[place[place >= 0]] = np.flatnonzero(place >= 0)
    return at


def _rows_of(
    block: SignalBlock, of_reads: NDArray[np.int64], found: ReadEntries, places: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Make the rows of all readable reads of a block; int64, shape (n, `N_NUMBERS`)."""
    n_rows = np.diff(block.offsets) // N_ELEMENTS
    first = offsets_of(n_rows)[:-1]
    reads = np.flatnonzero(n_rows)
    at, n_pieces, first = of_reads[reads], n_rows[reads] - 1, first[reads]
    rows = np.zeros((n_rows.sum(), N_NUMBERS), np.int64)
    rows[first, 0] = found.n_samples[at]
    rows[elements_of(first + 1, n_pieces)] = places[elements_of(found.piece_offsets[at], n_pieces)]
    return rows
