/* SPDX-License-Identifier: BSD-3-Clause */
#include "_executor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

/* Enough for an even load and a steady progress line, few enough to be cheap. */
enum { SLICES = 400 };

struct loop {
    const struct executor *executor;
    void (*task)(void *argument, size_t begin, size_t end);
    void *argument;
    size_t count;
    size_t slice;
    atomic_size_t next;    /* the first index that no thread has taken */
    atomic_size_t done;    /* number of indices that are finished */
    atomic_flag reporting; /* taken by the first thread, which reports the progress */
};

static void *run_slices(void *argument)
{
    struct loop *loop = argument;
    const struct executor *executor = loop->executor;
    const bool reports = executor->progress && !atomic_flag_test_and_set(&loop->reporting);

    for (;;) {
        const size_t begin = atomic_fetch_add(&loop->next, loop->slice);
        if (begin >= loop->count) {
            return NULL;
        }
        const size_t size = loop->count - begin < loop->slice ? loop->count - begin : loop->slice;
        loop->task(loop->argument, begin, begin + size);
        atomic_fetch_add(&loop->done, size);
        if (reports) {
            executor->progress(atomic_load(&loop->done), loop->count);
        }
    }
}

/* Runs on fewer threads if the system has no more. */
static void parallel_for(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                         void *argument)
{
    const struct executor *executor = context;
    const size_t slice = count / SLICES + 1;
    const size_t slices = count / slice + 1;
    const size_t wanted = slices < (size_t)executor->threads ? slices : (size_t)executor->threads;
    pthread_t *threads = wanted > 1 ? malloc(wanted * sizeof *threads) : NULL;
    size_t started = 0;
    struct loop loop = {
        .executor = executor,
        .task = task,
        .argument = argument,
        .count = count,
        .slice = slice,
        .reporting = ATOMIC_FLAG_INIT,
    };

    atomic_init(&loop.next, 0);
    atomic_init(&loop.done, 0);
    while (threads && started < wanted - 1 && pthread_create(&threads[started], NULL, run_slices, &loop) == 0) {
        started++;
    }
    (void)run_slices(&loop);
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    free(threads);
}

npuq_executor executor_view(struct executor *executor)
{
    const npuq_executor view = {parallel_for, executor};

    return view;
}
