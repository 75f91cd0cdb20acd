// Maximal exact matches of reads in the reference, by an FM-index: f5py/mapping/mem/mem_seeds.py; the five stages of
// GPUseed (Ahmed et al.). The results are those of f5py/mapping/mem/mem_seeds.py.
//
// mems_pack writes both strands of all reads, one after the other, each behind a byte that matches nothing. mems_find
// has a thread for every last base: the rows of the last k bases come from a table, and then it goes to the left until
// nothing is found. The lanes of a warp, neighbouring ends, are at the same first base at a time. A lane with as many
// places as the next one that is still searching would go on like that one, and stops. mems_mark drops the matches that
// have first base and number of places of the next one; mems_compact writes those that are left. mems_rows counts the
// rows that are to be located, and mems_locate reads the places, a thread for each row.

#include "warp.cuh"

#define THREADS 256
#define SCAN_THREADS 512
#define SCAN_WARPS (SCAN_THREADS / LANES)
#define SCAN_ITEMS 8  // of a thread at a time
#define NOTHING 4  // what no base of the reference equals
#define HAS_ENDS 0x80000000u
#define STOPPED (-1)

// 64 rows: how often each base comes before the suffixes of earlier rows, and the two bits of the bases before its own.
struct Block {
    uint4 counts, bits;
};

// How often `base` comes before the suffixes of the rows before `row`; see rank() in fm_index.py.
__device__ __forceinline__ unsigned rank_of(
    const Block* __restrict__ blocks, const int* __restrict__ ends, int n_ends, unsigned base, unsigned row) {
    const Block* block = blocks + row / 64;
    const uint4 bits = block->bits;
    unsigned count = reinterpret_cast<const unsigned*>(&block->counts)[base];
    const unsigned flip_low = base & 1 ? 0 : FULL, flip_high = base & 2 ? 0 : FULL;
    const unsigned first = (bits.x ^ flip_low) & (bits.z ^ flip_high);
    const unsigned second = (bits.y ^ flip_low) & (bits.w ^ flip_high);
    const unsigned in_block = row % 64, rest = (1u << in_block % 32) - 1;
    if (base == 0 && (count & HAS_ENDS) != 0) {  // rows without a base look like an A
        count &= ~HAS_ENDS;
        const int begin = (int)(row - in_block);
        int low = 0, high = n_ends;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (ends[middle] < begin)
                low = middle + 1;
            else
                high = middle;
        }
        for (; low < n_ends && ends[low] < (int)row; ++low) --count;
    }
    if (in_block < 32) return count + __popc(first & rest);
    return count + __popc(first) + __popc(second & rest);
}

// Stage 0. `offsets`: of the reads' bases, n_reads + 1. Both strands of read i are at 2 * (offsets[i] + i).
extern "C" __global__ void __launch_bounds__(THREADS) mems_pack(
    const unsigned char* __restrict__ bases, const int* __restrict__ offsets, const int n_reads, const int n,
    unsigned char* __restrict__ patterns) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    int low = 0, high = n_reads;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (2 * (offsets[middle] + middle) <= at)
            low = middle;
        else
            high = middle;
    }
    const int begin = offsets[low], length = offsets[low + 1] - begin;
    int i = at - 2 * (begin + low);
    unsigned base = NOTHING;
    if (i > length + 1) {
        base = bases[begin + 2 * length + 1 - i];
        base = base < NOTHING ? 3 - base : NOTHING;
    } else if (i > 0 && i <= length) {
        base = bases[begin + i - 1];
    }
    patterns[at] = (unsigned char)base;
}

// Stage 1. Filled for each last base: length of the match, 0 for none, STOPPED; its first row and their number.
extern "C" __global__ void __launch_bounds__(THREADS) mems_find(
    const unsigned char* __restrict__ patterns, const int n, const int k, const Block* __restrict__ blocks,
    const int* __restrict__ ends, const int n_ends, const int first_a, const int first_c, const int first_g,
    const int first_t, const uint2* __restrict__ table, int* __restrict__ lengths, int2* __restrict__ rows) {
    const int last = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % LANES;
    const int begin_of_warp = last - lane;
    if (begin_of_warp >= n) return;
    uint2 found = make_uint2(0, 0);
    if (last < n && last >= k) {  // the first byte is nothing
        unsigned word = 0, any = 0;
        for (int i = last - k + 1; i <= last; ++i) {
            const unsigned base = patterns[i];
            any |= base;
            word = word << 2 | (base & 3);
        }
        if (any < NOTHING) found = table[word];
    }
    const int joins = last - k + 1;
    int length = 0;
    bool is_searching = false, is_new = found.x < found.y;
    int start = begin_of_warp + LANES - k;
    for (;; --start) {
        const unsigned searching = __ballot_sync(FULL, is_searching);
        const unsigned to_come = __ballot_sync(FULL, is_new && joins <= start);
        if ((searching | to_come) == 0) break;
        if (is_searching) {
            const unsigned base = patterns[start];
            uint2 longer = make_uint2(0, 0);
            if (base < NOTHING) {
                const unsigned first = base < 2 ? (base == 0 ? first_a : first_c) : (base == 2 ? first_g : first_t);
                longer.x = first + rank_of(blocks, ends, n_ends, base, found.x);
                longer.y = first + rank_of(blocks, ends, n_ends, base, found.y);
            }
            if (longer.x < longer.y) {
                found = longer;
                ++length;
            } else {
                is_searching = false;
            }
        }
        if (is_new && joins == start) {
            is_searching = true;
            is_new = false;
            length = k;
        }
        // Those above that have stopped go on like the next one that searches; if one has come to its end, so have all.
        const unsigned above = __ballot_sync(FULL, is_searching) & ~((2u << lane) - 1);
        const int next = above != 0 ? __ffs((int)above) - 1 : lane;
        const unsigned its_count = __shfl_sync(FULL, found.y - found.x, next);
        if (is_searching && next != lane && its_count == found.y - found.x) {
            is_searching = false;
            length = STOPPED;
        }
    }
    if (last < n) {
        lengths[last] = length;
        rows[last] = make_int2((int)found.x, (int)(found.y - found.x));
    }
}

