"""bedMethyl files as one, as if their calls had been counted together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from f5py.errors import InputFileError
from f5py.io.arrow.arrow import import_arrow, read_rows
from f5py.io.bytes.byte_input import open_bytes, shown_name
from f5py.io.bytes.byte_pieces import whole_lines
from f5py.outputs.sites.bedmethyl import write_totals
from f5py.site_frequencies.site_counts import SiteColumns, SiteCounts

_COLUMNS = (
    "contig", "start", "end", "code", "score", "strand", "first", "last", "colour", "n_valid", "percent", "methylated",
    "canonical", "n_other", "n_deleted", "failed", "n_different", "n_missing",
)  # fmt: skip
_WANTED = ("contig", "start", "code", "strand", "methylated", "canonical", "n_other", "failed")
_PIECE = 1 << 24


def merge_bedmethyls(paths: Sequence[str], path: str, n_threads: int) -> None:
    """Add up the counts of sites.

    A site without a call above the threshold has no row, so that its failed calls in that file are not known. Rows are
    ordered by chromosome name (bytes) and position.

    Parameters
    ----------
    paths : sequence of str
        Plain or compressed; of one modification, and all with or all without both strands combined.
    path : str
        See `f5py.outputs.sites.bedmethyl.write_bedmethyl`.
    n_threads : int
        Compression threads.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    InputFileError
        A file is damaged, or does not fit the others.
    OutputFileError
        The file cannot be written.
    """
    arrow, _ = import_arrow("bedMethyl files")
    import pyarrow.compute as compute

    number = arrow.int64()
    types = {name: number for name in _WANTED} | {name: arrow.string() for name in ("contig", "code", "strand")}
    counts = SiteCounts()
    contigs: dict[str, int] = {}
    kinds: set[tuple[str, bool]] = set()
    for one in paths:
        shown = shown_name(one)
        with open_bytes(one) as source:
            for rows in read_rows(whole_lines(source, _PIECE), shown, _COLUMNS, types, _WANTED):
                names = rows["contig"].combine_chunks().dictionary_encode()
                here = [contigs.setdefault(name, len(contigs)) for name in names.dictionary.to_pylist()]
                strands = set(compute.unique(rows["strand"]).to_pylist())
                kinds |= {(code, "." in strands) for code in compute.unique(rows["code"]).to_pylist()}
                if len(kinds) > 1:
                    raise InputFileError(
                        f"{shown}: has other modifications than the files before, or strands that are combined where "
                        "theirs are not; merge files of one kind"
                    )
                if compute.max(rows["n_other"]).as_py():
                    raise InputFileError(f"{shown}: counts other modifications too, and is not of f5py")
                reverse = compute.equal(rows["strand"], "-").to_numpy()
                step = rows["start"].to_numpy() << 1 | reverse
                counts.join(
                    SiteColumns(
                        np.full(len(step), -1, np.int32),
                        np.array(here, np.int32)[names.indices.to_numpy()],
                        step.astype(np.int64),
                        *(rows[name].to_numpy().astype(np.uint32) for name in ("methylated", "canonical", "failed")),
                    )
                )
    code, combined = next(iter(kinds), ("m", False))
    texts = [name.encode() for name in contigs]
    write_totals(path, counts.totals(texts).of(-1), texts, {}, code, combined, n_threads)
