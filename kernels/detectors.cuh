// Detectors of the boundaries between events: a statistic of the samples on both sides of a position, and the peaks of it,
// over a short and a long window. Every operation is that of the CPU, rounded at the same places; see events.cu.
#pragma once

#define SMALLEST_NORMAL 1.17549435e-38f
#define LARGEST 3.40282347e+38f

// Sums of samples and of their squares, such as of those up to a position.
struct Sums {
    double values, squares;

    __device__ __forceinline__ void add(float x) {
        values += (double)x;
        squares += (double)(x * x);
    }
    __device__ __forceinline__ void add(const Sums& others) {
        values += others.values;
        squares += others.squares;
    }
    __device__ __forceinline__ void subtract(float x) {
        values -= (double)x;
        squares -= (double)(x * x);
    }
};

struct Detector {
    int masked_to, position;
    float value;
    bool valid;
    Sums before;  // `position`
};

struct Detectors {
    Detector near, far;
};

struct Parameters {
    int window_short, window_long;
    float threshold_short, threshold_long, peak_height;
};

// t-statistic of the samples left and right of a position, by the sums over a window on either side.
__device__ __forceinline__ float t_statistic(
    const Sums& sums_left, const Sums& sums_right, int position, int window, int n_samples) {
    if (n_samples < 2 * window || window < 2 || position < window || position > n_samples - window) return 0.0f;
    const float width = (float)window;
    const float left = (float)(sums_left.values / (double)width);
    const float right = (float)sums_right.values / width;
    const double left_square = sums_left.squares / (double)width;
    const float right_square = (float)sums_right.squares / width;
    float variance = (float)(left_square - (double)(left * left) + (double)right_square - (double)(right * right));
    if (!(variance > SMALLEST_NORMAL)) variance = SMALLEST_NORMAL;
    return (float)((double)fabsf(right - left) / sqrt((double)(variance / width)));
}

__device__ __forceinline__ Sums between(const Sums& before, const Sums& after) {
    return {after.values - before.values, after.squares - before.squares};
}

__device__ __forceinline__ void forget_peak(Detector& detector, float value) {
    detector.position = -1;
    detector.value = value;
    detector.valid = false;
}

// That of the begin of a read.
__device__ __forceinline__ Detectors no_peaks() {
    Detectors detectors;
    detectors.near.masked_to = detectors.far.masked_to = 0;
    detectors.near.before = detectors.far.before = {0.0, 0.0};
    forget_peak(detectors.near, LARGEST);
    forget_peak(detectors.far, LARGEST);
    return detectors;
}

// Follow the statistic up to a new peak; false as long as there is none. `sums` are those before position `i`.
__device__ __forceinline__ bool find_peak(Detector& detector, float value, int i, float peak_height, const Sums& sums) {
    if (detector.position < 0) {
        if (value < detector.value) {
            detector.value = value;
        } else if (value - detector.value > peak_height) {
            detector.value = value;
            detector.position = i;
            detector.before = sums;
        }
        return false;
    }
    if (value > detector.value) {
        detector.value = value;
        detector.position = i;
        detector.before = sums;
    }
    return true;
}

// Take the statistics of a position; `events` gets the boundaries that they show to have been passed.
template <class SomeEvents>
__device__ __forceinline__ void detect(
    Detectors& detectors, float value_short, float value_long, int i, const Sums& sums, const Parameters& given,
    bool keeps, SomeEvents& events) {
    Detector& near = detectors.near;
    Detector& far = detectors.far;
    if (near.masked_to < i && find_peak(near, value_short, i, given.peak_height, sums)) {
        if (near.value > given.threshold_short) {
            far.masked_to = near.position + given.window_short;
            forget_peak(far, LARGEST);
        }
        if (near.value - value_short > given.peak_height && near.value > given.threshold_short) near.valid = true;
        if (near.valid && i - near.position > given.window_short / 2) {
            if (keeps) events.add(near.position, near.before);
            forget_peak(near, value_short);
        }
    }
    if (far.masked_to < i && find_peak(far, value_long, i, given.peak_height, sums)) {
        if (far.value - value_long > given.peak_height && far.value > given.threshold_long) far.valid = true;
        if (far.valid && i - far.position > given.window_long / 2) {
            if (keeps) events.add(far.position, far.before);
            forget_peak(far, value_long);
        }
    }
}
