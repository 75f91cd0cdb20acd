// The band fill: one warp per read, one block per warp, no barrier and no shared memory.
//
// Registers of a lane, CELLS of each: the scores of the last two bands, the event means and the k-mers (level, inverse,
// constant) under the lane's cells. The next band overwrites the older scores, and the two arrays change roles.
// Global memory: events and k-mers are read once, by the spare lanes, a few dozen bands before the band needs
// them; directions are written once, 128 bytes a warp.
//
// Nearly all bands lie inside the read on all sides. They run through bodies specialised for where the last and this
// band moved, in which all neighbours are known registers: what limits this kernel is the number of instructions.
// Scores must equal the CPU aligner's: additions in the same order, the same fused multiply-adds.

#include "abea.cuh"

#define LP_SKIP (-23.025850929940457f)  // ln 1e-10
#define LP_TRIM (-4.605170185988091f)   // ln 0.01
#define LOW_CELLS (LOW * CELLS)
#define HIGH_CELLS ((LANES - HIGH) * CELLS)

struct Band {
    // The read.
    int n_events, n_kmers;
    float lp_step, lp_stay;  // minus infinity in the spare lanes, whose scores thus stay impossible
    // The band.
    int lane, cell;  // the lane, and the offset in the band of its first cell
    int event, kmer;
    float from_neighbour;  // score that the last band got from the next lane, if it moved right, or the one before
    float x[CELLS], level[CELLS], inverse[CELLS], constant[CELLS];
    // Moves until the spare lanes must be refilled, and with what: the lane's k-mers from `later_kmers` on, the first of
    // which is number `later_kmer`, and its events from `later_events` downwards, the first being `later_event`.
    int downs_left, rights_left;
    const float* later_events;
    const float4* later_kmers;
    int later_event, later_kmer;
    // Directions not yet written.
    unsigned bits[WORDS];
    unsigned moves;
};

// The next k-mers of the lane's cells, as far as the read has them.
__device__ __forceinline__ void load_kmers(Band& b) {
#pragma unroll
    for (int s = 0; s < CELLS; ++s) {
        const int j = b.later_kmer + s;
        if (j >= 0 && j < b.n_kmers) {
            const float4 entry = b.later_kmers[s];
            b.level[s] = entry.x;
            b.inverse[s] = entry.y;
            b.constant[s] = entry.z;
        }
    }
    b.later_kmer += HIGH_CELLS;
    b.later_kmers += HIGH_CELLS;
}

// The next event means of the lane's cells, as far as the read has them.
__device__ __forceinline__ void load_events(Band& b) {
#pragma unroll
    for (int s = 0; s < CELLS; ++s) {
        const int e = b.later_event - s;
        if (e >= 0 && e < b.n_events) b.x[s] = b.later_events[-s];
    }
    b.later_event += LOW_CELLS;
    b.later_events += LOW_CELLS;
}

// Shifts the k-mers under a band that moves right, or the events under one that moves down.
template <bool RIGHT>
__device__ __forceinline__ void shift_inputs(Band& b) {
    if (RIGHT) {
        ++b.kmer;
        const float next_level = __shfl_down_sync(FULL, b.level[0], 1);
        const float next_inverse = __shfl_down_sync(FULL, b.inverse[0], 1);
        const float next_constant = __shfl_down_sync(FULL, b.constant[0], 1);
#pragma unroll
        for (int s = 0; s < CELLS - 1; ++s) {
            b.level[s] = b.level[s + 1];
            b.inverse[s] = b.inverse[s + 1];
            b.constant[s] = b.constant[s + 1];
        }
        b.level[CELLS - 1] = next_level;
        b.inverse[CELLS - 1] = next_inverse;
        b.constant[CELLS - 1] = next_constant;
        if (--b.rights_left == 0) {
            b.rights_left = HIGH_CELLS;
            if (b.lane >= HIGH) load_kmers(b);
        }
    } else {
        ++b.event;
        const float previous_x = __shfl_up_sync(FULL, b.x[CELLS - 1], 1);
#pragma unroll
        for (int s = CELLS - 1; s > 0; --s) b.x[s] = b.x[s - 1];
        b.x[0] = previous_x;
        if (--b.downs_left == 0) {
            b.downs_left = LOW_CELLS;
            if (b.lane < LOW) load_events(b);
        }
    }
}

