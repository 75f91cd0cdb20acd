// What a step of a chain of anchors gains, and the anchor that is tried in any case, for the kernels that look back and
// those that transform forward. A segment is a stretch of a read's anchors that no chain enters or leaves; results are
// pairs of the best score up to an anchor and its predecessor's index in the segment, -1 for none. All is done in whole
// numbers, as in f5py/mapping/chain/_chaining_numba.py.

#pragma once

#include "warp.cuh"

#define NONE (-1)
#define NO_PAIR (-(1 << 30))  // below all scores
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

// What a search that stops has: predecessors are tried in rows of 32, one per lane, in the order of the search.

// The lanes below `lane`, which may be LANES.
__device__ __forceinline__ unsigned lanes_below(int lane) { return lane == LANES ? FULL : (1u << lane) - 1; }

// The lane of the n-th bit, from 0 on, of at least n + 1 that are set.
__device__ __forceinline__ int lane_of_bit(unsigned bits, int n) {
    const int lane = threadIdx.x % LANES;
    return __ffs((int)__ballot_sync(FULL, (bits >> lane & 1) != 0 && __popc(bits & lanes_below(lane)) == n)) - 1;
}

// Walk through 32 predecessors, the nearest first, as far as `max_skip` allows: those in `records` were better than all
// before them, and those in `in_vain` were not and are marked. Returns where the walk ends, LANES if it does not; `last`
// is the last record before that, if there is one.
__device__ __forceinline__ int walk(unsigned records, unsigned in_vain, int max_skip, int* skipped, int* last) {
    unsigned rest = FULL;
    for (;;) {
        const int record = (records & rest) != 0 ? __ffs((int)(records & rest)) - 1 : LANES;
        const unsigned before = in_vain & rest & lanes_below(record);
        if (*skipped + __popc(before) > max_skip) return lane_of_bit(before, max_skip - *skipped);
        *skipped += __popc(before);
        if (record == LANES) return LANES;
        *last = record;
        *skipped = max(*skipped - 1, 0);
        rest = ~(lanes_below(record) | 1u << record);
    }
}

// Those of 32 candidates that are better than `best` and all before them.
__device__ __forceinline__ unsigned records_of(int candidate, int best) {
    unsigned records = 0, rest = FULL;
    for (;;) {
        const unsigned better = __ballot_sync(FULL, candidate > best) & rest;
        if (better == 0) return records;
        const int record = __ffs((int)better) - 1;
        records |= 1u << record;
        best = __shfl_sync(FULL, candidate, record);
        rest = ~(lanes_below(record) | 1u << record);
    }
}

__device__ __forceinline__ int2 from_lane(int2 anchor, int lane) {
    return make_int2(__shfl_sync(FULL, anchor.x, lane), __shfl_sync(FULL, anchor.y, lane));
}
