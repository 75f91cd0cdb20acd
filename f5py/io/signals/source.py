"""What every signal file format offers: raw samples and calibration of many reads at once, as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass
class SignalBlock:
    """The signals of n reads, in the order in which they were asked for.

    Attributes
    ----------
    samples : int16, shape (offsets[-1],)
        Raw DAC values of all reads, one read after the other.
    offsets : int64, shape (n + 1,)
        Read i has ``samples[offsets[i]:offsets[i + 1]]``; an unreadable read has none.
    digitisation, offset, range, sampling_rate : float32, shape (n,)
        Calibration of each read: ``pA = (raw + offset) * (range / digitisation)``; Hz for the last. NaN where
        the read is unreadable.
    problems : dict of int to str
        For each unreadable read its index and one line that says what is wrong and where.
    """

    samples: NDArray[np.int16]
    offsets: NDArray[np.int64]
    digitisation: NDArray[np.float32]
    offset: NDArray[np.float32]
    range: NDArray[np.float32]
    sampling_rate: NDArray[np.float32]
    problems: dict[int, str] = field(default_factory=dict)


class SignalSource(Protocol):
    """A place where signals are read from. Not safe for use by several threads at once."""

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        """Read the signals of the named reads.

        A read that is missing or unreadable is reported in ``problems`` and has no samples; that a whole
        source is unusable raises `SignalError`.
        """
        ...

    def close(self) -> None:
        """Close all files and stop all helper processes. May be called twice."""
        ...
