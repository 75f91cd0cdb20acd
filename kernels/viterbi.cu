// Alignment of events to the reference: f5py/event_alignment/align.py, for reads without windows. One warp per read, one
// block per warp. A read is done in segments (exons), a segment in blocks of about a hundred bases, each begun where the
// rows of the one before end; the table of a block is filled along its anti-diagonals as in
// f5py/event_alignment/viterbi.py, every operation rounded as there. Compile with --fmad=false.
//
// A lane holds four neighbouring k-mers, with their states on the last two anti-diagonals in registers; what comes from
// the k-mer before the first of them arrives by shuffle, and so do the events, which move up by one k-mer with every
// anti-diagonal. Of each cell seven bits are kept, the results of the comparisons that chose its predecessors: a word of
// a lane and anti-diagonal. These words, and the path, lie in the memory of the directions of abea_core; the pairs of
// aligned bases lie where the k-mers' scaled levels were.

#include "abea.cuh"

#define MAX_BASES 101
#define BLOCK_ROWS 50
#define MIN_EVENT_STEP 2
#define LOOK_AROUND 1000
#define SLOTS 4  // k-mers of a lane
#define BITS 7   // of a cell
#define MATCH_STATE 0
#define BAD_STATE 1
#define SKIP_STATE 2
#define ROW_BAD 1
#define ROW_NEW_SEGMENT 2

// The first event of the nearest k-mer that has one, as closest_event of f5py/core/_read_view_numba.py.
__device__ __forceinline__ int closest_event(const int* first_event, int n_kmers, int kmer) {
    const int lane = threadIdx.x;
    if (kmer < 0 || kmer >= n_kmers) return -1;
    const int lowest = max(0, kmer - LOOK_AROUND);
    for (int first = kmer; first > lowest; first -= LANES) {
        const int event = first - lane > lowest ? first_event[first - lane] : -1;
        const unsigned found = __ballot_sync(FULL, event >= 0);
        if (found != 0) return __shfl_sync(FULL, event, __ffs((int)found) - 1);
    }
    const int end = min(kmer + LOOK_AROUND, n_kmers - 1);
    for (int first = kmer; first < end; first += LANES) {
        const int event = first + lane < end ? first_event[first + lane] : -1;
        const unsigned found = __ballot_sync(FULL, event >= 0);
        if (found != 0) return __shfl_sync(FULL, event, __ffs((int)found) - 1);
    }
    return -1;
}

// The last of the pairs first..end-1 that is not after `position`.
__device__ __forceinline__ int last_pair_up_to(const int* pair_reference, int position, int first, int end) {
    for (int i = first; i < end; i += LANES) {
        const int at = i + threadIdx.x;
        const unsigned later = __ballot_sync(FULL, at < end && pair_reference[at] > position);
        if (later != 0) return i + __ffs((int)later) - 2;
    }
    return end - 1;
}

// A block of events and k-mers, and the model of its read.
struct Block {
    const float* last_event;  // event n_events of the block
    int stride, n_events, n_kmers;
    int width;  // lanes with k-mers
    float level[SLOTS], stdv[SLOTS], constant[SLOTS];
};

__device__ __forceinline__ float larger(float a, float b) { return a > b ? a : b; }

