"""Kernels that Numba hears of when they are called.

To prepare a function for Numba takes a third of a millisecond, and a run imports two hundred of them, of which it calls
thirty: the others are in the kept code of these.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

#: Kernels are prepared one at a time: two threads may call one for the first time.
_lock = threading.RLock()


class LazyKernel:
    """A function that is prepared for Numba when Python calls it, or when one that calls it is compiled.

    All attributes but those here are those of Numba's dispatcher, also ``_numba_type_``, by which Numba knows what
    another kernel calls.

    Parameters
    ----------
    function : callable
    prepare : callable of a function
        Makes its dispatcher.

    Attributes
    ----------
    py_func : callable
        The function as it is written.
    """

    def __init__(self, function: Callable[..., Any], prepare: Callable[[Callable[..., Any]], Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._prepare = prepare
        self._dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher of the function."""
        if self._dispatcher is None:
            with _lock:
                if self._dispatcher is None:
                    self._dispatcher = self._prepare(self.py_func)
        return self._dispatcher

    def __call__(self, *arguments: Any) -> Any:
        return (self._dispatcher or self.dispatcher)(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dispatcher, name)
