"""Input of m6anet, written without an event table.

``m6anet dataprep`` (2.0.1) makes ``data.json`` and ``data.info`` from the table of ``eventalign --scale-events
--signal-index``. Here they are written from `f5py.outputs.events.m6anet_sites`.
"""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import numpy as np

from f5py.core.kmers import kmer_texts
from f5py.errors import OutputFileError
from f5py.io.files.complete_file import complete_output
from f5py.outputs.events.m6anet_sites import SHOWN, ReadLimit, SiteFeatures, SitesOfReads
from f5py.text.encoding import encoded

_INFO_HEADER = b"transcript_id,transcript_position,start,end,n_reads\n"
_JSON, _INFO = "data.json", "data.info"


def path_of_json(folder: str) -> str:
    """Return the path of ``data.json``."""
    return os.path.join(folder, _JSON)


class M6anetJson(AbstractContextManager["M6anetJson"]):
    """Write ``data.json`` and ``data.info`` atomically into a folder; a context manager.

    Transcripts are in input order. The sites of a transcript stay in memory until its last read, which is the end of
    the run for unsorted input. Raises `OutputFileError` if folder or file cannot be written.

    Parameters
    ----------
    folder : str
        Created if missing.
    is_sorted : bool
        The reads of a transcript are contiguous.
    min_reads : int
        Skip sites in fewer reads.
    max_reads : int
        Use only the first reads of a transcript.
    """

    def __init__(self, folder: str, contigs: list[str], is_sorted: bool, min_reads: int, max_reads: int) -> None:
        self._contigs = contigs
        self._is_sorted = is_sorted
        self._min_reads = min_reads
        self._limit = ReadLimit(len(contigs), max_reads)
        self._sites: dict[int, list[SiteFeatures]] = {}
        self._written = 0
        self._files = ExitStack()
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as problem:
            raise OutputFileError(f"{folder}: cannot make the folder: {problem.strerror}") from problem
        self._json = self._files.enter_context(complete_output(path_of_json(folder)))
        self._info = self._files.enter_context(complete_output(os.path.join(folder, _INFO)))
        self._info.write(_INFO_HEADER)

    def __exit__(self, *problem: Any) -> None:
        if problem[0] is None:
            try:
                self._flush(None)
            except BaseException as error:
                self._files.__exit__(type(error), error, error.__traceback__)
                raise
        self._files.__exit__(*problem)

    def write(self, found: SitesOfReads) -> None:
        """Add the sites of the next reads."""
        if not len(found.contig):
            return
        # who found them may know only the reads of a part
        mine = np.flatnonzero(self._limit.used(found.contig)[found.read])
        contig = found.contig[found.read[mine]]
        mine = mine[np.argsort(contig, kind="stable")]
        contig = np.sort(contig)
        at = found.contig[np.sort(np.unique(found.contig, return_index=True)[1])]
        begins, ends = np.searchsorted(contig, at, "left"), np.searchsorted(contig, at, "right")
        for number, begin, end in zip(at.tolist(), begins.tolist(), ends.tolist(), strict=True):
            self._sites.setdefault(number, []).append(found.sites.of(mine[begin:end]))
        if self._is_sorted:
            self._flush(int(found.contig[-1]))

    def _flush(self, but: int | None) -> None:
        """Write all transcripts, except one that may get more reads."""
        for contig in [contig for contig in self._sites if contig != but]:
            parts = self._sites.pop(contig)
            sites = SiteFeatures(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
            order = np.argsort(sites.position, kind="stable")
            position = sites.position[order]
            begins = np.flatnonzero(np.diff(position, prepend=-1))
            ends = np.append(begins[1:], len(order))
            enough = ends - begins >= self._min_reads
            features = sites.features[order]
            name = json.dumps(self._contigs[contig], ensure_ascii=False)
            texts = kmer_texts(sites.sequence[order][begins[enough]], SHOWN + 2)
            for begin, end, text in zip(begins[enough].tolist(), ends[enough].tolist(), texts, strict=True):
                numbers = json.dumps(features[begin:end].tolist(), separators=(",", ":"))
                line = encoded(f'{{{name}:{{"{position[begin]}":{{"{text}":{numbers}}}}}}}\n')
                place = f"{self._written},{self._written + len(line)}"
                self._json.write(line)
                self._written += len(line)
                self._info.write(encoded(f"{self._contigs[contig]},{position[begin]},{place},{end - begin}\n"))
