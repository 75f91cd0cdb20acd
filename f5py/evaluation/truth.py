"""True states of called sites, by site or by read."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.errors import InputFileError
from f5py.evaluation.known_sites import METHYLATED, UNMETHYLATED, KnownSites
from f5py.io.arrow.arrow import import_arrow
from f5py.io.arrow.text_input import open_bytes
from f5py.io.bounds import POSITION_BITS, check_bounds, check_positions

READ_TRUTH_HEADER = b"read_name\tchromosome\tstrand\tposition\tmethylated"
_PIECE = 1 << 24
#: States of calls without known sites, or with different ones.
UNKNOWN, MIXED = -1, -2


class KnownStates:
    """Known states of sites, or of sites in reads.

    An entry has a `key`, its contig or read << POSITION_BITS | position, ascending; a `state`, 1 methylated, 0 not or
    `UNKNOWN` for a site with both; and the index of its `site` in `KnownSites`.
    """

    def __init__(
        self, groups: Any, key: NDArray[np.int64], state: NDArray[np.int8], site: NDArray[np.int64], by_read: bool
    ) -> None:
        self.groups, self.key, self.site, self.by_read = groups, key, site, by_read
        self._methylated, self._unmethylated = (np.concatenate([[0], np.cumsum(state == value)]) for value in (1, 0))

    def look_up(
        self, batch: Any, start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.int64]]:
        """Look up a batch of calls with the columns ``chromosome`` and ``read_name``.

        Return of each call the state, 1 methylated, 0 not, `UNKNOWN` or `MIXED`, and the half-open range of its entries
        of the truth.
        """
        import pyarrow.compute

        names = batch["read_name" if self.by_read else "chromosome"]
        group = pyarrow.compute.fill_null(pyarrow.compute.index_in(names, self.groups), -1)
        group = group.to_numpy(zero_copy_only=False).astype(np.int64)
        first = np.searchsorted(self.key, group << POSITION_BITS | start)
        stop = np.searchsorted(self.key, group << POSITION_BITS | end, side="right")
        stop = np.where(group < 0, first, stop)
        n = stop - first
        methylated = self._methylated[stop] - self._methylated[first]
        unmethylated = self._unmethylated[stop] - self._unmethylated[first]
        state = np.full(len(n), MIXED, np.int8)
        state[(methylated == n) & (n > 0)] = 1
        state[(unmethylated == n) & (n > 0)] = 0
        state[n == 0] = UNKNOWN
        return state, first, stop


def truth_of_sites(sites: KnownSites) -> KnownStates:
    """Treat sites of at most 5 % or at least 95 % as the state of every read."""
    arrow, _ = import_arrow("calls")
    state = np.full(len(sites.place), UNKNOWN, np.int8)
    state[sites.is_uniform & (sites.frequency <= UNMETHYLATED)] = 0
    state[sites.is_uniform & (sites.frequency >= METHYLATED)] = 1
    contigs = arrow.array(sites.contigs, arrow.string())
    return KnownStates(contigs, sites.place, state, np.arange(len(state)), by_read=False)


def read_truth_of_reads(path: str) -> tuple[KnownStates, KnownSites]:
    """Read a simulation's ``truth_reads.tsv``: the states in every read, and the resulting frequencies."""
    arrow, _ = import_arrow("calls")
    import pyarrow.csv

    types = {"read_name": arrow.string(), "chromosome": arrow.string(), "position": arrow.int64()}
    types["methylated"] = arrow.int8()
    reading = pyarrow.csv.ReadOptions(block_size=_PIECE)
    parsing = pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False)
    columns = pyarrow.csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=[], strings_can_be_null=False
    )
    try:
        with open_bytes(path) as file:
            table = pyarrow.csv.read_csv(file, reading, parsing, columns)
    except arrow.ArrowException as problem:
        raise InputFileError(f"{path}: is damaged ({' '.join(str(problem).split())})") from problem
    table = table.combine_chunks()
    position = table["position"].to_numpy()
    state = table["methylated"].to_numpy().astype(np.int8)
    check_positions(position, path, "position")
    check_bounds(state, 0, 1, path, "methylated")
    read, contig = (table[name].combine_chunks().dictionary_encode() for name in ("read_name", "chromosome"))
    key = read.indices.to_numpy().astype(np.int64) << POSITION_BITS | position
    order = np.argsort(key, kind="stable")

    places = contig.indices.to_numpy().astype(np.int64) << POSITION_BITS | position
    place, which = np.unique(places, return_inverse=True)
    truth = KnownStates(read.dictionary, key[order], state[order], which[order], by_read=True)
    n = np.bincount(which, minlength=len(place)).astype(np.float64)
    frequency = np.bincount(which, state, len(place)) / np.maximum(n, 1)
    return truth, KnownSites(contig.dictionary.to_pylist(), place, n, frequency, np.ones(len(place), np.bool_))
