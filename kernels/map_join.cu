// Scores of chains that are joined over long gaps: `score_long_joins` in f5py/mapping/chain/_chains_numba.py.
// One warp per segment, several per block.
//
// The predecessor with the largest priority is mostly that of all anchors in reach, which a warp keeps in mind; where it
// is not, the lanes look through all that are. Those nearby are tried in the order of their positions on the read, the
// nearest first, in rows of 32; the search stops where that of the CPU stops.

#include "map_chain.cuh"

#define WARPS 4  // of a block

// An anchor that is a predecessor of the largest priority; of equal ones that which comes later on the read.
struct Best {
    double priority;
    int64 key;  // position on the read << 32 | index; -1 if there is none
};

__device__ __forceinline__ int64 key_of(int2 anchor, int i) { return (int64)position_of(anchor) << 32 | i; }

__device__ __forceinline__ void take_better(Best& best, Best other) {
    if (other.key >= 0 && (best.key < 0 || other.priority > best.priority ||
                           (other.priority == best.priority && other.key > best.key)))
        best = other;
}

__device__ __forceinline__ Best best_of_warp(Best best) {
    for (int distance = LANES / 2; distance > 0; distance /= 2) {
        const double priority = __shfl_xor_sync(FULL, best.priority, distance);
        const int64 key = __shfl_xor_sync(FULL, best.key, distance);
        take_better(best, {priority, key});
    }
    return best;
}

// Sort numbers that are all different. What lies beyond the end counts as larger than all, and stays there.
__device__ __forceinline__ void sort(int64* keys, int n) {
    const int lane = threadIdx.x % LANES;
    for (int size = 2; size / 2 < n; size *= 2) {
        for (int distance = size / 2; distance > 0; distance /= 2) {
            for (int pair = lane;; pair += LANES) {
                const int begin = pair / distance * 2 * distance, at = pair % distance;
                const int low = begin + at;
                // in the first step of a merge the one half is taken backwards
                const int high = distance == size / 2 ? begin + size - 1 - at : low + distance;
                if (low >= n) break;
                if (high >= n) continue;
                const int64 first = keys[low], second = keys[high];
                if (second < first) {
                    keys[low] = second;
                    keys[high] = first;
                }
            }
            __syncwarp(FULL);
        }
    }
}

