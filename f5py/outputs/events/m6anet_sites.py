"""Sites of m6anet in direct RNA: every DRACH 5-mer with the signal of it and its neighbors.

The events of a read at a position that fit its 5-mer become one, with means weighted by the events' samples; a site in
a read is a 5-mer DRACH (D is A, G or T; R is A or G; H is A, C or T) with events of both neighbors. Numbers are
rounded as in the event table, the input of ``m6anet dataprep`` (2.0.1).
"""

import json
import os
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.format import write_array
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.kmers import kmer_digits, kmer_texts, trim_ranks, trimmed
from f5py.core.stored_arrays import arrays_until_end, check_column
from f5py.errors import DamagedValueError, InputFileError, OutputFileError
from f5py.io.files.complete_file import complete_output
from f5py.options.signal_commands import EventalignOptions
from f5py.outputs.events.table_columns import as_printed, table_columns
from f5py.outputs.sink import FinishedPart, PartFiles, Sink
from f5py.pore_model.model import PoreModel
from f5py.text.encoding import encoded

#: Bases of the k-mers that m6anet knows.
SHOWN = 5
_CENTRE = 2
#: Codes of D, R, A, C and H over ACGT.
_DRACH = ((0, 2, 3), (0, 2), (0,), (1,), (0, 1, 3))

_INFO_HEADER = b"transcript_id,transcript_position,start,end,n_reads\n"
_JSON, _INFO = "data.json", "data.info"


def path_of_json(folder: str) -> str:
    """Return the path of ``data.json``."""
    return os.path.join(folder, _JSON)


class SitesOfReads(NamedTuple):
    """Sites of consecutive reads; of the last four, one element per site."""

    contig: NDArray[np.int64]  # of each read that has rows of events, in the order of the input
    read: NDArray[np.int64]  # place of its read among these
    position: NDArray[np.int64]  # 0-based, of the middle base of the 5-mer
    sequence: NDArray[np.int32]  # rank of the 7-mer around it
    # shape (n, 10): seconds, standard deviation and mean of the scaled current of the 5-mers before, at and after the
    # site, and the number of the read
    features: NDArray[np.float64]


