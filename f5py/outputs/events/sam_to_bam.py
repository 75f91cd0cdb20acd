"""Conversion of SAM lines to a BAM file."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, BinaryIO

from f5py.errors import OutputFileError
from f5py.io.bam.record_layout import LONGEST_NAME

if TYPE_CHECKING:
    import pysam


class SamToBam(AbstractContextManager["SamToBam"]):
    """Text output that writes BAM; a context manager.

    Raises `OutputFileError` if the file cannot be written, or BAM cannot hold a record.

    Parameters
    ----------
    file : binary file
        Must have a file descriptor. It is not closed.
    path : str
        Its name, for messages.
    """

    def __init__(self, file: BinaryIO, path: str, header: pysam.AlignmentHeader, n_threads: int) -> None:
        import pysam

        self._path = path
        self._header = header
        self._parse = pysam.AlignedSegment.fromstring
        self._bam = pysam.AlignmentFile(file, "wb", header=header, threads=n_threads)

    def write(self, text: bytes) -> None:
        """Append records: whole lines of SAM."""
        try:
            for line in bytes(text).split(b"\n")[:-1]:
                self._bam.write(self._record(line))
        except OSError:  # which does not tell why
            raise OutputFileError(f"{self._path}: cannot write; is the disk full?") from None

    def _record(self, line: bytes) -> pysam.AlignedSegment:
        try:
            return self._parse(line, self._header)
        except ValueError:  # which does not tell why
            name = line.replace(b"\0", b"\t").partition(b"\t")[0]  # the parser leaves zeros between fields
            why = "is not valid; leave the read out of the input"
            if len(name) > LONGEST_NAME:
                why = (
                    f"has a name of {len(name)} bytes, but {LONGEST_NAME} are allowed; "
                    "--sam-out-version 2 keeps the read's own name"
                )
            raise OutputFileError(
                f"{self._path}: the record of {name.decode('utf-8', 'backslashreplace')} {why}"
            ) from None

    def flush(self) -> None:
        """Do nothing: the file appears when complete."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self._bam.close()
        except OSError:
            if kind is None:
                raise OutputFileError(f"{self._path}: cannot write; is the disk full?") from None
