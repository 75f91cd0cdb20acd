"""URLs of inputs and their file systems."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from f5py.errors import F5pyError, InputFileError, MissingDependencyError, OutputFileError, not_loaded, pip_install

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

#: Time limits for a connection and for silence in seconds; retries of S3.
CONNECT_SECONDS, SILENT_SECONDS, _ATTEMPTS = 10, 20, 3
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
#: Keys of file systems that change with the content.
_IDENTITY = ("ETag", "etag", "LastModified", "last_modified", "mtime", "created", "updated")


def is_url(path: str | None) -> bool:
    return path is not None and _URL.match(path) is not None


def redact_url(url: str) -> str:
    """Remove passwords from a URL and, for web pages, the query, which may be a signature."""
    url = re.sub(r"(?<=://)[^/@]*@", "", url)
    return re.split(r"[?#]", url, maxsplit=1)[0] if url.lower().startswith("http") else url


def file_system(url: str) -> tuple[AbstractFileSystem, str]:
    """Open the file system of a URL; also return the file's name in it.

    Raises `MissingDependencyError` if the package for this scheme is not installed, `InputFileError` if there is none.
    """
    shown = redact_url(url)
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
    """Return the time limits for a service; the user's settings take precedence.

    The libraries' own limits add up to many minutes for S3, and for the web limit the whole file instead of silence.
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
    """Turn a file system's errors into an `InputFileError` that names the URL."""
    try:
        yield
    except (F5pyError, ImportError):
        raise
    except FileNotFoundError as problem:
        raise InputFileError(f"{redact_url(url)}: no such file") from problem
    except Exception as problem:  # whatever the libraries of the services raise
        raise cannot_be_read(url, problem) from problem


def cannot_be_read(url: str, problem: BaseException) -> InputFileError:
    reason = " ".join(str(problem).split()) or type(problem).__name__
    return InputFileError(f"{redact_url(url)}: cannot be read ({reason}); check the name, the network and your rights")


def disk_full_error(url: str, folder: str, problem: OSError) -> OutputFileError:
    """Make the error for a file that does not fit on the local disk."""
    return OutputFileError(
        f"{redact_url(url)}: cannot be kept in {folder} ({problem.strerror}); make room there, or name another "
        "folder with XDG_CACHE_HOME"
    )


class RemoteStat(NamedTuple):
    """Facts about a remote file or folder."""

    size: int  # bytes of all files
    identity: str  # version identifiers
    files: list[tuple[str, int]] | None  # of a folder: names and sizes of the files below it, sorted


def stat_url(url: str) -> RemoteStat | None:
    """Return facts about a remote file or folder, None if it does not exist."""
    system, name = file_system(url)
    with reading(url):
        try:
            about = system.info(name)
        except FileNotFoundError:
            return None
        if about.get("type") != "directory":
            return RemoteStat(about["size"], identity(about), None)
        found = sorted(system.find(name, detail=True).items())
    files = [(path[len(name) :], one["size"]) for path, one in found]
    return (
        RemoteStat(sum(size for _, size in files), _checksum(identity(one) for _, one in found), files)
        if files
        else None
    )


def samples(url: str, stretches: Sequence[tuple[int, int]]) -> list[bytes]:
    """Fetch byte ranges of a remote file."""
    system, name = file_system(url)
    return pieces(system, [(url, name, begin, end) for begin, end in stretches])


def pieces(system: AbstractFileSystem, wanted: Sequence[tuple[str, str, int, int]]) -> list[bytes]:
    """Fetch byte ranges of files, all at the same time; raise `InputFileError`."""
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
    """Return the version identifiers of a file that its file system knows."""
    return ";".join(f"{key}={about[key]}" for key in _IDENTITY if about.get(key) is not None)


def _checksum(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _package(problem: ImportError) -> str:
    """Name the package that is missing or requested by fsspec."""
    if isinstance(problem, ModuleNotFoundError) and problem.name:
        return problem.name.partition(".")[0]
    found = re.search(r"(?:[Ii]nstall|requires) [\"'`]?([A-Za-z][\w-]*)", str(problem))
    return found[1] if found else "s3fs"


def _needs_package(shown: str, package: str, problem: BaseException | None) -> MissingDependencyError:
    """Make the error for a package that is missing or fails to import."""
    command = pip_install("s3") if package == "s3fs" else f"pip install fsspec {package}"
    need = f"{shown}: reading it needs the package"
    is_asked_for = re.search("[Ii]nstall|requires", str(problem))  # by fsspec
    if isinstance(problem, ImportError) and not isinstance(problem, ModuleNotFoundError) and not is_asked_for:
        return not_loaded(problem, need, package, command)
    return MissingDependencyError(f"{need} {package}; install it: {command}")
