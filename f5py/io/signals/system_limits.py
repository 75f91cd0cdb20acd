"""Errors of the machine, and the limit of open files."""

import errno
import os
import re
import resource

#: Errors of the machine, not of a file.
SYSTEM_ERRORS = (errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOMEM, errno.ESTALE)
TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)

#: Error numbers in texts of libraries.
_NUMBER = re.compile(r"errno[ =]+(\d+)", re.IGNORECASE)

#: Descriptors left for other files.
_OTHER_FILES = 24
#: Usual limit of open files.
_COMMON_LIMIT = 1024


def reraise_system_error(problem: BaseException, path: str) -> None:
    """Raise `OSError` with the file's name if a problem was caused by the machine."""
    cause: BaseException | None = problem
    while cause is not None:
        found = _NUMBER.search(str(cause))
        number = getattr(cause, "errno", None) or (int(found[1]) if found else None)
        if number in SYSTEM_ERRORS:
            raise OSError(number, os.strerror(number), path) from None
        cause = cause.__cause__ or cause.__context__


def most_open(wanted: int) -> int:
    """Limit a number of open files to a share of the process's limit."""
    try:
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except OSError:  # in sandboxes
        allowed = _COMMON_LIMIT
    return wanted if allowed == resource.RLIM_INFINITY else max(1, min(wanted, (allowed - _OTHER_FILES) // 2))
