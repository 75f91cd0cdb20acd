"""Files of an index of reads, written one by one."""

from __future__ import annotations

from collections.abc import Sequence

from f5py.io.sequences.read_index_output import ReadIndexOutput


def write_sequence_index(reads_path: str, threads: int = 4, sources: Sequence[str] = ()) -> dict[str, str]:
    """Write ``.index``, ``.index.fai`` and ``.index.gzi``; see `ReadIndexOutput.write_sequences`."""
    with ReadIndexOutput(reads_path, with_signals=False) as index:
        paths = index.write_sequences(threads, sources)
        index.commit()
    return paths
