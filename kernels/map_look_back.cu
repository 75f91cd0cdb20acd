// Scores of chains of anchors: f5py/mapping/chain/chaining.py, where the search for a predecessor may stop.
//
// chain_back looks back from every anchor, as the CPU does, and stops where the CPU stops. Predecessors are tried in rows
// of 32, one per lane, the nearest first. An anchor waits for the one before it, so what counts is how long that takes.
// Most segments have a warp, which tries one row after the other. Those where that takes longest have a block: its warps
// try up to 16 rows at the same time, and then walk through them in order, as far as the search goes. What has been tried
// in vain does no harm: a mark counts for one search only, and only on anchors farther away than the one it comes from.
// The last anchors with all that is known of them are held in shared memory.

#include "map_chain.cuh"

// How the work is shared out; benchmarks/map_chain.py can compare others.
#ifndef BACK_WARPS
#define BACK_WARPS 8  // of a block
#endif
#ifndef AT_ONCE
#define AT_ONCE 2  // rows that each of them tries at the same time, for one segment
#endif
#ifndef HELD
#define HELD 256  // anchors that a warp holds in shared memory, a power of two
#endif
#define ROWS (BACK_WARPS * AT_ONCE)  // at most LANES

// The last anchors of a segment, their chains and marks; that of anchor j at j % N, which is a power of two.
template <int N>
struct Held {
    int2 anchors[N], chains[N];
    int marks[N];
};

union HeldOfBlock {
    Held<HELD> of_warps[BACK_WARPS];
    Held<HELD * BACK_WARPS> of_block;
};

// A segment that is looked back on, and what the search is limited to.
struct Search {
    const int2* anchors;
    int2* chains;
    int* marks;
    int n, reach, bandwidth, max_iter, max_skip;
    const int* penalties;
};

// One of the predecessors that are tried at the same time.
struct Tried {
    int candidate;  // score of the chain over it, NO_PAIR if there is none
    bool is_near;   // within reach
};

// Try to step from `j` to `own`, the anchor `i`, and mark the predecessor of `j`; `lowest` is the last one to be tried.
template <int N>
__device__ __forceinline__ Tried
try_step(const Search& search, Held<N>& held, int2 own, int i, int j, int lowest, int2 previous, int2 its_chain) {
    int2 anchor = make_int2(0, 0), chain = make_int2(0, NONE);
    if (j == i - 1) {  // other warps may not have seen it in memory yet
        anchor = previous;
        chain = its_chain;
    } else if (j >= lowest) {
        const bool is_held = j >= i - N;
        anchor = is_held ? held.anchors[(unsigned)j % N] : search.anchors[j];
        chain = is_held ? held.chains[(unsigned)j % N] : search.chains[j];
    }
    const int on_reference = own.x - anchor.x, on_read = position_of(own) - position_of(anchor);
    const bool is_near = j >= lowest && on_reference <= search.reach;
    if (!is_near || !can_step(on_reference, on_read, search.reach, search.bandwidth)) return {NO_PAIR, is_near};
    if (chain.y >= max(i - N, 0))
        held.marks[(unsigned)chain.y % N] = i;
    else if (chain.y >= 0)
        search.marks[chain.y] = i;
    return {chain.x + gain_of(on_reference, on_read, span_of(anchor), search.penalties), true};
}

// Whether `j`, which `lane` has tried, is a predecessor of one that is nearer and has been tried.
template <int N>
__device__ __forceinline__ bool is_marked(const Search& search, const Held<N>& held, int i, int j) {
    return (j >= i - N ? held.marks[(unsigned)j % N] : search.marks[j]) == i;
}

__device__ __forceinline__ int max_of_warp(int value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_max_sync(FULL, value);
#else
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        value = max(value, __shfl_xor_sync(FULL, value, distance));
    return value;
#endif
}

