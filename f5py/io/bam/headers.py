"""Headers of alignment files: parsing, merging and the @PG line of outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from f5py import __version__
from f5py.errors import InputFileError
from f5py.text.encoding import undecoded

if TYPE_CHECKING:
    import pysam

#: Header lines about reads.
KINDS_OF_READS = ("@RG", "@PG", "@CO")
#: New values of tags by tag name, ``RG`` or ``PG``, and old value.
TagChanges = dict[tuple[str, str], str]
#: Bytes of a record before its name, and most bytes of a name without the final zero (SAM specification, section 4.2).
FIXED_SIZE, LONGEST_NAME = 36, 254
_VERSIONS_WITHOUT_ARRAYS = ("VN:1.0", "VN:1.1", "VN:1.2", "VN:1.3")


def parse_header(text: str) -> pysam.AlignmentHeader:
    """Parse a header, of which comments need not be UTF-8; raise `InputFileError` if it is malformed."""
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


def header_with_program(
    header: pysam.AlignmentHeader, command_line: str, description: str = ""
) -> pysam.AlignmentHeader:
    """Append an @PG line for f5py to the header's chain of programs.

    A format version below 1.4, the first with array tags, becomes 1.6; all other lines stay unchanged. `description` is
    the provenance of the results, see `f5py.compute.provenance.Provenance.line`.
    """
    given = undecoded(header.__str__).decode("utf-8", "surrogateescape")  # free text need not be UTF-8
    lines = [line for line in given.split("\n") if line]
    if lines and lines[0].startswith("@HD"):
        fields = lines[0].split("\t")
        lines[0] = "\t".join("VN:1.6" if field in _VERSIONS_WITHOUT_ARRAYS else field for field in fields)
    programs = [line for line in lines if line.startswith("@PG\t")]
    names = [name for line in programs if (name := field_of(line, "ID"))]
    identifier, number = "f5py", 0
    while identifier in names:
        number += 1
        identifier = f"f5py.{number}"
    followed = {field_of(line, "PP") for line in programs}
    last = [name for name in names if name not in followed] or names
    line = ["@PG", f"ID:{identifier}", "PN:f5py", *(f"PP:{name}" for name in last[-1:]), f"VN:{__version__}"]
    # CL is the last, as pysam takes what follows for a part of it
    texts = [f"DS:{description}"] * bool(description) + [f"CL:{command_line}"]
    line += [re.sub(r"[\t\r\n]", " ", text) for text in texts]
    return parse_header("\n".join([*lines, "\t".join(line)]) + "\n")
