"""A hook of MkDocs: names of options and other short pieces of code get a class, so that no line ends within them."""

from __future__ import annotations

import re
from typing import Any

_SHORT = re.compile(r"<code>(?=[^<]{1,26}</code>)")
#: An option in a block of commands, behind the space that the colours of the syntax mark.
_OPTION = re.compile(r'(<span class="w">[^<]*</span>)(--?[A-Za-z][\w-]*)')


def on_page_content(html: str, **_: Any) -> str:
    """Mark them in the text of a page."""
    return _OPTION.sub(r'\1<span class="name">\2</span>', _SHORT.sub('<code class="name">', html))
