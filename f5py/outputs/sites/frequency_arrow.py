"""Methylation frequencies as a Parquet file or Arrow tables, with the columns of the text table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

from f5py.io.arrow.table import ROWS_PER_GROUP, arrow_sink, dictionary_column, string_column
from f5py.site_frequencies.site_table import STRAND_COLUMNS, Frequencies

_ROWS_PER_BLOCK = 1 << 18


def write_frequency_rows(out: BinaryIO | Callable[[Any], None], frequencies: Frequencies) -> None:
    """Write the table to a Parquet file, which stays open, or to a function of a pyarrow.Table.

    Chromosomes are dictionary-encoded strings, positions and counts int64, the group size int32, the frequency an
    unrounded float64, the sequence a large string. Raises `MissingDependencyError` without pyarrow.
    """
    fields = [
        ("chromosome", "names"),
        ("start", "int64"),
        ("end", "int64"),
        (f"{frequencies.count_column}_in_group", "int32"),
        ("called_sites", "int64"),
        ("called_sites_methylated", "int64"),
        ("methylated_frequency", "float64"),
        ("group_sequence", "large_string"),
        *((name, "int64") for name in (STRAND_COLUMNS if frequencies.stranded else ())),
    ]
    chromosomes = [name.decode(errors="replace") for name in frequencies.chromosomes]
    with arrow_sink(out, fields, rows_per_group=ROWS_PER_GROUP) as writer:
        for first in range(0, len(frequencies), _ROWS_PER_BLOCK):
            sites = frequencies.columns(first, first + _ROWS_PER_BLOCK)
            n_reverse, m_reverse = sites.called_reverse, sites.methylated_reverse
            of_strands = [sites.called - n_reverse, sites.methylated - m_reverse, n_reverse, m_reverse]
            writer.write(
                [
                    dictionary_column(sites.chromosome, chromosomes),
                    sites.start,
                    sites.end,
                    sites.group_size,
                    sites.called,
                    sites.methylated,
                    sites.methylated / sites.called,
                    string_column(sites.text_start, sites.text_size, frequencies.texts),
                    *(of_strands if frequencies.stranded else ()),
                ]
            )
