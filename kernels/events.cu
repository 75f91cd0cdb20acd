// Event detection: cutting each read's samples into stretches of one current level; the method is described in
// f5py/signal/events.py. One warp per read, one block per warp; the boundaries depend on exact comparisons, so that every
// operation is that of the CPU, rounded at the same places. Compile with --fmad=false.
//
// A t-statistic is made of sums over windows of samples, differences of cumulative sums in double precision. As long as no
// cumulative sum has been rounded, sums over windows are the same however they come about; that is so while all samples are
// of at least 4 pA (or are 0), which makes all sums multiples of 2 ** -21 (of squares 2 ** -19), and the squares add up to
// less than 2 ** 33, and the samples therefore to less than 2 ** 31. Then every lane goes through a stretch of the read by
// itself. The state in which the peak detectors enter a stretch is not known, but is soon forgotten: a lane begins some
// samples earlier, as if the read began there, and when all have come to their ends each compares the state that it had at
// its begin with that in which the lane before has ended. Those that differ go through their stretches again, until all agree.
//
// Reads whose sums may be rounded are gone through in order: lanes take 32 samples together, their sums sample by sample,
// then the statistics of 32 positions, one chunk later, as these need the sums of samples to come. The detectors go over
// the positions one by one, all lanes doing the same.

#include "warp.cuh"
#include "detectors.cuh"

#define RING 128  // cumulative sums that are kept where samples are taken in order: a power of two, four chunks
#define WARM_UP 128  // samples before a stretch, after which the detectors' state is nearly always that of the whole read
#define SHORTEST 64  // samples of a stretch: shorter ones, and few events, are not worth dividing
#define MIN_EXACT 4.0f
#define MAX_EXACT 8192.0f
#define MAX_SQUARES 8589934592.0

// The samples of a read.
struct Signal {
    const short* raw;
    int n;
    float offset, unit;

    // 0 before the begin and after the end
    __device__ __forceinline__ float at(int i) const {
        return i >= 0 && i < n ? ((float)raw[i] + offset) * unit : 0.0f;
    }
};

// Events one after the other, and where they go.
struct Events {
    int begin, found, capacity;
    Sums before;  // `begin`
    int* start;
    float* mean;
    float* stdv;

    __device__ __forceinline__ void put(int at, int end, const Sums& sums) const {
        const float width = (float)(end - begin);
        const float average = (float)(sums.values - before.values) / width;
        const float variance = (float)(sums.squares - before.squares) / width - average * average;
        start[at] = begin;
        mean[at] = average;
        stdv[at] = sqrtf(variance > 0.0f ? variance : 0.0f);
    }
};

// The events of a whole read, the same in all lanes.
struct EventsOfRead : Events {
    __device__ __forceinline__ void add(int end, const Sums& sums) {
        if (found < capacity && threadIdx.x == 0) put(found, end, sums);
        ++found;
        begin = end;
        before = sums;
    }
};

// The events of a lane's stretch: the first boundary ends an event that may begin in another lane's.
struct EventsOfStretch : Events {
    int first_end;
    Sums first_sums;

    __device__ __forceinline__ void add(int end, const Sums& sums) {
        if (found == 0) {
            first_end = end;
            first_sums = sums;
        } else if (found < capacity) {
            put(found, end, sums);
        }
        ++found;
        begin = end;
        before = sums;
    }
};

// The sums over the windows left and right of a position.
struct Windows {
    int width;
    Sums left, right;

    __device__ __forceinline__ void begin(const Signal& signal, int position) {
        left = right = {0.0, 0.0};
        for (int i = position - width; i < position; ++i) left.add(signal.at(i));
        for (int i = position; i < position + width; ++i) right.add(signal.at(i));
    }
    // From the windows around `position` to those around the next one; `x` is the sample between them.
    __device__ __forceinline__ void move_on(const Signal& signal, int position, float x) {
        left.add(x);
        left.subtract(signal.at(position - width));
        right.subtract(x);
        right.add(signal.at(position + width));
    }
};

