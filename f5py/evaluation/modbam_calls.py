"""Calls of modified bases in BAM as columns like those of a table of calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.motifs import Motif
from f5py.errors import InputFileError
from f5py.io.arrow.arrow import import_arrow
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.modification_calls import aligned_calls, modifications_of, read_name

_BATCH = 4096


@dataclass
class TagCounts:
    """How many calls of the modification the tags have, and those of them that are left out.

    Attributes
    ----------
    n : int
    not_aligned : int
        Their base is not aligned to one of the reference, or they have no probability.
    not_at_motif : int
        The read's bases are not those of the motif.
    """

    n: int = 0
    not_aligned: int = 0
    not_at_motif: int = 0


def read_modbam(path: str, motif: Motif, genome: str | None = None, counts: TagCounts | None = None) -> Iterator[Any]:
    """Read the calls at the motif's sites in the bases of the reads.

    Parameters
    ----------
    path : str
    motif : Motif
        Its modification is the one that is read.
    genome : str, optional
        Reference of CRAM.
    counts : TagCounts, optional
        Added to.

    Yields
    ------
    pyarrow.RecordBatch
        ``chromosome``, ``read_name``, ``start``, ``end`` (equal), ``log_lik_ratio``.

    Raises
    ------
    InputFileError
        The file is damaged, or has no such calls.
    """
    arrow, _ = import_arrow("calls")
    alignments = AlignmentFile(path, genome, min_mapq=0, secondary=False)
    contigs = arrow.array(alignments.contigs, arrow.string())
    found: list[tuple[str, int, NDArray[np.int64], NDArray[np.float64]]] = []
    counts = TagCounts() if counts is None else counts
    n_calls = 0

    def batch() -> Any:
        sizes = [len(start) for _, _, start, _ in found]
        names = arrow.DictionaryArray.from_arrays(
            np.repeat(np.arange(len(found), dtype=np.int32), sizes), [name for name, *_ in found]
        )
        places = arrow.DictionaryArray.from_arrays(
            np.repeat(np.array([contig for _, contig, *_ in found], np.int32), sizes), contigs
        )
        start = np.concatenate([one for _, _, one, _ in found])
        columns = {
            "chromosome": places.dictionary_decode(), "read_name": names.dictionary_decode(), "start": start,
            "end": start, "log_lik_ratio": np.concatenate([ratio for *_, ratio in found]),
        }  # fmt: skip
        return arrow.RecordBatch.from_arrays([arrow.array(one) for one in columns.values()], list(columns))

    try:
        for _, record in alignments.records(None):
            calls = [
                one
                for (base, _, code), places in modifications_of(record).items()
                if base == motif.canonical and str(code) == motif.code
                for one in places
            ]
            place, position, ratio = aligned_calls(record, calls)
            offset = motif.offset_reverse if record.is_reverse else motif.offset_forward
            at_site = _at_sites(record.query_sequence or "", place - offset, motif, record.is_reverse)
            found.append((read_name(record), record.reference_id, (position - offset)[at_site], ratio[at_site]))
            counts.n += len(calls)
            counts.not_aligned += len(calls) - len(place)
            counts.not_at_motif += int((~at_site).sum())
            n_calls += int(at_site.sum())
            if len(found) == _BATCH:
                yield batch()
                found.clear()
    finally:
        alignments.close()
    if found:
        yield batch()
    if not n_calls:
        raise InputFileError(
            f"{path}: no read has calls {motif.canonical}+{motif.code} at {motif.pattern} in MM and ML tags"
        )


def _at_sites(sequence: str, first: NDArray[np.int64], motif: Motif, reverse: bool) -> NDArray[np.bool_]:
    """Whether the motif occurs in the sequence at each place, in the record's direction."""
    codes = motif.codes(reverse)
    bits = codes.letter_bits[np.frombuffer(sequence.encode(), np.uint8)]
    fits = (first >= 0) & (first + len(codes.masks) <= len(bits))
    for i, mask in enumerate(codes.masks):
        fits[fits] = (bits[first[fits] + i] & mask) != 0
    return fits
