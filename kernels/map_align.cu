// Base alignment of stretches of reads and reference: f5py/mapping/align/base_alignment.py, for those that no band cuts.
// One warp per alignment, several per block; a warp takes every n_slots-th of a list and has memory of its own for one.
//
// A lane owns a row, a base of the target. The warp goes through the target in strips of 32 rows, and through the columns
// of a strip, each lane one column behind the lane before it: all are on one anti-diagonal, and what a cell needs of the
// row above arrives by shuffle. What the last row of a strip leaves for the next one lies in the slot's memory, and so
// does a byte of each cell: where its score comes from, and which gaps go on. One lane follows them back. Scores are
// whole numbers; f5py/mapping/align/_alignment_numba.py has their differences in bytes, which is the same.

#include "alignment.cuh"

#define WARPS 4  // of a block
#define THREADS (WARPS * LANES)
#define IMPOSSIBLE (-(1 << 28))

// A score and the order of its cell as one number: the larger score, and of equal ones the lower order, is larger.
__device__ __forceinline__ int64 ranked(int score, unsigned order) { return (int64)score * (1ll << 32) + (~order); }

// Fill the cells of an alignment; return the score at the corner. `best` gets the best cell of each anti-diagonal.
template <bool IS_EXACT>
__device__ __forceinline__ int fill(
    const unsigned char* target, int n, const unsigned char* query, int m, const Scores& scores, int tie,
    unsigned char* cells, int* left_behind, int64* best) {
    const int lane = threadIdx.x % LANES;
    int* row_h = left_behind;
    int* row_d1 = row_h + m;
    int* row_d2 = row_d1 + m;
    int corner = LOWEST;
    if (IS_EXACT) {
        for (int d = lane; d < n + m - 1; d += LANES) best[d] = ranked(LOWEST, ~0u);
        __syncwarp(FULL);
    }
    for (int strip = 0; strip < n; strip += LANES) {
        const int i = strip + lane;
        const int base = i < n ? target[i] : 4;
        int h = -border(i + 1, scores), i1 = IMPOSSIBLE, i2 = IMPOSSIBLE, d1 = IMPOSSIBLE, d2 = IMPOSSIBLE;
        int diagonal = -border(i, scores);
        for (int t = 0; t < m + LANES - 1; ++t) {
            const int j = t - lane;
            const bool is_cell = i < n && j >= 0 && j < m;
            int above = __shfl_up_sync(FULL, h, 1);
            int above_d1 = __shfl_up_sync(FULL, d1, 1), above_d2 = __shfl_up_sync(FULL, d2, 1);
            if (lane == 0 && is_cell) {
                above = strip == 0 ? -border(j + 1, scores) : row_h[j];
                above_d1 = strip == 0 ? IMPOSSIBLE : row_d1[j];
                above_d2 = strip == 0 ? IMPOSSIBLE : row_d2[j];
            }
            if (is_cell) {
                const int other = query[j];
                d1 = max(above - scores.q, above_d1) - scores.e;
                i1 = max(h - scores.q, i1) - scores.e;
                d2 = max(above - scores.q2, above_d2) - scores.e2;
                i2 = max(h - scores.q2, i2) - scores.e2;
                h = diagonal + score_of(base, other, scores);
                unsigned cell = take_best(h, d1, i1, d2, i2, tie);
                if (d1 + scores.q + tie > h) cell |= GOES_ON;
                if (i1 + scores.q + tie > h) cell |= GOES_ON << 1;
                if (d2 + scores.q2 + tie > h) cell |= GOES_ON << 2;
                if (i2 + scores.q2 + tie > h) cell |= GOES_ON << 3;
                cells[(int64)strip * (m + LANES - 1) + t * LANES + lane] = (unsigned char)cell;
                diagonal = above;
                if (lane == LANES - 1) {
                    row_h[j] = h;
                    row_d1[j] = d1;
                    row_d2[j] = d2;
                }
                if (i == n - 1 && j == m - 1) corner = h;
            }
            if (IS_EXACT) {
                const int d = strip + t, first = max(0, d - m + 1), last = min(n - 1, d);
                int64 here = is_cell ? ranked(h, order_of(i, first, last)) : ranked(LOWEST, ~0u);
                for (int distance = LANES / 2; distance > 0; distance /= 2)
                    here = max(here, __shfl_xor_sync(FULL, here, distance));
                if (lane == 0 && d < n + m - 1) best[d] = max(best[d], here);
            }
        }
        __syncwarp(FULL);  // the next strip reads what this one has left behind
    }
    return __shfl_sync(FULL, corner, (n - 1) % LANES);
}

// The best cell of all, unless the score has dropped before it.
struct Best {
    int score, i, j;
    bool is_dropped;
};

__device__ __forceinline__ Best find_best(const int64* best, int n, int m, int zdrop, const Scores& scores) {
    Best found = {0, -1, -1, false};
    for (int d = 0; d < n + m - 1; ++d) {
        const int here = (int)(best[d] >> 32);
        const bool is_better = here > found.score;
        if (!is_better && (zdrop < 0 || found.score - here <= zdrop)) continue;
        const int i = row_of(~(unsigned)best[d], max(0, d - m + 1), min(n - 1, d)), j = d - i;
        if (is_better) {
            found = {here, i, j, false};
        } else if (i >= found.i && j >= found.j) {
            const int off = max(i - found.i, j - found.j) - min(i - found.i, j - found.j);
            if (found.score - here > zdrop + scores.e2 * off) {
                found.is_dropped = true;
                return found;
            }
        }
    }
    return found;
}

