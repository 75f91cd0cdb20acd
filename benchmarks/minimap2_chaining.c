/* Time the chaining inside minimap2 2.24: the loop of mg_lchain_dp over anchors, up to its call of mg_chain_backtrack.
 *
 * In a folder with the sources of minimap2 2.24 (those of mappy 2.24 on PyPI are the same), with this file beside them:
 *
 *     gcc -O2 -DHAVE_KALLOC -msse4.1 -fPIC -shared -o libchain.so lchain.c
 *     gcc -O2 -DHAVE_KALLOC -msse4.1 -rdynamic -o minimap2-timed minimap2_chaining.c \
 *         $(ls *.c | grep -v -e lchain.c -e minimap2_chaining.c -e ksw2_dispatch.c) \
 *         -L. -lchain -Wl,-rpath,'$ORIGIN' -lm -lz -lpthread -ldl
 *
 * The functions of this file stand before those of libchain.so, and call them. At its end the program writes
 * "chaining: SECONDS ANCHORS" to standard error, summed over all threads.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include "mmpriv.h"

typedef mm128_t *(*dp_function)(int, int, int, int, int, int, int, float, float, int, int, int64_t, mm128_t *, int *,
                                uint64_t **, void *);
typedef uint64_t *(*backtrack_function)(void *, int64_t, const int32_t *, const int64_t *, int32_t *, int32_t *,
                                        int32_t, int32_t, int32_t, int32_t *, int32_t *);

static dp_function next_dp;
static backtrack_function next_backtrack;
static int64_t nanoseconds, anchors;
static __thread int64_t started; /* 0 outside of mg_lchain_dp */

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

__attribute__((constructor)) static void find_functions(void)
{
	next_dp = (dp_function)dlsym(RTLD_NEXT, "mg_lchain_dp");
	next_backtrack = (backtrack_function)dlsym(RTLD_NEXT, "mg_chain_backtrack");
}

__attribute__((destructor)) static void report(void)
{
	fprintf(stderr, "chaining: %.6f %lld\n", nanoseconds * 1e-9, (long long)anchors);
}

mm128_t *mg_lchain_dp(int max_dist_x, int max_dist_y, int bw, int max_skip, int max_iter, int min_cnt, int min_sc,
                      float gap, float skip, int is_cdna, int n_seg, int64_t n, mm128_t *a, int *n_u, uint64_t **u,
                      void *km)
{
	__atomic_fetch_add(&anchors, n, __ATOMIC_RELAXED);
	started = now();
	mm128_t *chained = next_dp(max_dist_x, max_dist_y, bw, max_skip, max_iter, min_cnt, min_sc, gap, skip, is_cdna,
	                           n_seg, n, a, n_u, u, km);
	started = 0;
	return chained;
}

uint64_t *mg_chain_backtrack(void *km, int64_t n, const int32_t *f, const int64_t *p, int32_t *v, int32_t *t,
                             int32_t min_cnt, int32_t min_sc, int32_t max_drop, int32_t *n_u, int32_t *n_v)
{
	if (started) __atomic_fetch_add(&nanoseconds, now() - started, __ATOMIC_RELAXED);
	return next_backtrack(km, n, f, p, v, t, min_cnt, min_sc, max_drop, n_u, n_v);
}
