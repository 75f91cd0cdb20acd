// Scoring of the single sites of groups: the forward and backward algorithm of f5py/methylation/per_site.py, which says
// what the states of sites are. One thread per lane of a window: a window whose sites share k-mers by up to w takes
// 2 ** w threads, and the windows of a warp have the same w. The arithmetic is that of one lane of
// f5py/methylation/site_hmm.py and site_cells.py, operation by operation, fused where they are there.
// Compile with --fmad=false and -ftz=true. The threads of a warp go through all loops together, for as long as its
// longest window does; what a window does not have changes nothing in it.
//
// What a lane keeps per k-mer, per event and per slot lies in global memory, element j of the warp's 32 lanes side by
// side. Densities are computed again on the way back: that takes less time than to read them.

#include "site_hmm.cuh"

// A window and what this lane keeps of it.
struct Lane {
    // Of the window.
    const float* events;
    const int* sites;  // places of the bases that sites change
    int stride, own_rows, own_kmers, n_sites, width, k, of_window;
    // Of its warp.
    int rows, n_kmers;
    // Element j of each at [32 * j].
    double *match, *wrong, *leaving, *leaving_free, *scales, *ends, *kept, *masses;
    float *inverse, *offset, *constant;

    __device__ __forceinline__ float event(int row) const {
        return events[stride * (row < own_rows ? row : own_rows - 1)];
    }
    // The k-mer into which the state bit of site i changes to that site.
    __device__ __forceinline__ int changes_at(int i) const { return sites[i] - k + 1; }
};

// Parameters of the emissions of the window's k-mers in this lane: bit i % width of its number is the state of site i.
__device__ __forceinline__ void fill_emissions(
    const Lane& lane, const unsigned char* window, int n_bases, bool reverse, const Motif& motif, const float4* model,
    float shift, float scale, float var, float ln_var, const float* __restrict__ constants) {
    int highest = 1;
    for (int i = 1; i < lane.k; ++i) highest *= CODES;
    int rank = 0, site = 0, bit = 0, next = lane.sites[0];
#pragma unroll 1
    for (int i = 0; i < n_bases; ++i) {
        int code = motif.codes[window[i]];
        if (reverse) code = motif.complement[code];
        if (i == next) {
            if (lane.of_window >> bit & 1) code = METHYLATED;
            bit = bit + 1 < lane.width ? bit + 1 : 0;
            next = ++site < lane.n_sites ? lane.sites[site] : -1;
        }
        rank = reverse ? rank / CODES + code * highest : (rank % highest) * CODES + code;
        const int j = i - lane.k + 1;
        if (j < 0) continue;
        const float4 entry = model[rank];
        const float stretch = constants[8] / (entry.y * var);
        lane.inverse[LANES * j] = stretch;
        lane.offset[LANES * j] = -fmaf(scale, entry.x, shift) * stretch;
        lane.constant[LANES * j] = (constants[9] - entry.z - ln_var) * constants[10];
    }
    for (int j = lane.own_kmers; j < lane.n_kmers; ++j) {  // nothing is emitted there
        lane.inverse[LANES * j] = lane.offset[LANES * j] = 0.0f;
        lane.constant[LANES * j] = NEVER;
    }
}

