// Plays CUDA thread blocks on the CPU, so that kernels can be tested where there is no GPU.
//
// Include this before a .cu file and compile both as C++. Every thread of a block is a fiber with a stack of its own; a
// fiber runs until it reaches an operation that needs other threads (a shuffle, a ballot, a barrier) or returns, and
// then the next one runs. When all fibers stand still, each warp whose lanes have met in one operation goes on. They
// must have met: the same operation at the same place in the source, named for all lanes of the warp, and no lane gone.
// Anything else is a mistake that a GPU may or may not punish; here it ends the launch with a `Mistake` that says what
// happened.
//
// Blocks run one after another. The lanes of a block run in ascending or descending order between two meetings, as the
// caller of `launch` wants: a kernel that lacks a barrier gives different results.
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

// What a fiber waits for. `value` is what it brings, `mask` the lanes that it says take part.
struct Meeting {
    const char* operation;
    int line;
    bool whole_block;
    unsigned mask;
    std::uint64_t value;
};

struct Fiber {
    std::unique_ptr<char[]> stack{new char[STACK_BYTES]};
    Context context;
    bool returned;
    Meeting meeting;
};

// What the lanes of a warp brought to its last meeting. They all read it before the next one takes place.
struct Heard {
    std::uint64_t values[WARP];
};

static std::vector<std::unique_ptr<Fiber>> fibers;
static std::vector<Heard> heard;  // by warp
static std::function<void()> body;
static Context launcher;
static std::vector<unsigned> turns;  // fibers that run until they stand still, in this order
static std::size_t turn;
static unsigned running;

static inline std::string describe(unsigned thread) {
    const Fiber& fiber = *fibers[thread];
    std::string text = "thread " + std::to_string(thread) + " of block " + std::to_string(blockIdx.x);
    if (fiber.returned) return text + " has returned";
    return text + " is at " + fiber.meeting.operation + " in line " + std::to_string(fiber.meeting.line);
}

// Let the fiber whose turn is next run in the place of what runs now, or who launched them after the last one.
static inline void pass_on(Context& from) {
    if (turn == turns.size()) {
        change(from, launcher);
        return;
    }
    running = turns[turn++];
    threadIdx.x = running;
    change(from, fibers[running]->context);
}

// Leave the running fiber until its meeting has taken place.
static __attribute__((noinline)) const std::uint64_t* meet(
    const char* operation, int line, bool whole_block, unsigned mask, std::uint64_t value) {
    Fiber& fiber = *fibers[running];
    fiber.meeting = {operation, line, whole_block, mask, value};
    pass_on(fiber.context);
    asm volatile("" ::: "memory");  // other fibers have run: nothing read before holds, threadIdx included
    return heard[running / WARP].values;
}

static void enter() {
    body();
    Fiber& fiber = *fibers[running];
    fiber.returned = true;
    pass_on(fiber.context);
}

// Run the fibers whose turns have been set until all stand still or have returned.
static __attribute__((noinline)) void run_turns() {
    turn = 0;
    if (!turns.empty()) pass_on(launcher);
    asm volatile("" ::: "memory");
}

// Check that the threads first..end-1, of which not all have returned, have come to the same meeting.
static inline void check_same(unsigned first, unsigned end, const char* whose) {
    unsigned waiting = first;
    while (fibers[waiting]->returned) ++waiting;
    const Meeting& meeting = fibers[waiting]->meeting;
    for (unsigned t = first; t < end; ++t) {
        const Meeting& other = fibers[t]->meeting;
        if (fibers[t]->returned || other.line != meeting.line ||
            (other.operation != meeting.operation && std::strcmp(other.operation, meeting.operation) != 0))
            throw Mistake(std::string("the threads of a ") + whose + " diverged: " + describe(waiting) + ", but " +
                          describe(t));
    }
}

// Let the threads of one warp go on if they have met; false if they wait for the rest of their block.
static inline bool release_warp(unsigned first, unsigned end) {
    check_same(first, end, "warp");
    const Meeting& meeting = fibers[first]->meeting;
    if (meeting.whole_block) return false;
    const unsigned lanes = end - first;
    const unsigned all = lanes == WARP ? 0xffffffffu : (1u << lanes) - 1;
    for (unsigned t = first; t < end; ++t)
        if (fibers[t]->meeting.mask != all)
            throw Mistake(describe(t) + " with a mask that is not exactly the " + std::to_string(lanes) +
                          " lanes of its warp");
    for (unsigned lane = 0; lane < lanes; ++lane)
        heard[first / WARP].values[lane] = fibers[first + lane]->meeting.value;
    return true;
}

static inline void run_block(unsigned threads, bool descending) {
    while (fibers.size() < threads) fibers.emplace_back(new Fiber);
    heard.resize(fibers.size() / WARP + 1);
    for (unsigned t = 0; t < threads; ++t) {
        Fiber& fiber = *fibers[t];
        fiber.returned = false;
        // stacks that end at the same place of their pages would be in each other's way in the caches
        begin_at(fiber.context, fiber.stack.get(), STACK_BYTES - t % WARP * 320, enter);
    }
    std::vector<char> runnable(threads, 1);
    for (;;) {
        turns.clear();
        for (unsigned i = 0; i < threads; ++i) {
            const unsigned t = descending ? threads - 1 - i : i;
            if (runnable[t]) turns.push_back(t);
        }
        run_turns();
        unsigned returned = 0, released = 0;
        for (unsigned first = 0; first < threads; first += WARP) {
            const unsigned end = std::min(first + WARP, threads);
            unsigned gone = 0;
            for (unsigned t = first; t < end; ++t) gone += fibers[t]->returned;
            returned += gone;
            const bool go_on = gone < end - first && release_warp(first, end);
            released += go_on;
            std::fill(runnable.begin() + first, runnable.begin() + end, go_on);
        }
        if (returned == threads) return;
        if (released == 0) {  // every warp is at a block's barrier, or gone
            check_same(0, threads, "block");
            std::fill(runnable.begin(), runnable.end(), 1);
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
    const std::uint64_t* values = meet(operation, line, false, mask, bits_of(value));
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
    const std::uint64_t* values = cuda_on_cpu::meet("__ballot_sync", line, false, mask, predicate != 0 ? 1u : 0u);
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
    cuda_on_cpu::meet("__syncwarp", line, false, mask, 0);
}

static inline void __syncthreads(int line = __builtin_LINE()) {
    cuda_on_cpu::meet("__syncthreads", line, true, 0, 0);
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
