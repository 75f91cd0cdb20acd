// What the kernels with a warp per read have in common.

#pragma once

typedef long long int64;

#define LANES 32
#define FULL 0xffffffffu

// Codes of the letters ACGTU in either case; all others count as A.
__device__ __forceinline__ unsigned base_code(unsigned char letter) {
    const unsigned upper = letter & 0xdfu;
    return upper == 'C' ? 1u : upper == 'G' ? 2u : upper == 'T' || upper == 'U' ? 3u : 0u;
}

// Rank of the k-mer that begins at `bases`.
__device__ __forceinline__ unsigned kmer_rank(const unsigned char* bases, int k) {
    unsigned rank = 0;
    for (int i = 0; i < k; ++i) rank = (rank << 2) | base_code(bases[i]);
    return rank;
}

// `total` plus the lanes' values, added one after the other in the order of the lanes: rounding is that of a plain loop.
// Lanes without a value bring zero, which changes nothing.
__device__ __forceinline__ double add_in_order(double total, double value, int count) {
    for (int i = 0; i < count; ++i) total += __shfl_sync(FULL, value, i);
    return total;
}
