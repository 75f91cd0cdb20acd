// What the kernels of base alignment have in common: map_align.cu and map_bands.cu.

#pragma once

#include "warp.cuh"

#define LOWEST (-(1 << 30))
#define N_SCORE (-1)
// Kinds of alignments: ends of a read, the left one with both sequences reversed; and from corner to corner.
#define EXTEND 0
#define EXTEND_BACKWARDS 1
#define GLOBAL 2
// Bits of a cell: 0 to 4 for where its score comes from, then the gaps in the order of these numbers.
#define GOES_ON 8

struct Scores {
    int match, mismatch, q, e, q2, e2;
};

// Score of a gap of `n` bases from the border on, negated.
__device__ __forceinline__ int border(int n, const Scores& scores) {
    return n == 0 ? 0 : min(scores.q + scores.e * n, scores.q2 + scores.e2 * n);
}

// Score of a base of the target and one of the query.
__device__ __forceinline__ int score_of(int base, int other, const Scores& scores) {
    return max(base, other) > 3 ? N_SCORE : base == other ? scores.match : -scores.mismatch;
}

// Raise the score of a cell, which is that of two bases, to the best one; return where that comes from: 0, or 1 to 4 for
// the gaps in their order. With a tie of 1 the later one of those that are as good is taken.
__device__ __forceinline__ unsigned take_best(int& score, int d1, int i1, int d2, int i2, int tie) {
    unsigned from = 0;
    if (d1 + tie > score) from = 1;
    score = max(score, d1);
    if (i1 + tie > score) from = 2;
    score = max(score, i1);
    if (d2 + tie > score) from = 3;
    score = max(score, d2);
    if (i2 + tie > score) from = 4;
    score = max(score, i2);
    return from;
}

// Of equal cells of an anti-diagonal the one with the lowest number is taken: the order of minimap2's vectors.
__device__ __forceinline__ unsigned order_of(int i, int first, int last) {
    if (i == last) return 0;
    const int at = i - first, whole = (last - first) / 4 * 4;
    return 1u + ((at < whole ? (unsigned)(at & 3) : 4u) << 24 | (unsigned)at);
}

__device__ __forceinline__ int row_of(unsigned order, int first, int last) {
    return order == 0 ? last : first + (int)((order - 1) & 0xffffffu);
}