// Fill the table of a block; whether there is a path through it.
__device__ __forceinline__ bool fill_block(const Block& block, const float* transitions, float ln_start, unsigned* words) {
    const int lane = threadIdx.x;
    const float stay = transitions[0], step = transitions[1], to_bad = transitions[2], to_skip = transitions[3];
    const float bad_bad = transitions[4], from_bad = transitions[5], skip_skip = transitions[6];
    const float from_skip = transitions[7];
    float match[SLOTS], bad[SLOTS], skip[SLOTS];                       // of the anti-diagonal before
    float match_earlier[SLOTS], bad_earlier[SLOTS], skip_earlier[SLOTS];  // of the one before that
    float x[SLOTS];
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        match[s] = bad[s] = skip[s] = match_earlier[s] = bad_earlier[s] = skip_earlier[s] = IMPOSSIBLE;
        x[s] = 0.0f;
    }
    // Event i of the block is last_event[stride * (i - n_events)].
    if (lane == 0) {
        x[0] = block.last_event[block.stride * (1 - block.n_events)];
        const float z = (x[0] - block.level[0]) / block.stdv[0];
        match[0] = ln_start + (block.constant[0] + (-0.5f * z) * z);
    }
    float below_match = IMPOSSIBLE, below_bad = IMPOSSIBLE, below_skip = IMPOSSIBLE;  // the k-mer before, earlier
    float to_come = 0.0f;
    bool possible = false;
    const int last = block.n_events + block.n_kmers - 1;
    for (int diagonal = 2; diagonal <= last; ++diagonal) {
        if (diagonal == 2 || diagonal % LANES == 0) {
            const int i = diagonal / LANES * LANES + lane;
            to_come = i >= 1 && i <= block.n_events ? block.last_event[block.stride * (i - block.n_events)] : 0.0f;
        }
        const float next = __shfl_sync(FULL, to_come, diagonal % LANES);
        const float from_below = __shfl_up_sync(FULL, x[SLOTS - 1], 1);
        float left_match = __shfl_up_sync(FULL, match[SLOTS - 1], 1);
        float left_bad = __shfl_up_sync(FULL, bad[SLOTS - 1], 1);
        float left_skip = __shfl_up_sync(FULL, skip[SLOTS - 1], 1);
        if (lane == 0) left_match = left_bad = left_skip = IMPOSSIBLE;
        unsigned word = 0;
        float new_match[SLOTS], new_bad[SLOTS], new_skip[SLOTS];
#pragma unroll
        for (int s = SLOTS - 1; s >= 0; --s) {
            x[s] = s > 0 ? x[s - 1] : lane == 0 ? next : from_below;
            const float z = (x[s] - block.level[s]) / block.stdv[s];
            const float emission = block.constant[s] + (-0.5f * z) * z;
            const float match_before = s > 0 ? match_earlier[s - 1] : below_match;
            const float bad_before = s > 0 ? bad_earlier[s - 1] : below_bad;
            const float skip_before = s > 0 ? skip_earlier[s - 1] : below_skip;
            const float match_left = s > 0 ? match[s - 1] : left_match;
            const float bad_left = s > 0 ? bad[s - 1] : left_bad;
            const float skip_left = s > 0 ? skip[s - 1] : left_skip;
            unsigned bits = 0;
            // The later candidate wins a tie.
            float best = stay + match[s];
            float candidate = step + match_before;
            bits |= (unsigned)(candidate >= best);
            best = larger(best, candidate);
            candidate = from_bad + bad[s];
            bits |= (unsigned)(candidate >= best) << 1;
            best = larger(best, candidate);
            candidate = from_bad + bad_before;
            bits |= (unsigned)(candidate >= best) << 2;
            best = larger(best, candidate);
            candidate = from_skip + skip_before;
            bits |= (unsigned)(candidate >= best) << 3;
            best = larger(best, candidate);
            new_match[s] = best + emission;

            best = to_bad + match[s];
            candidate = bad_bad + bad[s];
            bits |= (unsigned)(candidate >= best) << 4;
            new_bad[s] = larger(best, candidate);

            best = to_skip + match_left;
            candidate = from_bad + bad_left;
            bits |= (unsigned)(candidate >= best) << 5;
            best = larger(best, candidate);
            candidate = skip_skip + skip_left;
            bits |= (unsigned)(candidate >= best) << 6;
            new_skip[s] = larger(best, candidate);
            word |= bits << (BITS * s);

            // Not the score itself: the last event's density may underflow, see the CPU's loop.
            const int kmer = lane * SLOTS + s;
            const bool is_end = diagonal == last - 1 && kmer == block.n_kmers - 1;
            const bool is_before = diagonal == last - 2 && kmer == block.n_kmers - 2;
            if (is_end || is_before) possible = possible || new_match[s] > IMPOSSIBLE || new_bad[s] > IMPOSSIBLE;
            if (is_before) possible = possible || new_skip[s] > IMPOSSIBLE;
        }
        if (lane < block.width) words[diagonal * block.width + lane] = word;
        below_match = left_match;
        below_bad = left_bad;
        below_skip = left_skip;
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
            match_earlier[s] = match[s];
            bad_earlier[s] = bad[s];
            skip_earlier[s] = skip[s];
            match[s] = new_match[s];
            bad[s] = new_bad[s];
            skip[s] = new_skip[s];
        }
    }
    return __any_sync(FULL, possible) != 0;
}

