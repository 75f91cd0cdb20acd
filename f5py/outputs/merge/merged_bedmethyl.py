"""Merge bedMethyl files by adding their counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from f5py.errors import InputFileError
from f5py.io.arrow.text_input import display_name, open_bytes
from f5py.outputs.sites.bedmethyl import write_totals
from f5py.site_frequencies.bedmethyl_rows import bedmethyl_rows
from f5py.site_frequencies.site_counts import SiteColumns, SiteCounts


def merge_bedmethyls(paths: Sequence[str], path: str, n_threads: int) -> None:
    """Add up the counts of sites, ordered by chromosome name (bytes) and position.

    Failed calls of a site are lost in files where it has no valid call, and so no row.

    Parameters
    ----------
    paths : sequence of str
        Plain or compressed; of one modification, and all with or all without combined strands.
    path : str
        See `f5py.outputs.sites.bedmethyl.write_bedmethyl`.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    InputFileError
        A file is damaged, or does not fit the others.
    OutputFileError
        The file cannot be written.
    """
    counts = SiteCounts()
    contigs: dict[str, int] = {}
    kinds: set[tuple[str, bool]] = set()
    for one in paths:
        with open_bytes(one) as source:
            for rows in bedmethyl_rows(source, display_name(one)):
                here = [contigs.setdefault(name, len(contigs)) for name in rows.contigs]
                kinds |= {(code, bool(rows.combined.any())) for code in rows.codes}
                if len(kinds) > 1:
                    raise InputFileError(
                        f"{display_name(one)}: has other modifications than the files before, or strands that are "
                        "combined where theirs are not; merge files of one kind"
                    )
                step = rows.start << 1 | rows.reverse
                contig = np.array(here, np.int32)[rows.contig]
                counts.join(SiteColumns(np.full(len(step), -1, np.int32), contig, step, *rows.counts))
    code, combined = next(iter(kinds), ("m", False))
    texts = [name.encode() for name in contigs]
    write_totals(path, counts.totals(texts).of(-1), texts, {}, code, combined, n_threads)
