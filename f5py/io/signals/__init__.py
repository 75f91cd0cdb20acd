"""Signal files: raw samples and calibration of reads, in whatever format they are stored."""

from __future__ import annotations

from collections.abc import Mapping

from f5py.io.signals.source import SignalBlock, SignalSource

__all__ = ["SignalBlock", "SignalSource", "open_source"]


def open_source(paths: Mapping[str, str], n_processes: int = 1) -> SignalSource:
    """Open the signals of indexed reads.

    Parameters
    ----------
    paths : mapping of str to str
        Read name to fast5 file, as in ``.readdb``. Not copied.
    n_processes : int
        1 reads in this process; more start that many reader processes, because HDF5 reads one thing at a time
        in a process. The result is the same.

    Returns
    -------
    SignalSource
        To be closed by the caller.
    """
    if n_processes < 1:
        raise ValueError(f"n_processes must be at least 1, not {n_processes}")
    if n_processes == 1:
        from f5py.io.signals.fast5 import Fast5Source

        return Fast5Source(paths)
    from f5py.io.signals.processes import ParallelSource

    return ParallelSource(n_processes, paths)
