// Arithmetic of the kernels that score single sites: that of f5py/jit/simd_double.py in one lane, and the densities of
// f5py/methylation/site_cells.py with correlated noise. Compile with --fmad=false and -ftz=true.

#pragma once

#include "hmm.cuh"

#define NEVER_DOUBLE (-1e30)

// Doubles below 2 ** -1022 are zero on the CPU, and there is no compiler option for that here. None of ours is negative.
__device__ __forceinline__ double flushed(double value) { return __double2hiint(value) < 0x00100000 ? 0.0 : value; }
__device__ __forceinline__ double times(double a, double b) { return flushed(a * b); }
__device__ __forceinline__ double fused(double a, double b, double c) { return flushed(fma(a, b, c)); }
__device__ __forceinline__ double greater_of(double a, double b) { return a > b ? a : b; }

// 2 ** value of whole numbers; 0 below -1022, 2 ** 1023 above that.
__device__ __forceinline__ double power2(double value) {
    value = greater_of(value, -1023.0);
    value = value < 1023.0 ? value : 1023.0;
    return __longlong_as_double(((int64)value + 1023) << 52);
}

// 2 ** value below 2 ** 1024; 0 below -1022.
__device__ __forceinline__ double exp2_of(double value) {
    value = greater_of(value, -1023.0);
    const double whole = rint(value);
    const double part = value - whole;
    double result = 1.3691488853904128e-12;
    result = fma(result, part, 2.5678435993488206e-11);
    result = fma(result, part, 4.4455382718708116e-10);
    result = fma(result, part, 7.054911620801123e-09);
    result = fma(result, part, 1.01780860092397e-07);
    result = fma(result, part, 1.321548679014431e-06);
    result = fma(result, part, 1.5252733804059841e-05);
    result = fma(result, part, 0.00015403530393381608);
    result = fma(result, part, 0.0013333558146428443);
    result = fma(result, part, 0.009618129107628477);
    result = fma(result, part, 0.05550410866482158);
    result = fma(result, part, 0.24022650695910072);
    result = fma(result, part, 0.6931471805599453);
    result = fma(result, part, 1.0);
    return times(result, __longlong_as_double(((int64)whole + 1023) << 52));
}

// floor(log2(value)) of a positive normal value; -1023 for zero.
__device__ __forceinline__ double exponent_of(double value) {
    return (double)(((__double2hiint(value) >> 20) & 2047) - 1023);
}

// What the lanes of a window have greatest.
__device__ __forceinline__ double greatest_of_window(double value, int width) {
    for (int bit = 0; bit < width; ++bit) value = greater_of(value, __shfl_xor_sync(FULL, value, 1 << bit));
    return value;
}

// The mean of this lane and the one that differs in these bits, of which there may be none.
__device__ __forceinline__ double mean_of(double value, int bits) {
    const double other = __shfl_sync(FULL, value, (threadIdx.x % LANES) ^ bits);
    return bits ? 0.5 * (value + other) : value;
}

// What f5py.methylation.hmm.NoiseTerms has, in single precision for densities and in double for those at the entry.
struct Noise {
    float stay_now, stay_before, step_now, step_before, square, stay_weight, step_weight, free_weight;
    double entry_square, entry_weight;
    bool is_student;
};

// An event in a k-mer after a stay, after a step, and after neither.
struct Densities {
    double stay, step, free;
};

__device__ __forceinline__ float fourth_power(float value) {
    const float square = value * value;
    return square * square;
}

// `z` is the residual of the event, `same` and `before` are those of the event before in this k-mer and the last one.
__device__ __forceinline__ Densities densities_of(
    float z, float same, float before, float slope, float top, const Noise& noise) {
    const float u_stay = fmaf(same, noise.stay_before, z * noise.stay_now);
    const float u_step = fmaf(before, noise.step_before, z * noise.step_now);
    float stay, step, free;
    if (noise.is_student) {
        stay = slope * fourth_power(reciprocal_of(fmaf(u_stay, u_stay, 1.0f)));
        step = slope * fourth_power(reciprocal_of(fmaf(u_step, u_step, 1.0f)));
        free = slope * fourth_power(reciprocal_of(fmaf(z * noise.square, z, 1.0f)));
    } else {
        stay = exp2_of(fmaf(-u_stay, u_stay, top));
        step = exp2_of(fmaf(-u_step, u_step, top));
        free = exp2_of(fmaf(-z, z, top));
    }
    return {(double)(stay * noise.stay_weight), (double)(step * noise.step_weight),
            (double)(free * noise.free_weight)};
}

struct Transitions {
    double stay, step, bad, from_bad, skip, skip_self, from_skip;
    float no_background, first_background, more_background;

    // Base-two logarithm of the probability of so many background events.
    __device__ __forceinline__ double background(int count) const {
        return (double)(count > 0 ? fmaf((float)(count - 1), more_background, first_background) : no_background);
    }
};

// Two powers of two whose product is that of an exponent, which may be out of range.
struct Halves {
    double one, other;
    __device__ __forceinline__ explicit Halves(double exponent) {
        const double half = floor(0.5 * exponent);
        one = power2(half), other = power2(exponent - half);
    }
    __device__ __forceinline__ double product(double a, double b) const { return times(times(a, one), times(b, other)); }
    __device__ __forceinline__ double plus_product(double a, double b, double sum) const {
        return fused(times(a, one), times(b, other), sum);
    }
};

// The sum of the masses of a window's lanes in which a bit has that state, in the order of the lanes.
__device__ __forceinline__ double share_of(double mass, int first, int lanes, int bit, int state) {
    double total = 0.0;
    for (int i = 0; i < lanes; ++i) {
        const double one = __shfl_sync(FULL, mass, first + i);
        if ((i >> bit & 1) == state) total += one;
    }
    return total;
}
