"""Sites of known methylation from bedMethyl."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from f5py.core.motifs import Motif
from f5py.errors import InputFileError
from f5py.training.sums import Truth

#: Percentages up to and from which the state of a site is known.
_UNMETHYLATED, _METHYLATED = 5.0, 95.0
_COLUMNS = {
    "contig": (0, "S128"), "start": (1, np.int64), "strand": (5, "S1"), "coverage": (9, np.int64),
    "percent": (10, np.float64),
}  # fmt: skip


def read_truth(path: str, contigs: Sequence[str], motif: Motif) -> Truth:
    """Read bedMethyl.

    Parameters
    ----------
    path : str
        Plain or gzip.
    contigs : sequence of str
        Of the alignments, whose order the sites get.
    motif : Motif
        At whose methylated bases the rows are.

    Raises
    ------
    InputFileError
        The file is missing, is none such, or has no site of known state.
    """
    dtype = np.dtype([(name, kind) for name, (_, kind) in _COLUMNS.items()])
    try:
        rows = np.loadtxt(
            path, dtype, comments=None, delimiter=None, usecols=[at for at, _ in _COLUMNS.values()], ndmin=1
        )
    except OSError as problem:
        raise InputFileError(f"{path}: cannot be read ({problem.strerror or problem})") from problem
    except (ValueError, IndexError) as problem:
        raise InputFileError(f"{path}: is not bedMethyl ({problem}); give one as f5py or modkit writes it") from problem
    known = (rows["coverage"] > 0) & ((rows["percent"] <= _UNMETHYLATED) | (rows["percent"] >= _METHYLATED))
    rows = rows[known]
    names = np.array([name.encode() for name in contigs], "S128")
    order = np.argsort(names)
    at = np.minimum(np.searchsorted(names[order], rows["contig"]), len(names) - 1)
    contig = order[at]
    rows, contig = (values[names[contig] == rows["contig"]] for values in (rows, contig))
    if not len(rows):
        raise InputFileError(
            f"{path}: no site of at most {_UNMETHYLATED:g} % or at least {_METHYLATED:g} % is on a contig of the "
            "alignments"
        )
    position = rows["start"] - np.where(rows["strand"] == b"-", motif.offset_reverse, motif.offset_forward)
    state = (rows["percent"] >= _METHYLATED).astype(np.uint8)
    # a site with rows of both strands, which may disagree: then it is of no known state
    place = contig.astype(np.int64) << 40 | position
    unique, site = np.unique(place, return_inverse=True)
    n_rows, n_methylated = np.bincount(site), np.bincount(site, state).astype(np.int64)
    agreed = (n_methylated == 0) | (n_methylated == n_rows)
    unique, states = unique[agreed], (n_methylated > 0).astype(np.uint8)[agreed]
    first = np.searchsorted(unique >> 40, np.arange(len(contigs) + 1))
    return Truth(first.astype(np.int64), unique & (1 << 40) - 1, states, True)