// The path that ends at a cell, backwards: length << 4 | operation (0 M, 1 I, 2 D). Returns the number of operations,
// or -1 if there is no room for them.
__device__ __forceinline__ int way_back(const unsigned char* cells, int i, int j, int m, unsigned* ops, int room) {
    int n_ops = 0, came = 0, length = 0, before = 0;
    for (;;) {
        int operation, step = 1;
        if (i >= 0 && j >= 0) {
            const int lane = i % LANES;
            const unsigned cell = cells[(int64)(i - lane) * (m + LANES - 1) + (j + lane) * LANES + lane];
            if (came == 0 || !(cell >> (came + 2) & 1)) came = (int)(cell & 7);
            operation = came == 0 ? 0 : came & 1 ? 2 : 1;
        } else {
            operation = i >= 0 ? 2 : 1;
            step = max(i, j) + 1;  // 0 at the end
        }
        if (length > 0 && (operation != before || step == 0)) {
            if (n_ops == room) return -1;
            ops[n_ops++] = (unsigned)length << 4 | (unsigned)before;
            length = 0;
        }
        if (step == 0) return n_ops;
        length += step;
        before = operation;
        if (operation != 1) i -= step;
        if (operation != 2) j -= step;
    }
}

// Copy the bases of stretches to where they are aligned, one warp each. A source is the target's place in the reference;
// where the read begins among `reads`, and its length; and the query's place on both its strands, one after the other.
// Alignments that go backwards have both reversed. Tasks: see `align_pairs`.
extern "C" __global__ void __launch_bounds__(THREADS) align_gather(
    const unsigned char* __restrict__ reference, const unsigned char* __restrict__ reads,
    const int64* __restrict__ sources, const int4* __restrict__ tasks, const int n_tasks,
    unsigned char* __restrict__ bases) {
    const int lane = threadIdx.x % LANES, task = blockIdx.x * WARPS + threadIdx.x / LANES;
    if (task >= n_tasks) return;
    const int4 where = tasks[2 * task];
    const bool is_reversed = tasks[2 * task + 1].x == EXTEND_BACKWARDS;
    const int64* source = sources + 4ll * task;
    const unsigned char* target = reference + source[0];
    const unsigned char* read = reads + source[1];
    const int length = (int)source[2], first = (int)source[3], n = where.y, m = where.w;
    for (int k = lane; k < n; k += LANES) bases[where.x + (is_reversed ? n - 1 - k : k)] = target[k];
    for (int k = lane; k < m; k += LANES) {
        const int at = first + k;
        unsigned base = read[at < length ? at : 2 * length - 1 - at];
        if (at >= length && base < 4) base = 3 - base;
        bases[where.z + (is_reversed ? m - 1 - k : k)] = (unsigned char)base;
    }
}

// Alignments number 0..n_tasks-1. A task is the places of both sequences among `bases`, each with its length, then kind,
// drop (-1 for none), and place and room of its operations; its result score, best score and cell, whether it was
// dropped, and the number of operations.
extern "C" __global__ void __launch_bounds__(THREADS) align_pairs(
    const unsigned char* __restrict__ bases, const int4* __restrict__ tasks, const int n_tasks, const int n_slots,
    const int match, const int mismatch, const int q, const int e, const int q2, const int e2,
    unsigned char* __restrict__ all_cells, const int cells_room, int* __restrict__ all_left_behind, const int row_room,
    int64* __restrict__ all_best, int4* __restrict__ results, unsigned* __restrict__ all_ops) {
    const int lane = threadIdx.x % LANES;
    const int slot = blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES;
    if (slot >= n_slots) return;
    const Scores scores = {match, mismatch, q, e, q2, e2};
    unsigned char* cells = all_cells + (int64)slot * cells_room;
    int* left_behind = all_left_behind + (int64)slot * 3 * row_room;
    int64* best = all_best + (int64)slot * 2 * row_room;
    for (int task = slot; task < n_tasks; task += n_slots) {
        const int4 where = tasks[2 * task], how = tasks[2 * task + 1];
        const int n = where.y, m = where.w;
        const unsigned char* target = bases + where.x;
        const unsigned char* query = bases + where.z;
        const bool is_exact = how.x == EXTEND || how.x == EXTEND_BACKWARDS;
        int corner;
        if (is_exact)
            corner = fill<true>(target, n, query, m, scores, how.x == EXTEND_BACKWARDS, cells, left_behind, best);
        else
            corner = fill<false>(target, n, query, m, scores, 0, cells, left_behind, best);
        __syncwarp(FULL);
        if (lane == 0) {
            Best end = {0, -1, -1, false};
            int n_ops = 0;
            if (is_exact) end = find_best(best, n, m, how.y, scores);
            if (!is_exact)
                n_ops = way_back(cells, n - 1, m - 1, m, all_ops + how.z, how.w);
            else if (end.i >= 0)
                n_ops = way_back(cells, end.i, end.j, m, all_ops + how.z, how.w);
            results[2 * task] = make_int4(end.is_dropped ? LOWEST : corner, end.score, end.i, end.j);
            results[2 * task + 1] = make_int4(end.is_dropped, n_ops, 0, 0);
        }
        __syncwarp(FULL);  // the slot's memory is free again
    }
}