// How many of `n` sorted numbers are less than `limit`.
__device__ __forceinline__ int n_below(const int64* keys, int n, int64 limit) {
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (keys[middle] < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// A segment, and what the search is limited to.
struct Search {
    const int2* anchors;
    int2* chains;
    int64* keys;         // of the anchors, sorted
    int* firsts;         // of each anchor, how many are before it on the read
    int* marks;          // the last anchor in whose search one has been a predecessor of a nearer one
    double* priorities;  // of each anchor as a predecessor
    int n, reach, bandwidth, inner, max_skip;
    double half_gap;
    const int* penalties;
};

// Try the anchors from `low` to `high - 1` as predecessors of anchor `i` that are nearby on the read, too.
__device__ __forceinline__ void
try_nearby(const Search& search, int2 own, int i, int low, int high, int* score, int* parent) {
    const int lane = threadIdx.x % LANES, position = position_of(own);
    int skipped = 0;
    for (int top = search.firsts[i] - 1;; top -= LANES) {
        const int64 key = top - lane >= 0 ? search.keys[top - lane] : -1;
        const int j = (int)key;
        const bool is_near = key >= 0 && position - (int)(key >> 32) <= search.inner;
        int candidate = NO_PAIR;
        if (is_near && j >= low && j < high) {
            const int2 anchor = search.anchors[j], chain = search.chains[j];
            const int on_reference = own.x - anchor.x, on_read = position - position_of(anchor);
            if (abs(on_reference - on_read) <= search.bandwidth) {
                candidate = chain.x + gain_of(on_reference, on_read, span_of(anchor), search.penalties);
                // It is farther away on the read: it is tried after this one.
                if (chain.y >= 0) search.marks[chain.y] = i;
            }
        }
        __syncwarp(FULL);
        const bool has_pair = candidate != NO_PAIR;
        const unsigned marked = __ballot_sync(FULL, has_pair && search.marks[has_pair ? j : 0] == i);
        const unsigned near = __ballot_sync(FULL, is_near);
        const unsigned records = records_of(candidate, *score);
        int last = NONE;
        const int end = walk(records, marked & ~records, search.max_skip, &skipped, &last);
        if (last != NONE) {
            *score = __shfl_sync(FULL, candidate, last);
            *parent = __shfl_sync(FULL, j, last);
        }
        if (end != LANES || near != FULL) return;
    }
}

__device__ __forceinline__ void join(const Search& search) {
    const int lane = threadIdx.x % LANES, n = search.n;
    for (int i = lane; i < n; i += LANES) {
        search.keys[i] = key_of(search.anchors[i], i);
        search.marks[i] = NONE;
    }
    __syncwarp(FULL);
    sort(search.keys, n);
    for (int i = lane; i < n; i += LANES)
        search.firsts[i] = n_below(search.keys, n, (int64)position_of(search.anchors[i]) << 32);
    __syncwarp(FULL);
    // Predecessors are those up to `inserted - 1`: the others have the anchor's own place on the reference. Those from
    // `within` on are in reach, those from `nearby` on are nearby; with the places of these two.
    int inserted = 0, within = 0, nearby = 0;
    int within_x = search.anchors[0].x, nearby_x = within_x;
    Best top = {0, -1};  // of all in reach, if that is known
    bool is_known = true;
    int2 top_anchor = make_int2(0, 0);
    int top_score = 0;
    int2 coming, further = search.anchors[min(lane, n - 1)];
    int2 previous = make_int2(0, 0);
    Best of_previous = {0, -1};
    int previous_score = 0;
    for (int i = 0; i < n; ++i) {
        if (i % LANES == 0) {
            coming = further;
            further = search.anchors[min(i + LANES + lane, n - 1)];
        }
        const int2 own = from_lane(coming, i % LANES);
        const int position = position_of(own);
        if (i > 0 && own.x != previous.x) {
            for (; inserted < i; ++inserted) {
                const bool is_last = inserted == i - 1;
                const int2 anchor = is_last ? previous : search.anchors[inserted];
                const Best one = is_last ? of_previous : Best{search.priorities[inserted], key_of(anchor, inserted)};
                take_better(top, one);
                if (top.key == one.key) {
                    top_anchor = anchor;
                    top_score = is_last ? previous_score : search.chains[inserted].x;
                }
            }
        }
        for (; within < i && own.x - within_x > search.reach; within_x = search.anchors[++within].x)
            is_known = is_known && within != (int)top.key;
        while (nearby < i && own.x - nearby_x > search.inner) nearby_x = search.anchors[++nearby].x;
        Best best = top;
        int2 anchor = top_anchor;
        int its_score = top_score;
        const int on_top = position_of(top_anchor);
        if (!is_known || top.key < 0 || on_top >= position || on_top + search.reach <= position) {
            Best of_all = {0, -1};
            best = of_all;
            for (int j = within + lane; j < inserted; j += LANES) {
                const int2 other = search.anchors[j];
                const Best one = {search.priorities[j], key_of(other, j)};
                take_better(of_all, one);
                if (position_of(other) < position && position_of(other) + search.reach > position)
                    take_better(best, one);
            }
            best = best_of_warp(best);
            if (!is_known) {
                is_known = true;
                top = best_of_warp(of_all);
                if (top.key >= 0) {
                    top_anchor = search.anchors[(int)top.key];
                    top_score = search.chains[(int)top.key].x;
                }
            }
            if (best.key >= 0) {
                anchor = search.anchors[(int)best.key];
                its_score = search.chains[(int)best.key].x;
            }
        }
        int score = span_of(own), parent = NONE;
        if (best.key >= 0) {
            const int on_reference = own.x - anchor.x, on_read = position - position_of(anchor);
            if (abs(on_reference - on_read) <= search.bandwidth) {
                const int candidate = its_score + gain_of(on_reference, on_read, span_of(anchor), search.penalties);
                if (candidate > score) {
                    score = candidate;
                    parent = (int)best.key;
                }
            }
            const bool is_exact = on_reference == on_read && on_read <= span_of(anchor);
            if (!is_exact && position > 0)
                try_nearby(search, own, i, nearby, inserted, &score, &parent);
        }
        previous = own;
        previous_score = score;
        of_previous = {score + search.half_gap * (double)((int64)own.x + position), key_of(own, i)};
        if (lane == 0) {
            search.chains[i] = make_int2(score, parent);
            search.priorities[i] = of_previous.priority;
        }
        __syncwarp(FULL);
    }
}

// Segments 0..n_segments-1. `keys`, `firsts`, `marks` and `priorities` are scratch, an element per anchor.
extern "C" __global__ void __launch_bounds__(WARPS * LANES) join_chains(
    const int2* __restrict__ all_anchors, const Segment* __restrict__ segments, const int n_segments, const int reach,
    const int bandwidth, const int inner, const int max_skip, const double half_gap,
    const int* __restrict__ penalties, int64* all_keys, int* all_firsts, int* all_marks, double* all_priorities,
    int2* all_chains) {
    const int number = blockIdx.x * WARPS + threadIdx.x / LANES;
    if (number >= n_segments) return;
    const Segment segment = segments[number];
    const int at = segment.x;
    const Search search = {
        all_anchors + at, all_chains + at, all_keys + at, all_firsts + at, all_marks + at, all_priorities + at,
        segment.y / 2, reach, bandwidth, inner, max_skip, half_gap, penalties};
    join(search);
}
