"""Jitted loops that choose among a read's alignments in tiles and make hits of them; see `darwin_hits`."""

# mypy: disable-error-code="assignment,arg-type"
import numpy as np

import f5py.mapping.hit_table as field
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.mapping._sorting_numba import SORT_SCRATCH
from f5py.mapping.darwin.extensions import COLUMNS, EQUAL, QE, QS, READ, REVERSE, SCORE, TARGET, TE, TS
from f5py.mapping.hits._hits_numba import select_secondaries, set_parents
from f5py.mapping.hits._mapping_quality_numba import judge_hits

#: Two alignments are the same one if they share more than this part of the shorter one, on read and target.
_SAME_PERCENT = 50
#: PAF's mapping quality for none.
_NO_QUALITY = 255


@exact_inner
def _shares(a_begin, a_end, b_begin, b_end):
    """Return whether two stretches share more than half of the shorter one."""
    shared = min(a_end, b_end) - max(a_begin, b_begin)
    return 100 * shared > _SAME_PERCENT * min(a_end - a_begin, b_end - b_begin)


@exact_kernel
def mark_repeats(order, table, results, is_repeat):
    """Mark alignments that a better one of the same read has found as well.

    Parameters
    ----------
    order : int64
        Rows, those of a read together, the best first.
    table, results : int64
        `f5py.mapping.darwin.extensions`.
    is_repeat : bool
        Filled.
    """
    first = 0
    for n in range(order.shape[0]):
        c = order[n]
        if table[order[first], READ] != table[c, READ]:
            first = n
        is_repeat[c] = False
        for m in range(first, n):
            o = order[m]
            if (
                not is_repeat[o]
                and table[o, TARGET] == table[c, TARGET]
                and table[o, REVERSE] == table[c, REVERSE]
                and _shares(results[o, TS], results[o, TE], results[c, TS], results[c, TE])
                and _shares(results[o, QS], results[o, QE], results[c, QS], results[c, QE])
            ):
                is_repeat[c] = True
                break


@exact_kernel
def count_runs(ops, op_offsets, n_runs):
    """Fill the numbers of operations that paths have as CIGAR strings.

    Parameters
    ----------
    ops : uint8, shape (op_offsets[-1],)
        Columns of all paths.
    op_offsets : int64, shape (n + 1,)
    n_runs : int64, shape (n,)
        Filled.
    """
    for c in range(op_offsets.shape[0] - 1):
        n = 0
        for at in range(op_offsets[c], op_offsets[c + 1]):
            n += at == op_offsets[c] or ops[at] != ops[at - 1]
        n_runs[c] = n


@exact_kernel
def make_hits(extensions, targets, target_offsets, run_offsets, is_overlap, hits, runs):
    """Fill hits and their CIGAR strings from alignments with paths.

    Parameters
    ----------
    extensions, targets, target_offsets
        As of `f5py.mapping.darwin._gact_numba.extend_candidates`.
    run_offsets : int64, shape (n + 1,)
        Runs of equal columns of each alignment.
    is_overlap : bool
        Give no mapping qualities.
    hits : int64, shape (n, N_FIELDS)
        Filled.
    runs : int64, shape (run_offsets[-1],)
        Filled: length << 4 | operation.
    """
    table, strands, offsets, results, ops, op_offsets = extensions
    for c in range(table.shape[0]):
        hit = hits[c]
        for f in range(field.N_FIELDS):
            hit[f] = 0
        length = offsets[table[c, READ] + 1] - offsets[table[c, READ]]
        hit[field.READ] = table[c, READ]
        hit[field.CONTIG] = table[c, TARGET]
        hit[field.REVERSE] = table[c, REVERSE]
        hit[field.RS] = results[c, TS]
        hit[field.RE] = results[c, TE]
        hit[field.QS] = length - results[c, QE] if table[c, REVERSE] else results[c, QS]
        hit[field.QE] = length - results[c, QS] if table[c, REVERSE] else results[c, QE]
        hit[field.SCORE] = hit[field.SCORE0] = hit[field.DP_SCORE] = hit[field.DP_MAX] = max(1, results[c, SCORE])
        hit[field.COUNT] = results[c, EQUAL]
        hit[field.MLEN] = results[c, EQUAL]
        hit[field.ALIGNED] = 1
        hit[field.DIVERGENCE] = -1
        hit[field.OPS] = run_offsets[c]
        hit[field.N_OPS] = run_offsets[c + 1] - run_offsets[c]
        t = target_offsets[table[c, TARGET]] + results[c, TS]
        q = offsets[table[c, READ]] + results[c, QS]
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
                is_unknown = strands[table[c, REVERSE], q] > 3
                q += 1
            if op != 1:
                is_unknown = is_unknown or targets[t] > 3
                t += 1
            unknown += is_unknown
            hit[field.N_GAP] += op != 0
            hit[field.N_GAPOPEN] += op != 0 and is_first
        hit[field.N_AMBI] = unknown
        hit[field.BLEN] = results[c, COLUMNS] - unknown
        if is_overlap:
            hit[field.MAPQ] = _NO_QUALITY


@exact_kernel
def judge_reads(hits, first, n_hits, integers, floats):
    """Say which hits are secondary and how good the others are, read by read; move those that are kept to its front.

    Parameters
    ----------
    hits : int64
        Those of a read from ``first[read]`` on, the best first.
    first : int64
    n_hits : int64
        Their numbers; filled with those that are kept.
    integers, floats
        `f5py.mapping.settings.Parameters`.
    """
    scratch = np.empty(SORT_SCRATCH, np.int64)
    for read in range(first.shape[0]):
        n = n_hits[read]
        own = hits[first[read] : first[read] + n]
        set_parents(own, n, integers, floats)
        n = select_secondaries(own, n, integers, floats, False)
        judge_hits(own, n, 0, integers, scratch)
        n_hits[read] = n
