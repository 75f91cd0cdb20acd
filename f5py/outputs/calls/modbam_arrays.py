"""Named tuples of arrays that the kernels of base modification tags take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class AlignedSequence(NamedTuple):
    """A sequence as its record holds it.

    Attributes
    ----------
    sequence : uint8, shape (n_bases,)
        On the reference's forward strand.
    cigar : uint32, shape (n_operations,)
    segment : uint8
        Letters of the reference segment.
    segment_start : int
        Their first position.
    """

    sequence: NDArray[np.uint8]
    cigar: NDArray[np.uint32]
    segment: NDArray[np.uint8]
    segment_start: int


class CallsOfRead(NamedTuple):
    """One read's calls, one element a group.

    Attributes
    ----------
    inside : bool
        Whether the call is wanted.
    first, last : int64
        Reference positions of the first and last site.
    methylated, unmethylated : float32
        Log-likelihoods.
    """

    inside: NDArray[np.bool_]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    methylated: NDArray[np.float32]
    unmethylated: NDArray[np.float32]


class Odds(NamedTuple):
    """Conversion of ratios to probabilities.

    Attributes
    ----------
    calibration : float
        Factor of the ratios.
    prior_odds : float
        What is added to them.
    """

    calibration: float
    prior_odds: float


class CalledBases(NamedTuple):
    """Called bases, to be filled.

    Attributes
    ----------
    positions : int64
        In the sequence, ascending.
    probabilities : uint8
        As ML has them.
    """

    positions: NDArray[np.int64]
    probabilities: NDArray[np.uint8]


class Sequences(NamedTuple):
    """Sequences as records hold them, on the reference's forward strand.

    Attributes
    ----------
    start, length : int64, shape (n,)
        Where each begins, and its bases.
    cigar : uint32
        Of the sequences, which may be those of the reference.
    cigar_offsets : int64, shape (n + 1,)
    """

    sequence: NDArray[np.uint8]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    cigar: NDArray[np.uint32]
    cigar_offsets: NDArray[np.int64]


class Modification(NamedTuple):
    """The modification that is called.

    Attributes
    ----------
    motifs : pair of MotifCodes
        Recognition site of forward and of reverse records.
    bases : uint8, shape (2,)
        The letter of its modified base in each.
    head : uint8
        What stands in MM before the first number.
    """

    motifs: tuple
    bases: NDArray[np.uint8]
    head: NDArray[np.uint8]


class TagTexts(NamedTuple):
    """MM texts and ML bytes of reads, to be filled.

    Attributes
    ----------
    text_offsets : int64, shape (n + 1,)
    probability_offsets : int64, shape (n + 1,)
    """

    text: NDArray[np.uint8]
    text_offsets: NDArray[np.int64]
    probability: NDArray[np.uint8]
    probability_offsets: NDArray[np.int64]


class Replaced(NamedTuple):
    """Parts of a record that the reference's bases take the place of.

    Attributes
    ----------
    shows_reference : bool
        Whether records show the reference instead of the read.
    has_other : bool, shape (n_records,)
        Records that keep the tags that they have.
    reference_offsets : int64, shape (n + 1,)
    """

    shows_reference: bool
    has_other: NDArray[np.bool_]
    reference: NDArray[np.uint8]
    reference_offsets: NDArray[np.int64]
