// Layout shared by the three kernels of adaptive banded event alignment.
//
// One warp aligns one read. A band is an anti-diagonal of W cells; the cell at offset o of the band whose lower left
// corner is (event E, k-mer K) is (E - o, K + o). The cells are spread over the lanes in runs of CELLS, with spare
// lanes below and above the band:
//
//     lane    0 .. LOW-1            LOW .. LOW+BAND_LANES-1       .. 31
//     holds   the events to come    the band's cells              the k-mers to come
//
// so that a lane's neighbour always has what the band needs next: moving the band down shifts the events up by one
// cell, moving it right shifts the k-mers down by one cell, and both arrive through one shuffle per value.
//
// Reads lie one after the other in the arena: read i has bases from p[i], events from q[i]; offsets are prefix sums.
//
// Directions are two bits a cell, "not from above" and "not from the left", the signs of score differences; a lane
// shifts them into a word from the right as it computes them, so that its first cell of the earliest band is in the
// highest bits. PACK bands share a word, each left-aligned in its PACK-th part; with more than four cells a lane, a
// band has WORDS words of up to sixteen cells. Lane 0, which has no cells, stores where the last 32 bands moved: bit i
// is set if the band i before the word's last one lies to the right of the band before it.

#pragma once

#include "warp.cuh"

#ifndef W
#define W 100  // cells of a band
#endif
#define CELLS ((W + 29) / 30)  // of a lane: at least one spare lane on each side
#define BAND_LANES ((W + CELLS - 1) / CELLS)
#define LOW ((LANES - BAND_LANES) / 2 < 1 ? 1 : (LANES - BAND_LANES) / 2)
#define HIGH (LOW + BAND_LANES)  // first lane above the band
#define LAST_LANE (LOW + (W - 1) / CELLS)
#define LAST_SLOT ((W - 1) % CELLS)
#define PACK (CELLS <= 4 ? 4 : 1)
#define WORDS (CELLS <= 4 ? 1 : (2 * CELLS + 31) / 32)
#define IMPOSSIBLE (-__int_as_float(0x7f800000))
#define WORD_CELLS (CELLS <= 4 ? CELLS : 16)  // cells of a lane in one word
#define BAND_BITS (32 / PACK)                 // bits of a band in one word

// First word of a read's directions; word w of band group g and a lane is at ((g * WORDS) + w) * LANES + lane from it.
// The closed form needs no third array of offsets: every read has room for bases + events + 2 bands, rounded up.
__device__ __forceinline__ int64 first_word(const int64* p, const int64* q, int read) {
    return ((p[read] + q[read]) / PACK + 3 * (int64)read) * WORDS * LANES;
}
