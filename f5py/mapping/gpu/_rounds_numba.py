"""Jitted loops around the alignments that a GPU makes; see `f5py.mapping.gpu.pair_alignments`."""

import numpy as np

from f5py.jit.kernel import exact_kernel

#: Of a warp.
LANES = 32
_N_BUCKETS = 256
#: Numbers of a task and of its result, and of what is told of where its bases are; see map_align.cu.
N_TASK, N_SOURCE = 8, 4
_OPS_PLACE = 6


@exact_kernel
def choose_whole(keys, most_bases, cells_room, fewest_cells, whole, others):
    """Choose the stretches that a warp aligns as a whole, those with most cells first, about.

    Parameters
    ----------
    keys : int64, shape (n, N_KEYS)
        See `f5py.mapping.align._pair_alignment_numba.Made`.
    most_bases, cells_room : int
        Longest stretches, and bytes of all cells of one.
    fewest_cells : int
        Stretches with fewer are not chosen at all, nor empty ones.
    whole, others : int64, shape (n,)
        Filled with rows: the others are in their order.

    Returns
    -------
    n_whole, n_others : int
    """
    of_bucket = cells_room // _N_BUCKETS + 1
    ends = np.zeros(_N_BUCKETS, np.int64)
    n_others = 0
    for step in range(2):
        for row in range(keys.shape[0]):
            n = keys[row, 1]
            m = keys[row, 3]
            cells = (n + LANES - 1) // LANES * LANES * (m + LANES)
            if min(n, m) <= 0 or cells < fewest_cells:
                continue
            if cells <= cells_room and max(n, m) <= min(keys[row, 5], most_bases):
                bucket = (cells_room - cells) // of_bucket
                if step == 1:
                    whole[ends[bucket]] = row
                ends[bucket] += 1
            elif step == 0:
                others[n_others] = row
                n_others += 1
        if step == 0:
            total = 0
            for bucket in range(_N_BUCKETS):
                count = ends[bucket]
                ends[bucket] = total
                total += count
    return total, n_others


@exact_kernel
def fill_tasks(keys, rows, read_of, offsets, room_of_ops, tasks, sources):
    """Fill what the kernels are told of stretches whose bases stand one after another.

    Parameters
    ----------
    keys, rows
        The stretches, and which of them.
    read_of : int64
        The read of each stretch.
    offsets : int64, shape (n_reads + 1,)
        Of the reads' bases.
    room_of_ops : tuple of int
        Bases for which there is room for an operation, and more operations of each stretch.
    tasks : int32, shape (>= N_TASK * len(rows),)
    sources : int64, shape (>= N_SOURCE * len(rows),)

    Returns
    -------
    n_bases, n_ops : int
        What all take.
    """
    n_bases = 0
    n_ops = 0
    for i in range(rows.shape[0]):
        row = rows[i]
        n = keys[row, 1]
        m = keys[row, 3]
        room = (n + m) // room_of_ops[0] + room_of_ops[1]
        task = tasks[N_TASK * i : N_TASK * (i + 1)]
        task[0] = n_bases
        task[1] = n
        task[2] = n_bases + n
        task[3] = m
        task[4] = keys[row, 4]
        task[5] = keys[row, 6]
        task[_OPS_PLACE] = n_ops
        task[7] = room
        read = read_of[row]
        source = sources[N_SOURCE * i : N_SOURCE * (i + 1)]
        source[0] = keys[row, 0]
        source[1] = offsets[read]
        source[2] = offsets[read + 1] - offsets[read]
        source[3] = keys[row, 2]
        n_bases += n + m
        n_ops += room
    return n_bases, n_ops


@exact_kernel
def take_results(rows, tasks, found, first_op, results):
    """Fill the results of stretches.

    Parameters
    ----------
    rows, tasks
        See `fill_tasks`.
    found : int32, shape (>= N_TASK * len(rows),)
        What the kernels have found; see map_align.cu.
    first_op : int
        Operations of earlier rounds.
    results : int64, shape (n, 7)
        See `f5py.mapping.align._pair_alignment_numba.Made`.
    """
    for i in range(rows.shape[0]):
        result = results[rows[i]]
        for k in range(_OPS_PLACE):
            result[k] = found[N_TASK * i + k]
        result[_OPS_PLACE] = tasks[N_TASK * i + _OPS_PLACE] + first_op
