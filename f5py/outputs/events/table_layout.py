"""Layout of the event table."""

from __future__ import annotations

from typing import NamedTuple

from f5py.core.kmers import trimmed


class TableLayout(NamedTuple):
    """Columns and units of the event table."""

    print_read_names: bool = False  # show the reads' names instead of their numbers
    scale_events: bool = False  # scale the events to the model instead of the model to the events
    samples: bool = False  # add the samples of each row, scaled to the model
    signal_index: bool = False  # add the first sample of each row and the one after its last
    collapse_events: bool = False  # make one row of consecutive rows with the same position
    mark_kmers: bool = False  # add how the bases of the read differ from the reference's k-mer
    # write the columns of f5c's table for m6anet, one row per position; `scale_events`, `samples` and `collapse_events`
    # are then without effect. Positions at which no event fits the k-mer are left out.
    m6anet: bool = False
    # show only so many bases in the middle of each k-mer, and the position of the first of them
    kmer_view: int | None = None

    def trimmed(self, k: int) -> int:
        """Return the hidden bases at each end of a k-mer."""
        return trimmed(k, self.kmer_view)
