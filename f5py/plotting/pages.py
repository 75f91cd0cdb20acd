"""Viewers of a read and of a locus: self-contained HTML with a drawing to zoom and pan in."""

import base64
import json
import re
import zlib
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.plotting.data import PlotData
from f5py.plotting.pileup import Pileup
from f5py.plotting.region import SAMPLE_COLOURS, RegionData

_READ_HELP = (
    "Drag to move, turn the wheel or pinch to zoom; arrows, + and - work too. Point at an event, a base or a call for "
    "its numbers."
)


def write_read_page(data: PlotData, file: BinaryIO, seconds: bool = False) -> None:
    """Write the viewer of a read; its bytes depend on the data only."""
    legend = [("signal", "signal"), ("event", "event"), ("model", "expected level, with its standard deviation")]
    if data.event_bad.any():
        legend.append(("bad", "event that fits no k-mer"))
    if (data.event_kmer < 0).any():
        legend.append(("unaligned", "event that is not aligned"))
    if data.calls is not None:
        legend += [("methylated", "call: methylated"), ("plain", "call: not methylated; pale below the threshold")]
    canvases = (
        f'<canvas id="signal" tabindex="0" role="img" aria-label="{escape(data.title)}"></canvas>\n'
        '<canvas id="overview" aria-hidden="true"></canvas>\n'
    )
    shown = _read_json(data, seconds)
    _write_page(file, "viewer", data.title, [data.subtitle, data.position_words], canvases, legend, _READ_HELP, shown)


def _rounded(values: NDArray[np.floating]) -> list[float]:
    """Round to hundredths of a picoampere, less than a pixel."""
    return np.round(values.astype(np.float64), 2).tolist()


def _read_json(data: PlotData, seconds: bool) -> dict[str, Any]:
    """Collect the data of the page's program."""
    k = data.kmers.shape[1]
    kmers = data.kmers.tobytes().decode("latin-1")
    shown: dict[str, Any] = {
        "first": data.first_sample,
        "rate": data.sampling_rate,
        "seconds": seconds,
        "axis": data.signal_words(seconds),
        "limits": [round(limit, 2) for limit in data.current_limits()],
        "current": _rounded(data.current),
        "events": {
            "index": data.event_index.tolist(),
            "start": data.event_start.tolist(),
            "length": data.event_length.tolist(),
            "mean": _rounded(data.event_mean),
            "stdv": _rounded(data.event_stdv),
            "kmer": data.event_kmer.tolist(),
            "bad": data.event_bad.astype(np.int8).tolist(),
        },
        "kmers": {
            "kmer": [kmers[i : i + k] for i in range(0, len(kmers), k)],
            "letter": data.letter.tobytes().decode("latin-1").upper(),
            "position": data.position.tolist(),
            "start": data.kmer_start.tolist(),
            "end": data.kmer_end.tolist(),
            "gap": data.new_segment.astype(np.int8).tolist(),
            "level": _rounded(data.level),
            "stdv": _rounded(data.level_stdv),
        },
    }
    if data.calls is not None:
        calls = data.calls
        shown["threshold"] = calls.threshold
        shown["calls"] = {
            "start": calls.start_sample.tolist(),
            "end": calls.end_sample.tolist(),
            "ratio": _rounded(calls.ratio),
            "words": [
                f"{sites} {calls.motif} at {first + 1:,}{f' to {last + 1:,}' if last > first else ''}\n"
                f"log-likelihood ratio {ratio:.2f}\n{_verdict(ratio, calls.threshold)}"
                for first, last, sites, ratio in zip(
                    calls.first.tolist(), calls.last.tolist(), calls.sites.tolist(), calls.ratio.tolist(), strict=True
                )
            ],
        }
    return shown


def _verdict(ratio: float, threshold: float) -> str:
    if abs(ratio) < threshold:
        return f"below the threshold of {threshold:g}"
    return "methylated" if ratio > 0 else "not methylated"


_REGION_HELP = (
    "Drag to move, turn the wheel or pinch to zoom, with Ctrl where the page is higher than the window; arrows, + and "
    "- work too. Point at a call for its read and its numbers."
)
_PILEUP_HELP = (
    "Drag to move, turn the wheel or pinch to zoom; arrows, + and - work too. Point at a base for its expected level "
    "and the median of the reads."
)
#: Most bins of the depth.
_DEPTHS = 4000


def write_region_page(data: RegionData, file: BinaryIO) -> None:
    """Write the viewer of a locus: frequencies, depth, genes and reads with their calls."""
    legend = [("methylated", "modified"), ("plain", "unmodified"), ("undecided", "below the threshold")]
    if len(data.lines) > 1:
        legend += [(line.colour, line.words) for line in data.lines]
    canvas = '<canvas id="region" tabindex="0" role="img" aria-label="reads with their calls"></canvas>\n'
    _write_page(file, "region", data.region, data.caption, canvas, legend, _REGION_HELP, _region_json(data))


