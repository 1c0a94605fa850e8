/* SPDX-License-Identifier: BSD-3-Clause */
/* An executor over OpenMP's threads, as many as OpenMP would take for any loop. */
#ifndef EXECUTOR_OPENMP_H
#define EXECUTOR_OPENMP_H

#include <npuquant/npuquant.h>

/* static: a thread gets neighbouring units, the same ones in every call over the same tensor. From inside of a parallel
 * region this is a loop on the calling thread, unless OpenMP has been told to nest. */
static void openmp_parallel_for(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                                void *argument)
{
    (void)context;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < count; i++) {
        task(argument, i, i + 1);
    }
}

static const npuq_executor openmp_executor = {openmp_parallel_for, NULL};

#endif
