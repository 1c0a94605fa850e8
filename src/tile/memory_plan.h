/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether x and y come from memory. This decides how far ahead to prefetch, how many streams to read at once, and
 * whether to write around the caches. No bit of a result depends on it. */
#ifndef NPUQ_MEMORY_PLAN_H
#define NPUQ_MEMORY_PLAN_H

#include "../backends/cpu.h"
#include "../backends/row.h"
#include "../inline.h"

/* The differences between CPUs that run the same kernels. */
typedef struct npuq_tuning {
    const char *name;        /* of the CPU */
    npuq_cpu cpu;            /* which it fits; what is 0 there fits any */
    uint16_t prefetch_bytes; /* from what is read from memory to what is prefetched */
    uint8_t read_streams;    /* of a row from memory that are read at once */
    bool rows_to_l2;         /* rows from memory that are read twice are prefetched into the second-level cache only */
    bool divides_fast;       /* see npuq_hints */
    size_t cached_bytes;     /* where x and y together are larger, x comes from memory */
    size_t near_bytes;       /* where they are larger than this, and not from memory, float32 is prefetched, too */
    uint16_t near_prefetch_bytes; /* the distance in that case; 0: nothing is prefetched there */
} npuq_tuning;

const npuq_tuning *npuq_find_tuning(void);

/* Hints for the passes over x. All 0: x is in the caches, or in a buffer, where the next bytes are not read next. */
typedef struct npuq_memory_plan {
    npuq_hints reads;  /* of a pass that finds ranges */
    npuq_hints writes; /* of a pass that writes y */
} npuq_memory_plan;

/* The plan of a call whose x and y have this many bytes together. */
npuq_memory_plan npuq_plan_memory(size_t bytes);

/* For two passes over one block of rows after the other; each row has cols elements of x_size bytes. */
void npuq_plan_second_pass(npuq_memory_plan *plan, size_t block_rows, size_t cols, size_t x_size);

/* The plan of a small call. Kernels that share parameters among rows read read_streams. */
static inline npuq_memory_plan npuq_plan_cached_memory(void)
{
    const npuq_tuning *tuning = npuq_find_tuning();
    const npuq_hints hints = {.read_streams = tuning->read_streams, .divides_fast = tuning->divides_fast};

    return (npuq_memory_plan){hints, hints};
}

/* The hints of a pass, for rows with gaps: the bytes after such a row are not read next. */
static inline NPUQ_INLINED npuq_hints npuq_hint_rows(npuq_hints hints, size_t rows, size_t row_bytes, ptrdiff_t stride)
{
    const uint32_t ahead = hints.prefetch_bytes;

    if (ahead > 0 && rows > 1 && stride > (ptrdiff_t)row_bytes && row_bytes <= 4 * ahead) {
        hints.prefetch_bytes = (uint32_t)((ahead > row_bytes ? ahead / row_bytes : 1) * (size_t)stride);
    }
    return hints;
}

/* The hints where x or y goes through a buffer, which stays in the cache. */
static inline npuq_hints npuq_hint_staged(const npuq_memory_plan *plan, bool stages_x)
{
    return (npuq_hints){.prefetch_bytes = stages_x || plan->writes.from_memory ? 0 : plan->writes.prefetch_bytes,
                        .divides_fast = plan->writes.divides_fast};
}

/* Whether units are taken one at a time, so that the streams from memory lie in few pages. */
static inline bool npuq_keeps_units_apart(const npuq_memory_plan *plan)
{
    return plan->writes.from_memory && plan->writes.read_streams > 1;
}

#endif
