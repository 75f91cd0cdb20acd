// Scores of chains of anchors: f5py/mapping/chain/chaining.py. A segment is a stretch of a read's anchors that no chain
// enters or leaves; results are pairs of the best score up to an anchor and its predecessor's index in the segment, -1
// for none. All kernels do the same sums as f5py/mapping/chain/_chaining_numba.py, in whole numbers.
//
// chain_back looks back from every anchor, as the CPU does, and stops where the CPU stops: one warp per segment, a few
// warps per block, and 32 predecessors at a time, one per lane, the nearest first. An anchor waits for the one before
// it, so what counts is how long a round takes; the last 256 anchors with all that is known of them are held in shared
// memory. chain_forward_warp and chain_forward_block transform forward (mm2-ax; Sadasivan et al., 2023): where nothing
// stops the search, the score of an anchor, once it is known, is offered to all that may follow it. Sources are taken
// 32 at a time. One warp makes them final, one after the other; then every thread takes an anchor further on and tries
// the 32 sources, which are in shared memory, with the best so far in registers. A segment has a warp, or a block for
// those with many anchors in reach.

#include "warp.cuh"

#define WARPS 4  // of a block
#define THREADS (WARPS * LANES)
#define BLOCK_THREADS 256  // of a block that has one segment
#define NONE (-1)
#define HELD 256  // a power of two
#define SPAN_SHIFT 24
#define POSITION ((1 << SPAN_SHIFT) - 1)

// Where a segment begins among the anchors; and 2 * number of its anchors, plus 1 if some in reach are not tried.
typedef int2 Segment;

// An anchor is its last base on the reference, and span << SPAN_SHIFT | its last base on the read.
__device__ __forceinline__ int position_of(int2 anchor) { return anchor.y & POSITION; }
__device__ __forceinline__ int span_of(int2 anchor) { return (int)((unsigned)anchor.y >> SPAN_SHIFT); }

// Whether a chain can step so far on reference and read.
__device__ __forceinline__ bool can_step(int on_reference, int on_read, int reach, int bandwidth) {
    if (on_reference <= 0 || on_read <= 0 || on_read > reach) return false;
    return max(on_reference, on_read) - min(on_reference, on_read) <= bandwidth;
}

// What a chain gains by a step from an anchor of that span.
__device__ __forceinline__ int gain_of(int on_reference, int on_read, int span, const int* penalties) {
    const int step = min(on_reference, on_read), difference = max(on_reference, on_read) - step;
    return min(span, step) - __ldg(penalties + difference);
}

// The lanes below `lane`, which may be LANES.
__device__ __forceinline__ unsigned lanes_below(int lane) { return lane == LANES ? FULL : (1u << lane) - 1; }

// The anchor with the largest score of those before `i` within reach, of equal ones the last; NONE if there is none.
__device__ __forceinline__ int best_in_reach(
    const int2* anchors, const int2* chains, int i, int lowest, int reach, int* score) {
    const int reference = anchors[i].x;
    int best = NONE, at = NONE;
    for (int top = i - 1; top >= lowest; top -= LANES) {
        const int j = top - (int)(threadIdx.x % LANES);
        const bool is_near = j >= lowest && reference - anchors[max(j, 0)].x <= reach;
        if (is_near && chains[j].x > best) {
            best = chains[j].x;
            at = j;
        }
        if (__ballot_sync(FULL, is_near) != FULL) break;
    }
    for (int distance = LANES / 2; distance > 0; distance /= 2) {
        const int other = __shfl_xor_sync(FULL, best, distance), its_place = __shfl_xor_sync(FULL, at, distance);
        if (other > best || (other == best && its_place > at)) {
            best = other;
            at = its_place;
        }
    }
    *score = best;
    return at;
}

// The anchor with the largest score nearby: where the search has ended before it, it is tried after all.
struct Near {
    int at, score;
    int2 anchor;
};

// To be called for each anchor `i` in turn, with the score and predecessor that the search has found, and the first
// anchor, from `i` down, that it has not tried; anchors before `lowest` are not looked at.
__device__ __forceinline__ void try_near(
    Near& near, const int2* anchors, const int2* chains, int2 own, int i, int untried, int lowest, int reach,
    int bandwidth, const int* penalties, int* score, int* parent) {
    if (near.at < 0 || own.x - near.anchor.x > reach) {
        near.at = best_in_reach(anchors, chains, i, lowest, reach, &near.score);
        if (near.at >= 0) near.anchor = anchors[near.at];
    }
    if (near.at >= 0 && near.at < untried) {
        const int on_reference = own.x - near.anchor.x, on_read = position_of(own) - position_of(near.anchor);
        if (can_step(on_reference, on_read, reach, bandwidth)) {
            const int candidate = near.score + gain_of(on_reference, on_read, span_of(near.anchor), penalties);
            if (candidate > *score) {
                *score = candidate;
                *parent = near.at;
            }
        }
    }
    if (near.at < 0 || near.score < *score) near = {i, *score, own};
}

// What one warp has at hand: anchors, their chains and marks; that of anchor j at j % HELD.
struct Held {
    int2 anchors[HELD], chains[HELD];
    int marks[HELD];
};

