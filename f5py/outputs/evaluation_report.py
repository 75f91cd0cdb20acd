"""Reports of `f5py summary`, `validate` and `compare`: text, JSON, a page or a figure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from html import escape
from typing import Any

from f5py.io.complete_file import complete_output
from f5py.outputs.charts import Chart, check_can_draw, report_kind, write_charts
from f5py.outputs.html_report import page, section


def check_reports(paths: Sequence[str]) -> None:
    """Raise for a name of another kind, or one that needs a library that is not there."""
    check_can_draw([report_kind(path) for path in paths])


def write_reports(paths: Sequence[str], title: str, text: str, data: dict[str, Any], charts: Sequence[Chart]) -> None:
    """Write every report in the format that its name says.

    Parameters
    ----------
    paths : sequence of str
    title : str
    text : str
        For readers.
    data : dict
        For programs.
    charts : sequence of Chart
    """
    for path in paths:
        kind = report_kind(path)
        with ExitStack() as stack:
            file = stack.enter_context(complete_output(path))
            if kind == "json":
                file.write((json.dumps(data, indent=2) + "\n").encode())
            elif kind == "html":
                drawn = "".join(chart.html() for chart in charts)
                blocks = [
                    f"<h1>{escape(title)}</h1>",
                    f'<div class="grid">{section("Figures", f"<pre>{escape(text)}</pre>")}</div>',
                    f'<div class="grid">{drawn}</div>',
                ]
                file.write(page(title, blocks).encode())
            else:
                write_charts(charts, file, kind, title)


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table; the first column is flush left, the others right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (header, *rows)
    ]
