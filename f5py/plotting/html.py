"""The figure as one HTML file with a tooltip for every event and base, and nothing to load from anywhere else."""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING, BinaryIO
from xml.etree import ElementTree

from f5py.plotting.data import PlotData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SVG = "http://www.w3.org/2000/svg"
_STYLE = """
body { margin: 1em; font-family: sans-serif; }
div { overflow-x: auto; }
svg { display: block; }
.hover { fill: #14375e; fill-opacity: 0; stroke: none; pointer-events: all; }
.hover:hover { fill-opacity: 0.15; }
"""


def write_html(figure: Figure, data: PlotData, file: BinaryIO) -> None:
    """Write a drawn figure.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Its first axes are those of the signal, its second ones those of the bases.
    data : PlotData
        What it shows.
    file : binary file
    """
    drawn = io.BytesIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    svg = ElementTree.fromstring(drawn.getvalue())
    for metadata in svg.findall(f"{{{_SVG}}}metadata"):
        svg.remove(metadata)
    svg.append(_hover_fields(figure, data))
    name = escape(data.title)
    file.write(
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n<title>{name}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<div>\n{ElementTree.tostring(svg, encoding='unicode')}\n</div>\n"
        "<p>Point at an event or a base to see its numbers.</p>\n</body>\n</html>\n".encode()
    )


def _hover_fields(figure: Figure, data: PlotData) -> ElementTree.Element:
    """An invisible rectangle with a tooltip over every event and every base."""
    width, height = figure.get_size_inches() * 72  # the SVG's unit is a point
    signal, bases = (axes.get_position() for axes in figure.axes[:2])
    n_samples = len(data.current)

    def field(start: int, end: int, box, text: str) -> None:
        x = (box.x0 + box.width * (start - data.first_sample) / n_samples) * width
        rectangle = ElementTree.SubElement(
            group,
            f"{{{_SVG}}}rect",
            {
                "class": "hover",
                "x": f"{x:.2f}",
                "y": f"{(1 - box.y1) * height:.2f}",
                "width": f"{box.width * (end - start) / n_samples * width:.2f}",
                "height": f"{box.height * height:.2f}",
            },
        )
        ElementTree.SubElement(rectangle, f"{{{_SVG}}}title").text = text

    group = ElementTree.Element(f"{{{_SVG}}}g", {"id": "tooltips"})
    kmers = [_kmer_words(data, i) for i in range(len(data.position))]
    for i, (start, length, kmer) in enumerate(
        zip(data.event_start.tolist(), data.event_length.tolist(), data.event_kmer.tolist(), strict=True)
    ):
        field(start, start + length, signal, _event_words(data, i, "aligned to no k-mer" if kmer < 0 else kmers[kmer]))
    for start, end, words in zip(data.kmer_start.tolist(), data.kmer_end.tolist(), kmers, strict=True):
        if end > start:
            field(start, end, bases, f"{words}\nsamples {start}-{end - 1}")
    return group


def _event_words(data: PlotData, i: int, kmer: str) -> str:
    length = int(data.event_length[i])
    return (
        f"event {data.event_index[i]}{' (fits no k-mer)' if data.event_bad[i] else ''}\n"
        f"mean {data.event_mean[i]:.2f} pA, stdv {data.event_stdv[i]:.2f} pA\n"
        f"{length} samples from {data.event_start[i]} on, {1000 * length / data.sampling_rate:.2f} ms\n{kmer}"
    )


def _kmer_words(data: PlotData, i: int) -> str:
    letters = data.kmers[i].tobytes().decode("latin-1")
    return (
        f"k-mer {letters} at position {data.position[i] + 1}\n"
        f"expected {data.level[i]:.2f} \N{PLUS-MINUS SIGN} {data.level_stdv[i]:.2f} pA"
    )