// Segments first..first+n_segments-1; `marks` is scratch, an element per anchor.
extern "C" __global__ void __launch_bounds__(THREADS) chain_back(
    const int2* __restrict__ all_anchors, const Segment* __restrict__ segments, const int first, const int n_segments,
    const int reach, const int bandwidth, const int max_iter, const int max_skip, const int* __restrict__ penalties,
    int* __restrict__ all_marks, int2* __restrict__ all_chains) {
    __shared__ Held all_held[WARPS];
    const int lane = threadIdx.x % LANES;
    const int number = blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES;
    if (number >= n_segments) return;
    Held& held = all_held[threadIdx.x / LANES];
    const Segment segment = segments[first + number];
    const int2* anchors = all_anchors + segment.x;
    int2* chains = all_chains + segment.x;
    int* marks = all_marks + segment.x;
    const int n = segment.y / 2;
    for (int i = lane; i < n; i += LANES) marks[i] = 0;
    // What a place had of an earlier anchor does no harm later on: marks are numbers of anchors that have been done.
    for (int i = lane; i < HELD; i += LANES) held.marks[i] = 0;
    __syncwarp(FULL);
    Near near = {NONE, 0, make_int2(0, 0)};
    int2 coming = make_int2(0, 0);  // of the next 32 anchors, one a lane
    for (int i = 0; i < n; ++i) {
        if (i % LANES == 0) coming = anchors[min(i + lane, n - 1)];
        const int2 own =
            make_int2(__shfl_sync(FULL, coming.x, i % LANES), __shfl_sync(FULL, coming.y, i % LANES));
        const int first_held = i - HELD;
        const int lowest = max(0, i - max_iter);
        int score = span_of(own), parent = NONE, skipped = 0;
        int stopped = i - 1;  // the anchor where the search has stopped: the first one that was not tried
        bool goes_on = true;
        for (int top = i - 1; top >= lowest && goes_on; top -= LANES) {
            const int j = top - lane;
            const bool is_held = j >= first_held;
            int2 anchor = make_int2(0, 0), chain = make_int2(0, NONE);
            if (j >= lowest) {
                anchor = is_held ? held.anchors[(unsigned)j % HELD] : anchors[j];
                chain = is_held ? held.chains[(unsigned)j % HELD] : chains[j];
            }
            const int on_reference = own.x - anchor.x, on_read = position_of(own) - position_of(anchor);
            const bool is_near = j >= lowest && on_reference <= reach;
            const bool is_pair = is_near && can_step(on_reference, on_read, reach, bandwidth);
            int candidate = 0;
            if (is_pair) {
                candidate = chain.x + gain_of(on_reference, on_read, span_of(anchor), penalties);
                if (chain.y >= max(first_held, 0))
                    held.marks[(unsigned)chain.y % HELD] = i;
                else if (chain.y >= 0)
                    marks[chain.y] = i;
            }
            __syncwarp(FULL);
            // A mark on an anchor comes from one that is nearer: from this round or an earlier one.
            const unsigned marked =
                __ballot_sync(FULL, is_pair && (is_held ? held.marks[(unsigned)j % HELD] : marks[j]) == i);
            const unsigned in_reach = __ballot_sync(FULL, is_near);
            goes_on = in_reach == FULL;
            stopped = top - __popc(in_reach);
            unsigned rest = FULL;
            for (;;) {
                const unsigned better = __ballot_sync(FULL, is_pair && candidate > score) & rest;
                const int record = better != 0 ? __ffs((int)better) - 1 : LANES;
                unsigned in_vain = marked & rest & lanes_below(record);
                if (skipped + __popc(in_vain) > max_skip) {
                    for (; skipped < max_skip; ++skipped) in_vain &= in_vain - 1;
                    stopped = top - (__ffs((int)in_vain) - 1);
                    goes_on = false;
                    break;
                }
                skipped += __popc(in_vain);
                if (record == LANES) break;
                score = __shfl_sync(FULL, candidate, record);
                parent = top - record;
                skipped = max(skipped - 1, 0);
                rest = ~(lanes_below(record) | 1u << record);
            }
        }
        try_near(near, anchors, chains, own, i, stopped, lowest, reach, bandwidth, penalties, &score, &parent);
        if (lane == 0) {
            chains[i] = held.chains[(unsigned)i % HELD] = make_int2(score, parent);
            held.anchors[(unsigned)i % HELD] = own;
        }
        __syncwarp(FULL);
    }
}

// Where an anchor stands, and the best score and predecessor that it has been offered.
struct Offered {
    int reference, position;
    int score, parent;
};

__device__ __forceinline__ Offered offered(int2 anchor, int2 chain) {
    return {anchor.x, position_of(anchor), chain.x, chain.y};
}

