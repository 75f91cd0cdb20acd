"""The viewer of a read: one HTML file to zoom and pan in, which loads nothing from anywhere else."""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.plotting.data import PlotData

_HELP = (
    "Drag to move, turn the wheel or pinch to zoom; arrows, + and - work too. Point at an event, a base or a call for "
    "its numbers."
)


def write_html(data: PlotData, file: BinaryIO, seconds: bool = False) -> None:
    """Write the viewer; the same data give the same bytes.

    Parameters
    ----------
    data : PlotData
    file : binary file
    seconds : bool
        Show the time in seconds instead of samples.
    """
    files = resources.files(__package__)
    style, program = (files.joinpath(name).read_text() for name in ("viewer.css", "viewer.js"))
    # No "<" in the data can end their element.
    shown = json.dumps(_shown(data, seconds), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    title = escape(data.title)
    legend = [("signal", "signal"), ("event", "event"), ("model", "expected level, with its standard deviation")]
    if data.event_bad.any():
        legend.append(("bad", "event that fits no k-mer"))
    if (data.event_kmer < 0).any():
        legend.append(("unaligned", "event that is not aligned"))
    if data.calls is not None:
        legend += [("methylated", "call: methylated"), ("plain", "call: not methylated; pale below the threshold")]
    keys = "".join(f'<span><i style="background: var(--{name})"></i>{words}</span>' for name, words in legend)
    file.write(
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p>{escape(data.subtitle)}<br>"
        f"{escape(data.position_words)}</p>\n<figure>\n"
        '<nav><button id="in" title="zoom in">+</button><button id="out" title="zoom out">&minus;</button>'
        '<button id="whole">all</button><span id="where"></span></nav>\n'
        f'<canvas id="signal" tabindex="0" role="img" aria-label="{title}"></canvas>\n'
        '<canvas id="overview" aria-hidden="true"></canvas>\n<div id="tip" hidden></div>\n'
        f'<div id="legend">{keys}</div>\n</figure>\n<p>{_HELP}</p>\n'
        "<noscript><p>The drawing needs JavaScript; f5py plot writes PNG, SVG and PDF too.</p></noscript>\n"
        f'<script type="application/json" id="data">{shown}</script>\n<script>\n{program}</script>\n</body>\n</html>\n'
        .encode()
    )  # fmt: skip


def _rounded(values: NDArray[np.floating]) -> list[float]:
    """Hundredths of a picoampere are less than what a pixel shows."""
    return np.round(values.astype(np.float64), 2).tolist()


def _shown(data: PlotData, seconds: bool) -> dict[str, Any]:
    """What the page's program reads."""
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