// Fill scales, ends and what is kept; return the exponent of two over which masses are, the same in all lanes.
template <bool CORRELATED>
__device__ __forceinline__ double forward(const Lane& lane, const Transitions& p, const Noise& noise) {
    const int KEPT = CORRELATED ? 3 : 2;
    for (int j = 0; j < lane.n_kmers; ++j) lane.match[LANES * j] = lane.wrong[LANES * j] = 0.0;
    for (int j = 0; j <= lane.n_kmers; ++j) lane.leaving[LANES * j] = 0.0;
    if (CORRELATED)
        for (int j = 0; j <= lane.n_kmers; ++j) lane.leaving_free[LANES * j] = 0.0;
    double scale = NEVER_DOUBLE, greatest = 0.0, best = NEVER_DOUBLE;
    float event_before = lane.event(0);
    for (int row = 0; row < lane.rows; ++row) {
        const float x = lane.event(row);
        // No site's base lies under the first k-mer, so all lanes of a window enter alike.
        const double slope = lane.inverse[0], w = fma((double)x, slope, (double)lane.offset[0]);
        double factor = 1.0, entering;
        if (CORRELATED && noise.is_student) {
            double fourth = 1.0 / fma(w * noise.entry_square, w, 1.0);
            fourth = fourth * fourth;
            const double density = slope * noise.entry_weight * (fourth * fourth);
            entering = exponent_of(density);
            factor = density * power2(0.0 - entering);
        } else {
            if (CORRELATED) factor = noise.entry_weight;
            entering = fma(-w, w, (double)lane.constant[0]);
        }
        entering = entering + p.background(row);
        const double new_scale = greater_of(scale + exponent_of(greatest), floor(entering));
        const double change = power2(scale - new_scale);
        scale = new_scale;
        lane.scales[LANES * row] = scale;
        const double whole = floor(entering);
        double entered = times(times(factor, exp2_of(entering - whole)), power2(whole - scale));
        const double row_stay = times(change, p.stay), row_bad = times(change, p.bad);
        const double row_from_bad = times(change, p.from_bad);
        greatest = 0.0;
        double skipped = 0.0, arriving = 0.0, arriving_free = 0.0, end = 0.0;
        float w_before = 0.0f;  // residual of the event before in the k-mer before
        int site = lane.width, bit = 0, next = site < lane.n_sites ? lane.changes_at(site) : -1;
        for (int j = 0; j < lane.n_kmers; ++j) {
            const int at = LANES * j, after = at + LANES;
            const double match_same = lane.match[at], wrong_same = lane.wrong[at];
            const double arriving_next = lane.leaving[after];
            const float inverse = lane.inverse[at], offset = lane.offset[at], top = lane.constant[at];
            const float z = fmaf(x, inverse, offset);
            double good, arriving_free_next = 0.0;
            if (CORRELATED) {
                arriving_free_next = lane.leaving_free[after];
                const float w_same = fmaf(event_before, inverse, offset);
                const Densities q = densities_of(z, w_same, w_before, inverse, top, noise);
                w_before = w_same;
                double into = fused(row_from_bad, wrong_same, times(change, arriving_free));
                into = fused(q.stay, times(row_stay, match_same), times(q.free, into));
                into = fused(q.step, times(change, arriving), into);
                good = into + entered;
            } else {
                const double density = exp2_of(fmaf(-z, z, top));
                const double into = fused(row_from_bad, wrong_same, times(change, arriving));
                good = fused(density, fused(row_stay, match_same, into), entered);
            }
            const double bad = times(row_bad, match_same + wrong_same);
            const double both = good + bad;
            greatest = greater_of(greatest, both);
            lane.match[at] = good;
            lane.wrong[at] = bad;
            if (j == lane.own_kmers - 1) end = both + skipped;
            const double left = times(p.from_bad, bad);
            const double onward = fused(p.from_skip, skipped, left);
            double leaving = CORRELATED ? times(p.step, good) : fused(p.step, good, onward);
            double leaving_free = onward;
            skipped = fused(p.skip_self, skipped, fused(p.skip, good, left));
            entered = 0.0;
            const bool is_change = j + 1 == next;
            if (__any_sync(FULL, is_change)) {
                if (is_change && bit == 0) {
                    double* kept = lane.kept + LANES * KEPT * ((site / lane.width - 1) * lane.rows + row);
                    kept[0] = leaving;
                    if (CORRELATED) kept[LANES] = leaving_free;
                    kept[LANES * (KEPT - 1)] = skipped;
                }
                const int bits = is_change ? 1 << bit : 0;
                leaving = mean_of(leaving, bits);
                if (CORRELATED) leaving_free = mean_of(leaving_free, bits);
                skipped = mean_of(skipped, bits);
                if (is_change) {
                    bit = bit + 1 < lane.width ? bit + 1 : 0;
                    next = ++site < lane.n_sites ? lane.changes_at(site) : -1;
                }
            }
            lane.leaving[after] = leaving;
            if (CORRELATED) lane.leaving_free[after] = leaving_free;
            arriving = arriving_next;
            arriving_free = arriving_free_next;
        }
        lane.ends[LANES * row] = end;
        greatest = greatest_of_window(greatest, lane.width);
        const double last = greatest_of_window(end, lane.width);
        if (row < lane.own_rows) {
            const double whole = floor(p.background(lane.own_rows - 1 - row));
            best = greater_of(best, scale + whole + exponent_of(last));
        }
        event_before = x;
    }
    return best;
}

