/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that wait for work: an executor with the smallest possible cost. */
#ifndef NPUQ_BENCH_POOL_H
#define NPUQ_BENCH_POOL_H

#include <npuquant/npuquant.h>

enum { POOL_MAX_THREADS = 64 };

/* Starts threads until there are `threads`, with the calling one; with `pin`, each on its own processor. Returns the
 * number of threads. */
int pool_start(int threads, bool pin);

/* Calls work(argument, i, threads) for i from 0 to threads - 1, each on its own thread. */
void pool_run(int threads, void (*work)(const void *argument, int i, int threads), const void *argument);

/* An executor of `threads` threads; null for one. */
const npuq_executor *pool_executor(int threads);

#endif
