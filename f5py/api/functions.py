"""What ``import f5py`` offers of the commands that read signals: functions of their options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from f5py.api.command import documented
from f5py.api.commands import (
    CALL,
    CHECK,
    EVENTALIGN,
    INDEX,
    RESQUIGGLE,
    SIMULATE,
    TRAIN,
)
from f5py.api.tables import collected, iterated, parsed, valued, written
from f5py.messages.progress import Listener

_KMER_COLUMNS = {"read_id": "string", "kmer_idx": "int64", "start_raw_idx": "int64", "end_raw_idx": "int64"}
_CHECK_COLUMNS = {"read_name": "string", "signal_file": "string", "samples": "int64", "problem": "string"}


@documented(INDEX)
def index(reads: Any = (), *, progress: Listener | None = None, **options: Any) -> Any:
    """Index basecalled reads and their signal files, as ``f5py index`` does.

    Parameters
    ----------
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    IndexSummary
        How many reads are known, and how many of them have a signal.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return INDEX.run({"reads": reads, **options}, progress=progress)


@documented(CALL)
def call_methylation(*, returns: str | None = None, progress: Listener | None = None, **options: Any) -> Any:
    """Call methylation in every read, as ``f5py call-methylation`` does.

    Parameters
    ----------
    returns : {None, "arrow", "pandas", "polars"}, optional
        Return the calls as a `pyarrow.Table`, a `pandas.DataFrame` or a `polars.DataFrame`, with the columns of the
        Parquet output; without `output` that is the default. See `iter_calls` for more calls than fit in memory.
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame, polars.DataFrame or RunCounts
        The calls, or, if they are written only, how many reads met which fate.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    if returns is None and ("modbam_output_name" in options or options.get("output_format") == "none"):
        return CALL.run(options, progress=progress)
    return collected(CALL, options, returns, progress)


@documented(CALL)
def iter_calls(*, progress: Listener | None = None, **options: Any) -> Iterator[Any]:
    """Call methylation and yield the calls of one batch of reads after the other.

    The command works while the caller does; memory follows the size of a batch (`batchsize`, `max_bases`). Closing
    the iterator ends the command.

    Parameters
    ----------
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Yields
    ------
    pyarrow.Table
        Calls, in the order of the alignments, with the columns of the Parquet output.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return iterated(CALL, options, progress)


@documented(EVENTALIGN)
def eventalign(*, returns: str | None = None, progress: Listener | None = None, **options: Any) -> Any:
    """Align the events of every read to the reference, as ``f5py eventalign`` does.

    Parameters
    ----------
    returns : {None, "arrow", "pandas", "polars"}, optional
        Return the rows of the table as a `pyarrow.Table`, a `pandas.DataFrame` or a `polars.DataFrame`, with the
        columns of the Parquet output, and write no table; without `output` that is the default. See `iter_events` for
        more rows than fit in memory.
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame, polars.DataFrame or RunCounts
        The rows, or, if they are written, how many reads met which fate.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    if returns is None and options.get("m6anet_json") is not None:
        return EVENTALIGN.run(options, progress=progress)
    return collected(EVENTALIGN, options, returns, progress)


@documented(EVENTALIGN)
def iter_events(*, progress: Listener | None = None, **options: Any) -> Iterator[Any]:
    """Align events to the reference and yield the rows of some reads after the other.

    The command works while the caller does; memory follows the size of a batch (`batchsize`, `max_bases`). Closing
    the iterator ends the command.

    Parameters
    ----------
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Yields
    ------
    pyarrow.Table
        Rows, in the order of the alignments, with the columns of the Parquet output.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return iterated(EVENTALIGN, options, progress)


@documented(RESQUIGGLE)
def resquiggle(
    reads: Any, signals: Any, *, returns: str | None = None, progress: Listener | None = None, **options: Any
) -> Any:
    """Align every signal to the bases of its own read, as ``f5py resquiggle`` does.

    Parameters
    ----------
    returns : {None, "arrow", "pandas", "polars"}, optional
        Return the rows as a `pyarrow.Table`, a `pandas.DataFrame` or a `polars.DataFrame`, and write none; without
        `output` that is the default. The samples of a k-mer without events are missing.
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame, polars.DataFrame or RunCounts
        The rows, or, if they are written, how many reads met which fate.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    given = {"reads": reads, "signals": signals, **options}
    if options.get("paf"):
        return written(RESQUIGGLE, given, "PAF", progress)
    return parsed(RESQUIGGLE, given, returns, progress, _KMER_COLUMNS)


@documented(CHECK)
def fast5_check(*, returns: str | None = None, progress: Listener | None = None, **options: Any) -> Any:
    """Read the signal of every read in an index, of any format, as ``f5py fast5-check`` does.

    Parameters
    ----------
    returns : {None, "arrow", "pandas", "polars"}, optional
        Return the table as a `pyarrow.Table`, a `pandas.DataFrame` or a `polars.DataFrame`; without `output` that is
        the default.
    progress : function of (unit, done, total), optional
        Called while the command works.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame, polars.DataFrame or (int, int)
        A row for every read; or, if they are written, how many reads there are, and how many of them have a usable
        signal.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output; if no signal is usable.
    """
    return parsed(CHECK, options, returns, progress, _CHECK_COLUMNS)


@documented(TRAIN)
def train(*, progress: Listener | None = None, **options: Any) -> Any:
    """Estimate a pore model from reads of known methylation, as ``f5py train`` does.

    Parameters
    ----------
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    TrainingSummary
        The model, and how it came about. It is written only if `output` is given.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return valued(TRAIN, options, progress)


@documented(SIMULATE)
def simulate(*, progress: Listener | None = None, **options: Any) -> Any:
    """Simulate reads of known methylation, as ``f5py simulate`` does.

    Parameters
    ----------
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    SimulationSummary
        What was written.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return SIMULATE.run(options, progress=progress)
