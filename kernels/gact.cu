// Alignments by tiles (GACT): f5py/mapping/darwin/gact.py. One warp per candidate, a few warps per block: it makes the
// first tile, then those to the left and to the right, one after the other, and goes the way back through each. All is
// done in whole numbers, as in f5py/mapping/darwin/gact.py.
//
// A lane has ROWS rows of a tile, in registers. At step s it computes column s - lane: what it needs of the row above
// comes from the lane before it, by a shuffle. Cells of 4 bits are collected for STEPS steps, and written so that the
// lanes' words lie side by side. On the way back all lanes do the same: the words of the next rows are read by all of
// them at once, and handed over by shuffles.

#include "warp.cuh"

#define WARPS 4  // of a block
#define THREADS (WARPS * LANES)
#define TILE 320
#define ROWS (TILE / LANES)
#define STEPS 8
#define GROUPS ((TILE + LANES - 1 + STEPS - 1) / STEPS)
#define CELL_WORDS (GROUPS * ROWS * LANES)
#define WINDOW 3  // groups that are read at once on the way back: ROWS words of each

// Bases that equal nothing, not even each other: of targets, of reads.
#define NO_TARGET 5
#define NO_READ 6

// What a cell is: 0 for no alignment; and which gaps begin at the cell before.
#define TO_BOTH 1
#define TO_TARGET 2
#define TO_READ 3
#define OPENS_TARGET 4
#define OPENS_READ 8

// Columns of a path.
#define BOTH 0
#define READ_ONLY 1
#define TARGET_ONLY 2

struct Scores {
    int match, mismatch, open, extend;
};

// Where a read's strand and its target begin and how long they are, where the seed begins on both, where the path is
// written and how many of its columns are before the best cell of the first tile; negative if it is not wanted.
struct Candidate {
    int64 read, read_length, target, target_length, place, offset, path, n_left;
};

struct Tile {
    unsigned char target[TILE], read[TILE];
};

// Sums over the path on one side of the best cell of the first tile.
struct Side {
    int equal, other, gaps, runs;
    bool in_gap;
};

// The bases of a tile: n of the target and m of the read, before (r, o), or behind it backwards.
__device__ __forceinline__ void take_bases(
    Tile* tile, const unsigned char* target, int r, int n, const unsigned char* read, int o, int m, bool backwards) {
    const int lane = threadIdx.x % LANES;
    __syncwarp(FULL);
    for (int x = lane; x < TILE; x += LANES) {
        const int of_target = x >= n ? 4 : target[backwards ? r + n - 1 - x : r - n + x];
        const int of_read = x >= m ? 4 : read[backwards ? o + m - 1 - x : o - m + x];
        tile->target[x] = (unsigned char)(of_target < 4 ? of_target : NO_TARGET);
        tile->read[x] = (unsigned char)(of_read < 4 ? of_read : NO_READ);
    }
    __syncwarp(FULL);
}

