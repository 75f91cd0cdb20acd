"""Hooks of MkDocs: headings have GitHub's anchors; names of options and other short pieces of code are not broken."""

from __future__ import annotations

import re
from typing import Any

from pymdownx.slugs import slugify

_SHORT = re.compile(r"<code>(?=[^<]{1,26}</code>)")
#: An option in a block of commands, behind the space that the colours of the syntax mark.
_OPTION = re.compile(r'(<span class="w">[^<]*</span>)(--?[A-Za-z][\w-]*)')
#: The space between a number and its unit in a cell of a table.
_UNIT = re.compile(r"(?<=\d) (?=(?:%|m?s|[kMG]B)(?!\w)[^<>]*</td>)")
#: The beginning of a table of options, which narrow windows show as a list.
_OPTIONS = re.compile(r"<table>(?=\s*<thead>\s*<tr>\s*<th>option</th>\s*<th>default</th>)")


def on_config(config: Any, **_: Any) -> Any:
    """Make the anchors of headings as GitHub does, so that one link holds there and here."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")
    return config


def on_page_content(html: str, **_: Any) -> str:
    """Give short pieces of code a class, so that no line ends within them; nor between a number and its unit."""
    marked = _OPTION.sub(r'\1<span class="name">\2</span>', _SHORT.sub('<code class="name">', html))
    return _OPTIONS.sub("<table data-options>", _UNIT.sub("&nbsp;", marked))
