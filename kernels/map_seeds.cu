// Seeds of reads and their anchors: f5py/mapping/index/seeds.py, for k-mers with an odd number of bases. A warp has a
// read from its bases to the number of its anchors, and writes these when there is a place for them; then a block sorts
// them. Everything is done in whole numbers.
//
// A k-mer is a minimizer if it is the smallest of some window of w neighbours, which it can tell from those around
// it; of the first window of a read not all that are smallest count, as on the CPU, which meets them one after the
// other. What is rare is left to the CPU threads: reads with unknown bases and reads in which a minimizer may be so
// frequent that it is dropped; and the sorting of many anchors of which some have the same place on the reference, since
// the order of these depends on the CPU's way of sorting.

#include "warp.cuh"

#define WARPS 4  // of a block
#define THREADS (WARPS * LANES)
#define COUNT_BITS 28  // of a look-up's result: number of places; the others say where they begin
#define BUCKET_BITS 12  // of a key that come first in the index of a bucket
#define COUNT_MASK ((1ll << COUNT_BITS) - 1)
// Flags of an entry: the seed is next to one with the same k-mer, or is not used.
#define TANDEM (1ll << 62)
#define DROPPED (1ll << 61)
#define MOST_RESCUED 128
#define MOST_STABLE 64  // anchors that the CPU sorts without changing the order of equal ones
#define BUCKETS_OF_LANE 64
#define N_FOUND 5  // numbers of a read: minimizers in the index, those used, their places, bases of others; state

typedef unsigned long long uint64;
#define NONE (~0ull)

enum State { DONE, UNKNOWN_BASES, FREQUENT_IN_READ, TOO_MANY };

__device__ __forceinline__ uint64 hash_bits(uint64 x, uint64 mask) {
    x = (~x + (x << 21)) & mask;
    x = x ^ (x >> 24);
    x = (x + (x << 3) + (x << 8)) & mask;
    x = x ^ (x >> 14);
    x = (x + (x << 2) + (x << 4)) & mask;
    x = x ^ (x >> 28);
    return (x + (x << 31)) & mask;
}

// Number of lanes below this one in a mask.
__device__ __forceinline__ int rank_in(unsigned mask, int lane) { return __popc(mask & ((1u << lane) - 1)); }

