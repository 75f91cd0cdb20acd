// Scoring of methylation groups: the forward algorithm of f5py/methylation/hmm.py. One thread per problem, two problems
// per group: its window with all sites methylated (even threads) and with none (odd threads). The arithmetic is that of
// one lane of f5py/methylation/hmm.py, operation by operation, with its scales. Compile with --fmad=false and -ftz=true.
// Groups are sorted by size, so that the problems of a warp have about the same loops.
//
// What a problem keeps per k-mer, per block of k-mers and per event lies in global memory, element j of the warp's 32
// problems side by side: reads and writes are coalesced, and a warp's few kilobytes stay in the first-level cache.

#include "hmm.cuh"

#define BLOCK 8
#define LIFT 100.0f
#define HEADROOM 12.0f
#define LEAST_EXPONENT (-26.0f)

// What f5py.methylation.hmm.NoiseTerms has, in single precision.
struct Noise {
    float stay_now, stay_before, step_now, step_before, square;
    float free_from_bad, free_from_skip, free_weight;
    bool is_student;
};

// Of an event in a k-mer after a stay, after a step, and after neither.
struct Densities {
    float stay, step, free;
};

__device__ __forceinline__ Densities student_densities(float w, float u_stay, float u_step, float square) {
    const float d_stay = fmaf(u_stay, u_stay, 1.0f), d_step = fmaf(u_step, u_step, 1.0f);
    const float d_free = fmaf(w * square, w, 1.0f);
    const float both = d_stay * d_step;
    float reciprocal = reciprocal_of(both * d_free);  // three reciprocals by one
    float free = reciprocal * both;
    reciprocal = reciprocal * d_free;
    float stay = reciprocal * d_step, step = reciprocal * d_stay;
    free = free * free;
    stay = stay * stay;
    step = step * step;
    return {stay * stay, step * step, free * free};
}

__device__ __forceinline__ Densities normal_densities(float w, float u_stay, float u_step, float top) {
    return {exp2_of(fmaf(-u_stay, u_stay, top)), exp2_of(fmaf(-u_step, u_step, top)), exp2_of(fmaf(-w, w, top))};
}

// Emission parameters of the window's k-mers under one hypothesis: element j of each array at [32 * j].
__device__ __forceinline__ void fill_emissions(
    const unsigned char* window, int n_bases, int k, bool reverse, bool is_methylated, const Motif& motif,
    int motif_length, int motif_offset, const float4* model, float shift, float scale, float var, float ln_var,
    float numerator, float ln_constant, float log2_e, float* inverse, float* offset, float* constant) {
    int highest = 1;
    for (int i = 1; i < k; ++i) highest *= CODES;
    int rank = 0, next = 0;
    unsigned pending = 0;  // bit i: the base i places on is methylated
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
        const float stretch = numerator / (entry.y * var);
        inverse[LANES * j] = stretch;
        offset[LANES * j] = -fmaf(scale, entry.x, shift) * stretch;
        constant[LANES * j] = (ln_constant - entry.z - ln_var) * log2_e;
    }
}

