"""Finished files in a folder that a sequencer or basecaller is writing."""

import os
from typing import NamedTuple

from f5py.io.bytes.bgzf_blocks import END_BLOCK
from f5py.io.files.signal_format import KIND_OF_ENDING, POD5_MAGIC, Kind
from f5py.io.signals.search import walk_folder

_READS = (".fastq", ".fq", ".fastq.gz", ".fq.gz")
#: Ends of complete files; others only need to be unchanged.
_ENDS = {".bam": END_BLOCK, ".pod5": POD5_MAGIC, ".blow5": b"5WOLB"}
#: MinKNOW's folders of failed reads.
_LEFT_OUT = ("_fail", "_skip", "_skipped")


class FinishedFiles(NamedTuple):
    """Finished files, by sorted names relative to the folder."""

    alignments: list[str]  # BAM
    reads: list[str]  # FASTQ
    signals: list[tuple[str, Kind]]  # names and kinds
    unfinished: list[str]
    is_growing: bool  # an unfinished file is new or has changed
    has_alignments: bool  # a BAM file exists, finished or not


class RunFolder:
    """Repeated scans of a run's folder.

    A file is finished if it has not changed since the last scan and ends as its format requires. Folders ending in
    ``_fail`` or ``_skip`` and hidden names are skipped.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._seen: dict[str, tuple[int, int]] = {}
        self._finished: set[str] = set()

    def look(self) -> FinishedFiles:
        """Return the finished files; raise `OSError` if the folder cannot be read."""
        alignments, reads, signals, unfinished, has_alignments = [], [], [], [], False
        seen = dict(self._seen)
        for folder, below, names in walk_folder(self.path, self._refuse):
            below[:] = [name for name in below if not name.startswith(".") and not name.endswith(_LEFT_OUT)]
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), self.path)
                ending = _ending(name)
                if name.startswith(".") or ending is None:
                    continue
                has_alignments = has_alignments or ending == ".bam"
                if not self._is_finished(path, ending):
                    unfinished.append(path)
                elif ending == ".bam":
                    alignments.append(path)
                elif ending in KIND_OF_ENDING:
                    signals.append((path, KIND_OF_ENDING[ending]))
                else:
                    reads.append(path)
        is_growing = any(seen.get(path) != self._seen.get(path) for path in unfinished)
        return FinishedFiles(
            sorted(alignments), sorted(reads), sorted(signals), sorted(unfinished), is_growing, has_alignments
        )

    def _refuse(self, problem: OSError) -> None:
        """Raise for an unreadable folder, unless it was renamed."""
        is_below = problem.filename is not None and os.fspath(problem.filename) != self.path
        if not (is_below and isinstance(problem, FileNotFoundError | NotADirectoryError)):
            raise problem

    def _is_finished(self, path: str, ending: str) -> bool:
        if path in self._finished:
            return True
        whole = os.path.join(self.path, path)
        try:
            about = os.stat(whole)
        except OSError:  # it has been renamed
            return False
        now = about.st_size, about.st_mtime_ns
        before = self._seen.get(path)
        self._seen[path] = now
        if before != now or about.st_size == 0 or not _ends_as_it_should(whole, ending, about.st_size):
            return False
        self._finished.add(path)
        return True


def _ending(name: str) -> str | None:
    """Return the suffix of a known format."""
    endings = (".bam", *KIND_OF_ENDING, *_READS)
    return next((ending for ending in endings if name.lower().endswith(ending)), None)


def _ends_as_it_should(path: str, ending: str, size: int) -> bool:
    end = b"\n" if ending in (".fastq", ".fq", ".slow5") else _ENDS.get(ending, b"")
    if not end:
        return True
    try:
        with open(path, "rb") as file:
            file.seek(max(size - len(end), 0))
            return file.read() == end
    except OSError:
        return False
