/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of columns of a kind of kernel: in strips that are stored and then checked, or in streams. Knows no type
 * and no arithmetic. It has no guard. A kind defines NPUQ_OF_KIND, which names its functions, and NPUQ_PARAMETERS, the
 * type of its loaded parameters. It also defines these functions:
 *   load(call, row): the parameters of a row. It assumes what is known of all kernels.
 *   describe(p): the kind's traits.
 *   columns(p, r, count, at, n, how, done): computes n columns of each of count rows from column `at` on. The result
 *     joins `done` and the new checks.
 * Then it includes this file, and defines run(). As constant pointers, gcc would inline these too late: kernels took a
 * third longer. */
#include "rows.h"

/* Calls run_chunks(), with a loop for each of the usual cases. */
INLINE size_t NPUQ_OF_KIND(run)(const NPUQ_PARAMETERS *p, const rows *r, size_t count, size_t at);

/* Computes n columns from column `first` on, for any values. */
INLINE void NPUQ_OF_KIND(run_exact)(const NPUQ_PARAMETERS *p, const rows *all, size_t count, size_t first, size_t n)
{
    rows r = *all;

    for (size_t i = 0; i < count; i++) {
        size_t at = first;

        for (; at + CHUNK <= first + n; at += CHUNK) {
            (void)NPUQ_OF_KIND(columns)(p, &r, 1, at, CHUNK, EXACT, start_check());
        }
        if (at < first + n) {
            (void)NPUQ_OF_KIND(columns)(p, &r, 1, at, first + n - at, TAIL, start_check());
        }
        r.x += r.x_stride;
        r.y += r.y_stride;
    }
}

/* Does so, and loads the parameters. All kernels share it, without constant types and operation: a copy in every kernel
 * would be as much code as all else. */
NOINLINE void NPUQ_OF_KIND(columns_exact)(const rows *r, size_t count, size_t at, size_t n)
{
    const NPUQ_PARAMETERS p = NPUQ_OF_KIND(load)(r->call, r->first);

    NPUQ_OF_KIND(run_exact)(&p, r, count, at, n);
}

/* Computes columns from `at` on, a chunk or more, up to the first strip whose check fails; returns where the failed
 * columns begin, or r->n. The last chunk computes some columns again. Calls nothing: around a call, compilers keep in
 * memory the values that all chunks share. */
INLINE size_t NPUQ_OF_KIND(run_chunks)(const NPUQ_PARAMETERS *p, const rows *r, size_t count, size_t at)
{
    const traits s = NPUQ_OF_KIND(describe)(p);
    size_t end = r->n - (r->n - at) % CHUNK;

    while (at < end) {
        const size_t next = end - at < STRIP ? end : at + STRIP;
        store_check done = start_check();
        size_t c = at;

        if (s.prefetches && r->hints->prefetch_bytes > 0 && next - at == STRIP) {
            prefetch_lines(r->x + npuq_count_bytes(s.x, at) + r->hints->prefetch_bytes, npuq_count_bytes(s.x, STRIP),
                           false);
        }
        for (; s.pairs && c + 2 * CHUNK <= next; c += 2 * CHUNK) {
            done = NPUQ_OF_KIND(columns)(p, r, count, c, CHUNK, FULL, done);
            done = NPUQ_OF_KIND(columns)(p, r, count, c + CHUNK, CHUNK, FULL, done);
        }
        for (; c < next; c += CHUNK) {
            done = NPUQ_OF_KIND(columns)(p, r, count, c, CHUNK, FULL, done);
        }
        if (!is_fast_path_ok(done, s.floats)) {
            break;
        }
        at = next;
        if (__builtin_expect(at == end && end < r->n, false)) { /* a branch: addresses do not wait for it */
            end = r->n;
            at = end - CHUNK;
        }
    }
    return at;
}

/* Computes the columns before the first line of y. In each kernel, this call would make the library 2 % larger. */
NOINLINE stream_schedule NPUQ_OF_KIND(start_stream)(const rows *r, size_t count, npuq_storage_word x,
                                                    npuq_storage_word y)
{
    const stream_schedule t = plan_stream(r, count, x, y);

    if (t.begin > 0) {
        NPUQ_OF_KIND(columns_exact)(r, count, 0, t.begin);
    }
    return t;
}

/* Streams all columns but the last ones with non-temporal stores, and returns where the last ones begin. */
INLINE size_t NPUQ_OF_KIND(stream_rows)(const NPUQ_PARAMETERS *p, const rows *r, const rows *local_row, size_t count)
{
    const traits s = NPUQ_OF_KIND(describe)(p);
    const stream_schedule t = NPUQ_OF_KIND(start_stream)(r, count, s.x, s.y);
    const size_t line_columns = count_line_columns(s.y) > CHUNK ? t.line_columns : CHUNK; /* a constant is unrolled */
    size_t at = t.begin;

    for (size_t left = t.end - t.begin; left > 0; left -= line_columns) {
        store_check done = start_check();

#pragma GCC unroll 1
        for (size_t i = 0; i < count; i++) {
            prefetch_lines(local_row->x + (ptrdiff_t)i * local_row->x_stride + npuq_count_bytes(s.x, at) +
                               t.prefetch_bytes,
                           npuq_count_bytes(s.x, count_line_columns(s.y)), local_row->hints->to_l2);
        }
        for (size_t c = at; c < at + line_columns; c += CHUNK) {
            done = NPUQ_OF_KIND(columns)(p, local_row, count, c, CHUNK, STREAM, done);
        }
        if (!is_fast_path_ok(done, s.floats)) {
            NPUQ_OF_KIND(columns_exact)(r, count, at, line_columns);
        }
        at += t.piece;
        at -= at >= t.end ? t.rewind : 0;
    }
    return t.end;
}

/* Computes columns from `at` on without the fast path, and returns where they end. If d->left is 0, chunks from column
 * `from` on came before, up to a failed check at `at`, or up to the tail. */
NOINLINE size_t NPUQ_OF_KIND(run_rest)(const rows *r, size_t count, size_t from, size_t at, retry_state *d)
{
    const size_t rest = r->n - at;

    if (d->left == 0) {
        d->strip = at == from && rest >= CHUNK ? 2 * d->strip : STRIP;
        d->left = rest < CHUNK ? rest : d->strip;
    }
    const size_t n = rest < d->left ? rest : d->left;
    NPUQ_OF_KIND(columns_exact)(r, count, at, n);
    d->left -= n;
    return at + n;
}

/* Computes all columns of count rows. If `fails`, the fast path is not tried: each such row would double the next
 * strip. No store can change the copy `local_row`: only the exact path has the address of the other. */
INLINE void NPUQ_OF_KIND(run_rows)(const NPUQ_PARAMETERS *p, rows local_row, size_t count, bool from_memory, bool fails,
                                   retry_state *d)
{
    const rows r = local_row;
    const size_t n = local_row.n;
    size_t at = !AT_RUN_TIME && from_memory && !fails ? NPUQ_OF_KIND(stream_rows)(p, &r, &local_row, count) : 0;

    if (fails && d->left < n) {
        d->left = n;
    }
    while (at < n) {
        const size_t from = at;

        if (d->left == 0) {
            at = NPUQ_OF_KIND(run)(p, &local_row, count, at);
        }
        if (at == n) {
            d->strip = STRIP;
        } else {
            at = NPUQ_OF_KIND(run_rest)(&r, count, from, at, d);
        }
    }
}
