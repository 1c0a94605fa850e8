/* SPDX-License-Identifier: BSD-3-Clause */
#include "executor.h"

#include "os.h"

#include <stdatomic.h>
#include <stdio.h>

/* Enough for an even load and a steady progress line, few enough to cost nothing. */
enum { SLICES = 400 };

/* Short work needs no line; a line need not change faster than it can be read. */
static const double quiet_seconds = 0.5;
static const double line_seconds = 0.1;

struct loop {
    struct executor *executor;
    void (*task)(void *argument, size_t begin, size_t end);
    void *argument;
    size_t count;
    size_t slice;
    atomic_size_t next; /* first index that no thread has taken */
    atomic_size_t done; /* number of indices that are finished */
    atomic_flag shown;  /* one thread, the first to start, writes the line */
    double line_due;
};

static void show_progress(struct loop *loop)
{
    const double now = os_seconds();

    if (now < loop->line_due) {
        return;
    }
    loop->line_due = now + line_seconds;
    loop->executor->line_shown = true;
    (void)fprintf(stderr, "\r%s: %3.0f %%", loop->executor->label,
                  100.0 * (double)atomic_load(&loop->done) / (double)loop->count);
    (void)fflush(stderr);
}

static void run_slices(void *argument)
{
    struct loop *loop = argument;
    const bool shows = loop->executor->progress && !atomic_flag_test_and_set(&loop->shown);

    for (;;) {
        const size_t begin = atomic_fetch_add(&loop->next, loop->slice);
        if (begin >= loop->count) {
            return;
        }
        const size_t size = loop->count - begin < loop->slice ? loop->count - begin : loop->slice;
        loop->task(loop->argument, begin, begin + size);
        atomic_fetch_add(&loop->done, size);
        if (shows) {
            show_progress(loop);
        }
    }
}

static void parallel_for(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                         void *argument)
{
    struct executor *executor = context;
    const size_t slice = count / SLICES + 1;
    const size_t slices = count / slice + 1;
    struct loop loop = {
        .executor = executor,
        .task = task,
        .argument = argument,
        .count = count,
        .slice = slice,
        .shown = ATOMIC_FLAG_INIT,
        .line_due = executor->started + quiet_seconds,
    };

    atomic_init(&loop.next, 0);
    atomic_init(&loop.done, 0);
    os_run_threads(slices < (size_t)executor->threads ? (int)slices : executor->threads, run_slices, &loop);
}

npuq_executor executor_view(struct executor *executor)
{
    const npuq_executor view = {parallel_for, executor};

    return view;
}

void executor_clear_line(struct executor *executor)
{
    if (executor->line_shown) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
        executor->line_shown = false;
    }
}
