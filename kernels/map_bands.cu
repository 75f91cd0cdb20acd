// Base alignment of long stretches of reads and reference, above all of ends of reads, within a band:
// f5py/mapping/align/base_alignment.py. One block per alignment; a block takes every n_blocks-th of a list.
//
// The block computes one anti-diagonal after the other. A thread owns ROWS neighbouring rows, bases of the target, in
// registers; the rows that leave the band at its lower end come back as those that enter it at the upper one, so the
// block needs as many as the band has cells. As f5py/mapping/align/_alignment_numba.py does, it keeps differences of
// neighbouring cells. A cell needs its own row and the row before, both of the anti-diagonal before: what the thread
// before has of it arrives by shuffle, from the warp before through shared memory; one barrier a diagonal is enough.
// A byte of each cell, where its score comes from and which gaps go on, goes to memory: a line of `pitch` per
// anti-diagonal. On the way back the block copies tiles of these into shared memory, and one thread follows the path.

#include "alignment.cuh"

#define ROWS 4  // of a thread: the bytes of a word
#define MOST_THREADS 384
#define MOST_WARPS (MOST_THREADS / LANES)
#define TILE 64  // anti-diagonals
#define TILE_WORDS (TILE / ROWS + 1)

struct Band {
    int n, m, width;

    __device__ __forceinline__ int first(int d) const { return max(max(0, d - m + 1), (d - width + 1) >> 1); }
    __device__ __forceinline__ int last(int d) const { return min(min(n - 1, d), (d + width) >> 1); }
};

// The best cell, and whether the score has dropped behind it.
struct Best {
    int score, i, j;
    bool is_dropped;
};

// Of a warp: its best score on an anti-diagonal, and how much its cell is preferred to others with this score.
struct Found {
    int score, preference;
};

// What a thread or warp hands on of its last row: the score, and v, x, x2 and the base of the query as bytes.
struct Edge {
    int h;
    unsigned packed;
};

struct Shared {
    Edge edges[2][MOST_WARPS];
    Found found[2][MOST_WARPS], low[MOST_WARPS];
    int corner, i, j, n_ops;
    unsigned tile[TILE][TILE_WORDS];
};

__device__ __forceinline__ int largest_of_warp(int value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_max_sync(FULL, value);
#else
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        value = max(value, __shfl_xor_sync(FULL, value, distance));
    return value;
#endif
}

__device__ __forceinline__ int byte_of(unsigned packed, int at) { return (int)(signed char)(packed >> 8 * at); }

// Of the cells of a warp with this score the one that is preferred: how much, larger for a lower order.
__device__ __forceinline__ int preferred(
    const int (&h)[ROWS], int score, const int (&rows)[ROWS], int first, int last) {
    int preference = LOWEST;
#pragma unroll
    for (int x = 0; x < ROWS; ++x)
        if (rows[x] >= first && rows[x] <= last && h[x] == score)
            preference = max(preference, -(int)order_of(rows[x], first, last));
    return largest_of_warp(preference);
}

__device__ __forceinline__ Found best_of(const Found* found, int n_warps) {
    Found best = found[0];
    for (int w = 1; w < n_warps; ++w) {
        const Found other = found[w];
        if (other.score > best.score || (other.score == best.score && other.preference > best.preference))
            best = other;
    }
    return best;
}

