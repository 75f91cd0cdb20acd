"""Compare two tables of methylation calls row by row, whatever the order of their rows."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

#: Largest difference of two log-likelihood ratios that counts as agreement.
TOLERANCE = 0.05

_LLR_COLUMN = 5
#: Rows are matched on these: chromosome, strand, start, end, read; then number of motifs and sequence, which
#: must be equal as well.
_KEY_COLUMNS = (0, 1, 2, 3, 4)
_CHECKED_COLUMNS = (9, 10)
_READ_IN_KEY = 4


class Agreement(NamedTuple):
    """Agreement of two tables. Differences are of the log-likelihood ratio, in the rows that both have."""

    rows_first: int
    rows_second: int
    only_first: int
    only_second: int
    only_first_secondary: int
    other_columns: int
    shared: int
    within: int
    identical: int
    largest: float
    mean: float

    @property
    def same_keys(self) -> bool:
        """Whether both have the same rows, except those that come from secondary alignments."""
        return self.only_second == 0 and self.only_first == self.only_first_secondary


def compare_calls(first: Path, second: Path, reads_with_secondary: set[str]) -> Agreement:
    """Compare the calls of nanopolish or f5c (`first`) with those of f5py (`second`).

    A read with several alignments can have a key more than once; such rows are paired in the order of their
    ratios. nanopolish has no filter of secondary alignments: its surplus rows of `reads_with_secondary` are
    counted apart.
    """
    left, right = _load(first), _load(second)
    only_first = only_second = only_first_secondary = other_columns = 0
    differences: list[float] = []
    for key in left.keys() | right.keys():
        ours, theirs = sorted(left.get(key, ())), sorted(right.get(key, ()))
        surplus = len(ours) - len(theirs)
        only_first += max(surplus, 0)
        only_second += max(-surplus, 0)
        if surplus > 0 and key[_READ_IN_KEY] in reads_with_secondary:
            only_first_secondary += surplus
        for (ratio, rest), (other_ratio, other_rest) in zip(ours, theirs, strict=False):
            differences.append(abs(ratio - other_ratio))
            other_columns += rest != other_rest
    shared = len(differences)
    return Agreement(
        rows_first=sum(map(len, left.values())),
        rows_second=sum(map(len, right.values())),
        only_first=only_first,
        only_second=only_second,
        only_first_secondary=only_first_secondary,
        other_columns=other_columns,
        shared=shared,
        # The tables have two decimals; the small addition keeps 0.05 itself inside.
        within=sum(difference <= TOLERANCE + 1e-6 for difference in differences),
        identical=sum(difference < 1e-6 for difference in differences),
        largest=max(differences, default=0.0),
        mean=sum(differences) / shared if shared else 0.0,
    )


def reads_with_secondary(bam: Path) -> set[str]:
    """Return the names of the reads that have a secondary alignment."""
    import pysam

    with pysam.AlignmentFile(str(bam), "rb") as records:
        return {record.query_name for record in records.fetch(until_eof=True) if record.is_secondary}


def _load(path: Path) -> dict[tuple[str, ...], list[tuple[float, tuple[str, ...]]]]:
    rows: dict[tuple[str, ...], list[tuple[float, tuple[str, ...]]]] = {}
    with path.open() as lines:
        if not next(lines, "").startswith("chromosome\tstrand\tstart\tend\tread_name\tlog_lik_ratio"):
            raise ValueError(f"{path} is not a table of methylation calls")
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            key = tuple(fields[column] for column in _KEY_COLUMNS)
            rest = tuple(fields[column] for column in _CHECKED_COLUMNS)
            rows.setdefault(key, []).append((float(fields[_LLR_COLUMN]), rest))
    return rows