__device__ __forceinline__ int sum_of(int value) {
    for (int distance = LANES / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(FULL, value, distance);
    return value;
}

// Hash << 1 | strand of the k-mer that ends at every base; NONE for the first k - 1. Returns whether a base is unknown.
__device__ __forceinline__ bool fill_keys(const unsigned char* bases, int n, int k, uint64* keys, int lane) {
    const uint64 mask = (1ull << 2 * k) - 1;
    const int shift = 2 * (k - 1);
    bool is_unknown = false;
    for (int i = lane; i < n; i += LANES) {
        is_unknown |= bases[i] > 3;
        uint64 key = NONE;
        if (i >= k - 1) {
            uint64 forward = 0, backward = 0;
            for (int t = i - k + 1; t <= i; ++t) {
                const unsigned base = bases[t] & 3u;
                forward = forward << 2 | base;
                backward = backward >> 2 | (uint64)(3u - base) << shift;
            }
            key = hash_bits(min(forward, backward), mask) << 1 | (forward < backward ? 0u : 1u);
        }
        keys[i] = key;
    }
    return __ballot_sync(FULL, is_unknown) != 0;
}

// List where the minimizers end; returns how many there are.
__device__ __forceinline__ int list_minimizers(const uint64* keys, int n, int k, int w, int* listed, int lane) {
    const int first = k - 1, second = first + w - 1;  // k-mers of the first window but the last; that one
    if (n < k) return 0;
    uint64 smallest = NONE;
    int place = -1;
    for (int i = first; i < min(second, n); ++i) {
        if (keys[i] >> 1 <= smallest) {
            smallest = keys[i] >> 1;
            place = i;
        }
    }
    if (n <= second) {  // not even one window
        if (lane == 0) listed[0] = place;
        return 1;
    }
    // Where the last k-mer of the first window is as small as those before, the last of these is lost, and all equal
    // ones count even if it is smaller.
    const bool is_lost = keys[second] >> 1 <= smallest;
    int n_listed = 0;
    for (int begin = first; begin < n; begin += LANES) {
        const int i = begin + lane;
        bool is_minimizer = false;
        if (i < n) {
            const uint64 own = keys[i] >> 1;
            int left = 0, right = 0;
            while (left < w - 1 && i - left > first && keys[i - left - 1] >> 1 >= own) ++left;
            while (left + right < w - 1 && i + right + 1 < n && keys[i + right + 1] >> 1 >= own) ++right;
            is_minimizer = left + right >= w - 1;
            if (is_lost && i < second && own == smallest) is_minimizer = i != place;
        }
        const unsigned these = __ballot_sync(FULL, is_minimizer);
        if (is_minimizer) listed[n_listed + rank_in(these, lane)] = i;
        n_listed += __popc(these);
    }
    return n_listed;
}

// Most minimizers of a read that may be the same one: those of a bucket of hashes. Every lane counts buckets of its own.
__device__ __forceinline__ int most_alike(
    const uint64* keys, const int* listed, int n, unsigned* buckets, int lane) {
    unsigned* own = buckets + lane * BUCKETS_OF_LANE;
    for (int i = 0; i < BUCKETS_OF_LANE; ++i) own[i] = 0;
    unsigned most = 0;
    for (int begin = 0; begin < n; begin += LANES) {
        const int count = min(LANES, n - begin);
        const uint64 key = lane < count ? keys[listed[begin + lane]] >> 1 : 0;
        const unsigned mixed = (unsigned)(key * 0x9E3779B97F4A7C15ull >> 40);
        for (int t = 0; t < count; ++t) {
            const unsigned its = __shfl_sync(FULL, mixed, t);
            if (its % LANES == (unsigned)lane) most = max(most, ++own[its / LANES % BUCKETS_OF_LANE]);
        }
    }
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        most = max(most, __shfl_xor_sync(FULL, most, distance));
    return (int)most;
}

// Entry of a k-mer in the index; 0 if that has none.
__device__ __forceinline__ long long look_up(
    const unsigned* directory, const uint64* entries, int bits, uint64 key) {
    const int first = min(bits, BUCKET_BITS), spread = bits - first;
    const uint64 bucket = key & ((1ull << first) - 1);
    const uint64 slot = bucket << spread | (key >> first & ((1ull << spread) - 1));
    const unsigned end = __ldg(directory + slot + 1);
    for (unsigned e = __ldg(directory + slot); e < end; ++e) {
        const uint64 entry = __ldg(entries + e);
        if (entry >> 32 != key >> bits) continue;
        const uint64 start = entry & 0xffffffffu, n = (__ldg(entries + e + 1) & 0xffffffffu) - start;
        return (long long)(start << COUNT_BITS | (n < COUNT_MASK ? n : COUNT_MASK));
    }
    return 0;
}

// Drop seeds with more than `mid_occ` places, but for the rarest of a long stretch without others; by one thread.
__device__ void drop_frequent(
    long long* entries, const int* places, int m, int n, int mid_occ, int occ_dist, int max_max_occ) {
    if (occ_dist <= 0 || max_max_occ <= mid_occ) {
        for (int i = 0; i < m; ++i)
            if ((entries[i] & COUNT_MASK) > mid_occ) entries[i] |= DROPPED;
        return;
    }
    if (m < 2) return;
    for (int i = 0; i < m;) {
        int j = i;
        while (j < m && (entries[j] & COUNT_MASK) > mid_occ) ++j;
        if (j == i) {
            ++i;
            continue;
        }
        const int begin = i == 0 ? 0 : places[i - 1] >> 1, end = j == m ? n : places[j] >> 1;
        const int allowed = min(min(MOST_RESCUED, (int)((double)(end - begin) / occ_dist + 0.499)), j - i);
        for (int s = i; s < j; ++s) entries[s] |= DROPPED;
        for (int turn = 0; turn < allowed; ++turn) {
            int best = -1;
            for (int s = i; s < j; ++s)
                if ((entries[s] & DROPPED) != 0 &&
                    (best < 0 || (entries[s] & COUNT_MASK) < (entries[best] & COUNT_MASK)))
                    best = s;
            entries[best] &= ~DROPPED;
        }
        for (int s = i; s < j; ++s)
            if ((entries[s] & COUNT_MASK) > max_max_occ) entries[s] |= DROPPED;
        i = j;
    }
}

// Bases that dropped seeds cover.
__device__ __forceinline__ int covered_by_dropped(const long long* entries, const int* places, int m, int k) {
    int covered = 0, begin = 0, end = 0;
    for (int i = 0; i < m; ++i) {
        if ((entries[i] & DROPPED) == 0) continue;
        const int last = (places[i] >> 1) + 1;
        if (last - k > end) {
            covered += end - begin;
            begin = last - k;
        }
        end = last;
    }
    return covered + end - begin;
}

// Seeds of reads: entries of the index, and last base << 1 | strand. One warp per read; `all_keys` and `all_listed` are
// scratch, an element per base as all arrays but `offsets` and `found`, which has N_FOUND numbers per read.
extern "C" __global__ void __launch_bounds__(THREADS) seeds_find(
    const unsigned char* __restrict__ all_bases, const int* __restrict__ offsets, const int n_reads, const int k,
    const int w, const int mid_occ, const float fraction, const int occ_dist, const int max_max_occ,
    const unsigned* __restrict__ directory, const unsigned long long* __restrict__ index_entries, const int bits,
    unsigned long long* __restrict__ all_keys, int* __restrict__ all_listed, long long* __restrict__ all_entries,
    int* __restrict__ all_places, int* __restrict__ all_found) {
    __shared__ unsigned buckets[WARPS][LANES * BUCKETS_OF_LANE];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int read = blockIdx.x * WARPS + warp;
    if (read >= n_reads) return;
    const int begin = offsets[read], n = offsets[read + 1] - begin;
    uint64* keys = all_keys + begin;
    int* listed = all_listed + begin;
    long long* entries = all_entries + begin;
    int* places = all_places + begin;
    int* found = all_found + (long long)read * N_FOUND;
    int state = fill_keys(all_bases + begin, n, k, keys, lane) ? UNKNOWN_BASES : DONE;
    __syncwarp(FULL);
    int n_listed = 0, m = 0, n_used = 0, rep_len = 0;
    long long n_anchors = 0;
    if (state == DONE) {
        n_listed = list_minimizers(keys, n, k, w, listed, lane);
        __syncwarp(FULL);
        if (n_listed > mid_occ) {
            const int most = most_alike(keys, listed, n_listed, buckets[warp], lane);
            if (most > mid_occ && (float)most >= (float)n_listed * fraction) state = FREQUENT_IN_READ;
        }
    }
    if (state == DONE) {
        bool any_frequent = false;
        for (int first = 0; first < n_listed; first += LANES) {
            const int i = first + lane;
            long long entry = 0;
            int place = 0;
            if (i < n_listed) {
                const uint64 key = keys[listed[i]];
                entry = look_up(directory, index_entries, bits, key >> 1);
                if (entry != 0) {
                    any_frequent |= (entry & COUNT_MASK) > mid_occ;
                    place = listed[i] << 1 | (int)(key & 1);
                    if ((i > 0 && keys[listed[i - 1]] >> 1 == key >> 1) ||
                        (i + 1 < n_listed && keys[listed[i + 1]] >> 1 == key >> 1))
                        entry |= TANDEM;
                }
            }
            const unsigned these = __ballot_sync(FULL, entry != 0);
            if (entry != 0) {
                entries[m + rank_in(these, lane)] = entry;
                places[m + rank_in(these, lane)] = place;
            }
            m += __popc(these);
        }
        __syncwarp(FULL);
        if (__ballot_sync(FULL, any_frequent) != 0) {
            if (lane == 0) {
                drop_frequent(entries, places, m, n, mid_occ, occ_dist, max_max_occ);
                rep_len = covered_by_dropped(entries, places, m, k);
            }
            __syncwarp(FULL);
        }
        for (int i = lane; i < m; i += LANES) {
            if ((entries[i] & DROPPED) != 0) continue;
            n_anchors += entries[i] & COUNT_MASK;
            ++n_used;
        }
        n_used = sum_of(n_used);
        for (int distance = LANES / 2; distance > 0; distance /= 2)
            n_anchors += __shfl_xor_sync(FULL, n_anchors, distance);
        if (n_anchors > 0x7fffffff) state = TOO_MANY;
    }
    if (lane == 0) {
        found[0] = m;
        found[1] = n_used;
        found[2] = state == DONE ? (int)n_anchors : 0;
        found[3] = rep_len;
        found[4] = state;
    }
}

// Anchors of chosen reads in the order of their seeds, and the seeds that are used: span << 32 | last base. One warp
// per read. `first_anchors` and `first_used` say where those of a chosen read begin.
extern "C" __global__ void __launch_bounds__(THREADS) seeds_place(
    const int* __restrict__ chosen, const int n_chosen, const int* __restrict__ offsets, const int k,
    const long long* __restrict__ all_entries, const int* __restrict__ all_places, const int* __restrict__ all_found,
    const long long* __restrict__ places_in_reference, const int* __restrict__ first_anchors,
    const int* __restrict__ first_used, unsigned long long* __restrict__ all_x, long long* __restrict__ all_y,
    long long* __restrict__ all_used) {
    const int lane = threadIdx.x % LANES, number = blockIdx.x * WARPS + threadIdx.x / LANES;
    if (number >= n_chosen) return;
    const int read = chosen[number], begin = offsets[read], n = offsets[read + 1] - begin;
    const int m = all_found[(long long)read * N_FOUND];
    const long long* entries = all_entries + begin;
    const int* places = all_places + begin;
    uint64* x = all_x + first_anchors[number];
    long long* y = all_y + first_anchors[number];
    long long* used = all_used + first_used[number];
    for (int first = 0; first < m; first += LANES) {
        const int i = first + lane;
        const long long entry = i < m ? entries[i] : DROPPED;
        const bool is_used = (entry & DROPPED) == 0;
        const int place = is_used ? places[i] : 0, count = is_used ? (int)(entry & COUNT_MASK) : 0;
        const int last = place >> 1, strand = place & 1;
        const unsigned these = __ballot_sync(FULL, is_used);
        if (is_used) used[rank_in(these, lane)] = (long long)k << 32 | last;
        used += __popc(these);
        int end = count;  // of the anchors of this lane and those before it
        for (int distance = 1; distance < LANES; distance *= 2) {
            const int before = __shfl_up_sync(FULL, end, distance);
            if (lane >= distance) end += before;
        }
        const long long* targets = places_in_reference + ((entry & ~(TANDEM | DROPPED)) >> COUNT_BITS);
        // the flag of tandems stands in bit 42 of y: TANDEM in _seeds_numba.py
        const long long high = (long long)k << 32 | ((entry & TANDEM) != 0 ? 1ll << 42 : 0ll);
        for (int p = 0; p < count; ++p) {
            const long long target = targets[p];
            const uint64 on_reference = (uint64)target >> 32 << 32 | ((uint64)target & 0xffffffffu) >> 1;
            const bool is_same = (int)(target & 1) == strand;
            x[end - count + p] = is_same ? on_reference : 1ull << 63 | on_reference;
            y[end - count + p] = high | (is_same ? last : n - 1 - (last + 1 - k));
        }
        const int total = __shfl_sync(FULL, end, LANES - 1);
        x += total;
        y += total;
    }
}

// Sort the anchors of chosen reads by x, stably: runs are merged, every anchor looking for its place in the other run.
// One block per read. `has_ties` is 1 for reads with more than MOST_STABLE anchors of which some have the same x. The
// other arrays are scratch.
extern "C" __global__ void __launch_bounds__(THREADS) seeds_sort(
    const int* __restrict__ first_anchors, unsigned long long* __restrict__ all_x, long long* __restrict__ all_y,
    unsigned long long* __restrict__ all_other_x, long long* __restrict__ all_other_y, int* __restrict__ has_ties) {
    const int begin = first_anchors[blockIdx.x], n = first_anchors[blockIdx.x + 1] - begin;
    uint64 *x = all_x + begin, *other_x = all_other_x + begin;
    long long *y = all_y + begin, *other_y = all_other_y + begin;
    bool is_swapped = false;
    for (int width = 1; width < n; width = width > n / 2 ? n : 2 * width) {
        for (int i = threadIdx.x; i < n; i += THREADS) {
            const int run = i / width, first = run * width;
            const bool is_left = run % 2 == 0;
            const uint64 own = x[i];
            const int other = is_left ? first + width : first - width;
            int low = min(other, n), high = min(other + width, n);
            const int other_first = low;
            while (low < high) {  // the first of the other run that comes behind
                const int middle = low + (high - low) / 2;
                if (is_left ? x[middle] < own : x[middle] <= own)
                    low = middle + 1;
                else
                    high = middle;
            }
            const int to = (is_left ? first : other) + (i - first) + (low - other_first);
            other_x[to] = own;
            other_y[to] = y[i];
        }
        __syncthreads();
        uint64* swapped_x = x;
        x = other_x;
        other_x = swapped_x;
        long long* swapped_y = y;
        y = other_y;
        other_y = swapped_y;
        is_swapped = !is_swapped;
    }
    if (threadIdx.x == 0) has_ties[blockIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += THREADS) {
        if (n > MOST_STABLE && i > 0 && x[i] == x[i - 1]) has_ties[blockIdx.x] = 1;
        if (is_swapped) {
            other_x[i] = x[i];
            other_y[i] = y[i];
        }
    }
}
