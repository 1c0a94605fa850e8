/* SPDX-License-Identifier: BSD-3-Clause */
/* The line on stderr that shows how far the work is. */
#ifndef NPUQUANT_PROGRESS_H
#define NPUQUANT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct progress {
    const char *label; /* the line's beginning */
    double due;        /* os_seconds() of the next possible change */
    bool shown;        /* the line is on the terminal */
};

struct progress progress_begin(const char *label);

/* Shows how much of count is done, after a while; for struct executor. */
void progress_show(void *progress, size_t done, size_t count);

/* Clears the line. */
void progress_clear(struct progress *progress);

#endif
