"""Pages with a drawing to zoom and pan in: one HTML file that loads nothing from anywhere else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any, BinaryIO


def write_page(
    file: BinaryIO, name: str, title: str, words: Sequence[str], canvases: str, legend: Sequence[tuple[str, str]],
    help_words: str, data: dict[str, Any],
) -> None:  # fmt: skip
    """Write a page; the same data give the same bytes.

    Parameters
    ----------
    name : str
        Of the page's program and style in this package, which follow those that all pages share.
    words : sequence of str
        Lines below the title.
    canvases : str
        HTML of what is drawn on.
    legend : sequence of (str, str)
        Name of a colour of the style, and what has it.
    help_words : str
        How the drawing is moved in.
    data : dict
        What the program reads.
    """
    files = resources.files(__package__)
    style, program = (
        "".join(files.joinpath(f"{part}.{ending}").read_text() for part in ("canvas", name)) for ending in ("css", "js")
    )
    # No "<" in the data can end their element.
    shown = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    title = escape(title)
    keys = "".join(f'<span><i style="background: var(--{colour})"></i>{told}</span>' for colour, told in legend)
    file.write(
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p>{'<br>'.join(map(escape, words))}</p>\n"
        '<figure>\n<nav><button id="in" title="zoom in">+</button><button id="out" title="zoom out">&minus;</button>'
        '<button id="whole">all</button><input id="goto" placeholder="go to position" aria-label="go to position">'
        '<button id="save">save picture</button><span id="where"></span></nav>\n'
        f'{canvases}<div id="tip" hidden></div>\n<div id="legend">{keys}</div>\n</figure>\n<p>{help_words}</p>\n'
        "<noscript><p>The drawing needs JavaScript; PNG, SVG and PDF are written, too.</p></noscript>\n"
        f'<script type="application/json" id="data">{shown}</script>\n<script>\n{program}</script>\n</body>\n</html>\n'
        .encode()
    )  # fmt: skip