// `groups` has, group by group: number of the read, first base of the window, its bases, first and last event.
// `numbers` are stay, step and ln(var) of each read; `constants` those of the model of f5py/core/hmm.py.
// `noise` is that of f5py.methylation.hmm.single_precision; without CORRELATED there is none.
template <bool CORRELATED>
__device__ __forceinline__ void score_groups(
    const float* __restrict__ event_mean, const int64* __restrict__ q, const unsigned char* __restrict__ reference,
    const int64* __restrict__ reference_offsets, const unsigned char* __restrict__ motifs, const int motif_length,
    const int motif_offset, const int motif_offset_reverse, const int k, const float4* __restrict__ model,
    const float* __restrict__ shift_of, const float* __restrict__ scale_of, const float* __restrict__ var_of,
    const float* __restrict__ numbers, const int* __restrict__ is_reverse, const float* __restrict__ constants,
    const int* __restrict__ groups, const int n_groups, const int64* __restrict__ work_offsets,
    const int* __restrict__ warp_columns, const int* __restrict__ warp_rows, float* __restrict__ work,
    float* __restrict__ found, const float* __restrict__ noise) {
    const int problem = blockIdx.x * LANES + threadIdx.x;
    const int group = problem / 2;
    if (group >= n_groups) return;
    const int* about = groups + 5 * group;
    const int read = about[0], n_bases = about[2], begin = about[3], end = about[4];
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
    const int64 per_block = LANES * (int64)((warp_columns[blockIdx.x] + BLOCK - 1) / BLOCK);
    float* held = skipped + per_column;  // scales of what is stored, in base-two logarithms
    float* wanted = held + per_block;    // those of the next row
    float* ends = wanted + per_block;
    float* scales = ends + (int64)LANES * warp_rows[blockIdx.x];
    fill_emissions(
        reference + reference_offsets[read] + about[1], n_bases, k, reverse, problem % 2 == 0, motif,
        motif_length, reverse ? motif_offset_reverse : motif_offset, model, shift_of[read], scale_of[read], var_of[read],
        numbers[3 * read + 2], constants[8], constants[9], constants[10], inverse, offset, constant);
    const int n_blocks = (n_kmers + BLOCK - 1) / BLOCK;
    for (int j = 0; j < n_kmers; ++j) match[LANES * j] = wrong[LANES * j] = skipped[LANES * j] = 0.0f;
    for (int b = 0; b < n_blocks; ++b) held[LANES * b] = wanted[LANES * b] = NEVER;

    const float stay = numbers[3 * read], step = numbers[3 * read + 1];
    const float bad = constants[0], from_bad = constants[1], skip = constants[2], skip_self = constants[3];
    const float from_skip = constants[4];
    const float no_background = constants[5], first_background = constants[6], more_background = constants[7];
    Noise terms;
    if (CORRELATED)
        terms = {noise[0], noise[1], noise[2], noise[3], noise[4], noise[5], noise[6], noise[7], noise[8] != 0.0f};
    float event_before = events[0];
    for (int row = 0; row < rows; ++row) {
        const float x = events[stride * row];
        const float first_z = fmaf(x, inverse[0], offset[0]);
        const float before = row == 0 ? no_background : fmaf((float)(row - 1), more_background, first_background);
        float mantissa = 1.0f, entry;
        if (CORRELATED && terms.is_student) {
            float fourth = reciprocal_of(fmaf(first_z * terms.square, first_z, 1.0f));
            fourth = fourth * fourth;
            const float density = inverse[0] * terms.free_weight * (fourth * fourth);
            entry = exponent_of(density);
            mantissa = density * exp2_of(0.0f - entry);
            entry = entry + before;
        } else {
            entry = fmaf(-first_z, first_z, constant[0]) + before;
        }
        float scale_before = floorf(entry) - LIFT;
        float stepping = 0.0f;  // with correlated noise, what of `arriving` comes from a match state
        float w_before = 0.0f;  // the residual of the event before in this k-mer
        float arriving = 0.0f;  // at the next k-mer's match state, from this one in the row before
        float skipping = 0.0f;  // at the next k-mer's skip state, from this one in this row
        float last = 0.0f;
        for (int b = 0; b < n_blocks; ++b) {
            const float least = scale_before - HEADROOM;
            float scale = wanted[LANES * b];
            scale = scale > least ? scale : least;
            const float rescale = power2_of(held[LANES * b] - scale);
            held[LANES * b] = scale;
            const float row_stay = stay * rescale, row_step = step * rescale, row_bad = bad * rescale;
            const float row_from_bad = (CORRELATED ? terms.free_from_bad : from_bad) * rescale;
            const float row_from_skip = (CORRELATED ? terms.free_from_skip : from_skip) * rescale;
            float entered = 0.0f;
            if (b == 0) {
                entered = exp2_of(entry - scale);
                if (CORRELATED) entered = mantissa * entered;
            } else {  // in two factors, of which one could not be held where the next block is far ahead
                const float change = scale_before - scale;
                const float part = change > -126.0f ? change : -126.0f;
                const float one = power2_of(part), rest = power2_of(change - part);
                stepping = stepping * one * rest;
                arriving = arriving * one * rest;
                skipping = skipping * one * rest;
            }
            scale_before = scale;
            float greatest = 0.0f;
            const int end_of_block = BLOCK * (b + 1) < n_kmers ? BLOCK * (b + 1) : n_kmers;
            for (int j = BLOCK * b; j < end_of_block; ++j) {
                const int at = LANES * j;
                const float z = fmaf(x, inverse[at], offset[at]);
                const float match_same = match[at], wrong_same = wrong[at], skipped_same = skipped[at];
                float match_left;
                if (CORRELATED) {
                    const float w_same = fmaf(event_before, inverse[at], offset[at]);
                    const float u_stay = fmaf(w_same, terms.stay_before, z * terms.stay_now);
                    const float u_step = fmaf(w_before, terms.step_before, z * terms.step_now);
                    const float free = fmaf(row_from_bad, wrong_same, arriving);
                    const Densities q = terms.is_student ? student_densities(z, u_stay, u_step, terms.square)
                                                         : normal_densities(z, u_stay, u_step, constant[at]);
                    float into_match = fmaf(q.step, stepping, q.free * free);
                    into_match = fmaf(q.stay, row_stay * match_same, into_match);
                    stepping = row_step * match_same;
                    arriving = fmaf(row_from_bad, wrong_same, row_from_skip * skipped_same);
                    match_left = fmaf(terms.is_student ? inverse[at] : 1.0f, into_match, entered);
                    w_before = w_same;
                } else {
                    const float emission = exp2_of(fmaf(-z, z, constant[at]));
                    const float into_match = fmaf(row_stay, match_same, fmaf(row_from_bad, wrong_same, arriving));
                    arriving = fmaf(row_from_bad, wrong_same, row_from_skip * skipped_same);
                    arriving = fmaf(row_step, match_same, arriving);
                    match_left = fmaf(emission, into_match, entered);
                }
                const float wrong_left = row_bad * (match_same + wrong_same);
                match[at] = match_left;
                wrong[at] = wrong_left;
                skipped[at] = skipping;
                last = match_left + wrong_left + skipping;
                greatest = greatest > last ? greatest : last;
                const float into_skipped = fmaf(skip, match_left, from_bad * wrong_left);
                skipping = fmaf(skip_self, skipping, into_skipped);
                entered = 0.0f;
            }
            float exponent = exponent_of(greatest);
            exponent = exponent > LEAST_EXPONENT ? exponent : LEAST_EXPONENT;
            wanted[LANES * b] = scale + exponent - LIFT;
        }
        ends[LANES * row] = last;
        scales[LANES * row] = scale_before;
        event_before = x;
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
    float total = 0.0f;
    for (int row = 0; row < rows; ++row)
        total = fmaf(exp2_of(scales[LANES * row] - best), ends[LANES * row], total);
    found[2 * problem] = total;
    found[2 * problem + 1] = best;
}

extern "C" __global__ void __launch_bounds__(LANES) hmm_forward(
    const float* __restrict__ event_mean, const int64* __restrict__ q, const unsigned char* __restrict__ reference,
    const int64* __restrict__ reference_offsets, const unsigned char* __restrict__ motifs, const int motif_length,
    const int motif_offset, const int motif_offset_reverse, const int k, const float4* __restrict__ model,
    const float* __restrict__ shift_of, const float* __restrict__ scale_of, const float* __restrict__ var_of,
    const float* __restrict__ numbers, const int* __restrict__ is_reverse, const float* __restrict__ constants,
    const int* __restrict__ groups, const int n_groups, const int64* __restrict__ work_offsets,
    const int* __restrict__ warp_columns, const int* __restrict__ warp_rows, float* __restrict__ work,
    float* __restrict__ found) {
    score_groups<false>(
        event_mean, q, reference, reference_offsets, motifs, motif_length, motif_offset, motif_offset_reverse, k, model,
        shift_of, scale_of, var_of, numbers, is_reverse, constants, groups, n_groups, work_offsets, warp_columns, warp_rows,
        work, found, nullptr);
}

extern "C" __global__ void __launch_bounds__(LANES) hmm_correlated(
    const float* __restrict__ event_mean, const int64* __restrict__ q, const unsigned char* __restrict__ reference,
    const int64* __restrict__ reference_offsets, const unsigned char* __restrict__ motifs, const int motif_length,
    const int motif_offset, const int motif_offset_reverse, const int k, const float4* __restrict__ model,
    const float* __restrict__ shift_of, const float* __restrict__ scale_of, const float* __restrict__ var_of,
    const float* __restrict__ numbers, const int* __restrict__ is_reverse, const float* __restrict__ constants,
    const int* __restrict__ groups, const int n_groups, const int64* __restrict__ work_offsets,
    const int* __restrict__ warp_columns, const int* __restrict__ warp_rows, float* __restrict__ work,
    float* __restrict__ found, const float* __restrict__ noise) {
    score_groups<true>(
        event_mean, q, reference, reference_offsets, motifs, motif_length, motif_offset, motif_offset_reverse, k, model,
        shift_of, scale_of, var_of, numbers, is_reverse, constants, groups, n_groups, work_offsets, warp_columns, warp_rows,
        work, found, noise);
}
