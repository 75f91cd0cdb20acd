"""Headers of alignment files: parsing and merging."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from f5py.errors import InputFileError

if TYPE_CHECKING:
    import pysam

#: Header lines about reads.
KINDS_OF_READS = ("@RG", "@PG", "@CO")
#: New values of tags by tag name, ``RG`` or ``PG``, and old value.
TagChanges = dict[tuple[str, str], str]


def parse_header(text: str) -> pysam.AlignmentHeader:
    """Parse a header; bytes of comments that are not UTF-8 are surrogates, and kept.

    Raises `InputFileError` if a line lacks a required field or a field is malformed.
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
    """Merged read groups, programs and comments of several files, in `lines`.

    As in `samtools merge`, a line with an ID in use gets a new one, and the lines and reads that refer to it follow.
    Equal lines appear once.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._id_of: dict[str, str] = {}  # new ID by original line
        self._taken: set[tuple[str, str]] = set()  # record types and IDs

    def add(self, lines: Iterable[str]) -> TagChanges:
        """Add the @RG, @PG and @CO lines of a file; return the changes of its reads' tags."""
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
        """Make a line's ID unique and record the change; return None if the line exists."""
        kind, before = line[1:3], field_of(line, "ID")
        program = field_of(line, "PP" if kind == "PG" else "PG")
        line = _replace_field(line, "PP" if kind == "PG" else "PG", changes.get(("PG", program), program))
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
        return _replace_field(line, "ID", after) if is_new else None


def field_of(line: str, name: str) -> str:
    """Return a field of a header line, "" if missing."""
    return next((field[3:] for field in line.split("\t")[1:] if field[:3] == f"{name}:"), "")


def _replace_field(line: str, name: str, value: str) -> str:
    """Replace a field of a header line, if it exists."""
    return "\t".join(f"{name}:{value}" if field[:3] == f"{name}:" else field for field in line.split("\t"))


def _parents_first(lines: list[str]) -> list[str]:
    """Sort program lines so that each follows the one in its PP."""
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