// One warp.
__device__ __forceinline__ void look_back(const Search& search, Held<HELD>& held) {
    const int lane = threadIdx.x % LANES, n = search.n;
    for (int i = lane; i < n; i += LANES) search.marks[i] = 0;
    // What a place had of an earlier anchor does no harm later on: marks are numbers of anchors that have been done.
    for (int i = lane; i < HELD; i += LANES) held.marks[i] = 0;
    __syncwarp(FULL);
    Near near = {NONE, 0, make_int2(0, 0)};
    // of this and the next 32 anchors, one a lane, read before they are needed
    int2 coming, further = search.anchors[min(lane, n - 1)];
    int2 previous = make_int2(0, 0), its_chain = make_int2(0, NONE);
    for (int i = 0; i < n; ++i) {
        if (i % LANES == 0) {
            coming = further;
            further = search.anchors[min(i + LANES + lane, n - 1)];
        }
        const int2 own = from_lane(coming, i % LANES);
        const int lowest = max(0, i - search.max_iter);
        int score = span_of(own), parent = NONE, skipped = 0;
        int stopped = i - 1;  // the anchor where the search has stopped: the first one that was not tried
        bool goes_on = true;
        for (int top = i - 1; top >= lowest && goes_on; top -= LANES) {
            const int j = top - lane;
            const Tried tried = try_step(search, held, own, i, j, lowest, previous, its_chain);
            __syncwarp(FULL);
            // A mark on an anchor comes from one that is nearer: from this round or an earlier one.
            const bool has_pair = tried.candidate != NO_PAIR;
            const unsigned marked = __ballot_sync(FULL, has_pair && is_marked(search, held, i, j));
            const unsigned in_reach = __ballot_sync(FULL, tried.is_near);
            const unsigned records = records_of(tried.candidate, score);
            int last = NONE;
            const int end = walk(records, marked & ~records, search.max_skip, &skipped, &last);
            if (last != NONE) {
                score = __shfl_sync(FULL, tried.candidate, last);
                parent = top - last;
            }
            goes_on = end == LANES && in_reach == FULL;
            stopped = top - (end == LANES ? __popc(in_reach) : end);
        }
        try_near(
            near, search.anchors, search.chains, own, i, stopped, lowest, search.reach, search.bandwidth,
            search.penalties, &score, &parent);
        previous = own;
        its_chain = make_int2(score, parent);
        if (lane == 0) {
            search.chains[i] = held.chains[(unsigned)i % HELD] = its_chain;
            held.anchors[(unsigned)i % HELD] = own;
        }
    }
}

// What the warps of a block tell each other of the predecessors that they try at the same time, 32 in a row.
struct Told {
    int best[LANES];              // candidate of each row
    int4 rows[LANES];             // records, those marked in vain, those in reach
    unsigned counts[LANES / 4];   // of those marked in vain in each row, a byte each
    int candidates[ROWS][LANES];  // of rows with records
};

// Those marked in vain in the rows up to the lane's. A product with 0x01010101 has in each byte the sum up to this one.
__device__ __forceinline__ int marked_up_to(const Told& told, int lane) {
    int sum = (int)(told.counts[lane / 4] * 0x01010101u >> 8 * (lane % 4) & 255);
#pragma unroll
    for (int row = 4; row < ROWS; row += 4)
        if (lane >= row) sum += (int)(told.counts[row / 4 - 1] * 0x01010101u >> 24);
    return sum;
}

