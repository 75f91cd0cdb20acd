"""Columns of a table of calls, from calls of modified bases in BAM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from f5py.core.motifs import Motif
from f5py.errors import InputFileError
from f5py.io.arrow.arrow import import_arrow
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_records import record_names
from f5py.io.bam.modifications.modified_sites import SiteSelection, TagCounts, iterate_sites
from f5py.options.cores import usable_cores


def read_modbam(path: str, motif: Motif, genome: str | None = None, counts: TagCounts | None = None) -> Iterator[Any]:
    """Read the calls of the motif's modification at its sites in the bases of the reads.

    Yields `pyarrow.RecordBatch` with ``chromosome``, ``read_name``, ``start``, ``end`` (equal) and ``log_lik_ratio``.
    `genome` is the reference of CRAM; `counts` are added to.
    """
    arrow, _ = import_arrow("calls")
    counts = TagCounts() if counts is None else counts
    n_calls = 0
    with closing(AlignmentFile(path, genome, min_mapq=0, secondary=False)) as alignments:
        contigs = arrow.array(alignments.contigs, arrow.string())
        for data, starts, sites in iterate_sites(alignments, SiteSelection(motif, 0.0), counts, usable_cores()):
            listed = np.flatnonzero(sites.value >= 0)  # not implicit
            if not len(listed):
                continue
            n_calls += len(listed)
            record, which = np.unique(sites.record[listed], return_inverse=True)
            names = [
                name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                for name in record_names(data, starts, record)
            ]
            start = arrow.array(sites.position[listed])
            probability = (sites.value[listed] + 0.5) / 256  # middle of the interval of an ML value
            columns = {
                "chromosome": arrow.DictionaryArray.from_arrays(sites.contig[listed], contigs).dictionary_decode(),
                "read_name": arrow.DictionaryArray.from_arrays(which.astype(np.int32), names).dictionary_decode(),
                "start": start,
                "end": start,
                "log_lik_ratio": arrow.array(np.log(probability / (1 - probability))),
            }
            yield arrow.RecordBatch.from_arrays(list(columns.values()), list(columns))
    if not n_calls:
        raise InputFileError(
            f"{path}: no read has calls {motif.canonical}+{motif.code} at {motif.pattern} in MM and ML tags"
        )
