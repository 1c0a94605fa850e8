/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows that share their parameters, and what all kinds of kernels share: schedules of streams, and the back-off. */
#ifndef NPUQ_ROWS_H
#define NPUQ_ROWS_H

#include "chunk.h"

/* One row, or a few rows that share their parameters. */
typedef struct rows {
    const char *x;
    char *y;
    ptrdiff_t x_stride;
    ptrdiff_t y_stride;
    size_t n;
    size_t first; /* the number of the first row, where parameters go by row */
    const npuq_hints *hints;
    const void *call; /* the kind's own: what its exact path knows of a kernel and its parameters */
} rows;

/* Column i is of run (i * inverse >> 31) / NPUQ_LEAST_RUN: a product takes less time than a division. It is exact, as
 * NPUQ_MOST_IN_RUNS * NPUQ_LONGEST_RUN is less than 2^31 * NPUQ_LEAST_RUN. */
INLINE uint32_t invert_run(unsigned run)
{
    const uint32_t units = run / NPUQ_LEAST_RUN;

    return (((uint32_t)1 << 31) + units - 1) / units;
}
_Static_assert((uint64_t)NPUQ_MOST_IN_RUNS *NPUQ_LONGEST_RUN < (uint64_t)NPUQ_LEAST_RUN << 31,
               "the run of a column is exact");

INLINE size_t find_run(uint32_t inverse, size_t at)
{
    return (at * (uint64_t)inverse >> 31) / NPUQ_LEAST_RUN;
}

/* What the driver asks of a kind: constants of a kernel. */
typedef struct traits {
    npuq_storage_word x;
    npuq_storage_word y;
    bool floats;     /* whether y is of floating point */
    bool pairs;      /* whether two chunks at a time are faster */
    bool prefetches; /* whether strips are prefetched */
} traits;

INLINE rows select_rows(const npuq_block *b, size_t first, const void *call)
{
    const char *x = (const char *)b->x + (ptrdiff_t)first * b->x_stride;
    char *y = (char *)b->y + (ptrdiff_t)first * b->y_stride;

    return (rows){x, y, b->x_stride, b->y_stride, b->n, b->first_row + first, &b->hints, call};
}

/* A check of each scale before it serves several rows. Not inlined: 4 KB of copies. */
NOINLINE bool are_scales_invertible(const float *scales, size_t n)
{
    bool invertible = true;
    size_t at = 0;

    for (; at + CHUNK <= n; at += CHUNK) {
        invertible &= chunk_is_invertible(chunk_load_f32(scales + at));
    }
    if (at < n) { /* a stream's chunks begin anywhere, and may take these */
        invertible &= chunk_is_invertible(chunk_load_tail_f32(scales + at, n - at));
    }
    return invertible;
}

/* The order of reading a row's columns from memory. Where a CPU reads several streams faster than one, several pieces
 * of the row take turns, a line of y each. No piece is shorter than a page, within which the processor prefetches. */
typedef struct stream_schedule {
    size_t begin;
    size_t end;
    size_t line_columns;
    size_t piece;             /* columns from a line to the next that is read */
    size_t rewind;            /* columns from the last piece back to the first */
    ptrdiff_t prefetch_bytes; /* from what is read to what is prefetched */
} stream_schedule;

enum { PAGE = 4096 };

/* Non-temporal stores fill whole lines, one after the other. */
INLINE size_t count_line_columns(npuq_storage_word y)
{
    const size_t chunk_bytes = npuq_count_bytes(y, CHUNK);

    return chunk_bytes < LINE ? LINE / chunk_bytes * CHUNK : CHUNK;
}

/* Leaves out the columns before the first line of y. The schedule is empty if the rows are too short. Each of several
 * rows is a stream; one row is read in pieces. In a long row, streams share prefetch_bytes. In a short row, that would
 * prefetch the next piece, which is read already: it prefetches the bytes after the rows, or prefetch_bytes ahead. */
NOINLINE stream_schedule plan_stream(const rows *r, size_t count, npuq_storage_word x, npuq_storage_word y)
{
    const size_t prefetch_bytes = r->hints->prefetch_bytes;
    const size_t head = (LINE - (uintptr_t)r->y % LINE) % LINE * CHUNK / npuq_count_bytes(y, CHUNK);

    if (r->n <= head + 4 * CHUNK || head % npuq_count_elements_in(x) != 0) {
        return (stream_schedule){0};
    }
    const size_t line_columns = count_line_columns(y);
    const size_t size = npuq_count_bytes(x, r->n - head);
    const size_t pages = size / PAGE;
    const size_t most = r->hints->read_streams;
    const size_t pieces = count > 1 || pages == 0 ? 1 : pages > most ? most : pages;
    const size_t piece = (r->n - head) / pieces / line_columns * line_columns;
    const bool is_long = size > 4 * prefetch_bytes && (count > 1 || pages > most);
    const ptrdiff_t distance = is_long     ? (ptrdiff_t)(prefetch_bytes / (count > 1 ? count : pieces))
                               : count > 1 ? (ptrdiff_t)count * r->x_stride
                                           : (ptrdiff_t)(size > prefetch_bytes ? size : prefetch_bytes);

    return (stream_schedule){.begin = head,
                             .end = head + pieces * piece,
                             .line_columns = line_columns,
                             .piece = pieces > 1 ? piece : line_columns,
                             .rewind = pieces > 1 ? pieces * piece - line_columns : 0,
                             .prefetch_bytes = distance};
}

/* A strip is the columns that are stored before they are checked: a few chunks. */
enum { STRIP = 256 };
_Static_assert(STRIP % (2 * CHUNK) == 0, "a strip is pairs of chunks");

/* The back-off: where checks fail, the fast path is tried less and less often, from one row to the next, too. */
typedef struct retry_state {
    size_t strip;
    size_t left; /* columns for which the fast path is not tried */
} retry_state;

#endif