// The best path from its end to its start, one lane; elements are row, k-mer and state. Returns their number.
__device__ __forceinline__ int trace_block(const Block& block, const unsigned* words, bool possible, int* path) {
    int row = block.n_events, kmer = block.n_kmers - 1, state = MATCH_STATE, count = 0;
    while (row > 0 && kmer >= 0) {
        path[count++] = row << 9 | kmer << 2 | state;
        if (!possible || row + kmer < 2) break;
        const unsigned bits = words[(row + kmer) * block.width + kmer / SLOTS] >> (BITS * (kmer % SLOTS));
        if (state == MATCH_STATE) {
            row -= 1;
            if (bits >> 3 & 1) {
                state = SKIP_STATE;
                kmer -= 1;
            } else if (bits >> 2 & 1) {
                state = BAD_STATE;
                kmer -= 1;
            } else if (bits >> 1 & 1) {
                state = BAD_STATE;
            } else if (bits & 1) {
                kmer -= 1;
            }
        } else if (state == BAD_STATE) {
            row -= 1;
            if (!(bits >> 4 & 1)) state = MATCH_STATE;
        } else {
            kmer -= 1;
            if (!(bits >> 6 & 1)) state = bits >> 5 & 1 ? BAD_STATE : MATCH_STATE;
        }
    }
    return count;
}