// The probability of the events by the states of the last sites, over 2 ** reference.
__device__ __forceinline__ double mass_of_ends(const Lane& lane, const Transitions& p, double reference) {
    double mass = 0.0;
    for (int row = 0; row < lane.own_rows; ++row) {
        const double after = p.background(lane.own_rows - 1 - row), whole = floor(after);
        const double exponent = lane.scales[LANES * row] + whole - reference, half = floor(0.5 * exponent);
        const double other = times(power2(exponent - half), exp2_of(after - whole));
        mass = fused(times(lane.ends[LANES * row], power2(half)), other, mass);
    }
    return mass;
}

// Add up, for every slot, the probability of all paths through it in this lane, over 2 ** reference.
template <bool CORRELATED>
__device__ __forceinline__ void backward(
    const Lane& lane, const Transitions& p, const Noise& noise, double reference, int first_slot) {
    const int KEPT = CORRELATED ? 3 : 2;
    for (int j = 0; j < lane.n_kmers; ++j) lane.match[LANES * j] = lane.wrong[LANES * j] = 0.0;
    const int last_site = lane.n_sites - 1, last_bit = last_site % lane.width;
    double scale = NEVER_DOUBLE, greatest = 0.0;
    float x_after = lane.event(lane.rows - 1);
    for (int row = lane.rows - 1; row >= 0; --row) {
        const bool is_row = row < lane.own_rows;
        const double end = is_row ? p.background(lane.own_rows - 1 - row) : NEVER_DOUBLE;
        const double below = scale;
        scale = greater_of(below + exponent_of(greatest), floor(end));
        const double change = power2(below - scale), whole = floor(end);
        const double ended = is_row ? times(exp2_of(end - whole), power2(whole - scale)) : 0.0;
        const double row_bad = times(change, p.bad);
        const float event = lane.event(row);
        // With correlated noise `match` is without the densities of the row below, of which these are.
        const float x = CORRELATED ? x_after : event;
        const double ahead = lane.scales[LANES * row] - reference;
        const Halves of_below(ahead + below), of_same(ahead + scale);
        greatest = 0.0;
        double skipped = 0.0, before = 0.0, before_free = 0.0;
        int site = last_site, bit = last_bit, next = site >= lane.width ? lane.changes_at(site) : -1;
        for (int j = lane.n_kmers - 1; j >= first_slot - 1; --j) {
            const bool is_change = j + 1 == next;
            if (__any_sync(FULL, is_change)) {
                const int bits = is_change ? 1 << bit : 0;
                before = mean_of(before, bits);
                if (CORRELATED) before_free = mean_of(before_free, bits);
                skipped = mean_of(skipped, bits);
                if (is_change) {
                    if (bit == 0) {
                        const int slot = site / lane.width - 1;
                        const double* kept = lane.kept + LANES * KEPT * (slot * lane.rows + row);
                        const double from_skips = of_same.product(kept[LANES * (KEPT - 1)], skipped);
                        double flow;
                        if (CORRELATED) {
                            flow = of_below.product(kept[LANES], before_free);
                            flow = of_below.plus_product(kept[0], before, flow);
                            flow = of_same.plus_product(kept[LANES * (KEPT - 1)], skipped, flow);
                        } else {
                            flow = of_below.plus_product(kept[0], before, from_skips);
                        }
                        lane.masses[LANES * slot] = lane.masses[LANES * slot] + flow;
                    }
                    bit = bit > 0 ? bit - 1 : lane.width - 1;
                    next = --site >= lane.width ? lane.changes_at(site) : -1;
                }
            }
            if (j < first_slot) break;
            const int at = LANES * j;
            const double finish = j == lane.own_kmers - 1 ? ended : 0.0;
            const double match_below = lane.match[at];
            const double bad = fused(row_bad, lane.wrong[at], finish);
            const double stepped = times(change, before);
            const double onto = fused(p.step, stepped, fused(p.skip, skipped, bad));
            const float inverse = lane.inverse[at], offset = lane.offset[at], top = lane.constant[at];
            const float z = fmaf(x, inverse, offset);
            double same = times(change, match_below), good, on, into_same;
            if (CORRELATED) {
                const float w_same = fmaf(event, inverse, offset);
                const float w_before = fmaf(event, lane.inverse[at - LANES], lane.offset[at - LANES]);
                const Densities q = densities_of(z, w_same, w_before, inverse, top, noise);
                good = fused(p.stay, times(same, q.stay), onto);
                on = times(change, before_free);
                before = times(match_below, q.step);
                before_free = times(match_below, q.free);
                into_same = fused(same, q.free, on);
            } else {
                const double density = exp2_of(fmaf(-z, z, top));
                good = times(density, fused(p.stay, same, onto));
                on = stepped;
                before = match_below;
                into_same = same + on;
            }
            const double wrong = fused(p.from_bad, into_same + skipped, bad);
            skipped = fused(p.skip_self, skipped, fused(p.from_skip, on, finish));
            lane.match[at] = good;
            lane.wrong[at] = wrong;
            greatest = greater_of(greatest, greater_of(good, wrong));
        }
        greatest = greatest_of_window(greatest, lane.width);
        x_after = event;
    }
}

