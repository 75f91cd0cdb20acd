"""Methylation frequencies as a Parquet file, with the columns of the text table."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from f5py.io.arrow_table import ParquetOutput, dictionary_column, string_column
from f5py.methylation.site_table import Frequencies

_ROWS_PER_BLOCK = 1 << 18
_ROWS_PER_GROUP = 1 << 18


def write_frequency_parquet(out: BinaryIO, frequencies: Frequencies) -> None:
    """Write the table.

    Names are those of the text table. Chromosomes are dictionary-encoded strings, positions and counts int64, the
    group size int32, the frequency an unrounded float64, the sequence a string.

    Parameters
    ----------
    out : binary file
        Stays open.
    frequencies : Frequencies

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    """
    fields = [
        ("chromosome", "names"),
        ("start", "int64"),
        ("end", "int64"),
        (f"{frequencies.count_column}_in_group", "int32"),
        ("called_sites", "int64"),
        ("called_sites_methylated", "int64"),
        ("methylated_frequency", "float64"),
        ("group_sequence", "string"),
    ]
    chromosomes = [name.decode(errors="replace") for name in frequencies.chromosomes]
    split = np.frombuffer(b"split-group", np.uint8)
    with ParquetOutput(out, fields, rows_per_group=_ROWS_PER_GROUP) as writer:
        for first in range(0, len(frequencies), _ROWS_PER_BLOCK):
            rows = slice(first, min(first + _ROWS_PER_BLOCK, len(frequencies)))
            starts, sizes, text = frequencies.sequences(rows.start, rows.stop)
            if np.any(sizes == 0):
                text = np.concatenate((text[: int((starts + sizes).max())], split))
                starts = np.where(sizes == 0, len(text) - len(split), starts)
                sizes = np.where(sizes == 0, len(split), sizes)
            writer.write(
                [
                    dictionary_column(frequencies.chromosome[rows], chromosomes),
                    frequencies.start[rows],
                    frequencies.end[rows],
                    frequencies.group_size[rows],
                    frequencies.called[rows],
                    frequencies.methylated[rows],
                    frequencies.methylated[rows] / frequencies.called[rows],
                    string_column(starts, sizes, text),
                ]
            )