def _region_json(data: RegionData) -> dict[str, Any]:
    groups = data.groups()
    place = np.zeros(len(data.names), np.int64)
    for i, group in enumerate(groups):
        place[data.in_group(group)] = i
    n_bins = min(_DEPTHS, data.end - data.start)
    edges = np.arange(n_bins) * (data.end - data.start) // n_bins
    order = np.lexsort((data.marks.position, data.marks.read))
    shown: dict[str, Any] = {
        "contig": data.contig,
        "start": data.start,
        "end": data.end,
        "threshold": data.threshold,
        "depth": np.maximum.reduceat(data.depth, edges, axis=1).tolist(),
        "limits": data.limits,
        "groups": [
            {"words": data.group_words(one), "colour": data.group_colour(one), "sample": one[0]} for one in groups
        ],
        "lines": [
            {
                "words": line.words,
                "colour": line.colour,
                "least": data.least_calls(data.shares(line.reads)),
                "reads": np.flatnonzero(line.reads).tolist(),
                # a line is interrupted at negative positions
                "position": np.nan_to_num(line.position, nan=-1).astype(np.int64).tolist(),
                "share": np.round(np.nan_to_num(line.share), 4).tolist(),
            }
            for line in data.lines
        ],
        "reads": {
            "name": data.names,
            "start": data.read_start.tolist(),
            "end": data.read_end.tolist(),
            "reverse": data.reverse.astype(np.int8).tolist(),
            "group": place.tolist(),
            "row": data.row.tolist(),
            "calls": np.bincount(data.marks.read, minlength=len(data.names)).tolist(),
        },
        "position": _compressed(np.diff(data.marks.position[order], prepend=0).astype("<i4")),
        # as in the ML tag
        "probability": _compressed(np.round(256 / (1 + np.exp(-data.marks.ratio[order])) - 0.5).astype(np.uint8)),
    }
    if data.genes is not None:
        shown["genes"] = {name: np.asarray(values, object).tolist() for name, values in data.genes._asdict().items()}
    return shown


def _compressed(values: NDArray[Any]) -> str:
    return base64.b64encode(zlib.compress(values.tobytes(), 9)).decode()


def write_pileup_page(data: Pileup, file: BinaryIO) -> None:
    """Write the viewer of several reads' signals over the same bases."""
    several = len(data.sample_names) > 1
    colours = [SAMPLE_COLOURS[i % len(SAMPLE_COLOURS)] for i in range(len(data.sample_names))]
    legend = [("model", "expected level, with its standard deviation")]
    legend += list(zip(colours, data.sample_names, strict=True)) if several else [("event", "reads, and their median")]
    shown = {
        "contig": data.contig,
        "start": data.start,
        "end": data.end,
        "kind": data.kind,
        "limits": [round(limit, 2) for limit in data.limits()],
        "samples": data.sample_names,
        "colours": colours,
        "strands": [
            {
                "strand": one.strand,
                "words": data.words(one),
                "letters": one.letters.tobytes().decode("latin-1").upper(),
                "level": _or_null(one.level),
                "stdv": _or_null(one.level_stdv),
                "medians": [_or_null(median) for median in one.medians(len(data.sample_names))],
                "traces": [
                    {
                        "sample": trace.sample,
                        "mean": _or_null(trace.mean),
                        # in hundredths of a base
                        "position": np.round(100 * (trace.position - data.start)).astype(np.int64).tolist(),
                        "current": np.round(trace.current.astype(np.float64), 1).tolist(),
                    }
                    for trace in one.traces
                ],
            }
            for one in data.strands
        ],
    }
    canvas = '<canvas id="pileup" tabindex="0" role="img" aria-label="signals of reads"></canvas>\n'
    _write_page(file, "pileup", data.region, data.caption, canvas, legend, _PILEUP_HELP, shown)


def _or_null(values: NDArray[np.floating]) -> list[float | None]:
    return [round(value, 2) if value == value else None for value in values.tolist()]


def _write_page(
    file: BinaryIO, name: str, title: str, words: Sequence[str], canvases: str, legend: Sequence[tuple[str, str]],
    help_words: str, data: dict[str, Any],
) -> None:  # fmt: skip
    """Write a page with the program and style `name`, and a `legend` of color names and labels."""
    files = resources.files(__package__)
    style, program = (
        "".join(files.joinpath(f"{part}.{ending}").read_text() for part in ("canvas", name)) for ending in ("css", "js")
    )
    # No "<" in the data may end their element.
    shown = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    title = escape(title)
    # no line ends between the ends of a region
    heading = re.sub(r"\d[\d,]*-\d[\d,]*", r'<span class="whole">\g<0></span>', title)
    keys = "".join(f'<span><i style="background: var(--{colour})"></i>{escape(told)}</span>' for colour, told in legend)
    file.write(
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n<h1>{heading}</h1>\n<p>{'<br>'.join(map(escape, words))}</p>\n"
        '<figure>\n<nav><button id="in" title="zoom in">+</button><button id="out" title="zoom out">&minus;</button>'
        '<button id="whole">all</button><input id="goto" placeholder="go to position" aria-label="go to position">'
        '<button id="save">save picture</button><span id="where"></span></nav>\n'
        f'{canvases}<div id="tip" hidden></div>\n<div id="legend">{keys}</div>\n</figure>\n<p>{help_words}</p>\n'
        "<noscript><p>The drawing needs JavaScript; PNG, SVG and PDF are written, too.</p></noscript>\n"
        f'<script type="application/json" id="data">{shown}</script>\n<script>\n{program}</script>\n</body>\n</html>\n'
        .encode()
    )  # fmt: skip
