"""Other Python processes that are started anew."""

import os
import signal
import sys

from f5py.threads import ONE_THREAD

_PR_SET_PDEATHSIG = 1


def python_command(program: str) -> list[str]:
    """Return the command that runs a program in another Python without imports from the working folder.

    The option ``-P`` exists from Python 3.11 on only.
    """
    return [sys.executable, "-c", f"import sys; sys.path[:1] == [''] and sys.path.pop(0); {program}"]


def environment() -> dict[str, str]:
    """Return an environment with this process's import paths."""
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    return {**ONE_THREAD, **os.environ, "PYTHONPATH": paths}


def end_with_parent() -> None:
    """Make the system kill this process with its parent, even in an endless loop."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
