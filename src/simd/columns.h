/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of n columns of a row, or of a few rows that share their parameters: quantised, or made of integers. */
#ifndef NPUQ_COLUMNS_H
#define NPUQ_COLUMNS_H

#include "chunk.h"

typedef enum source {
    BY_ROW,        /* scale and offset are one for the row */
    BY_COLUMN,     /* scale for each column, offset for each or one */
    BY_ROW_SMOOTH, /* as BY_ROW, after a product with smooth for each column */
    FROM_INTEGERS  /* x is of integers: npuq_dequant_params say */
} source;

/* Which of npuq_dequant_params a call has: a set. */
enum {
    SCALES = 1, /* step: a scale, and what else may have one, for each column */
    SECOND = 2, /* what comes after the scale most often: offset, row_scale or y_offset */
    X_BIAS = 4,
    BIAS = 8
};

/* What a kernel does. */
typedef struct recipe {
    source from;
    npuq_y_type y;
    npuq_x_type x;
    npuq_affine_op op;
    bool converts; /* from integers to bfloat16: by an instruction that not every CPU has */
    unsigned form; /* from integers; not everywhere a constant */
} recipe;

INLINE bool quantises(recipe k)
{
    return k.x < NPUQ_X_FLOATS && k.y < NPUQ_Y_INTEGERS && k.from != FROM_INTEGERS;
}

INLINE bool dequantises(recipe k)
{
    return k.x >= NPUQ_X_FLOATS && (k.y >= NPUQ_Y_INTEGERS || k.y == NPUQ_Y_I8) && k.from == FROM_INTEGERS;
}

/* One row, or a few that share their parameters. */
typedef struct rows {
    recipe k;
    const char *x;
    char *y;
    ptrdiff_t x_step;
    ptrdiff_t y_step;
    size_t n;
    const npuq_block *block; /* for its hints */
    const float *scales;     /* one, or one for each column */
    const float *offsets;
    size_t offset_step; /* by column: 0 where the CHUNK offsets from *offsets on serve all columns */
    const float *smooth;
    const npuq_dequant_params *integers;
    size_t first; /* from integers: the row's number */
} rows;

/* Those of one chunk, or of all. */
typedef struct parameters {
    vchunk scale;
    vchunk offset;
    vchunk inverse; /* 1 / scale, where divisions are made by it */
    vchunk row_scale;
    npuq_dequant_params integers;
    bool plain;   /* whether the row's scale lets divisions be made by the inverse */
    bool adds;    /* false where every offset is a zero: a sum with it is the same integer */
    bool numbers; /* from integers: whether it is known that no result is NaN */
} parameters;

INLINE parameters load_row_parameters(recipe k, const rows *r)
{
    if (k.from == FROM_INTEGERS) {
        const npuq_dequant_params *p = r->integers;
        return (parameters){.scale = chunk_set(*p->scale),
                            .offset = chunk_set(p->offset ? *p->offset : 0.0f),
                            .integers = *p,
                            .row_scale = chunk_set(p->row_scale ? p->row_scale[r->first] : 1.0f)};
    }
    const bool by_row = k.from != BY_COLUMN;
    const vchunk scale = chunk_set(by_row ? *r->scales : 0.0f);
    return (parameters){.scale = scale,
                        .offset = chunk_set(by_row ? *r->offsets : 0.0f),
                        .inverse = chunk_set(by_row ? 1.0f / *r->scales : 0.0f),
                        .plain = FAST_DIVIDE && chunk_is_plain(scale),
                        .adds = r->offset_step != 0 || *r->offsets != 0.0f};
}

/* Stores around the cache fill whole lines, one after the other. */
INLINE size_t count_columns_in_step(npuq_y_type y_type)
{
    return count_y_bytes(y_type, CHUNK) < LINE ? LINE / count_y_bytes(y_type, CHUNK) * CHUNK : CHUNK;
}

