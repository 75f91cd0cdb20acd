"""Choose the alignments in tiles to report, and make hits of them.

Extensions run past the end of an overlap where the scores let random sequences score, so a score says little: an
alignment counts if it has enough columns, of which enough are equal. Of a read's alignments that share most of their
stretches on read and reference the one with the best score stays. Of the runs of two reads against each other, either
one the query, the one with the most equal columns is written.
"""

# mypy: disable-error-code="assignment,arg-type"
import numpy as np
from numpy.typing import NDArray

import f5py.mapping.darwin.extensions as column
import f5py.mapping.hit_table as field
from f5py.core.offsets import offsets_of
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.mapping._sorting_numba import SORT_SCRATCH
from f5py.mapping.batch import Hits
from f5py.mapping.darwin.darwin_settings import MIN_COLUMNS, MIN_PERCENT
from f5py.mapping.darwin.extensions import Extensions, Targets
from f5py.mapping.hit_table import ID, N_FIELDS, PARENT
from f5py.mapping.hits._hits_numba import select_secondaries, set_parents
from f5py.mapping.hits._mapping_quality_numba import judge_hits
from f5py.mapping.settings import Parameters

#: Alignments that share more than this part of the shorter one, on read and target, are the same.
_SAME_PERCENT = 50
#: PAF's mapping quality for none.
_NO_QUALITY = 255


