// Event detection: cutting each read's samples into stretches of one current level; the method is described in
// f5py/signal/events.py. One warp per read, one block per warp; the boundaries depend on exact comparisons, so that every
// operation is that of the CPU, rounded at the same places. Compile with --fmad=false.
//
// The lanes take 32 samples together: their cumulative sums, in double precision, then the t-statistics of 32 positions,
// one chunk later, as these need the sums of samples to come. The peak detectors go over the positions one by one, all
// lanes doing the same. An event is written as soon as its end is known.
//
// Cumulative sums are those of a loop that adds sample by sample. As long as no sum has been rounded, the order does not
// matter, and the lanes scan; that is so while all samples are of at least 4 pA (or are 0), which makes all sums multiples
// of 2 ** -21 (of squares 2 ** -19), and the sums are below 2 ** 31 (2 ** 33). From the first chunk on where it may not
// be so, the samples are added in order.

#include "warp.cuh"

#define RING 128  // cumulative sums that are kept: a power of two, four chunks
#define MIN_EXACT 4.0f
#define MAX_EXACT 8192.0f
#define MAX_SUM 2147483648.0
#define MAX_SQUARES 8589934592.0
#define SMALLEST_NORMAL 1.17549435e-38f
#define LARGEST 3.40282347e+38f

// The sums of the samples up to a position.
struct Sums {
    double values, squares;
};

struct Detector {
    int masked_to, position;
    float value;
    bool valid;
    Sums before;  // `position`
};

// What the last event of a read is made of, and where it goes.
struct Events {
    int begin, found, capacity;
    Sums before;  // `begin`
    int* start;
    float* mean;
    float* stdv;
};

__device__ __forceinline__ void add_event(Events& events, int end, const Sums& sums) {
    if (events.found < events.capacity && threadIdx.x == 0) {
        const float width = (float)(end - events.begin);
        const float mean = (float)(sums.values - events.before.values) / width;
        const float variance = (float)(sums.squares - events.before.squares) / width - mean * mean;
        events.start[events.found] = events.begin;
        events.mean[events.found] = mean;
        events.stdv[events.found] = sqrtf(variance > 0.0f ? variance : 0.0f);
    }
    ++events.found;
    events.begin = end;
    events.before = sums;
}

// t-statistic of the samples left and right of a position.
__device__ __forceinline__ float t_statistic(
    const double* values, const double* squares, int position, int window, int n_samples) {
    if (n_samples < 2 * window || window < 2 || position < window || position > n_samples - window) return 0.0f;
    const float width = (float)window;
    const int here = position & (RING - 1);
    const int before = (position - window) & (RING - 1);
    const int after = (position + window) & (RING - 1);
    const float left = (float)((values[here] - values[before]) / (double)width);
    const float right = (float)(values[after] - values[here]) / width;
    const double left_square = (squares[here] - squares[before]) / (double)width;
    const float right_square = (float)(squares[after] - squares[here]) / width;
    float variance = (float)(left_square - (double)(left * left) + (double)right_square - (double)(right * right));
    if (!(variance > SMALLEST_NORMAL)) variance = SMALLEST_NORMAL;
    return (float)((double)fabsf(right - left) / sqrt((double)(variance / width)));
}

__device__ __forceinline__ void forget_peak(Detector& detector, float value) {
    detector.position = -1;
    detector.value = value;
    detector.valid = false;
}

// Follow the statistic up to a new peak; false as long as there is none.
__device__ __forceinline__ bool find_peak(
    Detector& detector, float value, int i, float peak_height, const double* values, const double* squares) {
    if (detector.position < 0) {
        if (value < detector.value) {
            detector.value = value;
        } else if (value - detector.value > peak_height) {
            detector.value = value;
            detector.position = i;
            detector.before = {values[i & (RING - 1)], squares[i & (RING - 1)]};
        }
        return false;
    }
    if (value > detector.value) {
        detector.value = value;
        detector.position = i;
        detector.before = {values[i & (RING - 1)], squares[i & (RING - 1)]};
    }
    return true;
}

