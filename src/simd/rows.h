/* SPDX-License-Identifier: BSD-3-Clause */
/* In which order the columns of rows are done: in strips that are stored first and asked about then, or in turns around
 * the cache. */
#ifndef NPUQ_ROWS_H
#define NPUQ_ROWS_H

#include "columns.h"

/* The order in which columns of a row are read from memory: a step in each of several pieces in turn, where more is on
 * its way then than from one place. What is read within a page the processor foresees, so no piece is shorter. */
typedef struct turns {
    size_t begin;
    size_t end;
    size_t step;
    size_t piece; /* from a step to the next, but back from the last piece to the first */
    size_t back;
    ptrdiff_t ahead; /* bytes from what is read to what is prefetched */
} turns;

enum { PAGE = 4096 };

/* Does the columns before the first line of y. There are no turns if the rows are too short. Rows that share their
 * parameters are as many places to read from; one row is read in pieces. In a long row, these places share `ahead`. In
 * a short one a piece would soon prefetch from the next piece, which is read already: there it prefetches what follows
 * the rows, or what `ahead` leads to beyond that. */
NOINLINE turns take_turns(const rows *r, size_t count)
{
    const recipe k = r->k;
    const size_t ahead = r->block->hints.ahead;
    const size_t head = (LINE - (uintptr_t)r->y % LINE) % LINE * CHUNK / count_y_bytes(k.y, CHUNK);

    if (r->n <= head + 4 * CHUNK || (k.x == NPUQ_X_I4 && head % 8 != 0)) { /* columns of int4 begin with a word */
        return (turns){0};
    }
    if (head > 0) {
        call_total(k, r, count, 0, head);
    }
    const size_t step = count_columns_in_step(k.y);
    const size_t size = count_x_bytes(k.x, r->n - head);
    const size_t pages = size / PAGE;
    const size_t most = r->block->hints.places;
    const size_t pieces = count > 1 || pages == 0 ? 1 : pages > most ? most : pages;
    const size_t piece = (r->n - head) / pieces / step * step;
    const bool is_long = size > 4 * ahead && (count > 1 || pages > most);
    const ptrdiff_t distance = is_long     ? (ptrdiff_t)(ahead / (count > 1 ? count : pieces))
                               : count > 1 ? (ptrdiff_t)count * r->x_step
                                           : (ptrdiff_t)(size > ahead ? size : ahead);

    return (turns){.begin = head,
                   .end = head + pieces * piece,
                   .step = step,
                   .piece = pieces > 1 ? piece : step,
                   .back = pieces > 1 ? pieces * piece - step : 0,
                   .ahead = distance};
}

/* All columns of a row in turns, around the cache, but for the last ones; returns where these begin. */
INLINE size_t stream_rows(recipe k, const rows *r, const rows *own, const parameters *p, size_t count)
{
    const turns t = take_turns(r, count);
    const size_t step = count_columns_in_step(k.y) > CHUNK ? t.step : CHUNK; /* constant, it would be unrolled */
    size_t at = t.begin;

    for (size_t left = t.end - t.begin; left > 0; left -= step) {
        certainty done = certain();

#pragma GCC unroll 1
        for (size_t i = 0; i < count; i++) {
            prefetch_lines(own->x + (ptrdiff_t)i * own->x_step + count_x_bytes(k.x, at) + t.ahead,
                           count_x_bytes(k.x, count_columns_in_step(k.y)), own->block->hints.to_l2);
        }
        for (size_t c = at; c < at + step; c += CHUNK) {
            done = compute_columns(k, own, p, count, c, CHUNK, STREAM, done);
        }
        if (!is_certain(done, k.y >= NPUQ_Y_INTEGERS)) {
            call_total(k, r, count, at, step);
        }
        at += t.piece;
        at -= at >= t.end ? t.back : 0;
    }
    return t.end;
}

/* Columns that are stored before it is asked whether they are right: a few chunks. */
enum { STRIP = 256 };
_Static_assert(STRIP % (2 * CHUNK) == 0, "a strip is pairs of chunks");

/* A header says of which products two chunks at a time are faster. That is where x lies in the second-level cache. */
#ifndef IN_PAIRS
#define IN_PAIRS(FROM) false
#endif