// `windows` has, window by window: number of the read, first base, number of bases, first and last event, first element
// of `sites` and number of sites. `warps` has, warp by warp: first window, number of windows, and of them the most k-mers,
// events, slots and sites, and the width. `numbers` and `constants` are those of hmm.cu, `p_stay` is that of each read,
// and `transitions` are P_BAD, P_FROM_BAD, P_SKIP, P_SKIP_SELF and P_FROM_SKIP of f5py/core/hmm.py. `terms` are those of
// f5py.methylation.hmm.NoiseTerms; without CORRELATED there are none. For each site the sums over the lanes in which it
// is methylated, and in which it is not, are found, and for each window the exponent of two over which they are.
template <bool CORRELATED>
__device__ __forceinline__ void score_sites(
    const float* __restrict__ event_mean, const int64* __restrict__ q, const unsigned char* __restrict__ reference,
    const int64* __restrict__ reference_offsets, const unsigned char* __restrict__ motifs, const int k,
    const float4* __restrict__ model, const float* __restrict__ shift_of, const float* __restrict__ scale_of,
    const float* __restrict__ var_of, const float* __restrict__ numbers, const int* __restrict__ is_reverse,
    const float* __restrict__ constants, const double* __restrict__ p_stay, const double* __restrict__ transitions,
    const int* __restrict__ windows, const int* __restrict__ sites, const int* __restrict__ warps,
    const int64* __restrict__ work_offsets, float* work, double* __restrict__ found, double* __restrict__ exponents,
    const double* __restrict__ terms) {
    const int* warp = warps + 7 * blockIdx.x;
    const int columns = warp[2], rows = warp[3], slots = warp[4], most_sites = warp[5], width = warp[6];
    const int lanes = 1 << width, number = threadIdx.x >> width;
    const bool is_own = number < warp[1];  // what is left of the warp does what its last window does
    const int window = warp[0] + (is_own ? number : warp[1] - 1);
    const int* about = windows + 7 * window;
    const int read = about[0], begin = about[3], end = about[4];
    const bool reverse = is_reverse[read] != 0;
    const unsigned char* strand = motifs + (reverse ? MOTIF_BYTES : 0);
    const Motif motif = {strand + MOTIF_CODES, strand + MOTIF_BITS, strand + MOTIF_COMPLEMENT, strand + MOTIF_MASKS};

    Lane lane;
    lane.events = event_mean + q[read] + begin;
    lane.sites = sites + about[5];
    lane.stride = begin < end ? 1 : -1;
    lane.own_rows = (begin < end ? end - begin : begin - end) + 1;
    lane.own_kmers = about[2] - k + 1;
    lane.n_sites = about[6];
    lane.width = width;
    lane.k = k;
    lane.of_window = threadIdx.x & (lanes - 1);
    lane.rows = rows;
    lane.n_kmers = columns;
    double* room = (double*)(work + work_offsets[blockIdx.x]) + threadIdx.x;
    lane.match = room;
    lane.wrong = room += LANES * columns;
    lane.leaving = room += LANES * columns;
    lane.leaving_free = room += LANES * (columns + 1);
    lane.scales = CORRELATED ? room += LANES * (columns + 1) : room;
    lane.ends = room += LANES * rows;
    lane.masses = room += LANES * rows;
    lane.kept = room += LANES * (slots + 1);
    lane.inverse = (float*)(lane.kept - threadIdx.x + LANES * (CORRELATED ? 3 : 2) * slots * rows) + threadIdx.x;
    lane.offset = lane.inverse + LANES * columns;
    lane.constant = lane.offset + LANES * columns;

    Transitions p;
    p.stay = p_stay[read];
    p.bad = transitions[0], p.from_bad = transitions[1], p.skip = transitions[2], p.skip_self = transitions[3];
    p.from_skip = transitions[4];
    p.step = 1.0 - p.stay - p.skip - p.bad;
    p.no_background = constants[5], p.first_background = constants[6], p.more_background = constants[7];
    Noise noise;
    if (CORRELATED)
        noise = {
            (float)terms[0], (float)terms[1], (float)terms[2], (float)terms[3], (float)terms[4], (float)terms[5],
            (float)terms[6], (float)terms[7], terms[4], terms[7], terms[8] != 0.0};

    fill_emissions(
        lane, reference + reference_offsets[read] + about[1], about[2], reverse, motif, model, shift_of[read],
        scale_of[read], var_of[read], numbers[3 * read + 2], constants);
    const double exponent = forward<CORRELATED>(lane, p, noise);
    for (int slot = 0; slot < slots; ++slot) lane.masses[LANES * slot] = 0.0;
    const double mass = mass_of_ends(lane, p, exponent);
    if (slots > 0) {
        int first_slot = lane.n_sites > width ? lane.changes_at(width) : columns;
        for (int bit = 1; bit < LANES; bit *= 2) {
            const int other = __shfl_xor_sync(FULL, first_slot, bit);
            first_slot = other < first_slot ? other : first_slot;
        }
        backward<CORRELATED>(lane, p, noise, exponent, first_slot);
    }

    const int first_lane = threadIdx.x & ~(lanes - 1);
    for (int i = 0; i < most_sites; ++i) {
        // The flow into the k-mer that the next block of sites begins with tells the states of this one's.
        const int block = i / width, bit = i % width;
        const double of_site = (block + 1) * width < lane.n_sites ? lane.masses[LANES * block] : mass;
        const double methylated = share_of(of_site, first_lane, lanes, bit, 1);
        const double unmethylated = share_of(of_site, first_lane, lanes, bit, 0);
        if (is_own && i < lane.n_sites && lane.of_window == 0) {
            found[2 * (about[5] + i)] = methylated;
            found[2 * (about[5] + i) + 1] = unmethylated;
        }
    }
    if (is_own && lane.of_window == 0) exponents[window] = exponent;
}

