"""Overlaps of reads among themselves, by D-SOFT and GACT."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing

import numpy as np
from numpy.typing import NDArray

from f5py.compute.darwin import DarwinMapper, Pairs, rows_of_reads
from f5py.core.mapping_batch import MappingBatch
from f5py.core.names import Names
from f5py.errors import UsageError
from f5py.io.files.complete_file import complete_text_output
from f5py.mapping.darwin.extensions import READ, TARGET
from f5py.messages.progress import progress
from f5py.options.map_commands import MapOptions
from f5py.outputs.mapped_records import RecordStyle, paf_lines_of
from f5py.threads.ordered import OrderedWork

#: Batches that are worked on at the same time.
_N_IN_FLIGHT = 2


def is_overlaps(options: MapOptions) -> bool:
    """Return whether the reads are the reference.

    Raises
    ------
    UsageError
        They are, and the output is not PAF.
    """
    reads = options.reads
    found = options.is_darwin and len(reads) == 1 and reads[0] != "-" and os.path.samefile(options.reference, reads[0])
    if found and not options.is_paf:
        raise UsageError(
            f"-x {options.preset}: overlaps of reads are written as PAF; give --paf, or -o with a name that ends in "
            ".paf"
        )
    return found


def find_overlaps(options: MapOptions, mapper: DarwinMapper) -> tuple[int, int, int, int]:
    """Write the overlaps of all reads, each pair once.

    All reads are run against all others first, since the better one of a pair's two runs is written. That keeps their
    places only; the paths of those that are written are then made again.

    Parameters
    ----------
    mapper : DarwinMapper
        Of which the reads are the targets.

    Returns
    -------
    reads, bases, overlapping, overlaps : int
        Numbers of reads and their bases, of reads with an overlap, and of overlaps.
    """
    index, pool = mapper.index, mapper.pool
    n_reads, n_bases = len(index.names), len(index.bases)
    stretches = list(_stretches(index.offsets, options.bases_of_batch))
    pairs = Pairs()
    names = Names.of(index.names)
    style = RecordStyle(md=options.md, cs=options.cs, eqx=options.eqx, chains=False)
    n_lines = 0
    with ExitStack() as outputs:
        write = outputs.enter_context(complete_text_output(options.output, options.threads)).write
        bar = outputs.enter_context(progress("bases", n_bases))

        def run(number: int, first: int, end: int) -> tuple[int, tuple[NDArray[np.int64], NDArray[np.int64]]]:
            size = int(index.offsets[end] - index.offsets[first])
            return size, mapper.run_of_pairs(first, end, number, int(index.offsets[end]) / max(n_bases, 1))

        def take(result: tuple[int, tuple[NDArray[np.int64], NDArray[np.int64]]]) -> None:
            pairs.add(*result[1])
            bar.advance(result[0])

        work = OrderedWork(_N_IN_FLIGHT, run, take, "f5py-overlaps", _N_IN_FLIGHT)
        with closing(work):
            for number, (first, end) in enumerate(stretches):
                work.add(number, first, end)
            work.finish()
        table, results = pairs.best()

        def lines(number: int, first: int, end: int) -> tuple[NDArray[np.uint8], int]:
            rows = rows_of_reads(table, first, end)
            mine = table[rows].copy()
            mine[:, READ] -= first
            batch = _batch(mapper, first, end, number)
            mapper.write_pairs(batch, mine, results[rows])
            return paf_lines_of(batch, index, names, style, pool)

        def put(made: tuple[NDArray[np.uint8], int]) -> None:
            nonlocal n_lines
            n_lines += made[1]
            write(made[0].data)

        written = OrderedWork(_N_IN_FLIGHT, lines, put, "f5py-overlaps", _N_IN_FLIGHT)
        with closing(written):
            for number, (first, end) in enumerate(stretches):
                written.add(len(stretches) + number, first, end)
            written.finish()
    return n_reads, n_bases, len(np.unique(table[:, [READ, TARGET]])), n_lines


def _stretches(offsets: NDArray[np.int64], batch_bases: int) -> Iterator[tuple[int, int]]:
    """Divide reads into batches."""
    first, n = 0, len(offsets) - 1
    while first < n:
        end = int(np.searchsorted(offsets, offsets[first] + batch_bases))
        end = min(max(end, first + 1), n)
        yield first, end
        first = end


def _batch(mapper: DarwinMapper, first: int, end: int, number: int) -> MappingBatch:
    """Make a batch of targets."""
    index = mapper.index
    offsets = index.offsets[first : end + 1]
    codes = index.bases[offsets[0] : offsets[-1]]
    nothing = np.empty(0, np.uint8)
    return MappingBatch(
        Names.of(index.names[first:end]), nothing, offsets - offsets[0], nothing, nothing,
        np.zeros(end - first + 1, np.int64), number, 1.0, codes,
    )  # fmt: skip