// Offer the chain of source `j`: reference, position, span and score. Sources come in ascending order. Of equal scores
// the latest source wins, as the CPU finds it first, but none wins against the anchor alone.
__device__ __forceinline__ void offer(
    Offered& anchor, int4 source, int j, int reach, int bandwidth, const int* penalties) {
    const int on_reference = anchor.reference - source.x, on_read = anchor.position - source.y;
    if (on_reference > reach || !can_step(on_reference, on_read, reach, bandwidth)) return;
    const int needed = anchor.score + (anchor.parent < 0);
    if (source.w + min(source.z, min(on_reference, on_read)) < needed) return;  // without any penalty
    const int score = source.w + gain_of(on_reference, on_read, source.z, penalties);
    if (score < needed) return;
    anchor.score = score;
    anchor.parent = j;
}

// What the threads of a team do together: a whole block, or each of its warps by itself.
template <bool IS_BLOCK>
__device__ __forceinline__ void meet_team() {
    if (IS_BLOCK)
        __syncthreads();
    else
        __syncwarp(FULL);
}

template <bool IS_BLOCK>
__device__ __forceinline__ void transform_forward(
    const int2* __restrict__ all_anchors, const Segment* __restrict__ segments, int first, int n_segments, int reach,
    int bandwidth, int max_iter, const int* __restrict__ penalties, int2* __restrict__ all_chains) {
    __shared__ int4 all_sources[WARPS][LANES];
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int number = IS_BLOCK ? blockIdx.x : blockIdx.x * (blockDim.x / LANES) + warp;
    if (number >= n_segments) return;
    const int n_members = IS_BLOCK ? blockDim.x : LANES, member = IS_BLOCK ? threadIdx.x : lane;
    int4* sources = all_sources[IS_BLOCK ? 0 : warp];
    const Segment segment = segments[first + number];
    const int2* anchors = all_anchors + segment.x;
    int2* chains = all_chains + segment.x;
    const int n = segment.y / 2;
    const bool is_cut = segment.y % 2 != 0;
    Near near = {NONE, 0, make_int2(0, 0)};
    int reached = 0;  // anchors before this one have been offered something
    for (int begin = 0; begin < n; begin += LANES) {
        const int end = min(begin + LANES, n);
        if (!IS_BLOCK || warp == 0) {
            const int i = begin + lane;
            const int2 own = i < n ? anchors[i] : make_int2(0, 0);
            Offered anchor = offered(own, i < reached ? chains[i] : make_int2(span_of(own), NONE));
            for (int s = 0; s < end - begin; ++s) {
                const int2 its_place = make_int2(__shfl_sync(FULL, own.x, s), __shfl_sync(FULL, own.y, s));
                int score = __shfl_sync(FULL, anchor.score, s);
                if (is_cut) {
                    const int j = begin + s, lowest = max(0, j - max_iter);
                    int parent = __shfl_sync(FULL, anchor.parent, s);
                    try_near(
                        near, anchors, chains, its_place, j, lowest - 1, lowest, reach, bandwidth, penalties, &score,
                        &parent);
                    if (lane == s) {
                        anchor.score = score;
                        anchor.parent = parent;
                        chains[j] = make_int2(score, parent);
                    }
                    __syncwarp(FULL);
                }
                const int4 source = make_int4(its_place.x, position_of(its_place), span_of(its_place), score);
                if (lane > s && lane - s <= max_iter && i < n)
                    offer(anchor, source, begin + s, reach, bandwidth, penalties);
            }
            if (i < n) chains[i] = make_int2(anchor.score, anchor.parent);
            sources[lane] = make_int4(own.x, position_of(own), span_of(own), anchor.score);
        }
        meet_team<IS_BLOCK>();
        // There are further ones only if these are LANES.
        const int limit = min(n, end + max_iter);
        int next = end;
        for (; next < limit && anchors[next].x - sources[LANES - 1].x <= reach; next += n_members) {
            const int i = next + member;
            if (i >= limit) continue;
            const int2 own = anchors[i];
            Offered anchor = offered(own, i < reached ? chains[i] : make_int2(span_of(own), NONE));
#pragma unroll 8
            for (int s = max(0, i - begin - max_iter); s < LANES; ++s)
                offer(anchor, sources[s], begin + s, reach, bandwidth, penalties);
            chains[i] = make_int2(anchor.score, anchor.parent);
        }
        reached = max(reached, min(next, limit));
        meet_team<IS_BLOCK>();
    }
}

// Segments first..first+n_segments-1, a warp for each.
extern "C" __global__ void __launch_bounds__(THREADS) chain_forward_warp(
    const int2* __restrict__ all_anchors, const Segment* __restrict__ segments, const int first, const int n_segments,
    const int reach, const int bandwidth, const int max_iter, const int* __restrict__ penalties,
    int2* __restrict__ all_chains) {
    transform_forward<false>(
        all_anchors, segments, first, n_segments, reach, bandwidth, max_iter, penalties, all_chains);
}

// The same, a block for each.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) chain_forward_block(
    const int2* __restrict__ all_anchors, const Segment* __restrict__ segments, const int first, const int n_segments,
    const int reach, const int bandwidth, const int max_iter, const int* __restrict__ penalties,
    int2* __restrict__ all_chains) {
    transform_forward<true>(
        all_anchors, segments, first, n_segments, reach, bandwidth, max_iter, penalties, all_chains);
}
