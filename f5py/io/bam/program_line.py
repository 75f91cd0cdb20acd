"""@PG line of alignment outputs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from f5py import __version__
from f5py.io.bam.headers import parse_header
from f5py.text.encoding import undecoded

if TYPE_CHECKING:
    import pysam

_VERSIONS_WITHOUT_ARRAYS = ("VN:1.0", "VN:1.1", "VN:1.2", "VN:1.3")


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
    programs = [
        dict(field.split(":", 1) for field in line.split("\t")[1:] if ":" in field)
        for line in lines
        if line.startswith("@PG\t")
    ]
    names = [program["ID"] for program in programs if "ID" in program]
    identifier, number = "f5py", 0
    while identifier in names:
        number += 1
        identifier = f"f5py.{number}"
    followed = {program.get("PP") for program in programs}
    last = [name for name in names if name not in followed] or names
    line = ["@PG", f"ID:{identifier}", "PN:f5py"]
    if last:
        line.append(f"PP:{last[-1]}")
    line.append(f"VN:{__version__}")
    if description:
        line.append(f"DS:{_in_a_field(description)}")
    line.append(f"CL:{_in_a_field(command_line)}")  # the last, as pysam takes what follows for a part of it
    text = "\n".join([*lines, "\t".join(line)]) + "\n"
    return parse_header(text)


def _in_a_field(text: str) -> str:
    return re.sub(r"[\t\r\n]", " ", text)
