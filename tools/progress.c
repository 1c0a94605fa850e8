/* SPDX-License-Identifier: BSD-3-Clause */
#include "progress.h"

#include "os.h"

#include <stdio.h>

/* No line for short work, and no changes faster than one can read. */
static const double quiet_seconds = 0.5;
static const double line_seconds = 0.1;

struct progress progress_begin(const char *label)
{
    return (struct progress){.label = label, .due = os_seconds() + quiet_seconds};
}

void progress_show(void *progress, size_t done, size_t count)
{
    struct progress *line = progress;
    const double now = os_seconds();

    if (now < line->due) {
        return;
    }
    line->due = now + line_seconds;
    line->shown = true;
    (void)fprintf(stderr, "\r%s: %3.0f %%", line->label, 100.0 * (double)done / (double)count);
    (void)fflush(stderr);
}

void progress_clear(struct progress *progress)
{
    if (progress->shown) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
        progress->shown = false;
    }
}
