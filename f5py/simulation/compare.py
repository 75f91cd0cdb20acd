"""Compare called methylation frequencies with the simulated truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from f5py.errors import F5pyError, InputFileError

_BINS = np.linspace(0, 1, 6)
_KEYS = [("chromosome", "U255"), ("start", np.int64), ("end", np.int64)]


@dataclass(frozen=True)
class Comparison:
    """Sites that are both called and simulated.

    Attributes
    ----------
    called, true : float64, shape (n,)
        Frequency of each site by the calls, and over the reads that were simulated.
    """

    called: NDArray[np.float64]
    true: NDArray[np.float64]

    @property
    def correlation(self) -> float:
        """Pearson's correlation; NaN if there are less than two sites or one side does not vary."""
        if len(self.true) < 2 or not self.called.std() or not self.true.std():
            return float("nan")
        return float(np.corrcoef(self.called, self.true)[0, 1])

    def table(self) -> str:
        """Lines of text: for each fifth of the true frequencies the mean of both, and the correlation."""
        lines = [f"{'true frequency':<16}{'sites':>8}{'true':>8}{'called':>8}{'|difference|':>14}"]
        which = np.clip(np.digitize(self.true, _BINS) - 1, 0, len(_BINS) - 2)
        for i in range(len(_BINS) - 1):
            lines.append(self._row(f"{_BINS[i]:.1f} to {_BINS[i + 1]:.1f}", which == i))
        lines.append(self._row("all", np.ones(len(self.true), dtype=bool)))
        lines.append(f"Pearson correlation over {len(self.true)} sites: {self.correlation:.4f}")
        return "\n".join(lines)

    def _row(self, label: str, which: NDArray[np.bool_]) -> str:
        true, called = self.true[which], self.called[which]
        if not len(true):
            return f"{label:<16}{0:>8}{'-':>8}{'-':>8}{'-':>14}"
        difference = np.abs(true - called).mean()
        return f"{label:<16}{len(true):>8}{true.mean():>8.3f}{called.mean():>8.3f}{difference:>14.3f}"


def compare_frequencies(frequencies: str | Path, truth: str | Path, min_calls: int) -> Comparison:
    """Join the frequencies of single sites with ``truth.tsv``.

    Parameters
    ----------
    frequencies : path
        Table of ``meth-freq -s``.
    truth : path
        ``truth.tsv`` of a simulation.
    min_calls : int
        Sites with fewer calls are left out.

    Raises
    ------
    InputFileError
        A table is not readable as what it should be.
    F5pyError
        No site is in both.
    """
    called = _read(frequencies, (0, 1, 2, 4, 6), [*_KEYS, ("n", np.int64), ("frequency", np.float64)])
    called = called[(called["n"] >= min_calls) & (called["start"] == called["end"])]
    true = _read(truth, (0, 1, 2, 3, 5), [*_KEYS, ("n", np.int64), ("frequency", np.float64)])
    names, name_of = np.unique(np.concatenate((called["chromosome"], true["chromosome"])), return_inverse=True)
    starts = np.concatenate((called["start"], true["start"]))
    keys = starts * len(names) + name_of
    _, of_called, of_true = np.intersect1d(keys[: len(called)], keys[len(called) :], return_indices=True)
    if not len(of_called):
        raise F5pyError(f"{frequencies}: no site of {truth} has {min_calls} or more calls")
    return Comparison(called["frequency"][of_called], true["frequency"][of_true])


def _read(path: str | Path, columns: tuple[int, ...], types: list) -> np.ndarray:
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a table without rows: joining it reports that
            return np.loadtxt(path, dtype=types, delimiter="\t", skiprows=1, usecols=columns, comments=None, ndmin=1)
    except (OSError, ValueError) as problem:
        raise InputFileError(f"{path}: cannot be read as a table of frequencies ({problem})") from None