// The next band's scores from those of the last one, `score`, and of the one before it, which they replace.
template <bool WAS_RIGHT, bool RIGHT>
__device__ __forceinline__ void fill(Band& b, float (&before)[CELLS], const float (&score)[CELLS]) {
    shift_inputs<RIGHT>(b);
    float from_neighbour =
        RIGHT ? __shfl_down_sync(FULL, score[0], 1) : __shfl_up_sync(FULL, score[CELLS - 1], 1);
    // The first spare lane above must not see the band's last cell on its left.
    if (!RIGHT && b.lane == HIGH) from_neighbour = IMPOSSIBLE;
    float result[CELLS];
#pragma unroll
    for (int s = 0; s < CELLS; ++s) {
        // The last band's neighbour above is this one's diagonal neighbour if this one moves right; its left
        // neighbour if this one moves down.
        float diagonal;
        if (WAS_RIGHT && RIGHT)
            diagonal = s == CELLS - 1 ? b.from_neighbour : before[s == CELLS - 1 ? s : s + 1];
        else if (!WAS_RIGHT && !RIGHT)
            diagonal = s == 0 ? b.from_neighbour : before[s == 0 ? s : s - 1];
        else
            diagonal = before[s];
        const float above = !RIGHT ? score[s] : s == CELLS - 1 ? from_neighbour : score[s == CELLS - 1 ? s : s + 1];
        const float beside = RIGHT ? score[s] : s == 0 ? from_neighbour : score[s == 0 ? s : s - 1];
        const float z = __fmul_rn(__fsub_rn(b.x[s], b.level[s]), b.inverse[s]);
        const float emission = fmaf(-z, z, b.constant[s]);
        const float by_step = __fadd_rn(diagonal, __fadd_rn(b.lp_step, emission));
        const float by_stay = __fadd_rn(above, __fadd_rn(b.lp_stay, emission));
        const float by_skip = __fadd_rn(beside, LP_SKIP);
        const float best = fmaxf(by_step, by_stay);
        result[s] = fmaxf(best, by_skip);
        unsigned& word = b.bits[s / WORD_CELLS];
        word = __funnelshift_l(__float_as_uint(__fsub_rn(by_stay, by_step)), word, 1);
        word = __funnelshift_l(__float_as_uint(__fsub_rn(by_skip, best)), word, 1);
    }
#pragma unroll
    for (int s = 0; s < CELLS; ++s) before[s] = W % CELLS == 0 || b.cell + s < W ? result[s] : IMPOSSIBLE;
    b.from_neighbour = from_neighbour;
    b.moves = 2 * b.moves + RIGHT;
}

// The next band where it lies according to the scores of the last one; returns whether that is to the right.
__device__ __forceinline__ bool fill_next(
    Band& b, float (&before)[CELLS], const float (&score)[CELLS], bool was_right) {
    const float lower_left = __shfl_sync(FULL, score[0], LOW);
    const float upper_right = __shfl_sync(FULL, score[LAST_SLOT], LAST_LANE);
    if (lower_left < upper_right) {
        if (was_right)
            fill<true, true>(b, before, score);
        else
            fill<false, true>(b, before, score);
        return true;
    }
    if (was_right)
        fill<true, false>(b, before, score);
    else
        fill<false, false>(b, before, score);
    return false;
}

// The same for any band: while both of the last band's ends are impossible, the bands move in turns.
__device__ __forceinline__ bool fill_edge(
    Band& b, float (&before)[CELLS], const float (&score)[CELLS], bool was_right, int band) {
    const float lower_left = __shfl_sync(FULL, score[0], LOW);
    const float upper_right = __shfl_sync(FULL, score[LAST_SLOT], LAST_LANE);
    const bool neither = lower_left == IMPOSSIBLE && upper_right == IMPOSSIBLE;
    const bool right = neither ? (band & 1) : lower_left < upper_right;
    if (right) {
        if (was_right)
            fill<true, true>(b, before, score);
        else
            fill<false, true>(b, before, score);
    } else {
        if (was_right)
            fill<true, false>(b, before, score);
        else
            fill<false, false>(b, before, score);
    }
    return right;
}

// Writes the directions of a band, or of PACK bands when the last of them is done. `EVEN`: the band surely is even and
// not the read's last one.
template <bool EVEN>
__device__ __forceinline__ void write_directions(Band& b, unsigned* words, int band, bool last = false) {
    if (PACK == 4) {
        if (2 * CELLS < BAND_BITS) b.bits[0] <<= (BAND_BITS - 2 * CELLS) & 31;
        if (!EVEN && ((band & 3) == 3 || last)) {
            const int missing = 3 - (band & 3);
            words[(int64)(band >> 2) * LANES] = b.lane == 0 ? b.moves << missing : b.bits[0] << (BAND_BITS * missing);
        }
    } else {
#pragma unroll
        for (int w = 0; w < WORDS; ++w) {
            const int cells = CELLS - w * WORD_CELLS < WORD_CELLS ? CELLS - w * WORD_CELLS : WORD_CELLS;
            const unsigned aligned = b.bits[w] << ((32 - 2 * cells) & 31);
            words[((int64)band * WORDS + w) * LANES] = b.lane == 0 ? b.moves : aligned;
        }
    }
}

