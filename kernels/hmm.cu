// Scoring of methylation groups: the forward algorithm of f5py/methylation/hmm.py. One thread per problem, two problems
// per group: its window with all sites methylated (even threads) and with none (odd threads). The arithmetic is that of
// one lane of f5py/methylation/_hmm_numba.py, operation by operation, which also says what the scales are; compile with
// --fmad=false and -ftz=true. Groups are sorted by size, so that the problems of a warp have about the same loops.
//
// What a problem keeps per k-mer and per event lies in global memory, element j of the warp's 32 problems side by side:
// reads and writes are coalesced, and a warp's few kilobytes stay in the first-level cache.

#include "warp.cuh"

#define CODES 5  // letters of the methylation alphabet ACGMT
#define METHYLATED 3
#define NEVER (-1e30f)
#define HEADROOM 60.0f

// 2 ** value; 0 below -126.
__device__ __forceinline__ float exp2_of(float value) {
    value = value > -127.0f ? value : -127.0f;
    const float whole = rintf(value);
    const float part = value - whole;
    float result = 0.000154732054f;
    result = fmaf(result, part, 0.00133982606f);
    result = fmaf(result, part, 0.00961846706f);
    result = fmaf(result, part, 0.0555032884f);
    result = fmaf(result, part, 0.240226462f);
    result = fmaf(result, part, 0.693147182f);
    result = fmaf(result, part, 1.0f);
    return result * __int_as_float(((int)whole + 127) << 23);
}

// floor(log2(value)) of a positive normal value; -127 for zero.
__device__ __forceinline__ float exponent_of(float value) {
    return (float)(((__float_as_int(value) >> 23) & 255) - 127);
}

// A motif on one strand: codes of the letters, their bits, the codes opposite to the codes, the bits of each position.
struct Motif {
    const unsigned char* codes;
    const unsigned char* bits;
    const unsigned char* complement;
    const unsigned char* masks;
};
#define MOTIF_CODES 0
#define MOTIF_BITS 256
#define MOTIF_COMPLEMENT 512
#define MOTIF_MASKS 520
#define MOTIF_BYTES 552

// Emission parameters of the window's k-mers under one hypothesis: element j of each array at [32 * j].
__device__ __forceinline__ void fill_emissions(
    const unsigned char* window, int n_bases, int columns, int k, bool reverse, bool is_methylated, const Motif& motif,
    int motif_length, int motif_offset, const float4* model, float shift, float scale, float var, float ln_var,
    float numerator, float ln_constant, float log2_e, float* inverse, float* offset, float* constant) {
    int highest = 1;
    for (int i = 1; i < k; ++i) highest *= CODES;
    int rank = 0, next = 0;
    unsigned pending = 0;  // bit i: the base i places on is methylated
    float stretch = 0.0f, shifted = 0.0f, peak = 0.0f;
#pragma unroll 1
    for (int i = 0; i < n_bases; ++i) {
        // A site is one only where it does not overlap the one before, see fill_methylated.
        if (is_methylated && i >= next && i + motif_length <= n_bases) {
            bool is_site = true;
            for (int m = 0; m < motif_length && is_site; ++m) is_site = motif.bits[window[i + m]] & motif.masks[m];
            if (is_site) {
                pending |= 1u << motif_offset;
                next = i + motif_length;
            }
        }
        int code = motif.codes[window[i]];
        if (reverse) code = motif.complement[code];
        if (pending & 1u) code = METHYLATED;
        pending >>= 1;
        rank = reverse ? rank / CODES + code * highest : (rank % highest) * CODES + code;
        const int j = i - k + 1;
        if (j < 0) continue;
        const float4 entry = model[rank];
        stretch = numerator / (entry.y * var);
        shifted = -fmaf(scale, entry.x, shift) * stretch;
        peak = (ln_constant - entry.z - ln_var) * log2_e;
        inverse[LANES * j] = stretch;
        offset[LANES * j] = shifted;
        constant[LANES * j] = peak;
    }
    for (int j = n_bases - k + 1; j < columns; ++j) {  // the last k-mer again, as the CPU's lanes have it
        inverse[LANES * j] = stretch;
        offset[LANES * j] = shifted;
        constant[LANES * j] = peak;
    }
}

