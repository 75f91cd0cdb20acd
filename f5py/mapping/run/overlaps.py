"""Overlaps of reads among themselves, by D-SOFT and GACT."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.errors import UsageError
from f5py.io.files.complete_file import complete_text_output
from f5py.io.files.output import Outputs
from f5py.mapping.batch import MappingBatch
from f5py.mapping.darwin.darwin_hits import best_of_pairs
from f5py.mapping.darwin.extensions import N_CANDIDATE, N_RESULT, READ, TARGET
from f5py.mapping.options import MapOptions
from f5py.mapping.output.records import RecordStyle, paf_lines_of
from f5py.mapping.run.darwin_mapper import DarwinMapper
from f5py.messages.progress import progress
from f5py.threads.pipeline import run_pipeline

#: Batches that are worked on at the same time.
_N_LANES = 2


def is_overlaps(options: MapOptions) -> bool:
    """Return whether the reads are the reference. Raises `UsageError` if so, and the output is not PAF."""
    reads = options.reads
    found = options.is_darwin and len(reads) == 1 and reads[0] != "-" and os.path.samefile(options.reference, reads[0])
    if found and not options.is_paf:
        raise UsageError(
            f"-x {options.preset}: overlaps of reads are written as PAF; give --paf, or -o with a name that ends in "
            ".paf"
        )
    return found


def find_overlaps(options: MapOptions, mapper: DarwinMapper) -> tuple[int, int, int, int]:
    """Write the overlaps of all pairs of reads; return the numbers of reads, bases, pairs and lines.

    All reads are run against all others first, since only the better run of a pair is written. Those runs keep
    positions only; the paths of the written ones are computed again.
    """
    index, pool = mapper.index, mapper.pool
    n_reads, n_bases = len(index.names), index.n_bases
    tables, all_results = [np.empty((0, N_CANDIDATE), np.int64)], [np.empty((0, N_RESULT), np.int64)]
    names = Names.of(index.names)
    style = RecordStyle(
        md=options.md, cs=options.differences, eqx=options.eqx, unmapped=options.paf_no_hit, chains=False
    )
    n_lines = 0
    with Outputs() as outputs:
        write = outputs.enter_context(complete_text_output(options.output, options.threads)).write
        bar = outputs.enter_context(progress("bases", n_bases))

        def run(stretch: _Stretch) -> None:
            share = int(index.offsets[stretch.end]) / max(n_bases, 1)
            stretch.made = mapper.run_of_pairs(_batch(mapper, stretch, share), stretch.first)

        def take(stretch: _Stretch) -> None:
            table, results = stretch.made
            stretch.made = None
            tables.append(table)
            all_results.append(results)
            bar.advance(int(index.offsets[stretch.end] - index.offsets[stretch.first]))

        stretches = _stretches(index.offsets, options.bases_of_batch)
        run_pipeline(stretches, run, take, stop=pool.stop, n_lanes=_N_LANES)
        table, results = np.concatenate(tables), np.concatenate(all_results)
        chosen = best_of_pairs(table, results)
        table, results = table[chosen], results[chosen]

        def make_lines(stretch: _Stretch) -> None:
            rows = slice(*np.searchsorted(table[:, READ], [stretch.first, stretch.end]).tolist())
            mine = table[rows].copy()
            mine[:, READ] -= stretch.first
            batch = _batch(mapper, stretch, 1.0)
            mapper.write_pairs(batch, mine, results[rows])
            stretch.made = paf_lines_of(batch, index, names, style, pool)

        def put(stretch: _Stretch) -> None:
            nonlocal n_lines
            lines, n = stretch.made
            stretch.made = None
            n_lines += n
            write(lines.data)

        for stretch in stretches:
            stretch.number += len(stretches)
        run_pipeline(stretches, make_lines, put, stop=pool.stop, n_lanes=_N_LANES)
    return n_reads, n_bases, len(np.unique(table[:, [READ, TARGET]])), n_lines


@dataclass
class _Stretch:
    """Reads `first` to `end` - 1 in progress."""

    number: int
    first: int
    end: int
    made: Any = None  # of the current stage


def _stretches(offsets: NDArray[np.int64], batch_bases: int) -> list[_Stretch]:
    """Divide reads into batches."""
    stretches: list[_Stretch] = []
    first, n = 0, len(offsets) - 1
    while first < n:
        end = min(max(int(np.searchsorted(offsets, offsets[first] + batch_bases)), first + 1), n)
        stretches.append(_Stretch(len(stretches), first, end))
        first = end
    return stretches


def _batch(mapper: DarwinMapper, stretch: _Stretch, share: float) -> MappingBatch:
    """Make a batch of targets; up to its end there is this share of the bases."""
    index, first, end = mapper.index, stretch.first, stretch.end
    offsets = index.offsets[first : end + 1]
    codes = mapper.targets.bases[offsets[0] : offsets[-1]]
    nothing = np.empty(0, np.uint8)
    return MappingBatch(
        Names.of(index.names[first:end]), nothing, offsets - offsets[0], nothing, nothing,
        np.zeros(end - first + 1, np.int64), stretch.number, share, codes,
    )  # fmt: skip
