"""Signal files of reads from a basecaller's sequencing summary."""

import io
from collections import Counter
from collections.abc import Sequence

from f5py.errors import InputFileError
from f5py.io.arrow.text_input import open_bytes
from f5py.messages.console import input_warning

#: Limit of reads per file when too few files agree.
_USUAL_READS_PER_FILE = 4000
#: More files than this must agree on a number.
_ENOUGH_FILES = 20
_FILE_COLUMNS = ("filename", "filename_fast5")


def read_summary_list(path: str) -> list[str]:
    """Read a file of summary paths, one per line; raise `InputFileError` for an impossible path."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        lines = [line.strip() for line in file]
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise InputFileError(f"{path}: line {number} is not a path; give a list of summaries, one per line")
    return [line for line in lines if line]


def reads_by_file(paths: Sequence[str]) -> dict[str, list[str]]:
    """Return the reads of every signal file in sequencing summaries, by file name without folder.

    Files with an implausible number of reads are left out, as in f5c: more than the commonest number if over 20 files
    have that one, else more than 4000. Restarted or merged basecalling writes such tables. Raises `InputFileError` for
    a missing column (``read_id``, and ``filename`` or ``filename_fast5``, the latter if both exist) or a short line.
    """
    reads: dict[str, list[str]] = {}
    for path in paths:
        _add_summary(path, reads)
    if not reads:
        return reads
    files_with = Counter(len(names) for names in reads.values())
    commonest, files = min(files_with.items(), key=lambda item: (-item[1], item[0]))
    limit = commonest if files > _ENOUGH_FILES else _USUAL_READS_PER_FILE
    doubtful = [name for name, names in reads.items() if len(names) > limit]
    if doubtful:
        input_warning(
            "readdb",
            f"the sequencing summaries list more than {limit} reads for {len(doubtful)} files, such as "
            f"{doubtful[0]}; these files will be opened instead",
        )
    for name in doubtful:
        del reads[name]
    return reads


def _add_summary(path: str, reads: dict[str, list[str]]) -> None:
    with open_bytes(path) as source, io.TextIOWrapper(source, encoding="utf-8", errors="surrogateescape") as file:
        header = file.readline().rstrip("\r\n").split("\t")
        columns = {title: i for i, title in enumerate(header)}
        read_column = columns.get("read_id", -1)
        file_column = max(columns.get(title, -1) for title in _FILE_COLUMNS)
        if min(read_column, file_column) < 0:
            raise InputFileError(
                f"{path}: the header lacks the column read_id, or filename or filename_fast5; "
                "is it a sequencing summary?"
            )
        for number, line in enumerate(file, 2):
            fields = line.rstrip("\r\n").split("\t")
            if len(fields) <= max(file_column, read_column):
                if fields == [""]:
                    continue
                raise InputFileError(f"{path}: line {number} has too few columns; is the file truncated?")
            reads.setdefault(fields[file_column], []).append(fields[read_column])
