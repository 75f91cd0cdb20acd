"""Writer of pore models in f5c's text format."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from f5py.core.kmers import kmer_digits
from f5py.pore_model.model import NUCLEOTIDES, PoreModel

_CHUNK = 1 << 16
_ALPHABETS = {NUCLEOTIDES: "nucleotide"}
#: Unused by f5c and f5py.
_SD_COLUMNS = "1.0000\t1.0000"


def model_text(model: PoreModel, n_events: NDArray[np.floating], kind: str, comment: str) -> Iterator[bytes]:
    """Format a model piece by piece, a line per k-mer in rank order.

    Parameters
    ----------
    model : PoreModel
        Noise and calibration become comments, which f5c skips.
    n_events : float, shape (n_kmers,)
        Events behind each k-mer's level, for the last column, `weight`.
    kind : str
        Of methylation, such as ``cpg``.
    comment : str
        One line about the model's origin.
    """
    alphabet = _ALPHABETS.get(model.alphabet, kind)
    noise = "" if model.noise is None else f"#noise\t{model.noise.stay:g}\t{model.noise.step:g}\t{model.noise.tails}\n"
    if model.calibration is not None:
        noise += f"#calibration\t{model.calibration:g}\n"
    yield (
        f"#model_name\tf5py_train\n#source\t{comment}\n#k\t{model.k}\n#alphabet\t{alphabet}\n{noise}"
        "kmer\tlevel_mean\tlevel_stdv\tsd_mean\tsd_stdv\tweight\n"
    ).encode()
    letters = np.frombuffer(model.alphabet.encode(), np.uint8)
    for begin in range(0, len(model.level_mean), _CHUNK):
        ranks = np.arange(begin, min(begin + _CHUNK, len(model.level_mean)))
        names = letters[kmer_digits(ranks, model.k, len(letters))].view(f"S{model.k}")[:, 0]
        part = slice(begin, begin + len(ranks))
        columns = (
            names.astype(str).tolist(),
            model.level_mean[part].tolist(),
            model.level_stdv[part].tolist(),
            np.rint(n_events[part]).astype(np.int64).tolist(),
        )
        line = f"%s\t%.5f\t%.5f\t{_SD_COLUMNS}\t%d\n"
        yield "".join(map(line.__mod__, zip(*columns, strict=True))).encode()
