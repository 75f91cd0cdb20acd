"""What ``import f5py`` offers for mapping."""

from __future__ import annotations

from typing import Any

from f5py.api.command import documented
from f5py.api.commands import MAP
from f5py.api.tables import written
from f5py.messages.progress import Listener


@documented(MAP)
def map_reads(reference: Any, reads: Any = (), *, progress: Listener | None = None, **options: Any) -> Any:
    """Map reads to a reference and sort the alignments, as ``f5py map`` does.

    Parameters
    ----------
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    MapCounts
        Reads, bases, mapped reads and records.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    given = {"reference": reference, "reads": reads, **options}
    return MAP.run(given, progress=progress) if not reads else written(MAP, given, "the alignments", progress)
