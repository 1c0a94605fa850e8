/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads that an operator runs on, and the line that shows how far it is. */
#ifndef NPUQUANT_EXECUTOR_H
#define NPUQUANT_EXECUTOR_H

#include <npuquant/npuquant.h>

struct executor {
    int threads;       /* at least 1, the calling one */
    const char *label; /* what the progress line begins with */
    bool progress;     /* whether there is one, once the work has lasted a while */
    double started;    /* os_seconds() of the beginning of the work, for the progress line */
    bool line_shown;   /* there is something on the terminal to clear */
};

/* A view of it for the operators; lives as long as the executor. */
npuq_executor executor_view(struct executor *executor);

/* Takes the progress line off the terminal. */
void executor_clear_line(struct executor *executor);

#endif
