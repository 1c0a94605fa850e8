/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that wait for work: an executor whose cost is as small as it can be. */
#ifndef NPUQ_BENCH_POOL_H
#define NPUQ_BENCH_POOL_H

#include <npuquant/npuquant.h>

enum { POOL_MAX_THREADS = 64 };

/* Starts what is missing to `threads` threads, the calling one included; each tied to a processor of its own if `pin`.
 * Returns how many there are. */
int pool_start(int threads, bool pin);

/* Calls work(argument, i, threads) for i from 0 to threads - 1, each on a thread of its own. */
void pool_run(int threads, void (*work)(void *argument, int i, int threads), void *argument);

/* An executor of so many threads; null for one. */
const npuq_executor *pool_executor(int threads);

#endif
