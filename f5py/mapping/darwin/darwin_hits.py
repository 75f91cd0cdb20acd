"""Choice of the alignments in tiles that are reported, and as what.

Extensions run on past the end of an overlap where the scores let random sequences score, and then a score says little:
an alignment counts if it has enough columns, of which enough are equal. Of a read's alignments that share most of their
stretches on read and reference one stays, that with the best score. Of the runs of two reads against each other, from
either of them, the one with the most equal columns is written.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.mapping.batch import Hits
from f5py.mapping.darwin.darwin_settings import MIN_COLUMNS, MIN_PERCENT
from f5py.mapping.darwin.extensions import (
    COLUMNS,
    EQUAL,
    OFFSET,
    PLACE,
    READ,
    REVERSE,
    SCORE,
    TARGET,
    Extensions,
    Targets,
)
from f5py.mapping.hit_table import ID, N_FIELDS, PARENT
from f5py.mapping.settings import Parameters


def is_good(results: NDArray[np.int64], integers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the alignments that are long and equal enough."""
    columns, equal = results[:, COLUMNS], results[:, EQUAL]
    return (columns >= integers[MIN_COLUMNS]) & (100 * equal >= integers[MIN_PERCENT] * columns)


def best_of_pairs(table: NDArray[np.int64], results: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the best run of every two reads, whichever of them was the query; in the order of queries and targets.

    Parameters
    ----------
    table : int64, shape (n, N_CANDIDATE)
        READ counts the same reads as TARGET.
    results : int64, shape (n, N_RESULT)
    """
    one = np.minimum(table[:, READ], table[:, TARGET])
    other = np.maximum(table[:, READ], table[:, TARGET])
    places = (table[:, at] for at in (OFFSET, PLACE, REVERSE, READ))
    order = np.lexsort((*places, -results[:, SCORE], -results[:, EQUAL], other, one))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (np.diff(one[order]) != 0) | (np.diff(other[order]) != 0)
    chosen = order[is_first]
    return chosen[np.lexsort((table[chosen, TARGET], table[chosen, READ]))]


def best_of_reads(extensions: Extensions, integers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of each read's alignments that are reported, read by read, the best first."""
    from f5py.mapping.darwin._darwin_hits_numba import mark_repeats

    table, results = extensions.table, extensions.results
    good = np.flatnonzero(is_good(results, integers))
    keys = [table[good, at] for at in (OFFSET, PLACE, REVERSE, TARGET)]
    order = good[np.lexsort((*keys, -results[good, EQUAL], -results[good, SCORE], table[good, READ]))]
    is_repeat = np.zeros(len(table), np.bool_)
    mark_repeats(order, table, results, is_repeat)
    return order[~is_repeat[order]]


def hits_of(extensions: Extensions, targets: Targets, parameters: Parameters | None) -> Hits:
    """Make hits of alignments with paths, which are in the order of the reads, and the best of a read first.

    Parameters
    ----------
    parameters : Parameters or None
        Judge the hits of reads on a reference; else all are overlaps, each for itself.
    """
    from f5py.mapping.darwin._darwin_hits_numba import count_runs, judge_reads, make_hits

    e = extensions
    n_runs = np.empty(len(e.table), np.int64)
    count_runs(e.ops, e.op_offsets, n_runs)
    run_offsets = offsets_of(n_runs)
    runs = np.empty(run_offsets[-1], np.int64)
    hits = np.empty((len(e.table), N_FIELDS), np.int64)
    make_hits(e.arrays, *targets, run_offsets, parameters is None, hits, runs)
    n_hits = np.bincount(e.table[:, READ], minlength=len(e.offsets) - 1).astype(np.int64)
    first = offsets_of(n_hits)
    if parameters is None:
        hits[:, ID] = hits[:, PARENT] = np.arange(len(hits)) - np.repeat(first[:-1], n_hits)
        return Hits(hits, first, runs)
    judge_reads(hits, first[:-1], n_hits, parameters.integers, parameters.floats)
    place = np.arange(len(hits)) - np.repeat(first[:-1], np.diff(first))
    return Hits(hits[place < np.repeat(n_hits, np.diff(first))], offsets_of(n_hits), runs)
