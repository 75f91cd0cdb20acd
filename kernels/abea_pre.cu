// Before the band fill: the pore model's entry of every k-mer, scaled for its read.
//
// One block per read, its threads stride over the read's k-mers. Everything is in registers; the model (one float4
// per rank: level, sqrt(1/2) / stdv, ln(1 / (stdv * sqrt(2 pi))), stdv) stays in the L2 cache. Writes one float4 per
// k-mer, in the order in which the core kernel reads them, 16 bytes a thread, coalesced; its last element is the rank.

#include "abea.cuh"

extern "C" __global__ void abea_pre(
    const unsigned char* __restrict__ bases, const int64* __restrict__ p, const int n_reads, const int k,
    const float4* __restrict__ model, const float* __restrict__ shift, const float* __restrict__ scale,
    float4* __restrict__ kmers) {
    const int read = blockIdx.x;
    if (read >= n_reads) return;
    const int64 first = p[read];
    const int n_kmers = (int)(p[read + 1] - first) - k + 1;
    const float read_shift = shift[read];
    const float read_scale = scale[read];
    for (int j = threadIdx.x; j < n_kmers; j += blockDim.x) {
        const unsigned rank = kmer_rank(bases + first + j, k);
        float4 entry = model[rank];
        entry.x = fmaf(read_scale, entry.x, read_shift);
        entry.w = __int_as_float((int)rank);
        kmers[first + j] = entry;
    }
}
