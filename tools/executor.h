/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads that an operator runs on: they start and end within each loop of it. */
#ifndef NPUQUANT_EXECUTOR_H
#define NPUQUANT_EXECUTOR_H

#include <npuquant/npuquant.h>

struct executor {
    int threads; /* at least 1, the calling one */

    /* Null, or called from time to time, by one thread of a loop: done of its count are finished. */
    void (*progress)(void *context, size_t done, size_t count);
    void *progress_context;
};

/* A view of it for the operators; lives as long as the executor. */
npuq_executor executor_view(struct executor *executor);

#endif