// Fill the cells of an alignment; all threads return the same. With `is_exact` the best cell is found, and a drop.
template <bool IS_EXACT>
__device__ __forceinline__ Best fill(
    Shared* shared, const unsigned char* target, const unsigned char* query, const Band band, const Scores scores,
    const int tie, const int zdrop, unsigned* cells, const int pitch) {
    const int thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES, n_warps = blockDim.x / LANES;
    const int ring = blockDim.x * ROWS, n = band.n, m = band.m;
    const int qe = scores.q + scores.e, qe2 = scores.q2 + scores.e2;
    int u[ROWS], v[ROWS], x1[ROWS], y1[ROWS], x2[ROWS], y2[ROWS], h[ROWS], base[ROWS], other[ROWS], rows[ROWS];
#pragma unroll
    for (int x = 0; x < ROWS; ++x) {
        u[x] = v[x] = x1[x] = y1[x] = x2[x] = y2[x] = h[x] = base[x] = other[x] = 0;
        rows[x] = thread * ROWS + x;
    }
    Best best = {0, -1, -1, false};
    int first_before = 0, last_before = -1, next_base = query[0];
    for (int d = 0; d < n + m - 1; ++d) {
        const int first = band.first(d), last = band.last(d);
        if (first > last) {
            best.is_dropped = true;
            break;
        }
        Edge above;
        above.h = __shfl_up_sync(FULL, h[ROWS - 1], 1);
        above.packed = (v[ROWS - 1] & 255) | (x1[ROWS - 1] & 255) << 8 | (x2[ROWS - 1] & 255) << 16 |
                       (unsigned)other[ROWS - 1] << 24;
        above.packed = __shfl_up_sync(FULL, above.packed, 1);
        if (lane == 0 && d > 0) above = shared->edges[(d - 1) & 1][warp == 0 ? n_warps - 1 : warp - 1];
        const int step = -(border(d + 1, scores) - border(d, scores));  // along the borders
        unsigned word = 0;
        int top = LOWEST;
        bool has_cells = false;
#pragma unroll
        for (int x = ROWS - 1; x >= 0; --x) {
            if (rows[x] < first) rows[x] += ring;  // it is below the window, which is at most as wide as the ring
            const int i = rows[x];
            if (i > last) continue;
            has_cells = true;
            int above_v = x == 0 ? byte_of(above.packed, 0) : v[x == 0 ? 0 : x - 1];
            int above_x1 = x == 0 ? byte_of(above.packed, 1) : x1[x == 0 ? 0 : x - 1];
            int above_x2 = x == 0 ? byte_of(above.packed, 2) : x2[x == 0 ? 0 : x - 1];
            const int above_h = x == 0 ? above.h : h[x == 0 ? 0 : x - 1];
            other[x] = x == 0 ? (int)(above.packed >> 24) : other[x == 0 ? 0 : x - 1];
            if (i == first) {
                other[x] = next_base;
                if (first == 0 || first == first_before) {
                    above_v = first == 0 ? step : -qe;
                    above_x1 = -qe;
                    above_x2 = -qe2;
                }
            }
            if (i > last_before) {
                u[x] = i == d ? step : -qe;
                y1[x] = -qe;
                y2[x] = -qe2;
                h[x] = i == d ? -border(d + 1, scores) : above_h - above_v - qe;
                base[x] = target[i];
            }
            int s = score_of(base[x], other[x], scores);
            int a1 = above_x1 + above_v, b1 = y1[x] + u[x], a2 = above_x2 + above_v, b2 = y2[x] + u[x];
            unsigned cell = take_best(s, a1, b1, a2, b2, tie);
            v[x] = s - u[x];
            u[x] = s - above_v;
            a1 -= s - scores.q;
            b1 -= s - scores.q;
            a2 -= s - scores.q2;
            b2 -= s - scores.q2;
            x1[x] = max(a1, 0) - qe;
            y1[x] = max(b1, 0) - qe;
            x2[x] = max(a2, 0) - qe2;
            y2[x] = max(b2, 0) - qe2;
            if (a1 + tie > 0) cell |= GOES_ON;
            if (b1 + tie > 0) cell |= GOES_ON << 1;
            if (a2 + tie > 0) cell |= GOES_ON << 2;
            if (b2 + tie > 0) cell |= GOES_ON << 3;
            h[x] += v[x];
            top = max(top, h[x]);
            word |= cell << 8 * x;
        }
        if (has_cells) cells[(int64)d * pitch + thread] = word;
        if (lane == LANES - 1) {
            Edge edge;
            edge.h = h[ROWS - 1];
            edge.packed = (v[ROWS - 1] & 255) | (x1[ROWS - 1] & 255) << 8 | (x2[ROWS - 1] & 255) << 16 |
                          (unsigned)other[ROWS - 1] << 24;
            shared->edges[d & 1][warp] = edge;
        }
        if (IS_EXACT) {
            Found found = {largest_of_warp(top), LOWEST};
            if (found.score > best.score) found.preference = preferred(h, found.score, rows, first, last);
            if (lane == 0) shared->found[d & 1][warp] = found;
        }
        const int next = d + 1 - band.first(d + 1);
        next_base = next >= 0 && next < m ? query[next] : 4;
        first_before = first;
        last_before = last;
        __syncthreads();
        if (!IS_EXACT) continue;
        Found here = best_of(shared->found[d & 1], n_warps);
        if (here.score > best.score) {
            best.score = here.score;
            best.i = row_of((unsigned)-here.preference, first, last);
            best.j = d - best.i;
        } else if (zdrop >= 0 && best.score - here.score > zdrop) {
            const int preference = preferred(h, here.score, rows, first, last);
            if (lane == 0) shared->low[warp] = {here.score, preference};
            __syncthreads();
            here = best_of(shared->low, n_warps);
            const int i = row_of((unsigned)-here.preference, first, last), j = d - i;
            if (i < best.i || j < best.j) continue;
            const int off = max(i - best.i, j - best.j) - min(i - best.i, j - best.j);
            if (best.score - here.score > zdrop + scores.e2 * off) {
                best.is_dropped = true;
                break;
            }
        }
    }
#pragma unroll
    for (int x = 0; x < ROWS; ++x)
        if (!best.is_dropped && rows[x] == n - 1) shared->corner = h[x];
    if (best.is_dropped && thread == 0) shared->corner = LOWEST;
    __syncthreads();
    return best;
}

