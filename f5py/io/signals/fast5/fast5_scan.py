"""Search of fast5 files for read names."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from f5py.io.signals.processes import ProcessSource
from f5py.io.signals.scan_journal import Found, ScanJournal
from f5py.io.signals.source import FileReader
from f5py.messages import console
from f5py.messages.console import input_warning

#: Files that a process is given at a time.
_MOST_FILES = 64
_CRASH = "{path}: skipped, it is damaged and {how}"


def read_names(path: str) -> list[str]:
    """Return the names of the reads in a fast5 file.

    With a group ``/Raw`` it is a single read, named by the attribute ``read_id`` of the first group below
    ``/Raw/Reads``; otherwise each group ``read_<name>`` is a read. The attribute ``file_version`` is unreliable.

    Raises `OSError` for an unreadable file, `LookupError` for a missing entry.
    """
    import h5py

    # many network file systems have no locks
    with h5py.File(path, "r", locking=False) as file:
        names = [] if "Raw" in file else [name.removeprefix("read_") for name in file if name.startswith("read_")]
        if names or not len(file):
            return names
        reads = file["Raw/Reads"]
        name = reads[next(iter(reads))].attrs["read_id"]
        return [name.decode() if isinstance(name, bytes) else str(name)]


class NameReader(FileReader):
    """Reader of the names of reads, for helper processes."""

    advice = "use a smaller --iop"

    @staticmethod
    def prepare(path: str) -> None:
        import h5py  # noqa: F401

    @staticmethod
    def list_reads(path: str) -> Found:
        """Return the read names in a file, or why it is skipped."""
        try:
            names = read_names(path)
        except (OSError, LookupError, StopIteration, ValueError, TypeError, RuntimeError) as problem:
            reason = " ".join(str(problem).split()) or type(problem).__name__
            return f"{path}: skipped, not a usable fast5 file ({reason})"
        return names if names else f"{path}: skipped, holds no reads"


def scan_fast5(
    paths: Sequence[str],
    processes: int,
    advance: Callable[[int], object] = lambda files: None,
    journal: ScanJournal | None = None,
) -> list[Found]:
    """Read the names of the reads in many fast5 files; for a skipped file return the reason as str.

    Raises `SignalError` if a process was killed. Files that crash or hang a process are skipped. Files in the journal
    are not scanned again; results are added. `advance` is called with the number of newly finished files.
    """
    found: dict[str, Found] = {}
    if journal is not None:
        found = {path: known for path in paths if (known := journal.found(path)) is not None}
    if found:
        console.note("readdb", f"{len(found)} of {len(paths)} fast5 files have been scanned before")
    rest = [path for path in paths if path not in found]
    advance(len(paths) - len(rest))
    if not rest:
        return [found[path] for path in paths]
    size = max(1, min(_MOST_FILES, len(rest) // (4 * processes)))
    groups = [rest[start : start + size] for start in range(0, len(rest), size)]
    n = min(processes, len(groups))
    with ThreadPoolExecutor(n) as threads, closing(ProcessSource(n, {}, NameReader, "fast5", n)) as source:
        for group, names in zip(groups, threads.map(lambda one: source.list_reads(one, _CRASH), groups), strict=True):
            for path, result in zip(group, names, strict=True):
                if journal is not None:
                    journal.add(path, result)
                found[path] = result
            advance(len(group))
    return [found[path] for path in paths]


def report_skipped(found: Sequence[Found], everything: bool) -> None:
    """Report why files were skipped, at most ten unless `everything`."""
    reasons = [one for one in found if isinstance(one, str)]
    shown = reasons if everything else reasons[:10]
    for reason in shown:
        console.note("readdb", reason)
    if reasons:
        input_warning("readdb", f"{len(reasons)} of {len(found)} fast5 files were skipped")
