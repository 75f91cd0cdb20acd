// After the band fill: traceback, quality checks and the base-to-event map. One warp per read, one block per warp.
//
// The directions of TILE_GROUPS band groups lie in shared memory, brought there by the whole warp in 16-byte pieces;
// the next tile's are on their way in registers. Lane 0 walks the path through the tile and lists the pairs it passes,
// also in shared memory. Then all lanes take the listed pairs: they add up the emissions and write the map. The walk
// is a chain of dependent steps on one lane, so a step is kept to few instructions: it moves by sums of direction and
// movement bits instead of branches, and knows its place by the offset in the band alone.

#include "abea.cuh"

#define TILE_GROUPS 16
#define TILE_BANDS (TILE_GROUPS * PACK)
#define TILE_WORDS (TILE_GROUPS * WORDS * LANES)
#define TILE_PIECES (TILE_WORDS / 4 / LANES)  // 16-byte pieces of a lane
#ifndef MIN_MEAN_EMISSION
#define MIN_MEAN_EMISSION (-5.0)
#endif
#ifndef MAX_GAP
#define MAX_GAP 50
#endif
#define ALIGNED 0
#define LOW_EMISSION 1
#define NOT_SPANNING 2
#define LONG_GAP 3

typedef unsigned long long uint64;

// A word of moves: lane 0's first word of a band group.
__device__ __forceinline__ unsigned moves_at(const unsigned* words, int group) {
    return words[(int64)group * WORDS * LANES];
}

// The part of the tile of band groups `first_group` and on that this lane brings; groups before the read are zero.
__device__ __forceinline__ void load_tile(uint4 (&piece)[TILE_PIECES], const unsigned* words, int first_group, int lane) {
    const uint4* source = (const uint4*)(words + (int64)first_group * WORDS * LANES);
#pragma unroll
    for (int i = 0; i < TILE_PIECES; ++i) {
        const int at = i * LANES + lane;
        const int group = first_group + at / (WORDS * LANES / 4);
        piece[i] = group >= 0 ? source[at] : make_uint4(0, 0, 0, 0);
    }
}