extern "C" __global__ void __launch_bounds__(LANES, 16) sites_independent(
    const float* __restrict__ event_mean, const int64* __restrict__ q, const unsigned char* __restrict__ reference,
    const int64* __restrict__ reference_offsets, const unsigned char* __restrict__ motifs, const int k,
    const float4* __restrict__ model, const float* __restrict__ shift_of, const float* __restrict__ scale_of,
    const float* __restrict__ var_of, const float* __restrict__ numbers, const int* __restrict__ is_reverse,
    const float* __restrict__ constants, const double* __restrict__ p_stay, const double* __restrict__ transitions,
    const int* __restrict__ windows, const int* __restrict__ sites, const int* __restrict__ warps,
    const int64* __restrict__ work_offsets, float* work, double* __restrict__ found, double* __restrict__ exponents) {
    score_sites<false>(
        event_mean, q, reference, reference_offsets, motifs, k, model, shift_of, scale_of, var_of, numbers, is_reverse,
        constants, p_stay, transitions, windows, sites, warps, work_offsets, work, found, exponents, nullptr);
}

extern "C" __global__ void __launch_bounds__(LANES, 16) sites_correlated(
    const float* __restrict__ event_mean, const int64* __restrict__ q, const unsigned char* __restrict__ reference,
    const int64* __restrict__ reference_offsets, const unsigned char* __restrict__ motifs, const int k,
    const float4* __restrict__ model, const float* __restrict__ shift_of, const float* __restrict__ scale_of,
    const float* __restrict__ var_of, const float* __restrict__ numbers, const int* __restrict__ is_reverse,
    const float* __restrict__ constants, const double* __restrict__ p_stay, const double* __restrict__ transitions,
    const int* __restrict__ windows, const int* __restrict__ sites, const int* __restrict__ warps,
    const int64* __restrict__ work_offsets, float* work, double* __restrict__ found, double* __restrict__ exponents,
    const double* __restrict__ terms) {
    score_sites<true>(
        event_mean, q, reference, reference_offsets, motifs, k, model, shift_of, scale_of, var_of, numbers, is_reverse,
        constants, p_stay, transitions, windows, sites, warps, work_offsets, work, found, exponents, terms);
}