/* Whether rows share their parameters by column from memory too: with parts of lines in turns, that would be slower. */
INLINE bool shares_from_memory(recipe k)
{
    return !AT_RUN_TIME && count_columns_in_step(k.y) == CHUNK;
}

/* What n columns of a row are quantised with. */
typedef struct column_parameters {
    parameters p;
    bool split;
    bool by_inverse;
    bool adds;
} column_parameters;

INLINE certainty quantise_columns_of_row(recipe k, const rows *r, const column_parameters *c, size_t row, size_t at,
                                         size_t n, stores how, certainty done)
{
    const char *x = r->x + (ptrdiff_t)row * r->x_step + count_x_bytes(k.x, at);
    vchunk t = c->split ? chunk_load_split_bf16(x) : load_x(k.x, x, n, how == PART);

    if (k.from == BY_ROW_SMOOTH) { /* whose rows share nothing */
        t = chunk_mul(t, order_like_x(load_parameters(r->smooth + at, n, how == PART), c->split));
    }
    t = c->by_inverse      ? chunk_quotient(t, c->p.scale, c->p.inverse, how == TOTAL)
        : k.op == NPUQ_DIV ? chunk_div(t, c->p.scale)
                           : chunk_mul(t, c->p.scale);
    if (c->by_inverse) {
        done = certain_if_numbers(t, done);
    }
    if (c->adds) {
        t = chunk_add(t, c->p.offset);
    }
    return certain_if_both(
        store_y(k.y, r->y + (ptrdiff_t)row * r->y_step + count_y_bytes(k.y, at), t, n, c->split, how), done, false);
}

/* n elements of each of count rows from column `at` on. Joined with `done`: whether all stores were certain. */
INLINE certainty quantise_columns(recipe k, const rows *r, parameters p, size_t count, size_t at, size_t n, stores how,
                                  certainty done)
{
    const bool part = how == PART;
    const bool may_doubt = how == WHOLE || how == STREAM;
    /* A sum costs nothing from memory, and little beside a division; asked for less often, the library is smaller. */
    const bool adds = p.adds || how != WHOLE || (k.from == BY_COLUMN && k.op == NPUQ_DIV);
    /* Splitting x also reorders the parameters by column: in the cache, that only pays where rows share them. */
    const bool split =
        k.x == NPUQ_X_BF16 && k.y != NPUQ_Y_I32 && may_doubt && (k.from != BY_COLUMN || how == STREAM || count > 1);
    const bool by_inverse = FAST_DIVIDE && k.op == NPUQ_DIV &&
                            (may_doubt ? k.from == BY_ROW || (how == STREAM ? shares_from_memory(k) : count > 1)
                                       : TOTAL_QUOTIENT && how == TOTAL && k.from == BY_ROW && p.plain);

    if (k.from == BY_COLUMN) {
        p.scale = order_like_x(load_parameters(r->scales + at, n, part), split);
        if (adds) {
            p.offset = order_like_x(load_parameters(r->offsets + at * r->offset_step, n, part), split);
        }
        if (by_inverse) {
            p.inverse = chunk_div(chunk_set(1.0f), p.scale);
        }
    }
    const column_parameters q = {p, split, by_inverse, adds};
    if (how == STREAM) { /* rows that share parameters are few or four, in one loop for both */
#pragma GCC unroll 1
        for (size_t i = 0; i < count; i++) {
            done = quantise_columns_of_row(k, r, &q, i, at, n, how, done);
        }
    } else {
#pragma GCC unroll 4
        for (size_t i = 0; i < count; i++) {
            done = quantise_columns_of_row(k, r, &q, i, at, n, how, done);
        }
    }
    return done;
}

