// Plays CUDA thread blocks on the CPU, so that kernels can be tested where there is no GPU.
//
// Include this before a .cu file and compile both as C++. Every thread of a block is a fiber with a stack of its own; a
// fiber runs until it reaches an operation that needs other threads (a shuffle, a ballot, a barrier) or returns, and
// then the next one of its warp runs. When all of these stand still, and have met in one operation, the warp goes on. They
// must have met: the same operation at the same place in the source, named for all lanes of the warp, and no lane gone.
// Anything else is a mistake that a GPU may or may not punish; here it ends the launch with a `Mistake` that says what
// happened.
//
// Blocks run one after another, and so do the warps of a block between two barriers of it. Warps, and the lanes of each
// between two meetings, run in ascending or descending order, as the caller of `launch` wants: a kernel that lacks a
// barrier gives different results.
//
// Floating point is IEEE, fused exactly where the source says fmaf; compile with -ffp-contract=off. Not here: atomics,
// textures, dynamic shared memory, shuffles of a width below 32, blocks of more than one dimension.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fibers.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static  // one block at a time

struct alignas(8) int2 {
    int x, y;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static inline int2 make_int2(int x, int y) { return {x, y}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

struct uint3 {
    unsigned x, y, z;
};
static uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace cuda_on_cpu {

constexpr unsigned WARP = 32;
constexpr std::size_t STACK_BYTES = 128 * 1024;

struct Mistake : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What the fibers of a warp wait for, by lane, and what they bring: all that is looked at when they have met.
struct Meeting {
    const char* operations[WARP];
    unsigned places[WARP];  // lines in the source, with `BLOCK` where the whole block meets
    unsigned masks[WARP];   // lanes that are said to take part
    std::uint64_t values[WARP];
    std::uint64_t heard[WARP];  // values of the last meeting; all lanes read them before the next one takes place
    unsigned lanes, returned;   // a bit each
};

constexpr unsigned BLOCK = 1u << 31;

static std::vector<std::unique_ptr<char[]>> stacks;
static std::vector<Context> contexts;  // of fibers
static std::vector<Meeting> meetings;  // of warps
static std::function<void()> body;
static Context launcher;
static unsigned running, last;  // fiber, and the one of its warp whose turn is last
static int step;                // to the fiber whose turn is next

static inline bool has_returned(unsigned thread) { return meetings[thread / WARP].returned >> thread % WARP & 1; }

static inline std::string describe(unsigned thread) {
    const Meeting& meeting = meetings[thread / WARP];
    std::string text = "thread " + std::to_string(thread) + " of block " + std::to_string(blockIdx.x);
    if (has_returned(thread)) return text + " has returned";
    return text + " is at " + meeting.operations[thread % WARP] + " in line " +
           std::to_string(meeting.places[thread % WARP] & ~BLOCK);
}

// Let the fiber whose turn is next run in the place of what runs now, or who launched them after the last one.
static inline void pass_on(Context& from) {
    if (running == last) {
        change(from, launcher);
        return;
    }
    running += step;
    threadIdx.x = running;
    change(from, contexts[running]);
}

// Leave the running fiber until its meeting has taken place.
static __attribute__((noinline)) const std::uint64_t* meet(
    const char* operation, unsigned place, unsigned mask, std::uint64_t value) {
    Meeting& meeting = meetings[running / WARP];
    const unsigned lane = running % WARP;
    meeting.operations[lane] = operation;
    meeting.places[lane] = place;
    meeting.masks[lane] = mask;
    meeting.values[lane] = value;
    pass_on(contexts[running]);
    asm volatile("" ::: "memory");  // other fibers have run: nothing read before holds, threadIdx included
    return meeting.heard;
}

static void enter() {
    body();
    meetings[running / WARP].returned |= 1u << running % WARP;
    pass_on(contexts[running]);
}

// Run the fibers first..end-1 until all stand still or have returned.
static __attribute__((noinline)) void run_turns(unsigned first, unsigned end, bool descending) {
    running = descending ? end - 1 : first;
    last = descending ? first : end - 1;
    step = descending ? -1 : 1;
    threadIdx.x = running;
    change(launcher, contexts[running]);
    asm volatile("" ::: "memory");
}

// Check that the threads first..end-1, of which not all have returned, have come to the same meeting.
static void check_same(unsigned first, unsigned end, const char* whose) {
    const auto place = [](unsigned t) { return meetings[t / WARP].places[t % WARP]; };
    const auto operation = [](unsigned t) { return meetings[t / WARP].operations[t % WARP]; };
    unsigned waiting = first;
    while (has_returned(waiting)) ++waiting;
    for (unsigned t = first; t < end; ++t)
        if (has_returned(t) || place(t) != place(waiting) ||
            (operation(t) != operation(waiting) && std::strcmp(operation(t), operation(waiting)) != 0))
            throw Mistake(std::string("the threads of a ") + whose + " diverged: " + describe(waiting) + ", but " +
                          describe(t));
}

// Whether all lanes have come to the first one's meeting, without a look at the texts.
static inline bool is_same(const Meeting& meeting, unsigned lanes) {
    std::uintptr_t others = meeting.returned;
    for (unsigned lane = 0; lane < lanes; ++lane)
        others |= (meeting.places[lane] ^ meeting.places[0]) |
                  (reinterpret_cast<std::uintptr_t>(meeting.operations[lane]) ^
                   reinterpret_cast<std::uintptr_t>(meeting.operations[0]));
    return others == 0;
}

// Let the threads of one warp go on if they have met; false if they wait for the rest of their block.
static inline bool release_warp(Meeting& meeting, unsigned first, unsigned end) {
    const unsigned lanes = end - first;
    if (!is_same(meeting, lanes)) check_same(first, end, "warp");
    if (meeting.places[0] & BLOCK) return false;
    unsigned others = 0;
    for (unsigned lane = 0; lane < lanes; ++lane) others |= meeting.masks[lane] ^ meeting.lanes;
    if (others != 0) {
        unsigned lane = 0;
        while (meeting.masks[lane] == meeting.lanes) ++lane;
        throw Mistake(describe(first + lane) + " with a mask that is not exactly the " + std::to_string(lanes) +
                      " lanes of its warp");
    }
    std::memcpy(meeting.heard, meeting.values, sizeof meeting.values);
    return true;
}

// Run a warp as far as it comes by itself: to a meeting of the block, or to its end.
static inline void run_warp(unsigned first, unsigned end, bool descending) {
    Meeting& meeting = meetings[first / WARP];
    do {
        run_turns(first, end, descending);
    } while (meeting.returned != meeting.lanes && release_warp(meeting, first, end));
}

static inline void run_block(unsigned threads, bool descending) {
    while (stacks.size() < threads) stacks.emplace_back(new char[STACK_BYTES]);
    contexts.resize(stacks.size());
    const unsigned warps = (threads + WARP - 1) / WARP;
    meetings.resize((stacks.size() + WARP - 1) / WARP);
    for (unsigned returned = 0, round = 0; returned < warps; ++round) {
        // every warp is at a meeting of the block, or gone
        if (round > 0) check_same(0, threads, "block");
        for (unsigned i = 0; i < warps; ++i) {
            const unsigned warp = descending ? warps - 1 - i : i;
            const unsigned first = warp * WARP, end = std::min(first + WARP, threads);
            if (round == 0) {
                meetings[warp].lanes = end - first == WARP ? 0xffffffffu : (1u << (end - first)) - 1;
                meetings[warp].returned = 0;
                for (unsigned t = first; t < end; ++t)
                    // stacks that end at the same place of their pages would be in each other's way in the caches
                    begin_at(contexts[t], stacks[t].get(), STACK_BYTES - t % WARP * 320, enter);
            }
            run_warp(first, end, descending);
            returned += meetings[warp].returned == meetings[warp].lanes;
        }
    }
}

// Run `kernel` with these arguments as a grid of blocks; throws Mistake.
template <class... Parameters, class... Arguments>
void launch(unsigned blocks, unsigned threads, bool descending, void (*kernel)(Parameters...), Arguments... arguments) {
    blockDim = {threads, 1, 1};
    gridDim = {blocks, 1, 1};
    threadIdx = {0, 0, 0};
    body = [=] { kernel(arguments...); };
    for (unsigned block = 0; block < blocks; ++block) {
        blockIdx = {block, 0, 0};
        run_block(threads, descending);
    }
}

// The same, but returns a null pointer or the text of the mistake, for callers in other languages.
template <class... Arguments>
const char* try_launch(Arguments... arguments) {
    static std::string text;
    try {
        launch(arguments...);
    } catch (const Mistake& mistake) {
        text = mistake.what();
        return text.c_str();
    }
    return nullptr;
}

template <class T>
std::uint64_t bits_of(T value) {
    static_assert(sizeof(T) <= sizeof(std::uint64_t), "shuffles move up to 8 bytes");
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <class T>
T value_of(std::uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

// A shuffle; `source` is the lane to hear, and a lane beyond the warp's ends hears itself.
template <class T>
T shuffle(const char* operation, int line, unsigned mask, T value, unsigned source) {
    const unsigned lane = threadIdx.x % WARP;
    const std::uint64_t* values = meet(operation, (unsigned)line, mask, bits_of(value));
    return value_of<T>(values[source < WARP ? source : lane]);
}

}  // namespace cuda_on_cpu

template <class T>
T __shfl_sync(unsigned mask, T value, unsigned source, int line = __builtin_LINE()) {
    return cuda_on_cpu::shuffle("__shfl_sync", line, mask, value, source % cuda_on_cpu::WARP);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int line = __builtin_LINE()) {
    // below lane 0 the difference wraps round to a large number
    return cuda_on_cpu::shuffle("__shfl_up_sync", line, mask, value, threadIdx.x % cuda_on_cpu::WARP - distance);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int line = __builtin_LINE()) {
    return cuda_on_cpu::shuffle("__shfl_down_sync", line, mask, value, threadIdx.x % cuda_on_cpu::WARP + distance);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, unsigned flipped, int line = __builtin_LINE()) {
    return cuda_on_cpu::shuffle("__shfl_xor_sync", line, mask, value, (threadIdx.x % cuda_on_cpu::WARP) ^ flipped);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    const std::uint64_t* values = cuda_on_cpu::meet("__ballot_sync", (unsigned)line, mask, predicate != 0 ? 1u : 0u);
    const unsigned lanes = std::min(cuda_on_cpu::WARP, blockDim.x - threadIdx.x / cuda_on_cpu::WARP * cuda_on_cpu::WARP);
    unsigned votes = 0;
    for (unsigned lane = 0; lane < lanes; ++lane) votes |= (unsigned)values[lane] << lane;
    return votes;
}

static inline int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return __ballot_sync(mask, predicate, line) != 0;
}

static inline int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return __ballot_sync(mask, !predicate, line) == 0;
}

static inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
    cuda_on_cpu::meet("__syncwarp", (unsigned)line, mask, 0);
}

static inline void __syncthreads(int line = __builtin_LINE()) {
    cuda_on_cpu::meet("__syncthreads", (unsigned)line | cuda_on_cpu::BLOCK, 0, 0);
}

static inline float __int_as_float(int bits) { return cuda_on_cpu::value_of<float>((unsigned)bits); }
static inline int __float_as_int(float value) { return (int)cuda_on_cpu::bits_of(value); }
static inline float __uint_as_float(unsigned bits) { return cuda_on_cpu::value_of<float>(bits); }
static inline unsigned __float_as_uint(float value) { return (unsigned)cuda_on_cpu::bits_of(value); }
static inline double __longlong_as_double(long long bits) { return cuda_on_cpu::value_of<double>((std::uint64_t)bits); }
static inline int __double2hiint(double value) { return (int)(cuda_on_cpu::bits_of(value) >> 32); }

namespace cuda_on_cpu {
// A GPU makes one kind of NaN, with a clear sign bit; an x86 makes it with the sign bit set.
static inline float gpu_nan(float value) { return value == value ? value : __int_as_float(0x7fffffff); }
}  // namespace cuda_on_cpu

static inline float __fadd_rn(float a, float b) { return cuda_on_cpu::gpu_nan(a + b); }
static inline float __fsub_rn(float a, float b) { return cuda_on_cpu::gpu_nan(a - b); }
static inline float __fmul_rn(float a, float b) { return cuda_on_cpu::gpu_nan(a * b); }
static inline float __fmaf_rn(float a, float b, float c) { return cuda_on_cpu::gpu_nan(std::fma(a, b, c)); }

static inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
static inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz((unsigned)bits); }
static inline int __ffs(int bits) { return __builtin_ffs(bits); }
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned distance) {
    return (unsigned)((((std::uint64_t)high << 32 | low) << (distance & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned distance) {
    return (unsigned)(((std::uint64_t)high << 32 | low) >> (distance & 31));
}

template <class T>
T __ldg(const T* address) {
    return *address;
}

using std::max;
using std::min;
