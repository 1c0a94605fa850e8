/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of the columns of rows: in strips that are stored and then checked, or in streams. */
#ifndef NPUQ_ROWS_H
#define NPUQ_ROWS_H

#include "columns.h"

/* The order in which columns of a row are read from memory: a line of y from each of several pieces in turn, where a
 * CPU reads several streams faster than one. The processor foresees reads within a page, so no piece is shorter. */
typedef struct stream_schedule {
    size_t begin;
    size_t end;
    size_t line_columns;
    size_t piece;             /* columns from a line to the next that is read */
    size_t rewind;            /* columns from the last piece back to the first */
    ptrdiff_t prefetch_bytes; /* from what is read to what is prefetched */
} stream_schedule;

enum { PAGE = 4096 };

/* Computes the columns before the first line of y. The schedule is empty if the rows are too short. Each of several
 * rows is a stream; one row is read in pieces. In a long row, streams share prefetch_bytes. In a short one a piece
 * would prefetch from the next piece, which is read already: it prefetches what follows the rows, or prefetch_bytes
 * ahead. */
NOINLINE stream_schedule start_stream(const rows *r, size_t count)
{
    const kernel_spec k = r->k;
    const size_t prefetch_bytes = r->block->hints.prefetch_bytes;
    const size_t head = (LINE - (uintptr_t)r->y % LINE) % LINE * CHUNK / count_bytes(k.y, CHUNK);

    if (r->n <= head + 4 * CHUNK || head % npuq_count_elements_in(npuq_word_of(k.x)) != 0) {
        return (stream_schedule){0};
    }
    if (head > 0) {
        run_exact(k, r, count, 0, head);
    }
    const size_t line_columns = count_line_columns(k.y);
    const size_t size = count_bytes(k.x, r->n - head);
    const size_t pages = size / PAGE;
    const size_t most = r->block->hints.read_streams;
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

/* Streams all columns of a row but the last ones with non-temporal stores, and returns where the last ones begin. */
INLINE size_t stream_rows(kernel_spec k, const rows *r, const rows *local_row, const parameters *p, size_t count)
{
    const stream_schedule t = start_stream(r, count);
    const size_t line_columns = count_line_columns(k.y) > CHUNK ? t.line_columns : CHUNK; /* a constant is unrolled */
    size_t at = t.begin;

    for (size_t left = t.end - t.begin; left > 0; left -= line_columns) {
        store_check done = start_check();

#pragma GCC unroll 1
        for (size_t i = 0; i < count; i++) {
            prefetch_lines(local_row->x + (ptrdiff_t)i * local_row->x_stride + count_bytes(k.x, at) + t.prefetch_bytes,
                           count_bytes(k.x, count_line_columns(k.y)), local_row->block->hints.to_l2);
        }
        for (size_t c = at; c < at + line_columns; c += CHUNK) {
            done = compute_columns(k, local_row, p, count, c, CHUNK, STREAM, done);
        }
        if (!is_fast_path_ok(done, npuq_is_float(k.y))) {
            run_exact(k, r, count, at, line_columns);
        }
        at += t.piece;
        at -= at >= t.end ? t.rewind : 0;
    }
    return t.end;
}

/* A strip is the columns that are stored before they are checked: a few chunks. */
enum { STRIP = 256 };
_Static_assert(STRIP % (2 * CHUNK) == 0, "a strip is pairs of chunks");

/* A header names the products that are faster by two chunks at a time: with x in the second-level cache. */
#ifndef IN_PAIRS
#define IN_PAIRS(FROM) false
#endif

/* Computes chunks from column `at` on, up to the first strip whose check fails, or up to the tail; returns where that
 * begins. Nothing is called in here: around a call, compilers keep in memory what is the same for all chunks. */
INLINE size_t run_chunks(kernel_spec k, const rows *r, const parameters *p, size_t count, size_t at)
{
    const size_t end = r->n - (r->n - at) % CHUNK;
    const bool pairs = IN_PAIRS(k.from) && k.op == NPUQ_MUL;

    while (at < end) {
        const size_t next = end - at < STRIP ? end : at + STRIP;
        store_check done = start_check();
        size_t c = at;

        /* Of other rows, no prefetching was measured to gain anything. */
        if (k.x == NPUQ_TYPE_FLOAT32 && k.from == BY_ROW && k.op == NPUQ_MUL && r->block->hints.prefetch_bytes > 0) {
            prefetch_lines(r->x + count_bytes(k.x, at) + r->block->hints.prefetch_bytes, count_bytes(k.x, STRIP),
                           false);
        }
        for (; pairs && c + 2 * CHUNK <= next; c += 2 * CHUNK) {
            done = compute_columns(k, r, p, count, c, CHUNK, FULL, done);
            done = compute_columns(k, r, p, count, c + CHUNK, CHUNK, FULL, done);
        }
        for (; c < next; c += CHUNK) {
            done = compute_columns(k, r, p, count, c, CHUNK, FULL, done);
        }
        if (!is_fast_path_ok(done, npuq_is_float(k.y))) {
            break;
        }
        at = next;
    }
    return at;
}

/* Where checks fail, the fast path is tried ever less often, from one row to the next, too. */
typedef struct retry_state {
    size_t strip;
    size_t left; /* columns for which the fast path is not tried */
} retry_state;

INLINE retry_state make_retry_state(void)
{
    return (retry_state){STRIP, 0};
}

/* Computes at most d->left columns from `at` on by the exact path alone, and returns where they end. */
NOINLINE size_t run_exact_only(const rows *r, size_t count, size_t at, retry_state *d)
{
    const size_t n = r->n - at < d->left ? r->n - at : d->left;

    run_exact(r->k, r, count, at, n);
    d->left -= n;
    return at + n;
}

/* Does so after chunks from column `from` on: their check failed at column `at`, or no chunk is left there. */
NOINLINE size_t retry_exact(const rows *r, size_t count, size_t from, size_t at, retry_state *d)
{
    const size_t rest = r->n - at;

    d->strip = at == from && rest >= CHUNK ? 2 * d->strip : STRIP;
    d->left = rest < CHUNK ? rest : d->strip;
    return run_exact_only(r, count, at, d);
}

/* Computes all columns of count rows, or of one row from memory. */
INLINE void run_rows(kernel_spec k, const rows *r, size_t count, bool from_memory, retry_state *d)
{
    const rows local_row = *r; /* a copy that no store can change: run_exact() has seen the address of the other */
    const parameters p = load_row_parameters(k, &local_row);
    parameters without_sum = p;
    const size_t n = local_row.n;
    const bool divides = FAST_DIVIDE && k.op == NPUQ_DIV && k.from == BY_ROW && !p.invertible_scale;
    size_t at = !AT_RUN_TIME && from_memory && !divides ? stream_rows(k, r, &local_row, &p, 1) : 0;

    without_sum.adds = false;
    if (divides && d->left < n) { /* else each such row would double the next strip */
        d->left = n;
    }
    if (d->left > 0) {
        at = run_exact_only(r, count, at, d);
    }
    while (at < n) {
        const size_t from = at;

        if (!AT_RUN_TIME && (k.from == BY_ROW || k.from == BY_ROW_SMOOTH) && !p.adds) {
            at = run_chunks(k, &local_row, &without_sum, count, at);
        } else {
            at = run_chunks(k, &local_row, &p, count, at);
        }
        if (at == n) {
            d->strip = STRIP;
        } else {
            at = retry_exact(r, count, from, at, d);
        }
    }
}

INLINE rows select_rows(kernel_spec k, const npuq_block *b, size_t first)
{
    return (rows){
        .k = k,
        .x = (const char *)b->x + (ptrdiff_t)first * b->x_stride,
        .y = (char *)b->y + (ptrdiff_t)first * b->y_stride,
        .x_stride = b->x_stride,
        .y_stride = b->y_stride,
        .n = b->n,
        .block = b,
    };
}

#endif