// Take the positions from..to-1; boundaries count from `begin` on, where the sums become `sums_at_begin` and the state is
// copied to `at_begin`.
__device__ __forceinline__ void walk(
    const Signal& signal, const Parameters& given, int from, int begin, int to, const Sums& sums_at_begin,
    Detectors& detectors, Detectors& at_begin, EventsOfStretch& events) {
    Sums sums = from == begin ? sums_at_begin : Sums{0.0, 0.0};
    Windows near = {given.window_short}, far = {given.window_long};
    near.begin(signal, from);
    far.begin(signal, from);
    for (int i = from; i < to; ++i) {
        if (i == begin) {
            // Before a stretch they are counted from `from` on.
            const Sums missing = between(sums, sums_at_begin);
            detectors.near.before.add(missing);
            detectors.far.before.add(missing);
            sums = sums_at_begin;
            at_begin = detectors;
        }
        const float value_short = t_statistic(near.left, near.right, i, near.width, signal.n);
        const float value_long = t_statistic(far.left, far.right, i, far.width, signal.n);
        detect(detectors, value_short, value_long, i, sums, given, i >= begin, events);
        const float x = signal.at(i);
        sums.add(x);
        near.move_on(signal, i, x);
        far.move_on(signal, i, x);
    }
}

__device__ __forceinline__ Sums of_lane(const Sums& sums, int lane) {
    return {__shfl_sync(FULL, sums.values, lane), __shfl_sync(FULL, sums.squares, lane)};
}

__device__ __forceinline__ Sums of_lane_before(const Sums& sums, int distance) {
    return {__shfl_up_sync(FULL, sums.values, distance), __shfl_up_sync(FULL, sums.squares, distance)};
}

__device__ __forceinline__ Detector of_lane_before(const Detector& detector) {
    Detector before;
    before.masked_to = __shfl_up_sync(FULL, detector.masked_to, 1);
    before.position = __shfl_up_sync(FULL, detector.position, 1);
    before.value = __shfl_up_sync(FULL, detector.value, 1);
    before.valid = __shfl_up_sync(FULL, (int)detector.valid, 1) != 0;
    before.before = of_lane_before(detector.before, 1);
    return before;
}

// Whether two states at position `i` lead to the same boundaries.
__device__ __forceinline__ bool is_same(const Detector& a, const Detector& b, int i) {
    return (a.masked_to < i ? i - 1 : a.masked_to) == (b.masked_to < i ? i - 1 : b.masked_to) &&
           a.position == b.position && a.value == b.value && a.valid == b.valid;
}

// The events of a read none of whose sums is rounded, each lane a stretch; `total` are the sums over the read.
// Returns their number, or -1 if a stretch has more than fit.
__device__ __forceinline__ int find_in_stretches(
    const Signal& signal, const Parameters& given, const int stretch, const Sums& sums_at_begin, const Sums& total,
    const Events& room) {
    const int lane = threadIdx.x;
    const int n_used = max((signal.n + stretch - 1) / stretch, 1);
    const int begin = lane * stretch;
    const int end = min(begin + stretch, signal.n);
    const int capacity = (room.capacity - 1) / n_used;  // the last event of the read has no boundary at its end
    const int slot = lane * capacity;
    EventsOfStretch events;
    const Events none = {0, 0, capacity, {0.0, 0.0}, room.start + slot, room.mean + slot, room.stdv + slot};
    static_cast<Events&>(events) = none;
    Detectors detectors = no_peaks(), at_begin = detectors;
    int from = max(begin - WARM_UP, 0);
    bool goes = begin < signal.n;
    for (int round = 0; round < LANES; ++round) {  // after each, one lane more is surely right
        if (goes) walk(signal, given, from, begin, end, sums_at_begin, detectors, at_begin, events);
        const Detectors before = {of_lane_before(detectors.near), of_lane_before(detectors.far)};
        goes = lane > 0 && begin < signal.n &&
               !(is_same(before.near, at_begin.near, begin) && is_same(before.far, at_begin.far, begin));
        if (!__any_sync(FULL, goes)) break;
        if (goes) {
            detectors = before;
            static_cast<Events&>(events) = none;
            from = begin;
        }
    }
    if (__any_sync(FULL, events.found > capacity)) return -1;

    // The event that ends at a stretch's first boundary begins at the last one before.
    const unsigned with_boundary = __ballot_sync(FULL, events.found > 0);
    const unsigned earlier = with_boundary & ((1u << lane) - 1);
    const int source = earlier != 0 ? 31 - __clz((int)earlier) : lane;
    Events first = events;
    first.begin = __shfl_sync(FULL, events.begin, source);
    first.before = of_lane(events.before, source);
    if (earlier == 0) {
        first.begin = 0;
        first.before = {0.0, 0.0};
    }
    if (events.found > 0) first.put(0, events.first_end, events.first_sums);
    __syncwarp(FULL);

    // Close the gaps between the stretches.
    int n = 0;
    for (int other = 0; other < n_used; ++other) {
        const int count = __shfl_sync(FULL, events.found, other);
        const int gap = other * capacity - n;
        for (int done = 0; done < count && gap > 0; done += LANES) {
            const int to = n + done + lane;
            const bool has = done + lane < count;
            const int start = has ? room.start[to + gap] : 0;
            const float mean = has ? room.mean[to + gap] : 0.0f;
            const float stdv = has ? room.stdv[to + gap] : 0.0f;
            __syncwarp(FULL);
            if (has) {
                room.start[to] = start;
                room.mean[to] = mean;
                room.stdv[to] = stdv;
            }
            __syncwarp(FULL);
        }
        n += count;
    }
    const int last = with_boundary != 0 ? 31 - __clz((int)with_boundary) : 0;
    Events rest = room;
    rest.begin = __shfl_sync(FULL, events.begin, last);
    rest.before = of_lane(events.before, last);
    if (lane == 0) rest.put(n, signal.n, total);
    return n + 1;
}

