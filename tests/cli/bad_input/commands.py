"""The commands that go from signals to a table, as the protocol of bad input sees them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pysam

from ...made_data import ReadSet, last_of_each, process_of, repeated


@dataclass(frozen=True)
class SignalCommand:
    """A command, and how it is run.

    Attributes
    ----------
    name : str
        The subcommand.
    column : int
        Where a row has its read's name.
    is_mapped : bool
        Whether it takes alignments and a reference.
    options : tuple of str
        So that rows have the names of reads.
    has_rna : bool
        Whether it takes RNA.
    """

    name: str
    column: int
    is_mapped: bool = True
    options: tuple[str, ...] = ()
    has_rna: bool = True

    def arguments(self, reads: ReadSet, *options: object) -> list[object]:
        """Write the command line of a run over these reads; these options replace the usual ones."""
        inputs = reads.options() if self.is_mapped else [reads.reads, reads.signal_path, "-t", 2, "--iop", 1]
        return [self.name, *last_of_each([*inputs, *self.options, *options])]

    def process(self, reads: ReadSet, *options: object) -> list[str]:
        return process_of(*self.arguments(reads, *options))

    def many(self, reads: ReadSet, folder: Path, times: int) -> ReadSet:
        """Repeat the reads that many times, one after the other."""
        if self.is_mapped:
            return reads.with_records(folder, repeated(reads.records()[1], times), index=False)
        return reads.with_text_of_reads(folder / "many.fasta", reads.reads.read_text() * times)

    def by_read(self, table: bytes) -> dict[str, list[bytes]]:
        """Collect the rows of each read, in order; checks that every line is whole."""
        assert table.endswith(b"\n")
        header, *rows = table.splitlines()
        found: dict[str, list[bytes]] = {}
        for row in rows:
            assert row.count(b"\t") == header.count(b"\t")
            found.setdefault(row.split(b"\t")[self.column].decode(), []).append(row)
        return found

    def order(self, reads: ReadSet) -> list[str]:
        if self.is_mapped:
            return reads.names
        with pysam.FastxFile(str(reads.reads)) as file:
            return [read.name or "" for read in file]


COMMANDS = (
    SignalCommand("call-methylation", 4, has_rna=False),
    SignalCommand("eventalign", 3, options=("--print-read-names",)),
    SignalCommand("resquiggle", 0, is_mapped=False),
)
CALL_METHYLATION, EVENTALIGN, RESQUIGGLE = COMMANDS
MAPPED = tuple(command for command in COMMANDS if command.is_mapped)


def without_header(table: bytes) -> bytes:
    return table[table.index(b"\n") + 1 :]
