"""Counts of reads by outcome and cause, messages on failed ones, and checks of the inputs' fit."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from f5py.compute.chemistry import Chemistry
from f5py.core.batch import FIRST_READS, Cause, ReadBatch, ReadStatus
from f5py.errors import InputFileError, UnsupportedDataError
from f5py.io.files.json_values import JsonObject
from f5py.options.shared import AlignmentOptions, MappedReadsOptions

#: Shorter reads do not tell whether the pore model fits.
LONG_ENOUGH = 300
#: Reads of the reference that they were mapped to have more equal bases; those of another one about a third.
_LEAST_IDENTITY = 0.6
#: Fewer columns of alignments do not tell which reference they are of.
_ENOUGH_COLUMNS = 200
_MOST_FAILED = 0.8
#: In the first reads of a run the letter U is looked for.
_READS_WITH_LETTERS = 20

#: What became of reads, as reports and tables call it.
FATES = {
    ReadStatus.BAD_READ: "bad_read",
    ReadStatus.NO_ALIGNMENT: "no_alignment",
    ReadStatus.NOT_CALIBRATED: "could_not_calibrate",
    ReadStatus.QC_FAIL: "qc_fail",
}
#: Causes in a word, for reports.
CAUSES = {
    Cause.LOW_EMISSION: "low_emission",
    Cause.NOT_SPANNING: "not_spanning",
    Cause.LONG_GAP: "long_gap",
    Cause.MANY_EVENTS: "too_many_events",
    Cause.TOO_SHORT: "too_short",
    Cause.FEW_EVENTS: "too_few_events",
    Cause.NOISY: "too_noisy",
    Cause.MANY_ALIGNED_EVENTS: "too_many_aligned_events",
    Cause.NO_SIGNAL: "no_signal",
    Cause.OTHER_BASES: "other_bases",
}
_UNALIGNED = (Cause.LOW_EMISSION, Cause.NOT_SPANNING, Cause.LONG_GAP, Cause.TOO_SHORT)
_MANY = (Cause.MANY_EVENTS, Cause.MANY_ALIGNED_EVENTS)
_UNCALIBRATED = (Cause.FEW_EVENTS, Cause.NOISY)

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


def cause_text(batch: ReadBatch, read: int, options: AlignmentOptions) -> str:
    """Explain the failure of a read, with the option that decides it."""
    cause = Cause(int(batch.cause[read]))
    length = int(batch.read_length[read])
    if cause is Cause.NO_SIGNAL:
        return batch.problems.get(read, "no usable signal")
    if cause is Cause.OTHER_BASES:
        return _words_of_other_bases(options)
    if cause is Cause.MANY_EVENTS:
        events = int(batch.events.offsets[read + 1] - batch.events.offsets[read])
        ratio = f"{events / length:.1f} events per base" if length else "events, but no bases"
        return f"{ratio} (--max-events-per-base {options.max_events_per_base:g})"
    if cause is Cause.TOO_SHORT:
        return f"{length} bases or no events: too short to align"
    if cause is Cause.LOW_EMISSION:
        return f"the events do not fit the pore model (--min-mean-emission {options.min_mean_emission:g})"
    if cause is Cause.NOT_SPANNING:
        return "no alignment of all events to all bases was found"
    if cause is Cause.LONG_GAP:
        return f"more than {options.max_gap} bases in a row without an event (--max-gap)"
    if cause is Cause.FEW_EVENTS:
        return (
            f"{int(batch.n_calibration[read])} events to recalibrate with (--min-recalib-events "
            f"{options.min_recalib_events})"
        )
    if cause is Cause.NOISY:
        return f"var {float(batch.var[read]):.2f} after recalibration (--qc-max-var {options.qc_max_var:g})"
    return (
        f"{float(batch.events_per_base[read]):.1f} aligned events per base (--qc-max-events-per-base "
        f"{options.qc_max_events_per_base:g})"
    )


def cause_counts(counts: RunCounts) -> str:
    """Format the numbers of failed reads by cause, the most common first."""
    numbers = sorted(
        ((counts.by_cause(cause), name) for cause, name in CAUSES.items() if counts.by_cause(cause)), reverse=True
    )
    return ", ".join(f"{name}: {number}" for number, name in numbers)


def advice(counts: RunCounts, chemistry: Chemistry, options: AlignmentOptions) -> list[str]:
    """Explain at the end of a run why most reads failed; empty if they did not."""
    lines = []
    if counts.rescuable:
        lines.append(
            f"{counts.by_cause(Cause.FEW_EVENTS)} reads have fewer than {options.min_recalib_events} events to "
            f"recalibrate with; --min-recalib-events {USABLE_EVENTS} would try {counts.rescuable} of them"
        )
    others = counts.qc_fail + counts.not_calibrated + counts.no_alignment - counts.rescuable
    if others > counts.total // 2:
        lines.append(
            f"more than half of the reads failed ({listed(counts.causes)}); {remedy(counts.causes, chemistry)}"
        )
    return lines


def failure(counts: RunCounts, chemistry: Chemistry, options: AlignmentOptions) -> str | None:
    """Explain why a finished run failed as a whole, with a remedy; None if it did not."""
    if (why := mismatch(counts, options)) is not None:
        return why
    return all_failed(counts, chemistry) if counts.failed and counts.used <= 0 else None


def mismatch(counts: RunCounts, options: AlignmentOptions) -> str | None:
    """Explain that reads or reference do not belong to the alignments; None if they do."""
    n_others = counts.by_cause(Cause.OTHER_BASES)
    if _are_most(n_others, counts.compared, options):
        return _other_reads(n_others, counts.compared, options)
    return _other_reference(counts.columns, counts.equal_columns, options)


def all_failed(counts: RunCounts, chemistry: Chemistry) -> str:
    """Advise for a run in which every read failed."""
    head = f"all {counts.failed} reads failed ({listed(counts.causes)})"
    if counts.by_cause(Cause.NO_SIGNAL) == counts.failed:
        return f"{head}; give the signals of these reads"
    if counts.rescuable > counts.failed // 2:
        return f"{head}; they are short, try --min-recalib-events {USABLE_EVENTS}"
    return f"{head}; {remedy(counts.causes, chemistry)}"


def other_bases(counts: RunCounts, options: MappedReadsOptions) -> str:
    """Report the reads that failed because their bases differ from the alignments'; "" for none."""
    if not (n := counts.by_cause(Cause.OTHER_BASES)):
        return ""
    where = f"all are in {options.failed_reads}" if options.failed_reads else "--failed-reads FILE lists them"
    why = "were they trimmed or basecalled again after they had been mapped?"
    if options.mapped_by:
        why = "their names are those of reads before them, of which the first one counts"
    return f"{_words_of_other_bases(options)}: {n} of {counts.compared} reads, which have failed; {why} ({where})"