// The events of a read whose sums may be rounded; their number, also if it is more than fit.
__device__ __forceinline__ int find_in_order(
    const Signal& signal, const Parameters& given, double* values, double* squares, const Events& room) {
    const int lane = threadIdx.x;
    EventsOfRead events;
    static_cast<Events&>(events) = room;
    Sums total = {0.0, 0.0};
    Detectors detectors = no_peaks();
    if (lane == 0) values[0] = squares[0] = 0.0;

    for (int first = 0; first - LANES < signal.n; first += LANES) {
        // The sums up to each of the samples first..first+31.
        const float x = signal.at(first + lane);
        Sums sums = total;
        for (int i = 0; i < LANES; ++i) {
            total.add(__shfl_sync(FULL, x, i));
            if (lane == i) sums = total;
        }
        __syncwarp(FULL);  // the positions before have been read
        values[(first + lane + 1) & (RING - 1)] = sums.values;
        squares[(first + lane + 1) & (RING - 1)] = sums.squares;
        __syncwarp(FULL);

        // The positions of the chunk before.
        const int position = first - LANES + lane;
        float statistic_short = 0.0f, statistic_long = 0.0f;
        if (position >= 0 && position < signal.n) {
            const auto up_to = [&](int i) { return Sums{values[i & (RING - 1)], squares[i & (RING - 1)]}; };
            const auto statistic = [&](int window) {
                return t_statistic(
                    between(up_to(position - window), up_to(position)), between(up_to(position), up_to(position + window)),
                    position, window, signal.n);
            };
            statistic_short = statistic(given.window_short);
            statistic_long = statistic(given.window_long);
        }
        const int count = first == 0 ? 0 : min(signal.n - (first - LANES), LANES);
        for (int j = 0; j < count; ++j) {
            const int i = first - LANES + j;
            const float value_short = __shfl_sync(FULL, statistic_short, j);
            const float value_long = __shfl_sync(FULL, statistic_long, j);
            const Sums before = {values[i & (RING - 1)], squares[i & (RING - 1)]};
            detect(detectors, value_short, value_long, i, before, given, true, events);
        }
    }
    events.add(signal.n, total);
    return events.found;
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
    const int64 slot = slots[read];
    const Signal signal = {
        samples + sample_offsets[read], (int)(sample_offsets[read + 1] - sample_offsets[read]), offset_of[read],
        unit_of[read]};
    const Parameters given = {window_short, window_long, threshold_short, threshold_long, peak_height};
    const Events room = {
        0, 0, (int)(slots[read + 1] - slot), {0.0, 0.0}, start + slot, mean + slot, stdv + slot};

    // The sums up to each lane's stretch, and whether all are exact.
    const int stretch = max((signal.n + LANES - 1) / LANES, SHORTEST);
    bool is_coarse = true;
    Sums sums = {0.0, 0.0};
    for (int i = lane * stretch; i < min((lane + 1) * stretch, signal.n); ++i) {
        const float x = signal.at(i);
        const float size = fabsf(x);
        is_coarse = is_coarse && (size == 0.0f || (size >= MIN_EXACT && size < MAX_EXACT));
        sums.add(x);
    }
    const Sums own = sums;
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2) {
        const Sums earlier = of_lane_before(sums, distance);
        if (lane >= distance) sums.add(earlier);
    }
    const Sums total = of_lane(sums, LANES - 1);
    int n_events;
    if (__all_sync(FULL, is_coarse) && total.squares < MAX_SQUARES) {
        n_events = find_in_stretches(signal, given, stretch, between(own, sums), total, room);
    } else {
        n_events = find_in_order(signal, given, values, squares, room);
    }
    if (lane == 0) n_events_of[read] = n_events <= room.capacity ? n_events : -1;
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
