"""Parts of a run, which are loaded and written in order, with separate outputs."""

from __future__ import annotations

from dataclasses import dataclass, field

from f5py.io.bam.alignments import RecordCounts
from f5py.io.bam.record_ranges import RecordRange


@dataclass
class Part:
    """Records of a part of a run."""

    number: int  # 0-based
    records: RecordRange | None = None  # None if only the loader knows them
    before: RecordRange | None = None  # those between the part that is loaded before this one and this one
    ultra_path: str | None = None  # BAM file for its ultra-long reads
    # records that were left out; filled, as are the others, when the part has been loaded
    skipped: RecordCounts = field(default_factory=RecordCounts)
    n_ultra: int = 0
    has_known: bool = False  # there is a read with bases in it
