"""URLs of inputs, and the file systems that they are of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from f5py.errors import F5pyError, InputFileError, MissingDependencyError, OutputFileError, not_loaded, pip_install

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

#: Seconds for a connection, and without a byte, after which a server does not answer; and how often S3 is asked again.
CONNECT_SECONDS, SILENT_SECONDS, _ATTEMPTS = 10, 20, 3
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
#: What file systems say of a file that is another one when its content is.
_IDENTITY = ("ETag", "etag", "LastModified", "last_modified", "mtime", "created", "updated")


def is_url(path: str | None) -> bool:
    """Return whether an input is named by a URL."""
    return path is not None and _URL.match(path) is not None


def without_secrets(url: str) -> str:
    """Strip a URL of passwords and, of a web page, of what follows its path, which may be a signature."""
    url = re.sub(r"(?<=://)[^/@]*@", "", url)
    return re.split(r"[?#]", url, maxsplit=1)[0] if url.lower().startswith("http") else url


def file_system(url: str) -> tuple[AbstractFileSystem, str]:
    """Open the file system of a URL; also return what the file is called there.

    Raises
    ------
    MissingDependencyError
        The package for this kind of URLs is not installed.
    InputFileError
        There is none.
    """
    shown = without_secrets(url)
    try:
        from fsspec.core import url_to_fs
    except ImportError as problem:
        raise _needs_package(shown, "s3fs", problem) from problem
    try:
        with reading(url):
            found: tuple[AbstractFileSystem, str] = url_to_fs(url, **_patience(url))
            if hasattr(found[0], "retries"):
                found[0].retries = _ATTEMPTS
            return found
    except ImportError as problem:
        raise _needs_package(shown, _package(problem), problem.__cause__ or problem) from problem


def _patience(url: str) -> dict[str, Any]:
    """Set how long a service is waited for, as its library wants it; what the user has set counts more.

    The libraries' own limits add up to many minutes for S3, and for the web limit all of a file and not only silence.
    """
    from fsspec.config import conf

    kind = url.partition("://")[0].lower()
    if kind in ("s3", "s3a"):
        limits = {"connect_timeout": CONNECT_SECONDS, "read_timeout": SILENT_SECONDS, "retries": {"max_attempts": 0}}
        return {"config_kwargs": limits | conf.get(kind, {}).get("config_kwargs", {})}
    if kind in ("http", "https") and "client_kwargs" not in conf.get(kind, {}):
        from aiohttp import ClientTimeout

        return {"client_kwargs": {"timeout": ClientTimeout(None, None, SILENT_SECONDS, CONNECT_SECONDS)}}
    return {}


@contextmanager
def reading(url: str) -> Iterator[None]:
    """Say of which URL a problem is that a file system has in the block."""
    try:
        yield
    except (F5pyError, ImportError):
        raise
    except FileNotFoundError as problem:
        raise InputFileError(f"{without_secrets(url)}: no such file") from problem
    except Exception as problem:  # whatever the libraries of the services raise
        raise cannot_be_read(url, problem) from problem


def cannot_be_read(url: str, problem: BaseException) -> InputFileError:
    """Make the error for a URL that cannot be read."""
    reason = " ".join(str(problem).split()) or type(problem).__name__
    return InputFileError(
        f"{without_secrets(url)}: cannot be read ({reason}); check the name, the network and your rights"
    )


def cannot_be_kept(url: str, folder: str, problem: OSError) -> OutputFileError:
    """Make the error for a file that does not fit on a disk of this machine."""
    return OutputFileError(
        f"{without_secrets(url)}: cannot be kept in {folder} ({problem.strerror}); make room there, or name another "
        "folder with XDG_CACHE_HOME"
    )


class About(NamedTuple):
    """Facts about a file or folder."""

    size: int  # bytes of all files
    identity: str  # what changes with the content, as far as the file system knows
    files: list[tuple[str, int]] | None  # of a folder the files below it and their sizes, in the order of their names


def about_url(url: str) -> About | None:
    """Ask what is known of what a URL names; None if there is nothing.

    Raises `InputFileError` if it cannot be asked for.
    """
    system, name = file_system(url)
    with reading(url):
        try:
            about = system.info(name)
        except FileNotFoundError:
            return None
        if about.get("type") != "directory":
            return About(about["size"], identity(about), None)
        found = sorted(system.find(name, detail=True).items())
    files = [(path[len(name) :], one["size"]) for path, one in found]
    return About(sum(size for _, size in files), _checksum(identity(one) for _, one in found), files) if files else None


def samples(url: str, stretches: Sequence[tuple[int, int]]) -> list[bytes]:
    """Bytes from each of the first places in a file to the second; raises as `pieces`."""
    system, name = file_system(url)
    return pieces(system, [(url, name, begin, end) for begin, end in stretches])


def pieces(system: AbstractFileSystem, wanted: Sequence[tuple[str, str, int, int]]) -> list[bytes]:
    """Pieces of files, all fetched at the same time.

    Raises `InputFileError` if they cannot be read, or a file has become shorter.

    Parameters
    ----------
    wanted : sequence of (str, str, int, int)
        URL, what the file is called by its file system, and where the piece begins and ends.
    """
    urls, names, begins, ends = map(list, zip(*wanted, strict=True))
    with reading(urls[0]):
        found: list[Any] = system.cat_ranges(names, begins, ends)
    for (url, _, begin, end), piece in zip(wanted, found, strict=True):
        if isinstance(piece, BaseException):
            raise cannot_be_read(url, piece) from piece
        if len(piece) != end - begin:
            raise InputFileError(f"{url}: has become shorter while it was read; start again")
    return found


def identity(about: dict[str, Any]) -> str:
    """Identify a file, as far as its file system knows, so that a changed one is noticed."""
    return ";".join(f"{key}={about[key]}" for key in _IDENTITY if about.get(key) is not None)


def _checksum(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _package(problem: ImportError) -> str:
    """Name the package that is missing, or that fsspec asks for."""
    if isinstance(problem, ModuleNotFoundError) and problem.name:
        return problem.name.partition(".")[0]
    found = re.search(r"(?:[Ii]nstall|requires) [\"'`]?([A-Za-z][\w-]*)", str(problem))
    return found[1] if found else "s3fs"


def _needs_package(shown: str, package: str, problem: BaseException | None) -> MissingDependencyError:
    """Return the error for a package that is missing, or that is there and cannot be imported because of `problem`."""
    command = pip_install("s3") if package == "s3fs" else f"pip install fsspec {package}"
    need = f"{shown}: reading it needs the package"
    is_asked_for = re.search("[Ii]nstall|requires", str(problem))  # by fsspec, which says no other reason
    if isinstance(problem, ImportError) and not isinstance(problem, ModuleNotFoundError) and not is_asked_for:
        return not_loaded(problem, need, package, command)
    return MissingDependencyError(f"{need} {package}; install it: {command}")
