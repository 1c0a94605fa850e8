/* SPDX-License-Identifier: BSD-3-Clause */
/* An executor over a pthreadpool, the pool of XNNPACK and of engines that use it. */
#include "executor_check.h"

#include <pthreadpool.h>

#include <stdio.h>

typedef struct work {
    void (*task)(void *argument, size_t begin, size_t end);
    void *argument;
} work;

static void run_tile(void *context, size_t begin, size_t size)
{
    const work *w = context;

    w->task(w->argument, begin, begin + size);
}

/* context: the pool; null is the calling thread. A pool takes one call at a time: others wait, and one from inside of a
 * task would wait for ever. */
static void parallel_for(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                         void *argument)
{
    work w = {task, argument};

    pthreadpool_parallelize_1d_tile_1d(context, run_tile, &w, count, 1, 0);
}

int main(void)
{
    pthreadpool_t pool = pthreadpool_create(0); /* a thread for each processor */
    const npuq_executor executor = {parallel_for, pool};
    int status;

    if (!pool) {
        (void)fprintf(stderr, "no pool\n");
        return 1;
    }
    status = executor_check("pthreadpool", &executor);
    pthreadpool_destroy(pool);
    return status;
}