extern "C" __global__ void __launch_bounds__(LANES) abea_core(
    const float* __restrict__ event_mean, const float4* __restrict__ kmers, const int64* __restrict__ p,
    const int64* __restrict__ q, const int* __restrict__ order, const int n_reads, const int k,
    const float* __restrict__ lp_step_of, const float* __restrict__ lp_stay_of, unsigned* __restrict__ trace,
    int* __restrict__ best_event_of, int* __restrict__ corner_of) {
    if (blockIdx.x >= n_reads) return;
    const int read = order[blockIdx.x];
    Band b;
    b.lane = threadIdx.x;
    b.cell = (b.lane - LOW) * CELLS;
    const bool inside = b.lane >= LOW && b.lane < HIGH;
    b.n_events = (int)(q[read + 1] - q[read]);
    b.n_kmers = (int)(p[read + 1] - p[read]) - k + 1;
    b.lp_step = inside ? lp_step_of[read] : IMPOSSIBLE;
    b.lp_stay = inside ? lp_stay_of[read] : IMPOSSIBLE;
    unsigned* words = trace + first_word(p, q, read) + b.lane;

    // Band 1 has the cell (0, -1), reached by trimming; band 0 had (-1, -1), at the same offset, and band 1 moved down.
    const int half = W / 2;
    b.event = half;
    b.kmer = -1 - half;
    b.later_event = b.event - b.cell;
    b.later_events = event_mean + q[read] + b.later_event;
    b.later_kmer = b.kmer + b.cell;
    b.later_kmers = kmers + p[read] + b.later_kmer;
    b.from_neighbour = IMPOSSIBLE;
    b.downs_left = LOW_CELLS;
    b.rights_left = HIGH_CELLS;
    b.moves = 0;
    float one[CELLS], other[CELLS];  // scores of bands 0 and 1
#pragma unroll
    for (int s = 0; s < CELLS; ++s) {
        const int o = b.cell + s;
        one[s] = o == half ? 0.0f : IMPOSSIBLE;
        other[s] = o == half ? LP_TRIM : IMPOSSIBLE;
        if (s == 0 && o - 1 == half) b.from_neighbour = 0.0f;
        b.x[s] = b.level[s] = b.inverse[s] = b.constant[s] = 0.0f;
    }
    load_events(b);
    load_kmers(b);
#pragma unroll
    for (int w = 0; w < WORDS; ++w) b.bits[w] = 0;

    float best_score = IMPOSSIBLE;
    int best_event = -1;
    bool was_right = false;
    const int n_bands = b.n_events + b.n_kmers + 2;
    int band = 2;
    while (band < n_bands) {
        // Two bands at a time while both surely lie inside the read and away from its last k-mer. There the lower left
        // cell is always possible: it was when it lay in the trimmed column, and keeps a neighbour with every move.
        while (b.event >= W - 1 && b.kmer >= 0 && b.event + 2 < b.n_events && b.kmer + W + 2 < b.n_kmers &&
               !(band & 1)) {
            was_right = fill_next(b, one, other, was_right);
            write_directions<true>(b, words, band);
            was_right = fill_next(b, other, one, was_right);
            write_directions<false>(b, words, band + 1);
            band += 2;
        }
        if (band >= n_bands) break;

        was_right = fill_edge(b, one, other, was_right, band);
        write_directions<false>(b, words, band, band == n_bands - 1);
        // Cells without event or k-mer are impossible, but for the trimmed ones before the first k-mer.
        const int first = max(max(b.event - b.n_events + 1, -b.kmer), 0);
        const int end = min(min(b.event + 1, b.n_kmers - b.kmer), W);
#pragma unroll
        for (int s = 0; s < CELLS; ++s) {
            const int o = b.cell + s;
            const int e = b.event - o;
            if (o < first || o >= end) one[s] = IMPOSSIBLE;
            if (o >= 0 && o < W && b.kmer + o == -1 && e >= 0 && e < b.n_events)
                one[s] = __fmul_rn(LP_TRIM, (float)(e + 1));
            if (b.kmer + o == b.n_kmers - 1 && o >= first && o < end) {
                const float candidate = fmaf((float)(b.n_events - e), LP_TRIM, one[s]);
                if (candidate > best_score) {
                    best_score = candidate;
                    best_event = e;
                }
            }
        }
#pragma unroll
        for (int s = 0; s < CELLS; ++s) {
            const float newest = one[s];
            one[s] = other[s];
            other[s] = newest;
        }
        ++band;
    }

    // The best end over the lanes; of equal ones the earliest event.
    for (int distance = LANES / 2; distance > 0; distance /= 2) {
        const float other_score = __shfl_xor_sync(FULL, best_score, distance);
        const int other_event = __shfl_xor_sync(FULL, best_event, distance);
        const bool better =
            other_score > best_score || (other_score == best_score && (unsigned)other_event < (unsigned)best_event);
        if (better) {
            best_score = other_score;
            best_event = other_event;
        }
    }
    if (b.lane == 0) {
        best_event_of[read] = best_event;
        corner_of[read] = b.kmer;
    }
}
