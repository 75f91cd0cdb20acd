"""Deep calls without the system: Python's frames of a call in one piece of memory.

From Python 3.11 on the frames of a thread lie in pieces of 16 kB, and a piece is given back to the system when the last
frame in it ends. Where calls go up and down across the border of two pieces, as Numba's do when it compiles, each of
them asks the system for memory and gives it back: a fifth of the time. The first frame in a piece decides how large it
is, and others find room after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Values that the frame claims room for: 1 MB, of a piece of 2 MB. What is not written to takes no memory.
_ROOM = 1 << 17


def with_wide_stack(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; the frames of what it calls have 1 MB in one piece."""
    return function(*arguments)


with_wide_stack.__code__ = with_wide_stack.__code__.replace(co_stacksize=_ROOM)
