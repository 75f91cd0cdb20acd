"""What the name of an output says about its format."""

from __future__ import annotations

import os

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
_PACKED = (".gz", ".bgz")


def kind_of_output(path: str) -> str:
    """The format that a name asks for, ``tsv`` if it says nothing: ``x.bed.gz`` is bedMethyl, ``x.bw`` bigWig."""
    packed = next((suffix for suffix in _PACKED if path.endswith(suffix)), "")
    return _KINDS.get(os.path.splitext(path.removesuffix(packed))[1].lower(), "tsv")