def _words_of_other_bases(options: AlignmentOptions) -> str:
    if getattr(options, "reads", None) is None:
        return "other bases in the primary record than in this one"
    return "other bases in -r than in the BAM"


def _are_most(n_others: int, n_reads: int, options: AlignmentOptions) -> bool:
    """Return whether most compared reads differ; with reads mapped in the same run, duplicates may."""
    return 2 * n_others > n_reads and not getattr(options, "mapped_by", "")


def _other_reads(n_others: int, n_reads: int, options: AlignmentOptions) -> str:
    advice = "map the reads again"
    if (reads := getattr(options, "reads", None)) is not None:
        advice = f"{reads} has other bases (trimmed, or basecalled again?); give the reads that were mapped"
    return f"{_words_of_other_bases(options)}: {n_others} of {n_reads} reads; {advice}"


def _other_reference(n_columns: int, n_equal: int, options: AlignmentOptions) -> str | None:
    """Explain that the reference is another one, if few aligned bases are equal."""
    if n_columns < _ENOUGH_COLUMNS or n_equal >= _LEAST_IDENTITY * n_columns:
        return None
    return (
        f"{getattr(options, 'genome', None)}: is another reference than that of the alignments: of their first reads "
        f"only {100 * n_equal / n_columns:.0f} % of the aligned bases are equal; give the FASTA file that the reads "
        "were mapped to"
    )


