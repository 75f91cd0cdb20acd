"""Check of indexed reads for signals that can be read: ``f5py fast5-check``."""

from contextlib import ExitStack

import numpy as np

from f5py.errors import SignalError
from f5py.io.files.table_output import open_table
from f5py.io.output_checks import check_outputs
from f5py.io.reads.read_index import ReadIndex
from f5py.io.signals import open_signals
from f5py.messages import console
from f5py.messages.progress import progress
from f5py.options.signal_commands import CheckOptions
from f5py.text.encoding import encoded

_WHO = "fast5_check"
_READS_AT_ONCE = 512
_HEADER = b"read_name\tsignal_file\tsamples\tproblem\n"


def run(options: CheckOptions) -> tuple[int, int]:
    """Read the signal of every read of an index; return the numbers of reads and of usable signals.

    Raises `SignalError` if no signal is usable, after the table was written.
    """
    check_outputs(options)
    n_usable = 0
    with ExitStack() as files:
        reads = files.enter_context(ReadIndex.open(options.reads))
        signals = open_signals(
            options.reads, **options.signal_paths, n_processes=options.iop, n_threads=options.threads
        )
        files.callback(signals.close)
        out = files.enter_context(open_table(options.output))
        out.write(_HEADER)
        names = reads.first_names(len(reads))
        with progress("reads", len(names)) as bar:
            for first in range(0, len(names), _READS_AT_ONCE):
                batch = names[first : first + _READS_AT_ONCE]
                block = signals.fetch(batch)
                sizes = np.diff(block.offsets).tolist()
                lines = [
                    f"{name}\t{signals.place(name)}\t{size}\t{block.problems.get(i, '')}\n"
                    for i, (name, size) in enumerate(zip(batch, sizes, strict=True))
                ]
                out.write(encoded("".join(lines)))
                n_usable += len(batch) - len(block.problems)
                bar.advance(len(batch))
    console.note(_WHO, f"{len(names)} reads, {n_usable} with a usable signal")
    if names and not n_usable:
        raise SignalError(f"none of the {len(names)} reads in {options.reads} has a usable signal; index them again")
    return len(names), n_usable
