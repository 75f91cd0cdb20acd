"""What the name of an output says about its format."""

from __future__ import annotations

import os
from collections.abc import Sequence

from f5py.errors import UsageError

_KINDS = {
    ".parquet": "parquet",
    ".bam": "bam",
    ".sam": "sam",
    ".paf": "paf",
    ".bed": "bedmethyl",
    ".bedmethyl": "bedmethyl",
    ".bedgraph": "bedgraph",
    ".bg": "bedgraph",
    ".bw": "bigwig",
    ".bigwig": "bigwig",
}
#: Kinds that have a row per site instead of one per call.
OF_SITES = ("bedmethyl", "bedgraph", "bigwig")
#: How the names of compressed text end.
PACKED = (".gz", ".bgz")


def packed_ending(path: str) -> str:
    """How the name of compressed text ends, "" for any other."""
    return next((suffix for suffix in PACKED if path.endswith(suffix)), "")


def kind_of_several(option: str, path: str, kinds: Sequence[str]) -> str:
    """The one of `kinds` that a name ends in; `UsageError` for any other name."""
    kind = os.path.splitext(path)[1][1:].lower()
    if kind not in kinds:
        raise UsageError(f"{option} {path}: does not end in .{', .'.join(kinds)}")
    return kind


def is_alignments(path: str) -> bool:
    """Whether a name is that of alignments."""
    return path.endswith((".bam", ".sam", ".cram"))


def kind_of_output(path: str) -> str:
    """The format that a name asks for, ``tsv`` if it says nothing: ``x.bed.gz`` is bedMethyl, ``x.bw`` bigWig."""
    return _KINDS.get(os.path.splitext(path.removesuffix(packed_ending(path)))[1].lower(), "tsv")
