// Scaling: shift and scale from moments before the alignment, and from weighted least squares after it, which also gives
// var; the formulas stand in f5py/signal/scaling.py. One warp per read, one block per warp. All sums are in double
// precision and in the order of a plain loop, so that they are the CPU's to the last bit. Compile with --fmad=false.

#include "warp.cuh"

extern "C" __global__ void __launch_bounds__(LANES) scaling_moments(
    const unsigned char* __restrict__ bases, const int64* __restrict__ p, const float* __restrict__ event_mean,
    const int64* __restrict__ q, const int* __restrict__ order, const int n_reads, const int k,
    const float4* __restrict__ model, float* __restrict__ shift_of, float* __restrict__ scale_of) {
    if (blockIdx.x >= n_reads) return;
    const int read = order[blockIdx.x];
    const int lane = threadIdx.x;
    const unsigned char* letters = bases + p[read];
    const float* events = event_mean + q[read];
    const int n_kmers = (int)(p[read + 1] - p[read]) - k + 1;
    const int n_events = (int)(q[read + 1] - q[read]);

    double level_sum = 0.0, level_square_sum = 0.0;
    for (int first = 0; first < n_kmers; first += LANES) {
        const int count = min(n_kmers - first, LANES);
        const double level = lane < count ? (double)model[kmer_rank(letters + first + lane, k)].x : 0.0;
        level_sum = add_in_order(level_sum, level, count);
        level_square_sum = add_in_order(level_square_sum, level * level, count);
    }
    double event_sum = 0.0;
    for (int first = 0; first < n_events; first += LANES) {
        const int count = min(n_events - first, LANES);
        event_sum = add_in_order(event_sum, lane < count ? (double)events[first + lane] : 0.0, count);
    }
    const double shift = event_sum / n_events - level_sum / n_kmers;
    double centred_square_sum = 0.0;
    for (int first = 0; first < n_events; first += LANES) {
        const int count = min(n_events - first, LANES);
        const double centred = lane < count ? (double)events[first + lane] - shift : 0.0;
        centred_square_sum = add_in_order(centred_square_sum, centred * centred, count);
    }
    if (lane == 0) {
        shift_of[read] = (float)shift;
        scale_of[read] = (float)((centred_square_sum / n_events) / (level_square_sum / n_kmers));
    }
}

// A k-mer's event, if the fit uses it: the k-mer's first event, and the k-mer differs from the one before that has events.
struct Used {
    bool is_used;
    double level, stdv, x;
};

__device__ __forceinline__ Used used_event(
    int j, int n_kmers, const int* first_event, const float4* kmers, const float* events, const float4* model,
    int& rank_before) {
    const int lane = threadIdx.x;
    const int event = j < n_kmers ? first_event[j] : -1;
    const int rank = event >= 0 ? __float_as_int(kmers[j].w) : -1;
    const unsigned with_event = __ballot_sync(FULL, event >= 0);
    const unsigned earlier = with_event & ((1u << lane) - 1);
    const int before = __shfl_sync(FULL, rank, earlier != 0 ? 31 - __clz((int)earlier) : lane);
    const int last = __shfl_sync(FULL, rank, with_event != 0 ? 31 - __clz((int)with_event) : 0);
    Used used = {event >= 0 && rank != (earlier != 0 ? before : rank_before), 0.0, 1.0, 0.0};
    if (used.is_used) {
        const float4 entry = model[rank];
        used.level = (double)entry.x;
        used.stdv = (double)entry.w;
        used.x = (double)events[event];
    }
    if (with_event != 0) rank_before = last;
    return used;
}

extern "C" __global__ void __launch_bounds__(LANES) scaling_fit(
    const int64* __restrict__ p, const float* __restrict__ event_mean, const int64* __restrict__ q,
    const int* __restrict__ order, const int n_reads, const int k, const float4* __restrict__ model,
    const float4* __restrict__ kmers, const int* __restrict__ first_event_of, float* __restrict__ shift_of,
    float* __restrict__ scale_of, float* __restrict__ var_of, int* __restrict__ n_used_of) {
    if (blockIdx.x >= n_reads) return;
    const int read = order[blockIdx.x];
    const int lane = threadIdx.x;
    const int* first_event = first_event_of + p[read];
    const float4* read_kmers = kmers + p[read];
    const float* events = event_mean + q[read];
    const int n_kmers = (int)(p[read + 1] - p[read]) - k + 1;

    double weight_sum = 0.0, level_sum = 0.0, level_square_sum = 0.0, event_sum = 0.0, product_sum = 0.0;
    int n_used = 0, rank_before = -1;
    for (int first = 0; first < n_kmers; first += LANES) {
        const int count = min(n_kmers - first, LANES);
        const Used used = used_event(first + lane, n_kmers, first_event, read_kmers, events, model, rank_before);
        const double weight = used.is_used ? 1.0 / (used.stdv * used.stdv) : 0.0;
        weight_sum = add_in_order(weight_sum, weight, count);
        level_sum = add_in_order(level_sum, weight * used.level, count);
        level_square_sum = add_in_order(level_square_sum, weight * used.level * used.level, count);
        event_sum = add_in_order(event_sum, weight * used.x, count);
        product_sum = add_in_order(product_sum, weight * used.level * used.x, count);
        n_used += __popc(__ballot_sync(FULL, used.is_used));
    }
    const double determinant = weight_sum * level_square_sum - level_sum * level_sum;
    const bool is_fit = n_used > 0 && determinant != 0.0;
    const double shift = (level_square_sum * event_sum - level_sum * product_sum) / determinant;
    const double scale = (weight_sum * product_sum - level_sum * event_sum) / determinant;

    double residual_sum = 0.0;
    rank_before = -1;
    for (int first = 0; first < n_kmers && is_fit; first += LANES) {
        const int count = min(n_kmers - first, LANES);
        const Used used = used_event(first + lane, n_kmers, first_event, read_kmers, events, model, rank_before);
        const double residual = used.is_used ? (used.x - shift - scale * used.level) / used.stdv : 0.0;
        residual_sum = add_in_order(residual_sum, residual * residual, count);
    }
    if (lane == 0) {
        shift_of[read] = is_fit ? (float)shift : 0.0f;
        scale_of[read] = is_fit ? (float)scale : 0.0f;
        var_of[read] = is_fit ? (float)sqrt(residual_sum / n_used) : 0.0f;
        n_used_of[read] = is_fit ? n_used : 0;
    }
}
