"""The viewer of a read: one HTML file to zoom and pan in, which loads nothing from anywhere else."""

from __future__ import annotations

from html import escape
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.plotting.data import PlotData
from f5py.plotting.page import write_page

_HELP = (
    "Drag to move, turn the wheel or pinch to zoom; arrows, + and - work too. Point at an event, a base or a call for "
    "its numbers."
)


def write_html(data: PlotData, file: BinaryIO, seconds: bool = False) -> None:
    """Write the viewer; the same data give the same bytes."""
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
    shown = _shown(data, seconds)
    write_page(file, "viewer", data.title, [data.subtitle, data.position_words], canvases, legend, _HELP, shown)


def _rounded(values: NDArray[np.floating]) -> list[float]:
    """Hundredths of a picoampere are less than what a pixel shows."""
    return np.round(values.astype(np.float64), 2).tolist()


def _shown(data: PlotData, seconds: bool) -> dict[str, Any]:
    """Collect what the page's program reads."""
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