// Stage 2. A bit for each last base whose match is a seed; and their numbers, for mems_scan. n is a multiple of LANES.
extern "C" __global__ void __launch_bounds__(THREADS) mems_mark(
    const int* __restrict__ lengths, const int2* __restrict__ rows, const int n, const int min_length,
    unsigned* __restrict__ kept, int* __restrict__ counts) {
    const int last = blockIdx.x * blockDim.x + threadIdx.x;
    if (last - (int)(threadIdx.x % LANES) >= n) return;
    bool is_kept = false;
    if (last < n && lengths[last] >= min_length) {
        int next = last + 1;
        while (next < n && lengths[next] == STOPPED) ++next;
        is_kept = next == n || lengths[next] == 0 || next - lengths[next] != last - lengths[last] ||
                  rows[next].y != rows[last].y;
    }
    const unsigned all = __ballot_sync(FULL, is_kept);
    if (threadIdx.x % LANES == 0) {
        kept[last / LANES] = all;
        counts[last / LANES] = __popc(all);
    }
}

// Turn n numbers into the sums of those before; totals[which] is the sum of all. One block.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) mems_scan(
    int* __restrict__ numbers, const int n, const int which, int* __restrict__ totals) {
    __shared__ int sums[SCAN_WARPS];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    int before = 0;
    for (int first = 0; first < n; first += SCAN_THREADS * SCAN_ITEMS) {
        const int begin = first + (int)threadIdx.x * SCAN_ITEMS;
        int own[SCAN_ITEMS], of_thread = 0;
#pragma unroll
        for (int k = 0; k < SCAN_ITEMS; ++k) {
            own[k] = begin + k < n ? numbers[begin + k] : 0;
            of_thread += own[k];
        }
        int sum = of_thread;
        for (int distance = 1; distance < LANES; distance *= 2) {
            const int other = __shfl_up_sync(FULL, sum, distance);
            if (lane >= distance) sum += other;
        }
        if (lane == LANES - 1) sums[warp] = sum;
        __syncthreads();
        int at = before + sum - of_thread, total = 0;
        for (int w = 0; w < SCAN_WARPS; ++w) {
            if (w < warp) at += sums[w];
            total += sums[w];
        }
#pragma unroll
        for (int k = 0; k < SCAN_ITEMS; ++k) {
            if (begin + k < n) numbers[begin + k] = at;
            at += own[k];
        }
        before += total;
        __syncthreads();
    }
    if (threadIdx.x == 0) totals[which] = before;
}

// The matches that are kept: last base, length, first row, number of rows. There is room for `most`.
extern "C" __global__ void __launch_bounds__(THREADS) mems_compact(
    const int* __restrict__ lengths, const int2* __restrict__ rows, const int n, const unsigned* __restrict__ kept,
    const int* __restrict__ counts, const int most, int4* __restrict__ mems) {
    const int last = blockIdx.x * blockDim.x + threadIdx.x;
    if (last >= n) return;
    const unsigned lane = threadIdx.x % LANES, all = kept[last / LANES];
    if ((all >> lane & 1) == 0) return;
    const int to = counts[last / LANES] + __popc(all & ((1u << lane) - 1));
    if (to < most) mems[to] = make_int4(last, lengths[last], rows[last].x, rows[last].y);
}

// Whether the next match begins with the same base, so that its rows are among those of this one.
__device__ __forceinline__ bool has_nested(int4 mem, int4 next) { return mem.x - mem.y == next.x - next.y; }

// Stage 3. The numbers of rows that are to be located: none of matches with more than `limit`.
extern "C" __global__ void __launch_bounds__(THREADS) mems_rows(
    const int4* __restrict__ mems, const int n, const int limit, int* __restrict__ counts) {
    const int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= n) return;
    const int4 mem = mems[m];
    int count = mem.w <= limit ? mem.w : 0;
    if (count > 0 && m + 1 < n && has_nested(mem, mems[m + 1])) count -= mems[m + 1].w;
    counts[m] = count;
}

// Stage 4. Where the rows are: `n_rows` of `n` matches, whose first ones are in `firsts`.
extern "C" __global__ void __launch_bounds__(THREADS) mems_locate(
    const int4* __restrict__ mems, const int n, const int* __restrict__ firsts, const int n_rows,
    const int* __restrict__ places, int* __restrict__ located) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_rows) return;
    int low = 0, high = n;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (firsts[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    const int4 mem = mems[low];
    int row = mem.z + i - firsts[low];
    if (low + 1 < n) {
        const int4 next = mems[low + 1];
        if (has_nested(mem, next) && row >= next.z) row += next.w;
    }
    located[i] = places[row];
}
