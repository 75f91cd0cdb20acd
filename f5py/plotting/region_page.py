"""The page of a locus: frequencies, depth, genes and reads with their calls, to zoom and pan in."""

from __future__ import annotations

import base64
import zlib
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.plotting.page import write_page
from f5py.plotting.region import RegionData

_HELP = (
    "Drag to move, turn the wheel or pinch to zoom, with Ctrl where the page is higher than the window; arrows, + and "
    "- work too. Point at a call for its read and its numbers."
)
_COLOURS = {1: "one", 2: "two", 0: "none"}
#: Stretches of the depth, at most.
_DEPTHS = 4000


def write_region_page(data: RegionData, file: BinaryIO) -> None:
    """Write the page; the same data give the same bytes."""
    words = [f"{data.modification}, threshold {data.threshold:g} (log-odds)"]
    if data.n_left_out:
        words.append(f"{data.n_left_out} more reads are not drawn")
    legend = [("methylated", "modified"), ("plain", "unmodified"), ("undecided", "below the threshold")]
    canvas = '<canvas id="region" tabindex="0" role="img" aria-label="reads with their calls"></canvas>\n'
    write_page(file, "region", data.region, words, canvas, legend, _HELP, _shown(data))


def _shown(data: RegionData) -> dict[str, Any]:
    groups = data.haplotypes()
    place = {group: i for i, group in enumerate(groups)}
    n_bins = min(_DEPTHS, len(data.depth))
    edges = np.arange(n_bins) * len(data.depth) // n_bins
    order = np.lexsort((data.marks.position, data.marks.read))
    shown: dict[str, Any] = {
        "contig": data.contig,
        "start": data.start,
        "end": data.end,
        "threshold": data.threshold,
        "depth": np.maximum.reduceat(data.depth, edges).tolist(),
        "groups": [
            {
                "words": _words(data, group, groups),
                "colour": _COLOURS.get(group, "other"),
                "least": data.least_calls(data.shares(group)),
            }
            for group in groups
        ],
        "reads": {
            "name": data.names,
            "start": data.read_start.tolist(),
            "end": data.read_end.tolist(),
            "reverse": data.reverse.astype(np.int8).tolist(),
            "group": [place[group] for group in data.haplotype.tolist()],
            "row": data.row.tolist(),
            "calls": np.bincount(data.marks.read, minlength=len(data.names)).tolist(),
        },
        "position": _packed(np.diff(data.marks.position[order], prepend=0).astype("<i4")),
        "probability": _packed(_quality(data.marks.ratio[order])),
    }
    if data.genes is not None:
        genes = data.genes
        shown["genes"] = {
            "start": genes.start.tolist(),
            "end": genes.end.tolist(),
            "strand": genes.strand,
            "name": genes.name,
            "row": genes.row.tolist(),
        }
    return shown


def _words(data: RegionData, group: int, groups: list[int]) -> str:
    n_reads = int((data.haplotype == group).sum())
    words = f"{n_reads} {'read' if n_reads == 1 else 'reads'}"
    if groups == [0]:
        return words
    return f"haplotype {data.haplotype_names[group]}: {words}" if group else f"without haplotype: {words}"


def _quality(ratio: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Compute the value of the ML tag that the log-odds are of."""
    return np.round(256 / (1 + np.exp(-ratio)) - 0.5).astype(np.uint8)


def _packed(values: NDArray[Any]) -> str:
    return base64.b64encode(zlib.compress(values.tobytes(), 9)).decode()