extern "C" __global__ void __launch_bounds__(LANES) abea_post(
    const unsigned* __restrict__ trace, const float* __restrict__ event_mean, const float4* __restrict__ kmers,
    const int64* __restrict__ p, const int64* __restrict__ q, const int* __restrict__ order, const int n_reads,
    const int k, const int* __restrict__ best_event_of, const int* __restrict__ corner_of,
    int* __restrict__ first_event_of, int* __restrict__ last_event_of, int* __restrict__ n_pairs_of,
    int* __restrict__ span_of, int* __restrict__ verdict_of) {
    __shared__ uint4 tile[TILE_WORDS / 4];
    __shared__ int2 pairs[TILE_BANDS];  // k-mer; four times the event plus its two direction bits
    if (blockIdx.x >= n_reads) return;
    const int read = order[blockIdx.x];
    const int lane = threadIdx.x;
    const float* events = event_mean + q[read];
    const float4* read_kmers = kmers + p[read];
    int* first_event = first_event_of + p[read];
    int* last_event = last_event_of + p[read];
    const int n_events = (int)(q[read + 1] - q[read]);
    const int n_kmers = (int)(p[read + 1] - p[read]) - k + 1;
    const unsigned* words = trace + first_word(p, q, read);

    for (int j = lane; j < n_kmers; j += LANES) {
        first_event[j] = -1;
        last_event[j] = -1;
    }

    const int best_event = best_event_of[read];
    int event = best_event;
    int kmer = n_kmers - 1;
    int band = event + kmer + 2;
    // The offset of the path's end in its band: the corner of the last band, moved back over the bands in between.
    int offset = kmer - corner_of[read];
    int later = (n_events + n_kmers + 1) / PACK * PACK + PACK - 1;
    while (event >= 0 && later > band) {
        const int count = min(later - band, 32);
        offset += __popc(moves_at(words, later / PACK) & (FULL >> (32 - count)));
        later -= count;
    }

    int n_pairs = 0, gap = 0, longest_gap = 0;
    int previous_kmer = n_kmers, lowest_kmer = n_kmers, lowest_event = 0;
    bool lowest_without_event = false;
    double emissions = 0.0;
    bool walking = event >= 0;
    uint4 piece[TILE_PIECES];
    int first_group = band / PACK - TILE_GROUPS + 1;
    if (walking) load_tile(piece, words, first_group, lane);
    while (walking) {
#pragma unroll
        for (int i = 0; i < TILE_PIECES; ++i) tile[i * LANES + lane] = piece[i];
        __syncwarp(FULL);
        // A step may need the movement of the band below: the last group is walked in the next tile.
        if (first_group > 0) load_tile(piece, words, first_group - TILE_GROUPS + 1, lane);
        int listed = 0;
        if (lane == 0) {
            const unsigned* directions = (const unsigned*)tile;
            const int base = first_group * PACK;
            const int lowest = first_group > 0 ? 1 : -TILE_BANDS;
            int b = band - base;
            uint64 moves = moves_at(directions, TILE_GROUPS - 1);
            if (TILE_BANDS > 32) moves |= (uint64)moves_at(directions, TILE_GROUPS / 2 - 1) << 32;
            moves >>= TILE_BANDS - 1 - b;
            do {
                // Neither is negative here, and unsigned divisions by powers of two are single shifts.
                const unsigned row = b, cell = offset;
                const unsigned slot = cell % CELLS;
                const unsigned at = (row / PACK * WORDS + slot / WORD_CELLS) * LANES + LOW + cell / CELLS;
                const unsigned shift = 30 - BAND_BITS * (row % PACK) - 2 * (slot % WORD_CELLS);
                const int found = (directions[at] >> shift) & 3;
                pairs[listed++] = make_int2(kmer, 4 * event + found);
                const int events_back = found & 1;         // not from the left
                const int kmers_back = found != 1;         // not from above, or from the left
                const int diagonal = found == 3;
                gap = events_back ? 0 : gap + 1;
                longest_gap = max(longest_gap, gap);
                offset += (int)(moves & 1) + (diagonal & (int)(moves >> 1)) - kmers_back;
                event -= events_back;
                kmer -= kmers_back;
                b -= 1 + diagonal;
                moves >>= 1 + diagonal;
            } while (b >= lowest && event >= 0 && kmer >= 0);
            band = base + b;
        }
        listed = __shfl_sync(FULL, listed, 0);
        walking = __shfl_sync(FULL, (int)(event >= 0 && kmer >= 0), 0);
        __syncwarp(FULL);
        for (int i = lane; i < listed; i += LANES) {
            const int2 pair = pairs[i];
            const int e = pair.y >> 2;
            const int found = pair.y & 3;
            const float4 entry = read_kmers[pair.x];
            const float z = __fmul_rn(__fsub_rn(events[e], entry.x), entry.y);
            emissions += (double)fmaf(-z, z, entry.z);
            // Only a pair that takes a new event enters the map: k-mers reached by a skip keep none.
            if (found & 1) {
                if ((i > 0 ? pairs[i - 1].x : previous_kmer) != pair.x) last_event[pair.x] = e;
                // At the tile's end the next tile may have an earlier event and write again.
                if (found == 3 || i == listed - 1 || !(pairs[i + 1].y & 1)) first_event[pair.x] = e;
            }
        }
        n_pairs += listed;
        const int2 lowest_pair = pairs[listed - 1];
        if (listed > 1) previous_kmer = pairs[listed - 2].x;
        lowest_without_event = !(lowest_pair.y & 1) && previous_kmer != lowest_pair.x;
        lowest_kmer = previous_kmer = lowest_pair.x;
        lowest_event = lowest_pair.y >> 2;
        first_group -= TILE_GROUPS - 1;
        __syncwarp(FULL);
    }
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        emissions += __shfl_xor_sync(FULL, emissions, distance);
    longest_gap = __shfl_sync(FULL, longest_gap, 0);

    int verdict = ALIGNED;
    // Scores that are no numbers (a read whose scaling failed) have no best path; fmaxf finds one all the same.
    if (n_pairs == 0 || lowest_kmer != 0 || emissions != emissions)
        verdict = NOT_SPANNING;
    else if (emissions / n_pairs < MIN_MEAN_EMISSION)
        verdict = LOW_EMISSION;
    else if (longest_gap > MAX_GAP)
        verdict = LONG_GAP;
    if (verdict != ALIGNED) {
        for (int j = lane; j < n_kmers; j += LANES) {
            first_event[j] = -1;
            last_event[j] = -1;
        }
    } else if (lane == 0 && lowest_without_event) {
        // A skip at the very first pair has no earlier pair to share its event with: it takes the event.
        first_event[lowest_kmer] = lowest_event;
        last_event[lowest_kmer] = lowest_event;
    }
    if (lane == 0) {
        n_pairs_of[read] = verdict == ALIGNED ? n_pairs : 0;
        span_of[read] = verdict == ALIGNED ? best_event - lowest_event : 0;
        verdict_of[read] = verdict;
    }
}