// Fill the cells; return the best score, of equal ones that of the last row, and there of the last column.
template <bool FINDS_BEST>
__device__ __forceinline__ int fill_tile(
    const Tile* tile, const int n, const int m, const Scores scores, unsigned* cells, int* best_row, int* best_column) {
    const int lane = threadIdx.x % LANES;
    int bases[ROWS], both[ROWS], on_read[ROWS], total[ROWS];
    unsigned words[ROWS];
#pragma unroll
    for (int x = 0; x < ROWS; ++x) {
        bases[x] = tile->target[lane * ROWS + x];
        both[x] = total[x] = 0;
        on_read[x] = scores.open;
        words[x] = 0;
    }
    const int n_own = min(ROWS, n - lane * ROWS);
    int last_both = 0, last_target = 0, last_total = 0, before = 0, best = 0;
    const int n_steps = m + (n - 1) / ROWS;
    for (int s = 0; s < n_steps; ++s) {
        const int j = s - lane;
        int above_both = __shfl_up_sync(FULL, last_both, 1), above_target = __shfl_up_sync(FULL, last_target, 1);
        int above_total = __shfl_up_sync(FULL, last_total, 1);
        if (lane == 0) {
            above_both = above_total = 0;
            above_target = scores.open;
        }
        const int shift = 4 * (s % STEPS);
        if (j >= 0 && j < m) {
            const int base = tile->read[j];
            int diagonal = before;
#pragma unroll
            for (int x = 0; x < ROWS; ++x) {
                const int new_both = max(diagonal + (bases[x] == base ? scores.match : scores.mismatch), 0);
                diagonal = total[x];
                int opens = above_both + scores.open, goes_on = above_target + scores.extend;
                unsigned cell = goes_on > opens ? 0 : OPENS_TARGET;
                const int new_target = max(opens, goes_on);
                opens = both[x] + scores.open;
                goes_on = on_read[x] + scores.extend;
                if (goes_on <= opens) cell |= OPENS_READ;
                const int new_read = max(opens, goes_on);
                const int gap = max(new_target, new_read), score = max(new_both, gap);
                const unsigned kind = gap > new_both ? (new_read > new_target ? TO_READ : TO_TARGET) : TO_BOTH;
                if (score > 0) cell |= kind;
                words[x] |= cell << shift;
                both[x] = above_both = new_both;
                on_read[x] = new_read;
                total[x] = score;
                above_target = new_target;
                if (FINDS_BEST && x < n_own) best = max(best, score << 13 | x << 9 | j);
            }
            last_both = above_both;
            last_target = above_target;
            last_total = total[ROWS - 1];
        }
        before = above_total;
        if (s % STEPS == STEPS - 1 || s == n_steps - 1) {
#pragma unroll
            for (int x = 0; x < ROWS; ++x) {
                cells[(s / STEPS * ROWS + x) * LANES + lane] = words[x];
                words[x] = 0;
            }
        }
    }
    __syncwarp(FULL);
    if (!FINDS_BEST) return 0;
    int own = best >> 13 << 9 | (lane * ROWS + (best >> 9 & 15)), largest = own;
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        largest = max(largest, __shfl_xor_sync(FULL, largest, distance));
    const unsigned has_it = __ballot_sync(FULL, own == largest);
    *best_row = largest & 511;
    *best_column = __shfl_sync(FULL, best & 511, __ffs((int)has_it) - 1);
    return largest >> 9;
}

// Go back from a cell as far as the tile's path is taken; returns the bases of target and read that it has.
__device__ __forceinline__ int2 walk_back(
    const Tile* tile, const unsigned* cells, int i, int j, const int most, Side* side, unsigned char* path, int* at,
    const int step) {
    const int lane = threadIdx.x % LANES, n = i, m = j;
    int kind = 0, block = -1, top = 0;
    bool is_forced = false;
    unsigned held = 0;
    Side sums = *side;
    int place = *at;
    while (i >= 0 && j >= 0 && n - i < most && m - j < most) {
        const int owner = i / ROWS, s = j + owner;
        if (owner != block || s / STEPS <= top - WINDOW) {
            block = owner;
            top = s / STEPS;
            const int group = top - lane / ROWS;
            held = lane < WINDOW * ROWS && group >= 0 ? cells[(group * ROWS + lane % ROWS) * LANES + owner] : 0;
        }
        const unsigned word = __shfl_sync(FULL, held, (top - s / STEPS) * ROWS + i % ROWS);
        const int cell = (int)(word >> (4 * (s % STEPS)) & 15u);
        if (!is_forced) {
            kind = cell & 3;
            if (kind == 0) break;
        }
        int column = BOTH;
        if (kind == TO_BOTH) {
            const bool is_same = tile->target[i] == tile->read[j];
            sums.equal += is_same;
            sums.other += !is_same;
            sums.in_gap = is_forced = false;
            --i;
            --j;
        } else {
            ++sums.gaps;
            sums.runs += !sums.in_gap;
            sums.in_gap = is_forced = true;
            if (kind == TO_READ) {
                column = READ_ONLY;
                --j;
                if (cell & OPENS_READ) kind = TO_BOTH;
            } else {
                column = TARGET_ONLY;
                --i;
                if (cell & OPENS_TARGET) kind = TO_BOTH;
            }
        }
        if (path != 0 && lane == 0) path[place] = (unsigned char)column;
        place += step;
    }
    *side = sums;
    *at = place;
    return make_int2(n - i, m - j);
}

