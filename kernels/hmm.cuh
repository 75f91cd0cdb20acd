// What the kernels that score methylation have in common: the arithmetic of f5py/jit/simd.py in one lane, and motifs.
// Compile with --fmad=false and -ftz=true.

#pragma once

#include "warp.cuh"

#define CODES 5  // letters of the methylation alphabet ACGMT
#define METHYLATED 3
#define NEVER (-1e30f)

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

// 2 ** value of whole numbers; 0 below -126.
__device__ __forceinline__ float power2_of(float value) {
    value = value > -127.0f ? value : -127.0f;
    return __int_as_float(((int)value + 127) << 23);
}

// floor(log2(value)) of a positive normal value; -127 for zero.
__device__ __forceinline__ float exponent_of(float value) {
    return (float)(((__float_as_int(value) >> 23) & 255) - 127);
}

// 1 / value of a positive value below 2 ** 125, see f5py/jit/simd.py.
__device__ __forceinline__ float reciprocal_of(float value) {
    float result = __int_as_float(0x7EF311C7 - __float_as_int(value));
    for (int step = 0; step < 3; ++step) result = fmaf(result, fmaf(-value, result, 1.0f), result);
    return result;
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