// Rows of each read from element q[read] on; their number, or -1 if a block does not fit into the read's memory.
extern "C" __global__ void __launch_bounds__(LANES) viterbi_rows(
    const float* __restrict__ event_mean, const int* __restrict__ first_event_of, float4* __restrict__ kmers,
    unsigned* __restrict__ trace, const int64* __restrict__ p, const int64* __restrict__ q,
    const int* __restrict__ order, const int n_reads, const int k, const int n_letters,
    const unsigned char* __restrict__ codes, const float4* __restrict__ model, const float* __restrict__ shift_of,
    const float* __restrict__ scale_of, const float* __restrict__ var_of, const float* __restrict__ ln_var_of,
    const float* __restrict__ transitions, const float ln_start, const float ln_constant,
    const unsigned char* __restrict__ reference, const int64* __restrict__ reference_offsets,
    const int64* __restrict__ reference_start, const unsigned* __restrict__ cigar,
    const int64* __restrict__ cigar_offsets, const int* __restrict__ is_reverse, int* __restrict__ row_event,
    int* __restrict__ row_position, unsigned char* __restrict__ row_state, int* __restrict__ n_rows_of) {
    if (blockIdx.x >= n_reads) return;
    const int read = order[blockIdx.x];
    const int lane = threadIdx.x;
    const int n_bases = (int)(p[read + 1] - p[read]);
    const int capacity = (int)(q[read + 1] - q[read]);
    const int n_read_kmers = n_bases - k + 1;
    const int* first_event = first_event_of + p[read];
    const unsigned char* letters = reference + reference_offsets[read];
    const int64 start = reference_start[read];
    const bool reverse = is_reverse[read] != 0;
    const int stride = reverse ? -1 : 1;
    const unsigned char* code = codes + (reverse ? 256 : 0);
    const float shift = shift_of[read], scale = scale_of[read], var = var_of[read], ln_var = ln_var_of[read];
    unsigned* words = trace + first_word(p, q, read);
    const int64 room = first_word(p, q, read + 1) - first_word(p, q, read);
    int highest = 1;
    for (int i = 1; i < k; ++i) highest *= n_letters;

    // The (reference, read) positions of all aligned bases, and where each exon ends among them.
    int* pair_reference = (int*)(kmers + p[read]);
    int* pair_read = pair_reference + n_bases;
    int* exon_end = pair_read + n_bases;
    int n_pairs = 0, n_exons = 0, at_reference = 0, at_read = 0;
    bool fits = true;
    for (int64 c = cigar_offsets[read]; c < cigar_offsets[read + 1]; ++c) {
        const int operation = (int)(cigar[c] & 15u), length = (int)(cigar[c] >> 4);
        if (operation == 0 || operation == 7 || operation == 8) {
            fits = fits && n_pairs + length <= n_bases;
            for (int i = lane; i < length && fits; i += LANES) {
                pair_reference[n_pairs + i] = at_reference + i;
                pair_read[n_pairs + i] = at_read + i;
            }
            n_pairs += length;
            at_reference += length;
            at_read += length;
        } else if (operation == 2) {
            at_reference += length;
        } else if (operation == 3) {
            fits = fits && n_exons + 2 < 2 * n_bases;
            if (fits && lane == 0) exon_end[n_exons] = n_pairs;
            ++n_exons;
            at_reference += length;
        } else if (operation == 1 || operation == 4 || operation == 5) {
            at_read += length;
        }
    }
    if (fits && lane == 0) exon_end[n_exons] = n_pairs;
    ++n_exons;
    __syncwarp(FULL);

    int n_rows = 0, exon_begin = 0;
    bool is_done = !fits;
    for (int exon = 0; exon < n_exons && !is_done; ++exon) {
        const int first_pair = exon_begin;
        int end = exon_begin = exon_end[exon];
        while (end > first_pair && pair_read[end - 1] > n_bases - k) --end;
        if (end == first_pair) break;
        int first_read = pair_read[first_pair], last_read = pair_read[end - 1];
        if (reverse) {
            first_read = n_bases - first_read - k;
            last_read = n_bases - last_read - k;
        }
        int event = closest_event(first_event, n_read_kmers, first_read);
        const int last_event = closest_event(first_event, n_read_kmers, last_read);
        if (event < 0 || last_event < 0) continue;
        int position = pair_reference[first_pair], pair = first_pair;
        bool new_segment = n_rows > 0;
        while ((last_event - event) * stride > 0 && !is_done) {
            const int stop = last_pair_up_to(pair_reference, position + MAX_BASES - 1, pair, end);
            const int block_bases = pair_reference[stop] - position + 1;
            int stop_read = pair_read[stop];
            if (reverse) stop_read = n_bases - stop_read - k;
            const int stop_event = closest_event(first_event, n_read_kmers, stop_read);
            if (block_bases < 2 * k || stop_event < 0 || (stop_event - event) * stride < MIN_EVENT_STEP) break;
            Block block;
            block.last_event = event_mean + q[read] + stop_event;
            block.stride = stride;
            block.n_events = (stop_event - event) * stride + 1;
            block.n_kmers = block_bases - k + 1;
            block.width = (block.n_kmers + SLOTS - 1) / SLOTS;
            const int n_diagonals = block.n_events + block.n_kmers;
            if ((int64)n_diagonals * (block.width + 1) > room) {
                fits = false;
                break;
            }
#pragma unroll
            for (int s = 0; s < SLOTS; ++s) {
                const int j = lane * SLOTS + s;
                block.level[s] = block.constant[s] = 0.0f;
                block.stdv[s] = 1.0f;
                if (j >= block.n_kmers) continue;
                int rank = 0;
                for (int i = 0; i < k; ++i) {
                    const int here = code[letters[position + j + i]];
                    rank = reverse ? rank / n_letters + here * highest : rank * n_letters + here;
                }
                const float4 entry = model[rank];
                block.level[s] = scale * entry.x + shift;
                block.stdv[s] = entry.y * var;
                block.constant[s] = ln_constant - (entry.z + ln_var);
            }
            const bool possible = fill_block(block, transitions + 8 * read, ln_start, words);
            __syncwarp(FULL);
            int* path = (int*)(words + (int64)n_diagonals * block.width);
            int n_path = 0;
            if (lane == 0) n_path = trace_block(block, words, possible, path);
            n_path = __shfl_sync(FULL, n_path, 0);
            __syncwarp(FULL);

            // The block's first event has its row already, but for the segment's first event, which gets none.
            const int limit = min(stop == end - 1 ? capacity : BLOCK_ROWS, capacity - n_rows);
            const int block_event = event, block_position = position;
            int block_rows = 0;
            for (int first = n_path - 1; first >= 0 && block_rows < limit; first -= LANES) {
                const int element = first - lane >= 0 ? path[first - lane] : SKIP_STATE;
                const int state = element & 3, row = element >> 9;
                const unsigned with_row = __ballot_sync(FULL, state != SKIP_STATE && row != 1);
                const int rank = __popc(with_row & ((1u << lane) - 1));
                const bool to_callback = (with_row >> lane & 1) && block_rows + rank < limit;
                const int its_event = block_event + stride * (row - 1);
                const int its_position = block_position + (element >> 2 & 127);
                if (to_callback) {
                    const int64 to = q[read] + n_rows + block_rows + rank;
                    row_event[to] = its_event;
                    row_position[to] = (int)(start + its_position);
                    row_state[to] = (unsigned char)((state == BAD_STATE ? ROW_BAD : 0) |
                                                    (new_segment && block_rows + rank == 0 ? ROW_NEW_SEGMENT : 0));
                }
                const unsigned taken = __ballot_sync(FULL, to_callback);
                if (taken != 0) {
                    const int latest = 31 - __clz((int)taken);
                    event = __shfl_sync(FULL, its_event, latest);
                    position = __shfl_sync(FULL, its_position, latest);
                    block_rows += __popc(taken);
                }
            }
            n_rows += block_rows;
            if (block_rows > 0) new_segment = false;
            is_done = n_rows == capacity;
            if (block_rows == 0) break;
            pair = last_pair_up_to(pair_reference, position, pair, end);
            __syncwarp(FULL);  // the path has been read
        }
        is_done = is_done || !fits;
    }
    if (lane == 0) n_rows_of[read] = fits ? n_rows : -1;
}