// Candidates first..first+n_candidates-1. `all_cells` is scratch, CELL_WORDS for each of them; results are score, equal
// columns, columns, those before the best cell, begin and end on target and strand: 0 if there is no alignment.
extern "C" __global__ void __launch_bounds__(THREADS) gact_extend(
    const unsigned char* __restrict__ strands, const unsigned char* __restrict__ targets,
    const int64* __restrict__ candidates, const int first, const int n_candidates, const int k, const int overlap,
    const int first_score, const int is_after_seed, const int match, const int mismatch, const int open,
    const int extend, unsigned* __restrict__ all_cells, unsigned char* __restrict__ paths, int* __restrict__ results) {
    __shared__ Tile tiles[WARPS];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int number = blockIdx.x * WARPS + warp;
    if (number >= n_candidates) return;
    const Candidate candidate = *(const Candidate*)(candidates + (int64)8 * (first + number));
    const unsigned char* read = strands + candidate.read;
    const unsigned char* target = targets + candidate.target;
    const int read_length = (int)candidate.read_length, target_length = (int)candidate.target_length;
    unsigned char* path = candidate.path < 0 ? 0 : paths + candidate.path;
    int* result = results + (int64)8 * (first + number);
    unsigned* cells = all_cells + (int64)CELL_WORDS * number;
    Tile* tile = tiles + warp;
    const Scores scores = {match, mismatch, open, extend};
    const int most = TILE - overlap, after = is_after_seed ? k : 0;
    Side side = {0, 0, 0, 0, false};
    int r = (int)candidate.place + after, o = (int)candidate.offset + after, i = 0, j = 0, at = 0;
    bool is_found = false;
    for (int attempt = 0; attempt < 3 && !is_found; ++attempt) {
        // The second tile is on the other side of the seed, and tells where the third one ends.
        const bool backwards = attempt == 1;
        if (backwards) {
            if (!is_after_seed) break;
            r -= after;
            o -= after;
        }
        const int n = min(TILE, backwards ? target_length - r : r), m = min(TILE, backwards ? read_length - o : o);
        if (n <= 0 || m <= 0) continue;
        take_bases(tile, target, r, n, read, o, m, backwards);
        const int score = fill_tile<true>(tile, n, m, scores, cells, &i, &j);
        is_found = score >= first_score && !backwards;
        if (!backwards) continue;
        if (score < first_score) break;
        Side unused = side;
        const int2 taken = walk_back(tile, cells, i, j, most, &unused, 0, &at, 1);
        r += n - 1 - i + taken.x;
        o += m - 1 - j + taken.y;
    }
    if (!is_found) {
        if (lane < 8) result[lane] = 0;
        return;
    }
    // To the left of the best cell, then to the right of it, on reversed sequences.
    const int best_r = r - min(TILE, r) + i + 1, best_o = o - min(TILE, o) + j + 1;
    at = (int)candidate.n_left - 1;
    const int2 of_first = walk_back(tile, cells, i, j, most, &side, path, &at, -1);
    int n_left = 0;
#pragma unroll 1
    for (int to_right = 0; to_right < 2; ++to_right) {
        r = to_right ? best_r : best_r - of_first.x;
        o = to_right ? best_o : best_o - of_first.y;
        for (;;) {
            const int n = min(TILE, to_right ? target_length - r : r), m = min(TILE, to_right ? read_length - o : o);
            if (n <= 0 || m <= 0) break;
            take_bases(tile, target, r, n, read, o, m, to_right);
            fill_tile<false>(tile, n, m, scores, cells, &i, &j);
            const int2 taken = walk_back(tile, cells, n - 1, m - 1, most, &side, path, &at, to_right ? 1 : -1);
            if (taken.x + taken.y == 0) break;
            r += to_right ? taken.x : -taken.x;
            o += to_right ? taken.y : -taken.y;
        }
        if (lane == 0) {
            result[4 + to_right] = r;
            result[6 + to_right] = o;
        }
        if (!to_right) {
            n_left = side.equal + side.other + side.gaps;
            side.in_gap = false;
            at = (int)candidate.n_left;
        }
    }
    if (lane == 0) {
        result[0] = side.equal * match + side.other * mismatch + side.runs * open + (side.gaps - side.runs) * extend;
        result[1] = side.equal;
        result[2] = side.equal + side.other + side.gaps;
        result[3] = n_left;
    }
}
