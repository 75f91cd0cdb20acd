"""What m6anet reads: the signal of every DRACH site in every read of direct RNA, without a table of events between.

``m6anet dataprep`` (2.0.1) makes ``data.json`` and ``data.info`` of the table of ``eventalign --scale-events
--signal-index``: the events of a read at a position that fit its 5-mer become one, with means weighted by the events'
samples; a site in a read is a 5-mer DRACH (D is A, G or T; R is A or G; H is A, C or T) whose two neighbours have
events too. Here the same is computed from the rows themselves, with the numbers as the table would show them.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.kmers import kmer_digits, kmer_texts, shown_ranks
from f5py.errors import OutputFileError
from f5py.io.complete_file import complete_output
from f5py.outputs.table_columns import TableColumns, as_printed, table_columns
from f5py.outputs.table_layout import trimmed
from f5py.pore_model.model import PoreModel
from f5py.text.encoding import encoded

#: Bases of the k-mers that m6anet knows.
_SHOWN = 5
_CENTRE = 2
#: Codes of D, R, A, C and H over ACGT.
_DRACH = ((0, 2, 3), (0, 2), (0,), (1,), (0, 1, 3))
_INFO_HEADER = b"transcript_id,transcript_position,start,end,n_reads\n"


class Sites(NamedTuple):
    """Sites in reads, of one transcript, one entry each.

    Attributes
    ----------
    position : int64
        0-based, of the middle base of the 5-mer.
    sequence : int32
        Rank of the 7-mer around it.
    features : float64, shape (n, 10)
        Seconds, standard deviation and mean of the scaled current of the 5-mers before, at and after the site, and the
        number of the read.
    """

    position: NDArray[np.int64]
    sequence: NDArray[np.int32]
    features: NDArray[np.float64]


class M6anetJson:
    """Writes ``data.json`` and ``data.info`` into a folder; a context manager. Both appear when they are complete.

    Transcripts come in the order of the input. The sites of a transcript are in memory until its last read has come,
    which is the end of the run if the input is not sorted.

    Parameters
    ----------
    folder : str
        Made if it is not there.
    contigs : list of str
    model : PoreModel
        Of 5-mers, or of k-mers with a 5-mer in the middle.
    is_sorted : bool
        The reads of a transcript follow each other.
    min_reads : int
        Sites in fewer reads are left out.
    max_reads : int
        Number of reads of a transcript that are used, the first ones.

    Raises
    ------
    OutputFileError
        The folder or a file cannot be written.
    UsageError
        The model's k-mers have no 5-mer in the middle.
    """

    def __init__(
        self, folder: str, contigs: list[str], model: PoreModel, is_sorted: bool, min_reads: int, max_reads: int
    ) -> None:
        self._contigs = contigs
        self._model = model
        self._trim = trimmed(model.k, _SHOWN)
        self._is_sorted = is_sorted
        self._min_reads, self._max_reads = min_reads, max_reads
        self._n_reads = np.zeros(len(contigs), np.int64)
        self._sites: dict[int, list[Sites]] = {}
        self._is_drach = _drach()
        self._written = 0
        self._files = ExitStack()
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as problem:
            raise OutputFileError(f"{folder}: cannot make the folder: {problem.strerror}") from problem
        self._json = self._files.enter_context(complete_output(os.path.join(folder, "data.json")))
        self._info = self._files.enter_context(complete_output(os.path.join(folder, "data.info")))
        self._info.write(_INFO_HEADER)

    def __enter__(self) -> M6anetJson:
        return self

    def __exit__(self, *problem: Any) -> None:
        if problem[0] is None:
            try:
                self._flush(None)
            except BaseException as error:
                self._files.__exit__(type(error), error, error.__traceback__)
                raise
        self._files.__exit__(*problem)

    def write(self, batch: ReadBatch) -> None:
        """Take the rows of one batch."""
        with_rows = np.flatnonzero(batch.n_rows)
        if not len(with_rows):
            return
        contig = batch.contig[with_rows].astype(np.int64)
        order = np.argsort(contig, kind="stable")
        begins = np.flatnonzero(np.diff(contig[order], prepend=-1))
        nth = np.empty(len(with_rows), np.int64)
        sizes = np.diff(np.append(begins, len(order)))
        nth[order] = np.arange(len(order)) - np.repeat(begins, sizes)
        used = np.zeros(len(batch), np.bool_)
        # one more than the maximum, as m6anet counts
        used[with_rows] = self._n_reads[contig] + nth <= self._max_reads
        self._n_reads += np.bincount(contig, minlength=len(self._contigs))
        columns = table_columns(batch, self._model, 0, len(batch), scale_events=True)
        sites, of_read = self._sites_of(columns, used, batch.read_index)
        for at in contig[np.sort(np.unique(contig, return_index=True)[1])].tolist():
            mine = batch.contig[of_read] == at
            self._sites.setdefault(at, []).append(Sites(*(column[mine] for column in sites)))
        if self._is_sorted:
            self._flush(int(contig[-1]))

    def _sites_of(
        self, rows: TableColumns, used: NDArray[np.bool_], read_index: NDArray[np.int64]
    ) -> tuple[Sites, NDArray[np.int32]]:
        """The sites in the rows of some reads, and the place of each one's read in the batch."""
        k, trim = self._model.k, self._trim
        kmer = shown_ranks(rows.reference_rank, k, trim)
        fits = (rows.model_rank >= 0) & (shown_ranks(np.maximum(rows.model_rank, 0), k, trim) == kmer)
        at = np.flatnonzero(fits & used[rows.read])
        read, position, kmer = rows.read[at], rows.position[at].astype(np.int64) + trim + _CENTRE, kmer[at]
        begins = np.flatnonzero(np.diff(read, prepend=-1) | np.diff(position, prepend=-1))
        if not len(begins):
            return Sites(np.empty(0, np.int64), np.empty(0, np.int32), np.empty((0, 10))), np.empty(0, np.int32)
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
        features = np.hstack([*around, read_index[read[centre], np.newaxis].astype(np.float64)])
        return Sites(position[centre], sequence, features), read[centre]

    def _flush(self, but: int | None) -> None:
        """Write all transcripts, but one to which more reads may come."""
        for contig in [contig for contig in self._sites if contig != but]:
            parts = self._sites.pop(contig)
            sites = Sites(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
            order = np.argsort(sites.position, kind="stable")
            position = sites.position[order]
            begins = np.flatnonzero(np.diff(position, prepend=-1))
            ends = np.append(begins[1:], len(order))
            enough = ends - begins >= self._min_reads
            features = sites.features[order]
            name = json.dumps(self._contigs[contig], ensure_ascii=False)
            texts = kmer_texts(sites.sequence[order][begins[enough]], _SHOWN + 2)
            for begin, end, text in zip(begins[enough].tolist(), ends[enough].tolist(), texts, strict=True):
                numbers = json.dumps(features[begin:end].tolist(), separators=(",", ":"))
                line = encoded(f'{{{name}:{{"{position[begin]}":{{"{text}":{numbers}}}}}}}\n')
                place = f"{self._written},{self._written + len(line)}"
                self._json.write(line)
                self._written += len(line)
                self._info.write(encoded(f"{self._contigs[contig]},{position[begin]},{place},{end - begin}\n"))


def _drach() -> NDArray[np.bool_]:
    """Which 5-mers are DRACH, by rank."""
    digits = kmer_digits(np.arange(4**_SHOWN), _SHOWN, 4)
    return np.all([np.isin(digits[:, i], codes) for i, codes in enumerate(_DRACH)], axis=0)