class FitCheck:
    """Check chemistry, alignments and reference by the first reads of a run.

    Reads are checked in input order, so that batch sizes do not change the verdict; the chemistry only by reads of at
    least `LONG_ENOUGH` bases. Runs with fewer reads are checked at their end; see `failure`.
    """

    def __init__(self, chemistry: Chemistry, model: str, options: AlignmentOptions) -> None:
        self._chemistry = chemistry
        self._model = model
        self._options = options
        self._n_compared = self._n_seen = 0
        self._n_others = 0
        self._columns = np.zeros(2, np.int64)
        self._started = 0
        self._judged = 0
        self._causes = np.zeros(len(Cause), np.int64)

    def check_inputs(self, batch: ReadBatch) -> None:
        """Raise if the bases of most reads, or the reference, are others; called with every batch, in order."""
        compared = np.flatnonzero(batch.is_compared)[: FIRST_READS - self._n_compared]
        if len(compared):
            self._n_compared += len(compared)
            self._n_others += int((batch.cause[compared] == Cause.OTHER_BASES).sum())
            if self._n_compared == FIRST_READS and _are_most(self._n_others, FIRST_READS, self._options):
                raise InputFileError(_other_reads(self._n_others, FIRST_READS, self._options))
        if (n := min(FIRST_READS - self._n_seen, len(batch))) > 0:
            self._n_seen += n
            self._columns += batch.columns[:n].sum(axis=0)
            n_columns, n_equal = self._columns.tolist()
            problem = _other_reference(n_columns, n_equal, self._options)
            if self._n_seen == FIRST_READS and problem is not None:
                raise InputFileError(problem)

    def check_letters(self, batch: ReadBatch) -> None:
        """Refuse RNA letters in DNA; called with every batch before it is computed."""
        if self._chemistry.rna or self._started >= _READS_WITH_LETTERS:
            return
        self._started += int((batch.status != ReadStatus.BAD_READ).sum())
        if (batch.bases == ord("U")).any():
            raise UnsupportedDataError(
                "the reads have the letter U, so they are direct RNA, but the signals are taken as "
                f"{self._chemistry.name}; for RNA use eventalign or resquiggle with --rna"
            )

    def check_fit(self, batch: ReadBatch) -> None:
        """Raise as soon as the pore model does not fit the reads; called with every aligned batch, in order."""
        if self._judged >= FIRST_READS:
            return
        is_judged = (batch.status != ReadStatus.BAD_READ) & (batch.read_length >= LONG_ENOUGH)
        judged = np.flatnonzero(is_judged)[: FIRST_READS - self._judged]
        self._judged += len(judged)
        self._causes += np.bincount(batch.cause[judged], minlength=len(Cause))
        n_failed = self._judged - int(self._causes[Cause.NONE])
        if self._judged < FIRST_READS or n_failed <= _MOST_FAILED * self._judged:
            return
        raise UnsupportedDataError(
            f"{n_failed} of the first {self._judged} reads of {LONG_ENOUGH} bases or more do not fit the pore model "
            f"{self._model} ({listed(self._causes)}); {remedy(self._causes, self._chemistry)}"
        )


def remedy(causes: NDArray[np.int64], chemistry: Chemistry) -> str:
    """Suggest a remedy by the numbers of failed reads by cause."""
    many, uncalibrated, unaligned = (int(causes[list(group)].sum()) for group in (_MANY, _UNCALIBRATED, _UNALIGNED))
    if many > max(unaligned, uncalibrated):
        return (
            "the signals have far more events than bases: is this another chemistry (--pore, --rna), or a very slow "
            "run (--max-events-per-base, --qc-max-events-per-base)?"
        )
    if uncalibrated > unaligned:
        return (
            f"they align, but not well: is the model that of {chemistry.name} reads (--pore, --kmer-model), or are "
            "they short or noisy (--min-recalib-events, --qc-max-var)?"
        )
    return (
        f"these are probably not {chemistry.name} reads (--pore, --rna), or the signals belong to other reads: check "
        "the data, or give a fitting --kmer-model"
    )


def listed(causes: NDArray[np.int64]) -> str:
    """Format the numbers of failed reads by kind of cause, the most common first."""
    groups = (
        ("no alignment", _UNALIGNED),
        ("too many events", _MANY),
        ("could not calibrate", _UNCALIBRATED),
        ("no signal", (Cause.NO_SIGNAL,)),
        ("other bases", (Cause.OTHER_BASES,)),
    )
    numbers = [(int(causes[list(of)].sum()), name) for name, of in groups]
    return ", ".join(f"{name}: {number}" for number, name in sorted(numbers, reverse=True) if number)