// Write the path that ends at a cell, backwards: length << 4 | operation (0 M, 1 I, 2 D). Returns the number of
// operations, or -1 if there is no room for them.
__device__ __forceinline__ int way_back(
    Shared* shared, const Band band, int i, int j, const unsigned* cells, const int pitch, unsigned* ops,
    const int room) {
    const int words = blockDim.x;
    int n_ops = 0, came = 0, length = 0, before = 0;
    while (i >= 0 && j >= 0) {
        const int top = i + j, low = max(0, i - TILE + 1) / ROWS;
        for (int k = threadIdx.x; k < TILE * TILE_WORDS; k += blockDim.x) {
            const int d = top - k / TILE_WORDS, word = low + k % TILE_WORDS;
            if (d >= 0 && word * ROWS <= i && word % words < pitch)
                shared->tile[k / TILE_WORDS][k % TILE_WORDS] = cells[(int64)d * pitch + word % words];
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            for (;;) {
                int operation, step = 1;
                if (i >= 0 && j >= 0) {
                    const int d = i + j;
                    if (top - d >= TILE) break;
                    if (i < band.first(d)) {
                        came = 2;
                    } else if (i > band.last(d)) {
                        came = 1;
                    } else {
                        const unsigned cell = shared->tile[top - d][i / ROWS - low] >> 8 * (i % ROWS) & 255u;
                        if (came == 0 || !(cell >> (came + 2) & 1)) came = (int)(cell & 7);
                    }
                    operation = came == 0 ? 0 : came & 1 ? 2 : 1;
                } else {
                    operation = i >= 0 ? 2 : 1;
                    step = max(i, j) + 1;  // 0 at the end
                }
                if (length > 0 && (operation != before || step == 0)) {
                    if (n_ops == room) {
                        n_ops = i = -1;
                        break;
                    }
                    ops[n_ops++] = (unsigned)length << 4 | (unsigned)before;
                    length = 0;
                }
                if (step == 0) break;
                length += step;
                before = operation;
                if (operation != 1) i -= step;
                if (operation != 2) j -= step;
            }
            shared->i = i;
            shared->j = j;
            shared->n_ops = n_ops;
        }
        __syncthreads();
        i = shared->i;
        j = shared->j;
    }
    return shared->n_ops;
}

// Alignments number 0..n_tasks-1; tasks and results are those of `align_pairs`. Of each there are the width of its band
// and where its cells lie, in words: a line has those of all threads or, if they are fewer, of all rows.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) align_bands(
    const unsigned char* __restrict__ bases, const int4* __restrict__ tasks, const int2* __restrict__ bands,
    const int n_tasks, const int match, const int mismatch, const int q, const int e, const int q2, const int e2,
    unsigned* __restrict__ all_cells, int4* __restrict__ results, unsigned* __restrict__ all_ops) {
    __shared__ Shared shared;
    const Scores scores = {match, mismatch, q, e, q2, e2};
    for (int task = blockIdx.x; task < n_tasks; task += gridDim.x) {
        const int4 where = tasks[2 * task], how = tasks[2 * task + 1];
        const int2 of_band = bands[task];
        const Band band = {where.y, where.w, of_band.x};
        const unsigned char* target = bases + where.x;
        const unsigned char* query = bases + where.z;
        unsigned* cells = all_cells + of_band.y;
        const int pitch = min((int)blockDim.x, (band.n + ROWS - 1) / ROWS);
        Best best;
        if (how.x == GLOBAL)
            best = fill<false>(&shared, target, query, band, scores, 0, -1, cells, pitch);
        else
            best = fill<true>(&shared, target, query, band, scores, how.x == EXTEND_BACKWARDS, how.y, cells, pitch);
        const bool is_whole = how.x == GLOBAL && !best.is_dropped;
        const int i = is_whole ? band.n - 1 : best.i, j = is_whole ? band.m - 1 : best.j;
        int n_ops = 0;
        if (i >= 0) n_ops = way_back(&shared, band, i, j, cells, pitch, all_ops + how.z, how.w);
        if (threadIdx.x == 0) {
            results[2 * task] = make_int4(shared.corner, best.score, best.i, best.j);
            results[2 * task + 1] = make_int4(best.is_dropped, n_ops, 0, 0);
        }
        __syncthreads();  // the memory is free again
    }
}
