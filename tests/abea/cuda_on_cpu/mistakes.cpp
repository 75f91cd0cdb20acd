// Small kernels that try the block player itself: operations with known results, and each mistake that it must catch.

#include "cuda_on_cpu.h"

#define FULL 0xffffffffu

// Every operation once, as seen by each lane; threads are any number of whole warps.
__global__ void operations(const int* in, float* out, int* reversed) {
    __shared__ int shared[1024];
    const int thread = threadIdx.x, lane = thread % 32;
    float* mine = out + 17 * (blockIdx.x * blockDim.x + thread);
    mine[0] = __shfl_sync(FULL, in[thread], 5);
    mine[1] = __shfl_up_sync(FULL, (float)in[thread], 3);
    mine[2] = (float)__shfl_down_sync(FULL, (double)in[thread], 30);
    mine[3] = __shfl_xor_sync(FULL, (unsigned)in[thread], 16);
    mine[4] = __popc(__ballot_sync(FULL, in[thread] % 3 == 0));
    mine[5] = __any_sync(FULL, in[thread] == 40) + 2 * __all_sync(FULL, in[thread] < 1000);
    const float a = 1.0f + 1.0f / 4096.0f;  // a * a has a bit more than a float: only a fused operation keeps it
    mine[6] = fmaf(a, a, -1.0f - 2.0f / 4096.0f);
    mine[7] = __fadd_rn(__fmul_rn(a, a), -1.0f - 2.0f / 4096.0f);
    mine[8] = __int_as_float(0x40490fdb);
    mine[9] = min(max(lane, 4), 6);
    for (int turn = 0; turn <= lane % 4; ++turn) mine[10] = __fsub_rn((float)lane, (float)turn);
    mine[11] = make_float4(1.0f, 2.0f, 3.0f, 4.0f).w;
    mine[12] = __float_as_uint(__fsub_rn(-__int_as_float(0x7f800000), -__int_as_float(0x7f800000))) >> 31;
    mine[13] = __float_as_uint(__fsub_rn((float)lane, 16.0f)) >> 31;
    mine[14] = __funnelshift_l(0x80000001u, 5u, 1);
    mine[15] = __funnelshift_r(0x80000002u, 5u, 1) == 0xc0000001u;
    mine[16] = 100 * __clz(1 << lane) + __ffs(1 << lane);
    shared[thread] = in[thread];
    __syncthreads();
    reversed[blockIdx.x * blockDim.x + thread] = shared[blockDim.x - 1 - thread];
}

__global__ void one_lane_leaves(int* out) {
    if (threadIdx.x == 7) return;
    out[threadIdx.x] = __shfl_sync(FULL, (int)threadIdx.x, 0);
}

__global__ void two_kinds(int* out) {
    if (threadIdx.x < 16)
        out[threadIdx.x] = __shfl_up_sync(FULL, 1, 1);
    else
        out[threadIdx.x] = __shfl_down_sync(FULL, 1, 1);
}

__global__ void two_places(int* out) {
    if (threadIdx.x < 16)
        out[threadIdx.x] = __shfl_sync(FULL, 1, 1);
    else
        out[threadIdx.x] = __shfl_sync(FULL, 2, 1);
}

__global__ void half_a_mask(int* out) {
    out[threadIdx.x] = __ballot_sync(threadIdx.x < 16 ? 0xffffu : FULL, 1);
}

__global__ void uneven_loop(int* out) {
    for (unsigned turn = 0; turn < 2 + threadIdx.x / 31; ++turn) out[threadIdx.x] = __shfl_sync(FULL, 1, 1);
}

__global__ void one_warp_misses_the_barrier(int* out) {
    if (threadIdx.x < 32) __syncthreads();
    out[threadIdx.x] = 1;
}

// The neighbour's value is read without a barrier after it is written.
__global__ void no_barrier(int* out) {
    __shared__ int shared[32];
    shared[threadIdx.x] = -1;
    __syncwarp();
    shared[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = shared[(threadIdx.x + 1) % 32];
}

// The same between two warps, which meet, but each by itself.
__global__ void no_barrier_of_the_block(int* out) {
    __shared__ int shared[64];
    shared[threadIdx.x] = -1;
    __syncthreads();
    shared[threadIdx.x] = threadIdx.x;
    __syncwarp();
    out[threadIdx.x] = shared[(threadIdx.x + 32) % 64];
}

extern "C" {

const char* run_operations(int blocks, int threads, int descending, const int* in, float* out, int* reversed) {
    return cuda_on_cpu::try_launch((unsigned)blocks, (unsigned)threads, descending != 0, operations, in, out, reversed);
}

const char* run_mistake(const char* name, int descending, int* out) {
    const std::pair<const char*, void (*)(int*)> kernels[] = {
        {"one_lane_leaves", one_lane_leaves},
        {"two_kinds", two_kinds},
        {"two_places", two_places},
        {"half_a_mask", half_a_mask},
        {"uneven_loop", uneven_loop},
        {"one_warp_misses_the_barrier", one_warp_misses_the_barrier},
        {"no_barrier", no_barrier},
        {"no_barrier_of_the_block", no_barrier_of_the_block},
    };
    for (const auto& [known, kernel] : kernels)
        if (std::strcmp(known, name) == 0)
            return cuda_on_cpu::try_launch(
                1u, kernel == one_warp_misses_the_barrier || kernel == no_barrier_of_the_block ? 64u : 32u,
                descending != 0, kernel, out);
    return "no such kernel";
}

}  // extern "C"
