"""Headers of alignment files: from their text, and of several files as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from f5py.errors import InputFileError

if TYPE_CHECKING:
    import pysam

#: Beginnings of lines about reads: read groups, programs, comments.
KINDS_OF_READS = ("@RG", "@PG", "@CO")
#: New values of reads' tags, by the name of the tag, ``RG`` or ``PG``, and the value that it has in a file.
TagChanges = dict[tuple[str, str], str]


def header_of_text(text: str) -> pysam.AlignmentHeader:
    """Make a header from its lines.

    Raises `InputFileError` if a line lacks a field that it must have, or its field is not of the right form.

    Parameters
    ----------
    text : str
        Free text need not be UTF-8: other bytes are surrogates, and come out as they went in.
    """
    import pysam

    handler = pysam.set_encoding_error_handler("surrogateescape")
    try:
        return pysam.AlignmentHeader.from_text(text)
    except (ValueError, KeyError) as problem:
        why = " ".join(str(problem.args[0] if problem.args else problem).split())
        raise InputFileError(f"the header of the alignments is damaged ({why}); make the alignments again") from None
    finally:
        pysam.set_encoding_error_handler(handler)


class HeaderLines:
    """Read groups, programs and comments of several files.

    As in `samtools merge`, each ID stands for one thing: a line with the ID of another one gets a new ID, and the lines
    and reads of its file that refer to it follow. Equal lines are there once.

    Attributes
    ----------
    lines : list of str
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._id_of: dict[str, str] = {}  # of a line with the ID that it had in its file
        self._taken: set[tuple[str, str]] = set()  # kinds of lines and their IDs

    def add(self, lines: Iterable[str]) -> TagChanges:
        """Add the lines of a file that begin with @RG, @PG or @CO; return what its reads' tags change to."""
        lines = list(dict.fromkeys(lines))
        changes: TagChanges = {}
        new: dict[str, str | None] = {}
        for line in [*_parents_first(lines), *(line for line in lines if not line.startswith("@PG\t"))]:
            if line.startswith("@CO"):
                new[line] = None if line in self.lines else line
            else:
                new[line] = self._renamed(line, changes)
        self.lines += [new_line for line in lines if (new_line := new[line]) is not None]
        return {of_tag: after for of_tag, after in changes.items() if after != of_tag[1]}

    def _renamed(self, line: str, changes: TagChanges) -> str | None:
        """Give a line an ID of its own, and note in `changes` what becomes of the old one; None if it is there."""
        kind, before = line[1:3], field_of(line, "ID")
        program = field_of(line, "PP" if kind == "PG" else "PG")
        line = _with_field(line, "PP" if kind == "PG" else "PG", changes.get(("PG", program), program))
        after = self._id_of.get(line)
        is_new = after is None
        if after is None:
            after, number = before, 0
            while (kind, after) in self._taken:
                number += 1
                after = f"{before}.{number}"
            self._taken.add((kind, after))
            self._id_of[line] = after
        changes.setdefault((kind, before), after)
        return _with_field(line, "ID", after) if is_new else None


def field_of(line: str, name: str) -> str:
    """Return a field of a header line, "" if it has none of that name."""
    return next((field[3:] for field in line.split("\t")[1:] if field[:3] == f"{name}:"), "")


def _with_field(line: str, name: str, value: str) -> str:
    """Change a field of a header line, if it has one of that name."""
    return "\t".join(f"{name}:{value}" if field[:3] == f"{name}:" else field for field in line.split("\t"))


def _parents_first(lines: list[str]) -> list[str]:
    """List the lines of programs so that each comes after the one that its PP refers to."""
    programs = [line for line in lines if line.startswith("@PG\t")]
    by_id = {field_of(line, "ID"): line for line in reversed(programs)}
    ordered: dict[str, None] = {}
    for line in programs:
        chain: list[str] = []
        parent: str | None = line
        while parent is not None and parent not in ordered and parent not in chain:
            chain.append(parent)
            parent = by_id.get(field_of(parent, "PP"))
        ordered |= dict.fromkeys(reversed(chain))
    return list(ordered)