class M6anetSites(Sink):
    """Folder with ``data.json`` and ``data.info`` for m6anet; a part stores its sites.

    Transcripts are in input order. The sites of a transcript stay in memory until its last read, which is the end of
    the run unless the reads of a transcript are contiguous (`is_sorted`). Raises `OutputFileError` if folder or file
    cannot be written, and `UsageError` if the model's k-mers have no 5-mer in the middle.
    """

    part_name = "m6anet.npy"

    def __init__(
        self, path: str, options: EventalignOptions, model: PoreModel, contigs: list[str], is_sorted: bool
    ) -> None:
        super().__init__(path)
        self._min_reads, self._max_reads = options.m6anet_min_reads, options.m6anet_max_reads
        self._contigs = contigs
        self._is_sorted = is_sorted
        self._model = model
        self._trim = trimmed(model.k, SHOWN)
        self._is_drach = _drach()
        self._n_reads = np.zeros(len(contigs), np.int64)
        self._sites: dict[int, list[list[NDArray[Any]]]] = {}
        self._written = 0

    def _open(self, part: PartFiles | None) -> None:
        self._is_part = part is not None
        if part is not None:
            self._file = self.files.enter_context(complete_output(self.path))
            return
        try:
            os.makedirs(self.path, exist_ok=True)
        except OSError as problem:
            raise OutputFileError(f"{self.path}: cannot make the folder: {problem.strerror}") from problem
        self._json = self.files.enter_context(complete_output(path_of_json(self.path)))
        self._info = self.files.enter_context(complete_output(os.path.join(self.path, _INFO)))
        self._info.write(_INFO_HEADER)

    def write(self, batch: ReadBatch) -> None:
        found = self._find(batch)
        if not self._is_part:
            self._add(found)
        elif len(found.contig):
            for column in found:
                write_array(self._file, column, allow_pickle=False)

    def append(self, part: FinishedPart) -> None:
        """Add the sites of a part. Raises `InputFileError` for an unreadable or damaged file."""
        with part.open(self.part_name) as file:
            try:
                arrays = arrays_until_end(file, os.fstat(file.fileno()).st_size)
                for contig in arrays:
                    others = (next(arrays, contig[:0]) for _ in SitesOfReads._fields[1:])
                    found = SitesOfReads(contig, *others)
                    _check_sites(found, len(self._contigs))
                    self._add(found)
            except (OSError, DamagedValueError) as problem:
                raise InputFileError(f"{file.name}: cannot be read: {problem}") from None

    def finish(self) -> None:
        if not self._is_part:
            self._flush(None)
        super().finish()

    def _add(self, found: SitesOfReads) -> None:
        """Add the sites of the next reads."""
        if not len(found.contig):
            return
        mine = np.flatnonzero(self._used(found.contig)[found.read])
        contig = found.contig[found.read[mine]]
        mine = mine[np.argsort(contig, kind="stable")]
        contig = np.sort(contig)
        at = found.contig[np.sort(np.unique(found.contig, return_index=True)[1])]
        begins, ends = np.searchsorted(contig, at, "left"), np.searchsorted(contig, at, "right")
        for number, begin, end in zip(at.tolist(), begins.tolist(), ends.tolist(), strict=True):
            self._sites.setdefault(number, []).append([column[mine[begin:end]] for column in found[2:]])
        if self._is_sorted:
            self._flush(int(found.contig[-1]))

    def _used(self, contig: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Mark the next reads up to the maximum of their transcripts, and one more, as in m6anet."""
        order = np.argsort(contig, kind="stable")
        begins = np.flatnonzero(np.diff(contig[order], prepend=-1))
        nth = np.empty(len(contig), np.int64)
        nth[order] = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
        used = self._n_reads[contig] + nth <= self._max_reads
        self._n_reads += np.bincount(contig, minlength=len(self._n_reads))
        return used

    def _flush(self, but: int | None) -> None:
        """Write all transcripts, except one that may get more reads."""
        for contig in [contig for contig in self._sites if contig != but]:
            parts = self._sites.pop(contig)
            position, sequence, features = (np.concatenate(columns) for columns in zip(*parts, strict=True))
            order = np.argsort(position, kind="stable")
            position, features = position[order], features[order]
            begins = np.flatnonzero(np.diff(position, prepend=-1))
            ends = np.append(begins[1:], len(order))
            enough = ends - begins >= self._min_reads
            name = json.dumps(self._contigs[contig], ensure_ascii=False)
            texts = kmer_texts(sequence[order][begins[enough]], SHOWN + 2)
            for begin, end, text in zip(begins[enough].tolist(), ends[enough].tolist(), texts, strict=True):
                numbers = json.dumps(features[begin:end].tolist(), separators=(",", ":"))
                line = encoded(f'{{{name}:{{"{position[begin]}":{{"{text}":{numbers}}}}}}}\n')
                place = f"{self._written},{self._written + len(line)}"
                self._json.write(line)
                self._written += len(line)
                self._info.write(encoded(f"{self._contigs[contig]},{position[begin]},{place},{end - begin}\n"))

    def _find(self, batch: ReadBatch) -> SitesOfReads:
        """Find the sites in the reads of a batch."""
        with_rows = np.flatnonzero(batch.rows.n)
        contig = batch.contig[with_rows].astype(np.int64)
        rows = table_columns(batch, self._model, 0, len(batch), scale_events=True)
        k, trim = self._model.k, self._trim
        kmer = trim_ranks(rows.reference_rank, k, trim)
        at = np.flatnonzero((rows.model_rank >= 0) & (trim_ranks(np.maximum(rows.model_rank, 0), k, trim) == kmer))
        read, position, kmer = rows.read[at], rows.position[at].astype(np.int64) + trim + _CENTRE, kmer[at]
        begins = np.flatnonzero(np.diff(read, prepend=-1) | np.diff(position, prepend=-1))
        if not len(begins):
            return SitesOfReads(contig, *(np.empty(0, np.int64),) * 2, np.empty(0, np.int32), np.empty((0, 10)))
        weight = rows.end[at] - rows.start[at]
        total = np.add.reduceat(weight, begins)
        # of the numbers in the table: dataprep's rounding of means depends on their last bit
        seconds, stdv, mean = (
            np.add.reduceat(as_printed(values[at], decimals) * weight, begins) / total
            for values, decimals in ((rows.seconds, 5), (rows.stdv, 3), (rows.level, 2))
        )
        of_kmer = np.stack([seconds, stdv, np.round(mean, 1)], axis=1)
        read, position, kmer = read[begins], position[begins], kmer[begins]
        step = (np.diff(position) == 1) & (np.diff(read) == 0)
        centre = np.flatnonzero(self._is_drach[kmer[1:-1]] & step[:-1] & step[1:]) + 1
        sequence = (kmer[centre - 1] * 4 + kmer[centre] % 4) * 4 + kmer[centre + 1] % 4
        around = [of_kmer[centre - 1], of_kmer[centre], of_kmer[centre + 1]]
        features = np.hstack([*around, batch.read_index[read[centre], np.newaxis].astype(np.float64)])
        return SitesOfReads(contig, np.searchsorted(with_rows, read[centre]), position[centre], sequence, features)


def _check_sites(found: SitesOfReads, n_contigs: int) -> None:
    """Raise `DamagedValueError` for inconsistent arrays."""
    n = len(found.read)
    check_column(found.contig, found.contig.dtype, len(found.contig), end=n_contigs)
    check_column(found.read, np.int64, n, end=len(found.contig))
    check_column(found.position, np.int64, n)
    check_column(found.sequence, np.int32, n, end=4 ** (SHOWN + 2))
    check_column(found.features, np.float64, n, width=10)


def _drach() -> NDArray[np.bool_]:
    """Return the mask of DRACH 5-mers by rank."""
    digits = kmer_digits(np.arange(4**SHOWN), SHOWN, 4)
    return np.all([np.isin(digits[:, i], codes) for i, codes in enumerate(_DRACH)], axis=0)
