/* SPDX-License-Identifier: BSD-3-Clause */
/* How large units, blocks and buffers are, and whether x and y come from memory. This decides how far ahead to
 * prefetch, how many streams to read at once, and whether to write around the caches. No bit of a result depends on it.
 */
#ifndef NPUQ_MEMORY_PLAN_H
#define NPUQ_MEMORY_PLAN_H

#include "../backends/cpu.h"
#include "../backends/row.h"
#include "../inline.h"

#include <stdatomic.h>

/* ---- sizes of units, blocks and buffers -------------------------------------------------------------------------- */

/* Elements of a unit of work of each kind. Where parameters are converted by column, units of quantize are larger and
 * units of both have few columns, so that many rows share the parameters. Engines share out a prepared call even if it
 * is small. */
enum {
    NPUQ_UNIT = 32768,
    NPUQ_CONVERTING_UNIT = 65536,
    NPUQ_DYNAMIC_UNIT = 65536,
    NPUQ_PREPARED_UNIT = 4096,
    NPUQ_UNIT_COLUMNS = 4096
};

/* The most elements of a call that is one unit. Without an executor, as many as the second-level cache holds. */
enum { NPUQ_SMALL = 32768, NPUQ_SMALL_ALONE = 131072 };

/* Per token, a block of rows gets its ranges together: as many bytes of x as stay in a cache until they are read again.
 * Blocks from memory are smaller, so that the next one arrives while one is quantised. Where smooth scales are
 * converted, blocks are larger: each run of scales is converted once for a block. Where x or y is transposed, a block
 * has rows enough to use up the cache lines of its columns. For x these are two lines, as CPUs fetch lines in pairs. */
enum {
    NPUQ_RANGED_ROWS = 64, /* at most */
    NPUQ_BLOCK_BYTES = 32 * 1024,
    NPUQ_BLOCK_BYTES_FROM_MEMORY = 16 * 1024,
    NPUQ_BLOCK_BYTES_IN_L2 = 128 * 1024,
    NPUQ_ACROSS_BYTES = 128
};

/* For a tensor or long row with one range: at most this many units, whose ranges are on the stack until all are known.
 * The caller's threads share each row of NPUQ_LONG_ROW columns or more, like a tensor. */
enum { NPUQ_MOST_PARTS = 256, NPUQ_PART = 65536, NPUQ_LONG_ROW = 4 * NPUQ_PART };

/* Columns of a unit where x or y is transposed: its rows are then enough to use up the lines of its columns. */
enum { NPUQ_ACROSS_COLUMNS = 256 };

/* Bytes of the buffer for columns that are not contiguous, and the most columns of joined rows. */
enum { NPUQ_STAGED = 16384, NPUQ_JOINED = 512 };

/* Parameters are converted this many at a time. Most models have no more columns, and rows from memory stream best
 * whole. From integers, fewer at a time, and for tiles of fewer rows: the stack has more kinds of parameters. */
enum { NPUQ_CONVERTED = 4096, NPUQ_MOST_SCALED_ROWS = 512, NPUQ_MOST_SCALED_COLUMNS = 2048 };
_Static_assert(NPUQ_CONVERTED % 64 == 0 && NPUQ_MOST_SCALED_COLUMNS % 64 == 0,
               "runs of parameters begin with a word of int4");

/* ---- where x and y come from ------------------------------------------------------------------------------------- */

/* The differences between CPUs that run the same kernels. */
typedef struct npuq_tuning {
    const char *name;        /* of the CPU */
    npuq_cpu cpu;            /* which it fits; what is 0 there fits any */
    uint16_t prefetch_bytes; /* from what is read from memory to what is prefetched */
    npuq_hints cached;       /* the hints for what is in the caches; read_streams and divides_fast are for all */
    bool rows_to_l2;         /* rows from memory that are read twice are prefetched into the second-level cache only */
    size_t cached_bytes;     /* where x and y together are larger, x comes from memory */
    size_t near_bytes;       /* where they are larger than this, and not from memory, float32 is prefetched, too */
    uint16_t near_prefetch_bytes; /* the distance in that case; 0: nothing is prefetched there */
} npuq_tuning;

/* Found at the first call: null until then. */
extern _Atomic(const npuq_tuning *) npuq_found_tuning;
const npuq_tuning *npuq_look_up_tuning(void);

static inline NPUQ_INLINED const npuq_tuning *npuq_find_tuning(void)
{
    const npuq_tuning *tuning = atomic_load_explicit(&npuq_found_tuning, memory_order_relaxed);

    return tuning ? tuning : npuq_look_up_tuning();
}

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
static inline NPUQ_INLINED npuq_memory_plan npuq_plan_cached_memory(void)
{
    const npuq_hints hints = npuq_find_tuning()->cached;

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
