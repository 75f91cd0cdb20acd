"""The optional library that reads and writes Arrow, Parquet and CSV."""

from __future__ import annotations

from typing import Any

from f5py.errors import MissingDependencyError


def import_arrow(what: str = "Parquet and Arrow tables") -> tuple[Any, Any]:
    """Return the modules ``pyarrow`` and ``pyarrow.parquet``.

    Parameters
    ----------
    what : str
        What needs them, for the message.

    Raises
    ------
    MissingDependencyError
        They are not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as problem:
        raise MissingDependencyError(f'{what} need pyarrow: pip install "f5py[parquet]"') from problem
    return pyarrow, pyarrow.parquet
