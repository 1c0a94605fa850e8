/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads of an operator: they start and end within each of its loops. */
#ifndef NPUQUANT_EXECUTOR_H
#define NPUQUANT_EXECUTOR_H

#include <npuquant/npuquant.h>

struct executor {
    int threads; /* at least 1, the calling one */

    /* Null, or called now and then by one thread of a loop, when done indices of count are finished. */
    void (*progress)(size_t done, size_t count);
};

/* A view for the operators; the executor must outlive the view. */
npuq_executor executor_view(struct executor *executor);

#endif
