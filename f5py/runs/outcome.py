"""Totals of a run or of several parts: counts, distributions and times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from f5py.compute.chemistry import Chemistry
from f5py.compute.diagnosis import RunCounts
from f5py.compute.provenance import Provenance
from f5py.compute.statistics import RunStatistics
from f5py.errors import DamagedValueError
from f5py.io.bam.alignments import AlignmentFile, RecordCounts
from f5py.io.files.json_values import JsonObject
from f5py.threads.wait_times import WaitTimes

if TYPE_CHECKING:
    from f5py.compute.alignment import AlignmentStage
    from f5py.pipeline.loader import Loader


#: What is loaded, with a time of its own.
LOADED = ("alignments", "reads", "signals")


@dataclass
class Outcome:
    """Sums over a run, or over a part of one."""

    counts: RunCounts  # ultra-long reads are in its total
    skipped: RecordCounts  # records that were left out
    statistics: RunStatistics | None = None  # what a report has figures of
    loading: dict[str, float] = field(default_factory=dict)  # seconds by kind of input: alignments, reads and signals
    stages: dict[str, float] = field(default_factory=dict)  # seconds by stage
    # processing, output: seconds
    processing: float = 0.0
    output: float = 0.0

    @classmethod
    def of(cls, stage: AlignmentStage, loader: Loader, processing_seconds: float) -> Outcome:
        """Collect the outcome of a finished run."""
        times = loader.times
        stage.counts.ultra = loader.n_ultra
        stage.counts.total += loader.n_ultra
        return cls(
            stage.counts,
            loader.alignments.counts,
            stage.statistics,
            {"alignments": times.alignments, "reads": times.reads, "signals": times.signals},
            dict(stage.times.seconds),
            processing_seconds,
            stage.times.output,
        )

    def add(self, other: Outcome) -> None:
        """Add the next part."""
        self.counts.join(other.counts)
        self.skipped = self.skipped.plus(other.skipped)
        if self.statistics is not None and other.statistics is not None:
            self.statistics.join(other.statistics)
        for mine, others in ((self.loading, other.loading), (self.stages, other.stages)):
            for name, seconds in others.items():
                mine[name] = mine.get(name, 0.0) + seconds
        self.processing += other.processing
        self.output += other.output

    def as_json(self) -> dict[str, Any]:
        return {
            "counts": _plain(asdict(self.counts)),
            "skipped": asdict(self.skipped),
            "statistics": None if self.statistics is None else self.statistics.as_json(),
            "loading": self.loading,
            "stages": self.stages,
            "processing": self.processing,
            "output": self.output,
        }

    @classmethod
    def from_json(cls, values: JsonObject, statistics: RunStatistics | None = None) -> Outcome:
        """Restore the result of `as_json`, filling `statistics`. Raises `DamagedValueError`."""
        values.check_names(field.name for field in fields(cls))
        if statistics is not None and not values.is_null("statistics"):
            statistics.take_json(values.object("statistics"))
        if unknown := sorted(values.object("loading").members.keys() - set(LOADED)):
            raise DamagedValueError(f"loading.{unknown[0][:40]} is not known")
        return cls(
            RunCounts.from_json(values.object("counts")), _skipped(values.object("skipped")), statistics,
            values.seconds("loading"), values.seconds("stages"), values.number("processing"), values.number("output"),
        )  # fmt: skip


@dataclass(frozen=True)
class RunContext:
    """Context of a run's final messages and report."""

    facts: Provenance  # what the results rest on
    signal_kind: str  # format of the signals
    contigs: list[str]
    contig_lengths: list[int]
    sample: str | None  # that of the alignments' read groups
    waits: WaitTimes = field(default_factory=WaitTimes)

    @classmethod
    def of(cls, stage: AlignmentStage, alignments: AlignmentFile, signal_kind: str) -> RunContext:
        """Collect the context of a run."""
        return cls(
            stage.facts, signal_kind, alignments.contigs, alignments.contig_lengths, alignments.sample, stage.waits
        )

    @property
    def chemistry(self) -> Chemistry:
        return self.facts.chemistry


def _skipped(values: JsonObject) -> RecordCounts:
    names = [field.name for field in fields(RecordCounts)]
    values.check_names(names)
    return RecordCounts(**{name: values.integer(name) for name in names})


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
