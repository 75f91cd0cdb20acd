"""The errors that a user can cause or meet.

Every message is one line with the fault, its place, and the remedy; the command line
prints it as it is and exits with status 1, or with 2 for wrong usage.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class F5pyError(Exception):
    """Root of all errors raised on purpose by f5py."""


class UsageError(F5pyError):
    """Options contradict each other, or lack others that they need; the status is 2, also from Python."""


class InputFileError(F5pyError):
    """An input file is missing, unreadable, damaged, or does not belong to the others."""


class OutputFileError(F5pyError):
    """An output file cannot be written."""


class SignalError(InputFileError):
    """A signal file as a whole cannot be used (a single unreadable read is a status, not an error)."""


class PoreModelError(F5pyError):
    """A pore model file is malformed or does not fit the other models or the data."""


class UnsupportedDataError(F5pyError):
    """The data are valid but of a kind that the command does not handle."""


class MissingDependencyError(F5pyError):
    """An optional package is needed; the message names the pip command (`pip_install`)."""


class FailedRunError(F5pyError):
    """A whole run has failed: no read has a result, or most reads are not those of the alignments."""


class DamagedValueError(ValueError):
    """A value in a file is missing or wrong. Whoever reads the file says which file it is."""


#: What pip is asked for, by the name of an extra in pyproject.toml. Messages name the packages themselves: f5py may
#: have been installed from a checkout, a wheel or conda, and the project called f5py on PyPI is another one.
EXTRAS = {
    "bigwig": "pyBigWig",
    "cuda11": '"cupy-cuda11x<14"',
    "cuda12": 'cupy-cuda12x "cuda-toolkit[cudart,nvrtc]==12.*"',
    "cuda13": 'cupy-cuda13x "cuda-toolkit[cudart,nvrtc]==13.*"',
    "dask": "distributed",
    "parquet": "pyarrow",
    "plot": "matplotlib",
    "pod5": "pod5",
    "s3": "s3fs",
    "vbz": "vbz-h5py-plugin",
    "zstd": "zstandard",
}


def pip_install(extra: str, again: bool = False) -> str:
    """Return the pip command that installs the packages of an extra, or installs them once more."""
    return f"pip install {'--force-reinstall ' if again else ''}{EXTRAS[extra]}"


def unavailable(problem: ImportError, need: str, package: str, extra: str) -> MissingDependencyError:
    """Return the error for an optional package that cannot be imported.

    Parameters
    ----------
    need : str
        The feature that needs the package; the name of the package follows.
    extra : str
        A key of `EXTRAS`.
    """
    return not_loaded(problem, need, package, pip_install(extra))


def not_loaded(problem: ImportError, need: str, package: str, command: str) -> MissingDependencyError:
    """Return the error for a package that cannot be imported. As `unavailable`, with the command that installs it."""
    if isinstance(problem, ModuleNotFoundError) and (problem.name or "").partition(".")[0] == package:
        return MissingDependencyError(f"{need} {package}; install it: {command}")
    reason = " ".join(str(problem).split()) or type(problem).__name__
    return MissingDependencyError(f"{need} {package}, which is installed but cannot be loaded: {reason}")


@contextmanager
def blamed_on(path: str) -> Iterator[None]:
    """Give system errors in the block the name of the file."""
    try:
        yield
    except OSError as problem:
        if problem.errno and problem.filename is None:
            problem.filename = path
        raise
