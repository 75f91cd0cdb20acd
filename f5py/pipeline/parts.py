"""Parts of a run, which are loaded and written one after the other, and whose outputs stay apart."""

from __future__ import annotations

from dataclasses import dataclass, field

from f5py.io.bam.alignments import RecordCounts
from f5py.io.bam.record_ranges import RecordRange


@dataclass
class Part:
    """Records that are a part of a run.

    Attributes
    ----------
    number : int
        0-based.
    records : RecordRange or None
        None if only the loader knows them.
    ultra_path : str or None
        BAM file for its ultra-long reads.
    skipped : RecordCounts
        Records that were left out; filled, as are the others, when the part has been loaded.
    has_known : bool
        There is a read with bases in it.
    """

    number: int
    records: RecordRange | None = None
    ultra_path: str | None = None
    skipped: RecordCounts = field(default_factory=RecordCounts)
    n_ultra: int = 0
    has_known: bool = False
