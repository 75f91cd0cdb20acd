"""Records of arrays for the kernels of base modification tags."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class AlignedSequence(NamedTuple):
    """A record's sequence and alignment."""

    sequence: NDArray[np.uint8]  # shape (n_bases,): on the reference's forward strand
    cigar: NDArray[np.uint32]  # shape (n_operations,)
    segment: NDArray[np.uint8]  # letters of the reference segment
    segment_start: int  # their first position


class CallsOfRead(NamedTuple):
    """A read's calls, one element per group."""

    inside: NDArray[np.bool_]  # whether the call is wanted
    # first, last: reference positions of the first and last site
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    # methylated, unmethylated: log-likelihoods
    methylated: NDArray[np.float32]
    unmethylated: NDArray[np.float32]


class CallOdds(NamedTuple):
    """Conversion of ratios to probabilities."""

    calibration: float  # factor of the ratios
    prior_odds: float  # what is added to them


class CalledBases(NamedTuple):
    """Called bases, to be filled."""

    positions: NDArray[np.int64]  # in the sequence, ascending
    probabilities: NDArray[np.uint8]  # as ML has them


class RecordSequences(NamedTuple):
    """Sequences as stored in records, on the reference's forward strand."""

    sequence: NDArray[np.uint8]
    # start, length: shape (n,): where each begins, and its bases
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    cigar: NDArray[np.uint32]  # of the sequences, which may be those of the reference
    cigar_offsets: NDArray[np.int64]  # shape (n + 1,)


class Modification(NamedTuple):
    """Sites and tag of the called modification."""

    motifs: tuple  # pair of MotifCodes: recognition site of forward and of reverse records
    bases: NDArray[np.uint8]  # shape (2,): the letter of its modified base in each
    head: NDArray[np.uint8]  # what stands in MM before the first number


class TagTexts(NamedTuple):
    """MM texts and ML bytes of reads, to be filled."""

    text: NDArray[np.uint8]
    text_offsets: NDArray[np.int64]  # shape (n + 1,)
    probability: NDArray[np.uint8]
    probability_offsets: NDArray[np.int64]  # shape (n + 1,)


class Replacements(NamedTuple):
    """Reference bases that replace the read's."""

    shows_reference: bool  # whether records show the reference instead of the read
    has_other: NDArray[np.bool_]  # shape (n_records,): records that keep the tags that they have
    reference: NDArray[np.uint8]
    reference_offsets: NDArray[np.int64]  # shape (n + 1,)
