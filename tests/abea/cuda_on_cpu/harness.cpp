// The aligner's kernels for the CPU, behind plain functions for ctypes. Compile with -DW=... and -I of the kernels.
//
// Each function runs one kernel on a grid like the one that a GPU gets, and returns a null pointer, or the text of the
// mistake that ended it.

#include "cuda_on_cpu.h"

#include "abea_pre.cu"

#include "abea_core.cu"

#include "abea_post.cu"

extern "C" {

// Sizes that the host must know to give room to the directions: bands per word and words per band group.
int pack() { return PACK; }
int words() { return WORDS; }

const char* run_pre(
    int threads, int descending, const unsigned char* bases, const int64* p, int n_reads, int k, const float4* model,
    const float* shift, const float* scale, float4* kmers) {
    return cuda_on_cpu::try_launch(
        (unsigned)n_reads, (unsigned)threads, descending != 0, abea_pre, bases, p, n_reads, k, model, shift, scale,
        kmers);
}

const char* run_core(
    int blocks, int descending, const float* event_mean, const float4* kmers, const int64* p, const int64* q,
    const int* order, int n_reads, int k, const float* lp_step, const float* lp_stay, unsigned* trace, int* best_event,
    int* corner) {
    return cuda_on_cpu::try_launch(
        (unsigned)blocks, (unsigned)LANES, descending != 0, abea_core, event_mean, kmers, p, q, order, n_reads, k,
        lp_step, lp_stay, trace, best_event, corner);
}

const char* run_post(
    int blocks, int descending, const unsigned* trace, const float* event_mean, const float4* kmers, const int64* p,
    const int64* q, const int* order, int n_reads, int k, const int* best_event, const int* corner, int* first_event,
    int* last_event, int* n_pairs, int* span, int* verdict) {
    return cuda_on_cpu::try_launch(
        (unsigned)blocks, (unsigned)LANES, descending != 0, abea_post, trace, event_mean, kmers, p, q, order, n_reads,
        k, best_event, corner, first_event, last_event, n_pairs, span, verdict);
}

}  // extern "C"