// Events of each read in the elements slots[read]..slots[read + 1]-1; their number, or -1 if there are more than these.
extern "C" __global__ void __launch_bounds__(LANES) events_find(
    const short* __restrict__ samples, const int64* __restrict__ sample_offsets, const int* __restrict__ order,
    const int n_reads, const float* __restrict__ offset_of, const float* __restrict__ unit_of, const int window_short,
    const int window_long, const float threshold_short, const float threshold_long, const float peak_height,
    const int64* __restrict__ slots, int* __restrict__ start, float* __restrict__ mean, float* __restrict__ stdv,
    int* __restrict__ n_events_of) {
    __shared__ double values[RING];
    __shared__ double squares[RING];
    if (blockIdx.x >= n_reads) return;
    const int read = order[blockIdx.x];
    const int lane = threadIdx.x;
    const short* raw = samples + sample_offsets[read];
    const int n_samples = (int)(sample_offsets[read + 1] - sample_offsets[read]);
    const float offset = offset_of[read];
    const float unit = unit_of[read];
    Events events = {0, 0, (int)(slots[read + 1] - slots[read]), {0.0, 0.0}, start + slots[read], mean + slots[read],
                     stdv + slots[read]};

    Sums total = {0.0, 0.0};
    bool is_exact = true;
    Detector near, far;
    near.masked_to = far.masked_to = 0;
    near.before = far.before = total;
    forget_peak(near, LARGEST);
    forget_peak(far, LARGEST);
    if (lane == 0) values[0] = squares[0] = 0.0;

    for (int first = 0; first - LANES < n_samples; first += LANES) {
        // The sums up to each of the samples first..first+31.
        float x = 0.0f;
        if (first + lane < n_samples) x = ((float)raw[first + lane] + offset) * unit;
        Sums sums = {(double)x, (double)(x * x)};
        const float size = fabsf(x);
        const bool is_coarse = size == 0.0f || (size >= MIN_EXACT && size < MAX_EXACT);
        is_exact = is_exact && fabs(total.values) < MAX_SUM && total.squares < MAX_SQUARES;
        is_exact = __all_sync(FULL, is_coarse) && is_exact;
        if (is_exact) {
#pragma unroll
            for (int distance = 1; distance < LANES; distance *= 2) {
                const double earlier_values = __shfl_up_sync(FULL, sums.values, distance);
                const double earlier_squares = __shfl_up_sync(FULL, sums.squares, distance);
                if (lane >= distance) {
                    sums.values += earlier_values;
                    sums.squares += earlier_squares;
                }
            }
            sums.values += total.values;
            sums.squares += total.squares;
            total.values = __shfl_sync(FULL, sums.values, LANES - 1);
            total.squares = __shfl_sync(FULL, sums.squares, LANES - 1);
        } else {
            for (int i = 0; i < LANES; ++i) {
                const float one = __shfl_sync(FULL, x, i);
                total.values += (double)one;
                total.squares += (double)(one * one);
                if (lane == i) sums = total;
            }
        }
        __syncwarp(FULL);  // the positions before have been read
        values[(first + lane + 1) & (RING - 1)] = sums.values;
        squares[(first + lane + 1) & (RING - 1)] = sums.squares;
        __syncwarp(FULL);

        // The positions of the chunk before.
        const int position = first - LANES + lane;
        float statistic_short = 0.0f, statistic_long = 0.0f;
        if (position >= 0 && position < n_samples) {
            statistic_short = t_statistic(values, squares, position, window_short, n_samples);
            statistic_long = t_statistic(values, squares, position, window_long, n_samples);
        }
        const int count = first == 0 ? 0 : min(n_samples - (first - LANES), LANES);
        for (int j = 0; j < count; ++j) {
            const int i = first - LANES + j;
            const float value_short = __shfl_sync(FULL, statistic_short, j);
            const float value_long = __shfl_sync(FULL, statistic_long, j);
            if (near.masked_to < i && find_peak(near, value_short, i, peak_height, values, squares)) {
                if (near.value > threshold_short) {
                    far.masked_to = near.position + window_short;
                    forget_peak(far, LARGEST);
                }
                if (near.value - value_short > peak_height && near.value > threshold_short) near.valid = true;
                if (near.valid && i - near.position > window_short / 2) {
                    add_event(events, near.position, near.before);
                    forget_peak(near, value_short);
                }
            }
            if (far.masked_to < i && find_peak(far, value_long, i, peak_height, values, squares)) {
                if (far.value - value_long > peak_height && far.value > threshold_long) far.valid = true;
                if (far.valid && i - far.position > window_long / 2) {
                    add_event(events, far.position, far.before);
                    forget_peak(far, value_long);
                }
            }
        }
    }
    add_event(events, n_samples, total);
    if (lane == 0) n_events_of[read] = events.found <= events.capacity ? events.found : -1;
}

// Move the events of each read from its slots to where they stand one read after another; last event first for RNA.
extern "C" __global__ void events_place(
    const int64* __restrict__ slots, const int* __restrict__ slot_start, const float* __restrict__ slot_mean,
    const float* __restrict__ slot_stdv, const int64* __restrict__ sample_offsets, const int64* __restrict__ q,
    const int* __restrict__ slot_of, const int n_reads, const int is_reversed, const int means_only,
    int* __restrict__ start, int* __restrict__ length, float* __restrict__ mean, float* __restrict__ stdv) {
    const int read = blockIdx.x;
    if (read >= n_reads) return;
    const int slot_read = slot_of[read];
    const int64 from = slots[slot_read];
    const int n_events = (int)(q[read + 1] - q[read]);
    const int n_samples = (int)(sample_offsets[slot_read + 1] - sample_offsets[slot_read]);
    for (int e = threadIdx.x; e < n_events; e += blockDim.x) {
        const int64 to = q[read] + (is_reversed ? n_events - 1 - e : e);
        mean[to] = slot_mean[from + e];
        if (means_only) continue;
        const int begin = slot_start[from + e];
        start[to] = begin;
        length[to] = (e + 1 < n_events ? slot_start[from + e + 1] : n_samples) - begin;
        stdv[to] = slot_stdv[from + e];
    }
}
