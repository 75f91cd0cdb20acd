"""What ``import f5py`` offers: every command as a function of its options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from f5py.api.command import documented
from f5py.api.commands import (
    CALL,
    CHECK,
    COMPARE,
    EVENTALIGN,
    FREQUENCY,
    INDEX,
    MERGE,
    PLOT,
    PLOT_REGION,
    RESQUIGGLE,
    SIMULATE,
    SUMMARY,
    TRAIN,
    VALIDATE,
)
from f5py.api.tables import collected, iterated
from f5py.messages.progress import Listener


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
    returns : {None, "arrow", "pandas"}, optional
        Return the calls as a `pyarrow.Table` or a `pandas.DataFrame`, with the columns of the Parquet output. Nothing
        goes to standard output then. See `iter_calls` for more calls than fit in memory.
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    RunCounts, pyarrow.Table or pandas.DataFrame
        How many reads met which fate, or the calls.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
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
    returns : {None, "arrow", "pandas"}, optional
        Return the rows of the table as a `pyarrow.Table` or a `pandas.DataFrame`, with the columns of the Parquet
        output, and write no table. See `iter_events` for more rows than fit in memory.
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    RunCounts, pyarrow.Table or pandas.DataFrame
        How many reads met which fate, or the rows.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
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
def resquiggle(reads: Any, signals: Any, *, progress: Listener | None = None, **options: Any) -> Any:
    """Align every signal to the bases of its own read, as ``f5py resquiggle`` does.

    Parameters
    ----------
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    RunCounts
        How many reads met which fate.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return RESQUIGGLE.run({"reads": reads, "signals": signals, **options}, progress=progress)


@documented(FREQUENCY)
def frequencies(
    tables: Any = (), *, returns: str | None = None, progress: Listener | None = None, **options: Any
) -> Any:
    """Methylation frequency at every site, from tables of calls, as ``f5py meth-freq`` does.

    Parameters
    ----------
    returns : {None, "arrow", "pandas"}, optional
        Return the frequencies as a `pyarrow.Table` or a `pandas.DataFrame`, with the columns of the Parquet output,
        and write no table.
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    None, pyarrow.Table or pandas.DataFrame

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return collected(FREQUENCY, {"tables": tables, **options}, returns, progress)


@documented(MERGE)
def merge_frequencies(tables: Any = (), *, progress: Listener | None = None, **options: Any) -> None:
    """Add up tables of frequencies, as ``f5py freq-merge`` does.

    Parameters
    ----------
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    MERGE.run({"tables": tables, **options}, progress=progress)


@documented(CHECK)
def fast5_check(*, progress: Listener | None = None, **options: Any) -> Any:
    """Read the signal of every read in an index, of any format, as ``f5py fast5-check`` does.

    Parameters
    ----------
    progress : function of (unit, done, total), optional
        Called while the command works.

    Returns
    -------
    reads, usable : int
        How many reads there are, and how many of them have a usable signal.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output; if no signal is usable.
    """
    return CHECK.run(options, progress=progress)


@documented(SUMMARY)
def summary(tables: Any = (), *, progress: Listener | None = None, **options: Any) -> Any:
    """Summarise tables of calls and advise a threshold, as ``f5py summary`` does.

    Parameters
    ----------
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    dict
        What the JSON report has.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return SUMMARY.run({"tables": tables, **options}, progress=progress)


@documented(VALIDATE)
def validate(calls: Any = None, truth: Any = None, *, progress: Listener | None = None, **options: Any) -> Any:
    """Compare calls or frequencies with what is known of the sites, as ``f5py validate`` does.

    Parameters
    ----------
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    dict
        What the JSON report has.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output; if nothing can be compared.
    """
    return VALIDATE.run({"calls": calls, "truth": truth, **options}, progress=progress)


@documented(COMPARE)
def compare(a: Any, b: Any, *, progress: Listener | None = None, **options: Any) -> Any:
    """Compare the events of two samples, as ``f5py compare`` does.

    Parameters
    ----------
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    pyarrow.Table
        What is written, too.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return COMPARE.run({"a": a, "b": b, **options}, progress=progress)


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
        The model, and how it came about.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return TRAIN.run(options, progress=progress)


@documented(PLOT)
def plot(read: str, **options: Any) -> None:
    """Draw the signal, the events and the bases of one read, as ``f5py plot`` does.

    Parameters
    ----------

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    PLOT.run({"read": read, **options})


@documented(PLOT_REGION)
def plot_region(**options: Any) -> None:
    """Draw the reads over a locus with their methylation calls, as ``f5py plot-region`` does.

    Parameters
    ----------

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    PLOT_REGION.run(options)


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
