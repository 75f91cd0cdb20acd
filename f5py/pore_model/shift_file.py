"""Short files of pore models: shifts of methylated k-mers against a built-in nucleotide model.

They have a line for each position of the methylated base in the k-mer::

    #f5py shifts
    #model        r10.4.1_400bps.nucleotide.9mer
    #kind         cpg
    #calibration  1.4
    #source       f5py 0.1.0 train --unlabeled, R10.4.1 DNA, 3000 groups, 41 reads, share 0.63
    place  shift  standard_error  pyrimidine_before  standard_error
    0      0.75   0.30            0.00               0.00

`pyrimidine_before` is added if the preceding base is C or T, and subtracted if it is A or G. All numbers are in pA.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from f5py.errors import PoreModelError
from f5py.pore_model.model import BUILTIN_MODELS, NUCLEOTIDES, PoreModel, Shifts, builtin, with_methylation

#: First line.
SHIFTS = b"#f5py shifts"
_KIND = "cpg"
_TITLES = "place\tshift\tstandard_error\tpyrimidine_before\tstandard_error"
#: Largest plausible shift in pA.
MOST_SHIFT = 50.0
_LEAST_FACTOR, _MOST_FACTOR = 0.05, 20.0


def parse_shifted_model(file: str, text: bytes) -> PoreModel:
    """Parse a model from the text of a file; raise `PoreModelError` for a malformed one."""
    said: dict[str, str] = {}
    rows: list[list[float]] = []
    calibration = None
    for number, line in enumerate(text.decode(errors="replace").splitlines(), 1):
        words = line.split()
        if not words or line.startswith(SHIFTS.decode()):
            continue
        if words[0].startswith("#"):
            said[words[0]] = " ".join(words[1:])
            if words[0] == "#calibration":
                calibration = parse_calibration(file, number, said[words[0]])
        elif words[0] != "place":
            rows.append(_row(file, number, words, len(rows)))
    name, kind = said.get("#model", ""), said.get("#kind", "")
    k, alphabet = BUILTIN_MODELS.get(name, (0, ""))
    if alphabet != NUCLEOTIDES:
        raise PoreModelError(
            f"{file}: '#model' is followed by {name!r}, not by the name of a built-in nucleotide model"
        )
    if kind != _KIND:
        raise PoreModelError(f"{file}: '#kind' is followed by {kind!r}, not by {_KIND}")
    if len(rows) != k:
        raise PoreModelError(f"{file}: has {len(rows)} places, but k-mers of {name} have {k}; make the file again")
    if rows[0][3]:
        raise PoreModelError(f"{file}: place 0 has a shift for the base before it, which is not in the k-mer")
    by_place, pyrimidine_before = ([row[column] for row in rows] for column in (1, 3))
    model = with_methylation(builtin(name), Shifts(tuple(by_place), tuple(pyrimidine_before)), file)
    return replace(model, calibration=calibration, kind=kind)


def shift_text(
    nucleotide: str, shifts: Shifts, errors: Sequence[Sequence[float]], calibration: float | None, source: str
) -> str:
    """Format a file; `errors` are the standard errors of both kinds of shifts."""
    factor = [] if calibration is None else [f"#calibration\t{calibration:g}"]
    rows = [
        f"{place}\t" + "\t".join(f"{value:.2f}" for value in values)
        for place, values in enumerate(
            zip(shifts.by_place, errors[0], shifts.pyrimidine_before, errors[1], strict=True)
        )
    ]
    head = [SHIFTS.decode(), f"#model\t{nucleotide}", f"#kind\t{_KIND}", *factor, f"#source\t{source}", _TITLES]
    return "\n".join([*head, *rows, ""])


def parse_calibration(file: str, line: int, text: str) -> float:
    """Parse the factor of a ``#calibration`` line."""
    factor = parse_number(text)
    if not _LEAST_FACTOR <= factor <= _MOST_FACTOR:
        raise PoreModelError(
            f"{file}, line {line}: '#calibration' is followed by {text!r}, not by a factor from {_LEAST_FACTOR:g} to "
            f"{_MOST_FACTOR:g}"
        )
    return factor


def _row(file: str, line: int, words: list[str], place: int) -> list[float]:
    """Parse the line of a position; columns after the shift are optional."""
    row = [parse_number(word) for word in words[:5]]
    row += [0.0] * (5 - len(row))
    if len(words) not in (2, 3, 5) or not all(map(math.isfinite, row)) or words[0] != str(place):
        raise PoreModelError(
            f"{file}, line {line}: is not place {place} with its shift, standard error, and the same of "
            "pyrimidine_before; make the file again"
        )
    if max(abs(row[1]), abs(row[3])) > MOST_SHIFT:
        raise PoreModelError(f"{file}, line {line}: shifts by more than {MOST_SHIFT:g} pA; correct the line")
    return row


def parse_number(text: str | bytes) -> float:
    """Parse a number; NaN for other text."""
    try:
        return float(text) if text.isascii() and "_" not in str(text) else math.nan
    except ValueError:
        return math.nan
