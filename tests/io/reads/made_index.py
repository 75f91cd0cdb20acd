"""Files of an index of reads, written one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from f5py.io.sequences.read_index_output import ReadIndexOutput, _AtomicFiles, _write_rows


def write_sequence_index(reads_path: str, threads: int = 4, sources: Sequence[str] = ()) -> dict[str, str]:
    """Write ``.index``, ``.index.fai`` and ``.index.gzi``; see `ReadIndexOutput.write_sequences`."""
    with ReadIndexOutput(reads_path, with_signals=False) as index:
        paths = index.write_sequences(threads, sources)
        index.commit()
    return paths


def write_readdb(path: str, paths: Mapping[str, str]) -> None:
    """Write the ``.readdb`` file `path`: a line per read, sorted bytewise by name."""
    files = _AtomicFiles(path)
    try:
        with files.writing() as temporary:
            _write_rows(temporary[0], paths)
        files.commit()
    finally:
        files.discard()
