"""Reports of `f5py summary`, `validate` and `compare`: text, JSON, a page or a figure."""

import json
import re
from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import Any

from f5py.io.files.atomic_write import named_together
from f5py.io.files.complete_file import complete_output
from f5py.io.output_checks import check_outputs
from f5py.options.table_commands import EvaluationOptions
from f5py.reports.charts import Chart, Scatter, check_can_draw, report_kind, write_charts
from f5py.reports.html_report import page, section

#: Gap between columns of a table.
_COLUMNS = re.compile(r"\S {2,}\S")


def check_reports(options: EvaluationOptions) -> None:
    """Raise for colliding outputs, and for reports of an unknown format or without its library."""
    check_outputs(options)
    check_can_draw([report_kind(path) for path in options.report])


def write_reports(
    options: EvaluationOptions, title: str, lines: Sequence[str], data: dict[str, Any], charts: Sequence[Chart]
) -> None:
    """Write the text, and every report in the format of its name, all or none."""
    with named_together():
        write_report_files(options.report, title, lines, data, charts)
        with complete_output(options.output) as out:
            out.write(("\n".join(lines) + "\n").encode())


def write_report_files(
    paths: Sequence[str], title: str, lines: Sequence[str], data: dict[str, Any], charts: Sequence[Chart | Scatter]
) -> None:
    """Write reports, each in the format of its name."""
    for path in paths:
        kind = report_kind(path)
        with complete_output(path) as file:
            if kind == "json":
                file.write((json.dumps(data, indent=2) + "\n").encode())
            elif kind == "html":
                drawn = "".join(chart.html() for chart in charts)
                blocks = [
                    f"<h1>{escape(title)}</h1>",
                    f'<div class="grid">{drawn}</div>',
                    f'<div class="grid">{section("Figures", _paragraphs(lines))}</div>',
                ]
                file.write(page(title, blocks).encode())
            else:
                write_charts(charts, file, kind, title)


def _paragraphs(lines: Sequence[str]) -> str:
    """Format tables, which are scrolled, and sentences, which are wrapped."""
    groups = groupby(lines, lambda line: line and ("columns" if _COLUMNS.search(line) else "lines"))
    return "".join(f'<pre class="{kind}">{escape(chr(10).join(some))}</pre>' for kind, some in groups if kind)


def percent(value: float | None) -> str:
    """Format a share as a percentage; a dash for None."""
    return "-" if value is None else f"{100 * value:.2f}"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Format a table, with the first column flush left and others flush right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (header, *rows)
    ]