def is_good(results: NDArray[np.int64], integers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the alignments that are long and equal enough."""
    columns, equal = results[:, column.COLUMNS], results[:, column.EQUAL]
    return (columns >= integers[MIN_COLUMNS]) & (100 * equal >= integers[MIN_PERCENT] * columns)


def best_of_pairs(table: NDArray[np.int64], results: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of the best run of each pair of reads, ordered by query and target.

    ``table[:, READ]`` counts the same reads as ``table[:, TARGET]``.
    """
    one = np.minimum(table[:, column.READ], table[:, column.TARGET])
    other = np.maximum(table[:, column.READ], table[:, column.TARGET])
    places = (table[:, at] for at in (column.OFFSET, column.PLACE, column.REVERSE, column.READ))
    order = np.lexsort((*places, -results[:, column.SCORE], -results[:, column.EQUAL], other, one))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (np.diff(one[order]) != 0) | (np.diff(other[order]) != 0)
    chosen = order[is_first]
    return chosen[np.lexsort((table[chosen, column.TARGET], table[chosen, column.READ]))]


def best_of_reads(extensions: Extensions, integers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of each read's alignments to report, read by read, the best first."""
    table, results = extensions.table, extensions.results
    good = np.flatnonzero(is_good(results, integers))
    keys = [table[good, at] for at in (column.OFFSET, column.PLACE, column.REVERSE, column.TARGET)]
    keys += [-results[good, column.EQUAL], -results[good, column.SCORE], table[good, column.READ]]
    order = good[np.lexsort(keys)]
    is_repeat = np.zeros(len(table), np.bool_)
    mark_repeats(order, table, results, is_repeat)
    return order[~is_repeat[order]]


def hits_of(extensions: Extensions, targets: Targets, parameters: Parameters | None) -> Hits:
    """Make hits from alignments with paths, in the order of the reads, the best of a read first.

    Parameters
    ----------
    parameters : Parameters or None
        Judge the hits of reads on a reference; None: overlaps, each for itself.
    """
    e = extensions
    begins_run = np.ones(len(e.ops), np.bool_)
    begins_run[1:] = e.ops[1:] != e.ops[:-1]
    begins_run[e.op_offsets[:-1][np.diff(e.op_offsets) > 0]] = True
    run_offsets = offsets_of(begins_run)[e.op_offsets]
    runs = np.empty(run_offsets[-1], np.int64)
    hits = np.empty((len(e.table), N_FIELDS), np.int64)
    make_hits(e.arrays, *targets, run_offsets, parameters is None, hits, runs)
    n_hits = np.bincount(e.table[:, column.READ], minlength=len(e.offsets) - 1).astype(np.int64)
    first = offsets_of(n_hits)
    if parameters is None:
        hits[:, ID] = hits[:, PARENT] = np.arange(len(hits)) - np.repeat(first[:-1], n_hits)
        return Hits(hits, first, runs)
    judge_reads(hits, first[:-1], n_hits, parameters.integers, parameters.floats)
    place = np.arange(len(hits)) - np.repeat(first[:-1], np.diff(first))
    return Hits(hits[place < np.repeat(n_hits, np.diff(first))], offsets_of(n_hits), runs)


@exact_inner
def _shares(a_begin, a_end, b_begin, b_end):
    """Return whether two stretches share more than half of the shorter one."""
    shared = min(a_end, b_end) - max(a_begin, b_begin)
    return 100 * shared > _SAME_PERCENT * min(a_end - a_begin, b_end - b_begin)


@exact_kernel
def mark_repeats(order, table, results, is_repeat):
    """Mark alignments that repeat a better one of the same read.

    Parameters
    ----------
    order : int64
        Rows of table and results, grouped by read, the best first.
    is_repeat : bool
        Filled.
    """
    first = 0
    for n in range(order.shape[0]):
        c = order[n]
        if table[order[first], column.READ] != table[c, column.READ]:
            first = n
        is_repeat[c] = False
        for m in range(first, n):
            o = order[m]
            if (
                not is_repeat[o]
                and table[o, column.TARGET] == table[c, column.TARGET]
                and table[o, column.REVERSE] == table[c, column.REVERSE]
                and _shares(results[o, column.TS], results[o, column.TE], results[c, column.TS], results[c, column.TE])
                and _shares(results[o, column.QS], results[o, column.QE], results[c, column.QS], results[c, column.QE])
            ):
                is_repeat[c] = True
                break


@exact_kernel
def make_hits(extensions, targets, target_offsets, run_offsets, is_overlap, hits, runs):
    """Fill hits and their CIGAR strings from alignments with paths.

    Parameters
    ----------
    run_offsets : int64, shape (n + 1,)
        Runs of equal columns of each alignment.
    is_overlap : bool
        Give no mapping qualities.
    runs : int64, shape (run_offsets[-1],)
        Filled: length << 4 | operation.
    """
    table, strands, offsets, results, ops, op_offsets = extensions
    for c in range(table.shape[0]):
        hit = hits[c]
        for f in range(field.N_FIELDS):
            hit[f] = 0
        length = offsets[table[c, column.READ] + 1] - offsets[table[c, column.READ]]
        hit[field.READ] = table[c, column.READ]
        hit[field.CONTIG] = table[c, column.TARGET]
        hit[field.REVERSE] = table[c, column.REVERSE]
        hit[field.RS] = results[c, column.TS]
        hit[field.RE] = results[c, column.TE]
        hit[field.QS] = length - results[c, column.QE] if table[c, column.REVERSE] else results[c, column.QS]
        hit[field.QE] = length - results[c, column.QS] if table[c, column.REVERSE] else results[c, column.QE]
        score = max(1, results[c, column.SCORE])
        hit[field.SCORE] = hit[field.SCORE0] = hit[field.DP_SCORE] = hit[field.DP_MAX] = score
        hit[field.COUNT] = results[c, column.EQUAL]
        hit[field.MLEN] = results[c, column.EQUAL]
        hit[field.ALIGNED] = 1
        hit[field.DIVERGENCE] = -1
        hit[field.OPS] = run_offsets[c]
        hit[field.N_OPS] = run_offsets[c + 1] - run_offsets[c]
        t = target_offsets[table[c, column.TARGET]] + results[c, column.TS]
        q = offsets[table[c, column.READ]] + results[c, column.QS]
        run = run_offsets[c] - 1
        unknown = 0
        for at in range(op_offsets[c], op_offsets[c + 1]):
            op = np.int64(ops[at])
            is_first = at == op_offsets[c] or ops[at] != ops[at - 1]
            if is_first:
                run += 1
                runs[run] = op
            runs[run] += 16
            is_unknown = False
            if op != 2:
                is_unknown = strands[table[c, column.REVERSE], q] > 3
                q += 1
            if op != 1:
                is_unknown = is_unknown or targets[t] > 3
                t += 1
            unknown += is_unknown
            hit[field.N_GAP] += op != 0
            hit[field.N_GAPOPEN] += op != 0 and is_first
        hit[field.N_AMBI] = unknown
        hit[field.BLEN] = results[c, column.COLUMNS] - unknown
        if is_overlap:
            hit[field.MAPQ] = _NO_QUALITY


@exact_kernel
def judge_reads(hits, first, n_hits, integers, floats):
    """Find secondary hits and mapping qualities; move the remaining hits of each read to its front.

    Parameters
    ----------
    hits : int64
        Those of a read from ``first[read]`` on, the best first.
    n_hits : int64
        Their numbers; changed to those of the remaining hits.
    """
    scratch = np.empty(SORT_SCRATCH, np.int64)
    for read in range(first.shape[0]):
        n = n_hits[read]
        own = hits[first[read] : first[read] + n]
        set_parents(own, n, integers, floats)
        n = select_secondaries(own, n, integers, floats, False)
        judge_hits(own, n, 0, integers, scratch)
        n_hits[read] = n