/* The same from integers, of one row. */
INLINE certainty dequantise_columns(recipe k, const rows *r, const parameters *p, size_t at, size_t n, stores how)
{
    const npuq_dequant_params *d = &p->integers;
    const char *x = r->x + count_x_bytes(k.x, at);
    char *y = r->y + count_y_bytes(k.y, at);
    const bool part = how == PART;
    const bool by_column = k.form & SCALES;
    vchunk t;

    if (k.x == NPUQ_X_I32) {
        ichunk sums = load_integers(x, n, part);
        if (k.form & X_BIAS) {
            sums = ichunk_add(sums, load_integers(d->x_bias + at, n, part));
        }
        t = chunk_of_ints(sums);
    } else {
        t = load_x(k.x, x, n, part);
        if (k.form & SECOND) {
            t = chunk_add(t, by_column ? load_parameters(d->offset + at, n, part) : p->offset);
        }
    }
    t = chunk_mul(t, by_column ? load_parameters(d->scale + at, n, part) : p->scale);
    if (k.y == NPUQ_Y_I8 && k.form & SECOND) {
        const ichunk offsets = by_column ? load_integers(d->y_offset + at, n, part) : ichunk_set(*d->y_offset);
        return store_requant(y, t, offsets, n, how);
    }
    if (k.x == NPUQ_X_I32 && k.form & SECOND) {
        t = chunk_mul(t, p->row_scale);
    }
    if (k.form & BIAS) {
        t = chunk_add(t, load_parameters(d->bias + at, n, part));
    }
#ifdef CONVERTS_BF16
    /* Around the cache, rounding by integers was up to a fifth faster, but not where int4 takes longer to unpack. */
    if (k.converts && (how == WHOLE || (how == STREAM && k.x == NPUQ_X_I4))) {
        return chunk_store_converted_bf16(y, t, how == STREAM);
    }
#endif
    return store_y(k.y, y, t, n, false, how);
}

/* Joined with what has been done before. */
INLINE certainty compute_columns(recipe k, const rows *r, const parameters *p, size_t count, size_t at, size_t n,
                                 stores how, certainty done)
{
    if (k.from == FROM_INTEGERS) {
        const certainty here = dequantise_columns(k, r, p, at, n, how);
        return p->numbers ? done : certain_if_both(here, done, k.y >= NPUQ_Y_INTEGERS);
    }
    return quantise_columns(k, r, *p, count, at, n, how, done);
}

/* n columns of each of count rows, whatever their values: whole chunks, and a part of one. */
INLINE void compute_columns_total(recipe k, const rows *all, size_t count, size_t first, size_t n)
{
    rows r = *all;

    for (size_t i = 0; i < count; i++) {
        const parameters p = load_row_parameters(k, &r);
        size_t at = first;

        for (; at + CHUNK <= first + n; at += CHUNK) {
            (void)compute_columns(k, &r, &p, 1, at, CHUNK, TOTAL, certain());
        }
        if (at < first + n) {
            (void)compute_columns(k, &r, &p, 1, at, first + n - at, PART, certain());
        }
        r.x += r.x_step;
        r.y += r.y_step;
    }
}

/* It is one function for all that quantise and one for all from integers, to which types and operation are not
 * constant: one in every kernel would be as much code as all else. */
NOINLINE void quantise_columns_total(const rows *r, size_t count, size_t at, size_t n)
{
    const recipe k = r->k;

    assume(quantises(k));
    if (k.from == BY_COLUMN) { /* one loop for both would copy registers in every chunk, to load parameters or not */
        compute_columns_total(k, r, count, at, n);
        return;
    }
    compute_columns_total(k, r, count, at, n);
}

NOINLINE void dequantise_columns_total(const rows *r, size_t at, size_t n)
{
    const recipe k = {FROM_INTEGERS, r->k.y, r->k.x, NPUQ_MUL, false, r->k.form};

    assume(dequantises(k));
    compute_columns_total(k, r, 1, at, n);
}

INLINE void call_total(recipe k, const rows *r, size_t count, size_t at, size_t n)
{
    if (k.from == FROM_INTEGERS) {
        dequantise_columns_total(r, at, n);
    } else {
        quantise_columns_total(r, count, at, n);
    }
}

#endif