// `groups` has, group by group: number of the read, first base of the window, its bases, first and last event, columns.
// `numbers` are stay, step and ln(var) of each read; `constants` those of the model of f5py/core/hmm.py.
extern "C" __global__ void __launch_bounds__(LANES) hmm_forward(
    const float* __restrict__ event_mean, const int64* __restrict__ q, const unsigned char* __restrict__ reference,
    const int64* __restrict__ reference_offsets, const unsigned char* __restrict__ motifs, const int motif_length,
    const int motif_offset, const int motif_offset_reverse, const int k, const float4* __restrict__ model,
    const float* __restrict__ shift_of, const float* __restrict__ scale_of, const float* __restrict__ var_of,
    const float* __restrict__ numbers, const int* __restrict__ is_reverse, const float* __restrict__ constants,
    const int* __restrict__ groups, const int n_groups, const int64* __restrict__ work_offsets,
    const int* __restrict__ warp_columns, const int* __restrict__ warp_rows, float* __restrict__ work,
    float* __restrict__ found) {
    const int problem = blockIdx.x * LANES + threadIdx.x;
    const int group = problem / 2;
    if (group >= n_groups) return;
    const int* about = groups + 6 * group;
    const int read = about[0], n_bases = about[2], begin = about[3], end = about[4], columns = about[5];
    const int n_kmers = n_bases - k + 1;
    const int stride = begin < end ? 1 : -1;
    const int rows = (begin < end ? end - begin : begin - end) + 1;
    const float* events = event_mean + q[read] + begin;
    const bool reverse = is_reverse[read] != 0;
    const unsigned char* strand = motifs + (reverse ? MOTIF_BYTES : 0);
    const Motif motif = {strand + MOTIF_CODES, strand + MOTIF_BITS, strand + MOTIF_COMPLEMENT, strand + MOTIF_MASKS};

    const int64 per_column = (int64)LANES * warp_columns[blockIdx.x];
    float* inverse = work + work_offsets[blockIdx.x] + threadIdx.x;
    float* offset = inverse + per_column;
    float* constant = offset + per_column;
    float* match = constant + per_column;
    float* wrong = match + per_column;
    float* skipped = wrong + per_column;
    float* ends = skipped + per_column;
    float* scales = ends + (int64)LANES * warp_rows[blockIdx.x];
    fill_emissions(
        reference + reference_offsets[read] + about[1], n_bases, columns, k, reverse, problem % 2 == 0, motif,
        motif_length, reverse ? motif_offset_reverse : motif_offset, model, shift_of[read], scale_of[read], var_of[read],
        numbers[3 * read + 2], constants[8], constants[9], constants[10], inverse, offset, constant);
    for (int j = 0; j < columns; ++j) match[LANES * j] = wrong[LANES * j] = skipped[LANES * j] = 0.0f;

    const float stay = numbers[3 * read], step = numbers[3 * read + 1];
    const float bad = constants[0], from_bad = constants[1], skip = constants[2], skip_self = constants[3];
    const float from_skip = constants[4];
    const float no_background = constants[5], first_background = constants[6], more_background = constants[7];
    float rescale = 1.0f, scale = 0.0f;
    for (int row = 0; row < rows; ++row) {
        const float x = events[stride * row];
        const float first_z = fmaf(x, inverse[0], offset[0]);
        const float before = row == 0 ? no_background : fmaf((float)(row - 1), more_background, first_background);
        const float entry = fmaf(-first_z, first_z, constant[0]) + before;
        if (row == 0) scale = floorf(entry);
        const float above = entry - scale - HEADROOM;
        if (above > 0.0f) {
            const float lift = floorf(above);
            rescale = rescale * exp2_of(0.0f - lift);
            scale = scale + lift;
        }
        const float row_stay = stay * rescale, row_step = step * rescale, row_bad = bad * rescale;
        const float row_from_bad = from_bad * rescale, row_from_skip = from_skip * rescale;
        float entered = exp2_of(entry - scale);
        float match_before = 0.0f, wrong_before = 0.0f, skipped_before = 0.0f;
        float match_left = 0.0f, wrong_left = 0.0f, skipped_left = 0.0f;
        float greatest = 0.0f, last = 0.0f;
        for (int j = 0; j < columns; ++j) {
            const int at = LANES * j;
            const float z = fmaf(x, inverse[at], offset[at]);
            const float emission = exp2_of(fmaf(-z, z, constant[at]));
            const float match_same = match[at], wrong_same = wrong[at], skipped_same = skipped[at];
            float into_match = fmaf(row_stay, match_same, row_step * match_before);
            into_match = fmaf(row_from_bad, wrong_same + wrong_before, into_match);
            into_match = fmaf(row_from_skip, skipped_before, into_match);
            const float into_skipped = fmaf(skip, match_left, from_bad * wrong_left);
            match_left = fmaf(emission, into_match, entered);
            skipped_left = fmaf(skip_self, skipped_left, into_skipped);
            wrong_left = row_bad * (match_same + wrong_same);
            match[at] = match_left;
            wrong[at] = wrong_left;
            skipped[at] = skipped_left;
            const float both = match_left + wrong_left;
            greatest = greatest > both ? greatest : both;
            if (j == n_kmers - 1) last = both + skipped_left;
            match_before = match_same;
            wrong_before = wrong_same;
            skipped_before = skipped_same;
            entered = 0.0f;
        }
        ends[LANES * row] = last;
        scales[LANES * row] = scale;
        const float moved = exponent_of(greatest);
        rescale = exp2_of(0.0f - moved);
        scale = scale + moved;
    }

    float best = NEVER;
    for (int row = 0; row < rows; ++row) {
        const float left = (float)(rows - row - 1);
        const float after =
            (left > 0.0f ? fmaf(left - 1.0f, more_background, first_background) : no_background) + scales[LANES * row];
        scales[LANES * row] = after;
        const float mass = after + exponent_of(ends[LANES * row]);
        best = best > mass ? best : mass;
    }
    float total = 0.0f, highest_end = NEVER;
    for (int row = 0; row < rows; ++row) {
        const float last = ends[LANES * row];
        total = fmaf(exp2_of(scales[LANES * row] - best), last, total);
        const float exponent = exponent_of(last);
        highest_end = highest_end > exponent ? highest_end : exponent;
    }
    found[3 * problem] = total;
    found[3 * problem + 1] = best;
    found[3 * problem + 2] = highest_end;
}