/* Whole chunks from column `at` on, up to the first strip that is not certain; returns where it begins, or where the
 * last part of a chunk does. Nothing is called in here: around a call, compilers keep in memory what is the same for
 * all chunks. */
INLINE size_t run_chunks(recipe k, const rows *r, const parameters *p, size_t count, size_t at)
{
    const size_t end = r->n - (r->n - at) % CHUNK;
    const bool pairs = IN_PAIRS(k.from) && k.op == NPUQ_MUL;

    while (at < end) {
        const size_t next = end - at < STRIP ? end : at + STRIP;
        certainty done = certain();
        size_t c = at;

        /* Of other rows, no prefetching was measured to gain anything. */
        if (k.x == NPUQ_X_F32 && k.from == BY_ROW && k.op == NPUQ_MUL && r->block->hints.ahead > 0) {
            prefetch_lines(r->x + count_x_bytes(k.x, at) + r->block->hints.ahead, count_x_bytes(k.x, STRIP), false);
        }
        for (; pairs && c + 2 * CHUNK <= next; c += 2 * CHUNK) {
            done = compute_columns(k, r, p, count, c, CHUNK, WHOLE, done);
            done = compute_columns(k, r, p, count, c + CHUNK, CHUNK, WHOLE, done);
        }
        for (; c < next; c += CHUNK) {
            done = compute_columns(k, r, p, count, c, CHUNK, WHOLE, done);
        }
        if (!is_certain(done, k.y >= NPUQ_Y_INTEGERS)) {
            break;
        }
        at = next;
    }
    return at;
}

/* Where nothing is certain, it is asked ever less often, from one row to the next, too. */
typedef struct doubt {
    size_t strip;
    size_t left; /* columns to be done without asking */
} doubt;

INLINE doubt clear_doubt(void)
{
    return (doubt){STRIP, 0};
}

/* Columns of rows from `at` on, as long as it is not asked; returns where they end. */
NOINLINE size_t run_columns_unasked(const rows *r, size_t count, size_t at, doubt *d)
{
    const size_t n = r->n - at < d->left ? r->n - at : d->left;

    call_total(r->k, r, count, at, n);
    d->left -= n;
    return at + n;
}

/* The same after chunks from column `from` on, of which those from `at` on are not certain, or none are left. */
NOINLINE size_t run_columns_uncertain(const rows *r, size_t count, size_t from, size_t at, doubt *d)
{
    const size_t rest = r->n - at;

    d->strip = at == from && rest >= CHUNK ? 2 * d->strip : STRIP;
    d->left = rest < CHUNK ? rest : d->strip;
    return run_columns_unasked(r, count, at, d);
}

/* All columns of count rows; from memory, of one. */
INLINE void run_rows(recipe k, const rows *r, size_t count, bool from_memory, doubt *d)
{
    const rows own = *r; /* a copy that no store can change: call_total() has seen the address of the other */
    const parameters p = load_row_parameters(k, &own);
    parameters without_sum = p;
    const size_t n = own.n;
    const bool divides = FAST_DIVIDE && k.op == NPUQ_DIV && k.from == BY_ROW && !p.plain;
    size_t at = !AT_RUN_TIME && from_memory && !divides ? stream_rows(k, r, &own, &p, 1) : 0;

    without_sum.adds = false;
    if (divides && d->left < n) { /* else each such row would double the next strip */
        d->left = n;
    }
    if (d->left > 0) {
        at = run_columns_unasked(r, count, at, d);
    }
    while (at < n) {
        const size_t from = at;

        if (!AT_RUN_TIME && (k.from == BY_ROW || k.from == BY_ROW_SMOOTH) && !p.adds) {
            at = run_chunks(k, &own, &without_sum, count, at);
        } else {
            at = run_chunks(k, &own, &p, count, at);
        }
        if (at == n) {
            d->strip = STRIP;
        } else {
            at = run_columns_uncertain(r, count, from, at, d);
        }
    }
}

INLINE rows select_rows(recipe k, const npuq_block *b, size_t first)
{
    return (rows){
        .k = k,
        .x = (const char *)b->x + (ptrdiff_t)first * b->x_step,
        .y = (char *)b->y + (ptrdiff_t)first * b->y_step,
        .x_step = b->x_step,
        .y_step = b->y_step,
        .n = b->n,
        .block = b,
    };
}

#endif
