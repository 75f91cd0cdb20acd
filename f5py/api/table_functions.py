"""What ``import f5py`` offers of the commands that read tables: functions of their options."""

from __future__ import annotations

from typing import Any

from f5py.api.command import documented
from f5py.api.commands import COMPARE, FREQUENCY, MERGE, SUMMARY, VALIDATE
from f5py.api.tables import collected, converter, valued
from f5py.messages.progress import Listener


@documented(FREQUENCY)
def frequencies(
    tables: Any = (), *, returns: str | None = None, progress: Listener | None = None, **options: Any
) -> Any:
    """Methylation frequency at every site, from calls, tags or bedMethyl, as ``f5py meth-freq`` does.

    Parameters
    ----------
    returns : {None, "arrow", "pandas", "polars"}, optional
        Return the frequencies as a `pyarrow.Table`, a `pandas.DataFrame` or a `polars.DataFrame`, with the columns of
        the Parquet output, and write no table; without `output` that is the default.
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame, polars.DataFrame or None
        The frequencies, unless they are written.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return collected(FREQUENCY, {"tables": tables, **options}, returns, progress)


@documented(MERGE)
def merge_frequencies(
    tables: Any = (), *, returns: str | None = None, progress: Listener | None = None, **options: Any
) -> Any:
    """Add up tables of frequencies, as ``f5py freq-merge`` does.

    Parameters
    ----------
    returns : {None, "arrow", "pandas", "polars"}, optional
        Return the sums as a `pyarrow.Table`, a `pandas.DataFrame` or a `polars.DataFrame`, with the columns of
        `frequencies`, and write no table; without `output` that is the default.
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame, polars.DataFrame or None
        The frequencies, unless they are written.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return collected(MERGE, {"tables": tables, **options}, returns, progress)


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
        What the JSON report has. The text is written only if `output` is given.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    return valued(SUMMARY, {"tables": tables, **options}, progress)


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
        What the JSON report has. The text is written only if `output` is given.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output; if nothing can be compared.
    """
    return valued(VALIDATE, {"calls": calls, "truth": truth, **options}, progress)


@documented(COMPARE)
def compare(a: Any, b: Any, *, returns: str | None = None, progress: Listener | None = None, **options: Any) -> Any:
    """Compare the events of two samples, as ``f5py compare`` does.

    Parameters
    ----------
    returns : {None, "arrow", "pandas", "polars"}, optional
        Return a `pyarrow.Table`, which is the default, a `pandas.DataFrame` or a `polars.DataFrame`.
    progress : function of (unit, done, total), optional
        Called while the command works, also from other threads; `total` may be an estimate, or None.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame or polars.DataFrame
        What is written, too, if `output` is given.

    Raises
    ------
    F5pyError
        For anything wrong with the options, the input or the output.
    """
    of_arrow = converter(returns)
    return of_arrow(valued(COMPARE, {"a": a, "b": b, **options}, progress))
