/* SPDX-License-Identifier: BSD-3-Clause */
/* The line on stderr that shows how far the work is. */
#ifndef NPUQUANT_PROGRESS_H
#define NPUQUANT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct progress {
    const char *label; /* what the line begins with */
    double due;        /* os_seconds() from which on the line may be written again */
    bool shown;        /* there is something on the terminal to clear */
};

/* The work begins. */
struct progress progress_begin(const char *label);

/* Shows how much of count is done, once the work has lasted a while; for struct executor. */
void progress_show(void *progress, size_t done, size_t count);

/* Takes the line off the terminal. */
void progress_clear(struct progress *progress);

#endif
