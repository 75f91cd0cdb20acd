"""The list of the reads without a result, with the cause of each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np

from f5py.compute.diagnosis import CAUSES, FATES, cause_text
from f5py.core.batch import ReadBatch, ReadStatus
from f5py.errors import blamed_on
from f5py.io.files.output import open_output
from f5py.options.shared import AlignmentOptions
from f5py.text.encoding import encoded

_HEADER = b"read_name\tfate\tcause\tdetails\n"


def listing_failed_reads(
    options: AlignmentOptions, write: Callable[[ReadBatch], None], outputs: ExitStack
) -> Callable[[ReadBatch], None]:
    """A function that lists a batch's failed reads in ``--failed-reads`` and then calls `write`.

    Parameters
    ----------
    options : AlignmentOptions
    write : callable of one batch
        Returned as it is if no list is wanted.
    outputs : ExitStack
        Closes the file.

    Raises
    ------
    OutputFileError
        The file cannot be written.
    """
    if options.failed_reads is None:
        return write
    path = options.failed_reads
    out = outputs.enter_context(open_output(path))
    out.write(_HEADER)

    def write_both(batch: ReadBatch) -> None:
        failed = np.flatnonzero(batch.status != ReadStatus.OK).tolist()
        lines = [
            f"{batch.names[read]}\t{FATES[ReadStatus(int(batch.status[read]))]}\t{CAUSES[batch.cause[read]]}\t"
            f"{cause_text(batch, read, options)}\n"
            for read in failed
        ]
        with blamed_on(path):
            out.write(encoded("".join(lines)))
            out.flush()
        write(batch)

    return write_both
