"""Compute stage of eventalign."""

from f5py.compute.alignment import AlignmentStage
from f5py.compute.chemistry import Chemistry
from f5py.compute.diagnosis import RunCounts
from f5py.compute.statistics import RunStatistics
from f5py.core.batch import ReadBatch
from f5py.core.kmers import trimmed
from f5py.core.windows import Windows
from f5py.event_alignment.align import align_events
from f5py.event_alignment.kmer_marks import add_skipped_kmers, compare_kmers
from f5py.options.signal_commands import EventalignOptions


class EventalignStage(AlignmentStage):
    """Align events to the read's bases, and then to the reference's.

    Rows are restricted to k-mers in `windows`. With `keep_map` the alignment of events to the read's bases is kept.
    """

    command = "eventalign"
    n_parts = 3

    def __init__(
        self, options: EventalignOptions, chemistry: Chemistry, windows: Windows | None, keep_map: bool = False
    ) -> None:
        shows_samples = not (options.paf or options.sam or options.m6anet)
        super().__init__(
            options, chemistry, shows_samples and (options.samples or options.collapse_events), results="rows",
            finish=lambda batch, share: align_events(batch, self.model, self.pool, windows, share),
        )  # fmt: skip
        self.times.seconds["HMM"] = 0.0
        self._keep_map = keep_map
        self._is_marked = options.mark_deletions
        self._is_compared = options.mark_kmers
        self._trim = trimmed(self.model.k, options.kmer_view)

    def compute(self, batch: ReadBatch) -> None:
        super().compute(batch)
        if self._is_marked:
            add_skipped_kmers(batch, self.model.k, self.pool, self._trim)
        if self._is_compared:
            compare_kmers(batch, self.model.k, self.pool, self._trim)
        if not self._keep_map:
            batch.release("bases", "base_map")

    def count(self, batch: ReadBatch, counts: RunCounts, statistics: RunStatistics | None) -> None:
        super().count(batch, counts, statistics)
        counts.results += int(batch.rows.n.sum())