// A block. All warps come to the same result of every round by themselves.
__device__ __forceinline__ void look_back_together(const Search& search, Held<HELD * BACK_WARPS>& held, Told& told) {
    constexpr int N = HELD * BACK_WARPS;
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, n = search.n;
    for (int i = threadIdx.x; i < n; i += BACK_WARPS * LANES) search.marks[i] = 0;
    for (int i = threadIdx.x; i < N; i += BACK_WARPS * LANES) held.marks[i] = 0;
    __syncthreads();
    Near near = {NONE, 0, make_int2(0, 0)};
    int2 coming = make_int2(0, 0);
    int2 previous = make_int2(0, 0), its_chain = make_int2(0, NONE);
    for (int i = 0; i < n; ++i) {
        if (i % LANES == 0) coming = search.anchors[min(i + lane, n - 1)];
        const int2 own = from_lane(coming, i % LANES);
        const int lowest = max(0, i - search.max_iter);
        int score = span_of(own), parent = NONE, skipped = 0, stopped = i - 1;
        bool goes_on = true;
        for (int top = i - 1; top >= lowest && goes_on; top -= ROWS * LANES) {
            Tried tried[AT_ONCE];
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k) {
                const int row = warp * AT_ONCE + k;
                tried[k] = try_step(search, held, own, i, top - row * LANES - lane, lowest, previous, its_chain);
                const int best = max_of_warp(tried[k].candidate);
                if (lane == 0) told.best[row] = best;
            }
            __syncthreads();
            int before = max(
                score, max_of_warp(lane < warp * AT_ONCE ? told.best[lane] : NO_PAIR));
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k) {
                const int row = warp * AT_ONCE + k, j = top - row * LANES - lane;
                const bool has_pair = tried[k].candidate != NO_PAIR;
                const unsigned marked = __ballot_sync(FULL, has_pair && is_marked(search, held, i, j));
                const unsigned in_reach = __ballot_sync(FULL, tried[k].is_near);
                unsigned records = 0;
                const int best = told.best[row];
                if (best > before) {
                    records = records_of(tried[k].candidate, before);
                    told.candidates[row][lane] = tried[k].candidate;
                    before = best;
                }
                if (lane == 0) {
                    told.rows[row] = make_int4((int)records, (int)(marked & ~records), (int)in_reach, 0);
                    reinterpret_cast<unsigned char*>(told.counts)[row] = (unsigned char)__popc(marked & ~records);
                }
            }
            __syncthreads();
            // Each lane has a row now.
            const int4 own_row = lane < ROWS ? told.rows[lane] : make_int4(0, 0, (int)FULL, 0);
            const int count = __popc((unsigned)own_row.y);
            const int up_to = marked_up_to(told, lane);
            unsigned with_records = __ballot_sync(FULL, own_row.x != 0);
            int walked = 0, done = 0;  // rows that have been walked through, and what has been marked in vain there
            int last_row = NONE, last = NONE, end = LANES, end_row = NONE;
            for (;;) {
                const int row = with_records != 0 ? __ffs((int)with_records) - 1 : ROWS;
                const unsigned over = __ballot_sync(
                    FULL, lane >= walked && lane < row && skipped + up_to - done > search.max_skip);
                if (over != 0) {
                    end_row = __ffs((int)over) - 1;
                    skipped += __shfl_sync(FULL, up_to - count, end_row) - done;
                    end = lane_of_bit(
                        (unsigned)__shfl_sync(FULL, own_row.y, end_row), search.max_skip - skipped);
                    break;
                }
                if (row == ROWS) {
                    skipped += __shfl_sync(FULL, up_to, ROWS - 1) - done;
                    break;
                }
                skipped += __shfl_sync(FULL, up_to - count, row) - done;
                int record = NONE;
                end = walk(
                    (unsigned)__shfl_sync(FULL, own_row.x, row), (unsigned)__shfl_sync(FULL, own_row.y, row),
                    search.max_skip, &skipped, &record);
                if (record != NONE) {
                    last_row = row;
                    last = record;
                }
                if (end != LANES) {
                    end_row = row;
                    break;
                }
                walked = row + 1;
                done = __shfl_sync(FULL, up_to, row);
                with_records &= with_records - 1;
            }
            if (last_row != NONE) {
                score = told.candidates[last_row][last];
                parent = top - last_row * LANES - last;
            }
            if (end_row == NONE) {
                const unsigned ends = __ballot_sync(FULL, (unsigned)own_row.z != FULL);
                goes_on = ends == 0;
                end_row = ends != 0 ? __ffs((int)ends) - 1 : ROWS;
                end = goes_on ? 0 : __popc((unsigned)__shfl_sync(FULL, own_row.z, end_row));
            } else {
                goes_on = false;
            }
            stopped = top - end_row * LANES - end;
        }
        try_near(
            near, search.anchors, search.chains, own, i, stopped, lowest, search.reach, search.bandwidth,
            search.penalties, &score, &parent);
        previous = own;
        its_chain = make_int2(score, parent);
        if (threadIdx.x == 0) {
            search.chains[i] = held.chains[(unsigned)i % N] = its_chain;
            held.anchors[(unsigned)i % N] = own;
        }
    }
}

// Segments 0..n_segments-1: the first `n_of_blocks` have a block each, the others a warp; `marks` is scratch,
// an element per anchor.
extern "C" __global__ void __launch_bounds__(BACK_WARPS * LANES) chain_back(
    const int2* __restrict__ all_anchors, const Segment* __restrict__ segments, const int n_segments,
    const int n_of_blocks, const int reach, const int bandwidth, const int max_iter, const int max_skip,
    const int* __restrict__ penalties, int* __restrict__ all_marks, int2* __restrict__ all_chains) {
    __shared__ HeldOfBlock held;
    __shared__ Told told;
    const int block = blockIdx.x, warp = threadIdx.x / LANES;
    const bool is_together = block < n_of_blocks;
    const int number = is_together ? block : n_of_blocks + (block - n_of_blocks) * BACK_WARPS + warp;
    if (number >= n_segments) return;
    const Segment segment = segments[number];
    const Search search = {
        all_anchors + segment.x, all_chains + segment.x, all_marks + segment.x, segment.y / 2, reach, bandwidth,
        max_iter, max_skip, penalties};
    if (is_together)
        look_back_together(search, held.of_block, told);
    else
        look_back(search, held.of_warps[warp]);
}
