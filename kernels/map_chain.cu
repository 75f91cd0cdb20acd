// Scores of chains of anchors: f5py/mapping/chain/chaining.py, where nothing stops the search for a predecessor.
//
// chain_forward_warp and chain_forward_block transform forward (mm2-ax; Sadasivan et al., 2023): the score of an anchor,
// once it is known, is offered to all that may follow it. Sources are taken 32 at a time. One warp makes them final, one
// after the other; then every thread takes an anchor further on and tries the 32 sources, which are in shared memory,
// with the best so far in registers. A segment has a warp, or a block for those with many anchors in reach.

#include "map_chain.cuh"

#define WARPS 4  // of a block
#define THREADS (WARPS * LANES)
#define BLOCK_THREADS 256  // of a block that has one segment

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
