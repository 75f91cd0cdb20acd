"""Counts of reads by outcome, and by cause of failure."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import FIRST_READS, Cause, ReadBatch, ReadStatus
from f5py.io.files.json_values import JsonObject

#: Fewer events than this say nothing, whatever ``--min-recalib-events`` allows.
USABLE_EVENTS = 30
#: Names of reads without a signal that are told.
_EXAMPLES = 3


@dataclass
class RunCounts:
    """Reads by outcome, their bases, and calls or rows; calls beyond the threshold by state."""

    total: int = 0
    qc_fail: int = 0
    not_calibrated: int = 0
    no_alignment: int = 0
    bad_reads: int = 0
    ultra: int = 0
    bases: int = 0
    results: int = 0
    methylated: int = 0
    unmethylated: int = 0
    reverse: int = 0  # reads that a result was looked for in and that lie on the reverse strand
    covered_sites: int = 0  # sites of calls that were skipped because an earlier alignment of the same read covers them
    # causes: shape (number of causes,): reads that dropped out, by `Cause`
    causes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(Cause), np.int64))
    rescuable: int = 0  # reads with too few events to recalibrate with, but no fewer than `USABLE_EVENTS`
    compared: int = 0  # reads with bases that were compared with those of their alignments
    # columns, equal_columns: of the alignments of the first `FIRST_READS` reads, see `ReadBatch.columns`
    columns: int = 0
    equal_columns: int = 0
    examples: list[str] = field(default_factory=list)  # what is wrong with the signals of some of the bad reads

    def add(self, batch: ReadBatch) -> None:
        """Count a computed batch."""
        status = batch.status
        columns, equal_columns = batch.columns[: max(FIRST_READS - self.total, 0)].sum(axis=0).tolist()
        self.compared += int(batch.is_compared.sum())
        self.columns += columns
        self.equal_columns += equal_columns
        self.total += len(batch)
        self.qc_fail += int((status == ReadStatus.QC_FAIL).sum())
        self.not_calibrated += int((status == ReadStatus.NOT_CALIBRATED).sum())
        self.no_alignment += int((status == ReadStatus.NO_ALIGNMENT).sum())
        self.bad_reads += int((status == ReadStatus.BAD_READ).sum())
        self.bases += int(batch.read_length[status != ReadStatus.BAD_READ].sum())
        self.reverse += int(((status == ReadStatus.OK) & batch.reverse).sum())
        self.causes += np.bincount(batch.cause, minlength=len(Cause))
        few = batch.cause == Cause.FEW_EVENTS
        if few.any():
            self.rescuable += int((few & (batch.n_calibration >= USABLE_EVENTS)).sum())
        self.examples += [batch.problems[read] for read in sorted(batch.problems)[: _EXAMPLES - len(self.examples)]]

    def join(self, other: RunCounts) -> None:
        """Add the counts of the next part of the run."""
        for one in fields(self):
            mine, more = getattr(self, one.name), getattr(other, one.name)
            setattr(self, one.name, mine + more)
        del self.examples[_EXAMPLES:]

    @classmethod
    def from_json(cls, values: JsonObject) -> RunCounts:
        """Restore counts from JSON. Raises `DamagedValueError`."""
        numbers = [one.name for one in fields(cls) if one.name not in ("causes", "examples")]
        values.check_names([*numbers, "causes", "examples"])
        return cls(
            **{name: values.integer(name) for name in numbers},
            causes=values.integers("causes", (len(Cause),)),
            examples=values.texts("examples", _EXAMPLES),
        )

    def by_cause(self, cause: Cause) -> int:
        """Count the reads that failed for this cause."""
        return int(self.causes[cause])

    @property
    def used(self) -> int:
        """Reads that reached the search for results."""
        return self.total - self.failed - self.ultra

    @property
    def methylated_fraction(self) -> float | None:
        """Fraction methylated of the calls beyond the threshold; None without any."""
        called = self.methylated + self.unmethylated
        return self.methylated / called if called else None

    @property
    def failed(self) -> int:
        """Reads that failed by themselves."""
        return self.qc_fail + self.not_calibrated + self.no_alignment + self.bad_reads
