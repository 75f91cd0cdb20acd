"""Names and lengths of chromosomes: tables of two columns, as genome browsers use them, or a FASTA's index."""

from __future__ import annotations

from f5py.errors import InputFileError
from f5py.io.bytes.byte_input import open_bytes


def read_chromosome_lengths(path: str) -> dict[bytes, int]:
    """Read a table whose first two columns are names and lengths, such as ``.fai`` or ``chrom.sizes``.

    Raises
    ------
    InputFileError
        The file cannot be read, or a line has no name and length.
    """
    lengths: dict[bytes, int] = {}
    with open_bytes(path) as file:
        for number, line in enumerate(file, 1):
            fields = line.split()
            if not fields:
                continue
            if len(fields) < 2 or not fields[1].isdigit():
                raise InputFileError(f"{path}, line {number}: has no name and length, separated by a tab")
            lengths[fields[0]] = int(fields[1])
    return lengths
