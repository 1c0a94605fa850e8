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
    SCALES = 1,              /* increment is 1: a scale, and any offset, for each column */
    ROW_SCALE_OR_OFFSET = 2, /* offset, row_scale or y_offset */
    X_BIAS = 4,
    BIAS = 8
};

typedef struct kernel_spec {
    source from;
    npuq_type y;
    npuq_type x;
    npuq_affine_op op;
    bool converts; /* from integers to bfloat16: by an instruction that not every CPU has */
    unsigned form; /* from integers; not everywhere a constant */
} kernel_spec;

INLINE bool is_quantising(kernel_spec k)
{
    return npuq_is_float(k.x) && npuq_is_integer(k.y) && k.from != FROM_INTEGERS;
}

INLINE bool is_dequantising(kernel_spec k)
{
    return npuq_is_integer(k.x) && (npuq_is_float(k.y) || k.y == NPUQ_TYPE_INT8) && k.from == FROM_INTEGERS;
}

/* One row, or a few rows that share their parameters. */
typedef struct rows {
    kernel_spec k;
    const char *x;
    char *y;
    ptrdiff_t x_stride;
    ptrdiff_t y_stride;
    size_t n;
    const npuq_block *block; /* for its hints */
    const float *scales;     /* one, or one for each column */
    const float *offsets;
    size_t offset_increment; /* by column: 0 where the CHUNK offsets from *offsets on serve all columns */
    const float *smooth;
    const npuq_dequant_params *integers;
    size_t first; /* from integers: the row's number */
} rows;

typedef struct parameters {
    vchunk scale;
    vchunk offset;
    vchunk inverse; /* 1 / scale, where divisions are made by it */
    vchunk row_scale;
    npuq_dequant_params integers;
    bool invertible_scale; /* whether the row's scale lets divisions be made by the inverse */
    bool adds;             /* false where every offset is a zero: a sum with it is the same integer */
    bool never_nan;        /* from integers: whether it is known that no result is NaN */
} parameters;

INLINE parameters load_row_parameters(kernel_spec k, const rows *r)
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
                        .invertible_scale = FAST_DIVIDE && chunk_is_invertible(scale),
                        .adds = r->offset_increment != 0 || *r->offsets != 0.0f};
}

/* Non-temporal stores fill whole lines, one after the other. */
INLINE size_t count_line_columns(npuq_type y_type)
{
    return count_bytes(y_type, CHUNK) < LINE ? LINE / count_bytes(y_type, CHUNK) * CHUNK : CHUNK;
}

/* Whether rows share parameters by column from memory, too: it would be slower where a chunk is part of a line. */
INLINE bool may_share_streams(kernel_spec k)
{
    return !AT_RUN_TIME && count_line_columns(k.y) == CHUNK;
}

typedef struct column_parameters {
    parameters p;
    bool unpack_order;
    bool by_inverse;
    bool adds;
} column_parameters;

INLINE store_check quantise_columns_of_row(kernel_spec k, const rows *r, const column_parameters *c, size_t row,
                                           size_t at, size_t n, stores how, store_check done)
{
    const char *x = r->x + (ptrdiff_t)row * r->x_stride + count_bytes(k.x, at);
    vchunk t = c->unpack_order ? chunk_load_unpacked_bf16(x) : load_x(k.x, x, n, how == TAIL);

    if (k.from == BY_ROW_SMOOTH) { /* whose rows share nothing */
        t = chunk_mul(t, order_like_x(load_parameters(r->smooth + at, n, how == TAIL), c->unpack_order));
    }
    t = c->by_inverse      ? chunk_quotient(t, c->p.scale, c->p.inverse, how == EXACT)
        : k.op == NPUQ_DIV ? chunk_div(t, c->p.scale)
                           : chunk_mul(t, c->p.scale);
    if (c->by_inverse) {
        done = check_quotients(t, done);
    }
    if (c->adds) {
        t = chunk_add(t, c->p.offset);
    }
    return join_checks(
        store_y(k.y, r->y + (ptrdiff_t)row * r->y_stride + count_bytes(k.y, at), t, n, c->unpack_order, how), done,
        false);
}

/* Quantises n elements of each of count rows from column `at` on. The result joins `done` and the new checks. */
INLINE store_check quantise_columns(kernel_spec k, const rows *r, parameters p, size_t count, size_t at, size_t n,
                                    stores how, store_check done)
{
    const bool tail = how == TAIL;
    const bool is_fast_store = how == FULL || how == STREAM;
    /* A sum costs nothing from memory, and little beside a division: the library is smaller with fewer cases. */
    const bool adds = p.adds || how != FULL || (k.from == BY_COLUMN && k.op == NPUQ_DIV);
    /* Unpack order is wanted of the parameters by column, too: in the cache, it only pays where rows share them. */
    const bool unpack_order = k.x == NPUQ_TYPE_BFLOAT16 && k.y != NPUQ_TYPE_INT32 && is_fast_store &&
                              (k.from != BY_COLUMN || how == STREAM || count > 1);
    const bool by_inverse = FAST_DIVIDE && k.op == NPUQ_DIV &&
                            (is_fast_store ? k.from == BY_ROW || (how == STREAM ? may_share_streams(k) : count > 1)
                                           : EXACT_QUOTIENT && how == EXACT && k.from == BY_ROW && p.invertible_scale);

    if (k.from == BY_COLUMN) {
        p.scale = order_like_x(load_parameters(r->scales + at, n, tail), unpack_order);
        if (adds) {
            p.offset = order_like_x(load_parameters(r->offsets + at * r->offset_increment, n, tail), unpack_order);
        }
        if (by_inverse) {
            p.inverse = chunk_div(chunk_set(1.0f), p.scale);
        }
    }
    const column_parameters q = {p, unpack_order, by_inverse, adds};
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

INLINE store_check dequantise_columns(kernel_spec k, const rows *r, const parameters *p, size_t at, size_t n,
                                      stores how)
{
    const npuq_dequant_params *d = &p->integers;
    const char *x = r->x + count_bytes(k.x, at);
    char *y = r->y + count_bytes(k.y, at);
    const bool tail = how == TAIL;
    const bool by_column = k.form & SCALES;
    vchunk t;

    if (k.x == NPUQ_TYPE_INT32) {
        ichunk sums = load_integers(x, n, tail);
        if (k.form & X_BIAS) {
            sums = ichunk_add(sums, load_integers(d->x_bias + at, n, tail));
        }
        t = chunk_of_ints(sums);
    } else {
        t = load_x(k.x, x, n, tail);
        if (k.form & ROW_SCALE_OR_OFFSET) {
            t = chunk_add(t, by_column ? load_parameters(d->offset + at, n, tail) : p->offset);
        }
    }
    t = chunk_mul(t, by_column ? load_parameters(d->scale + at, n, tail) : p->scale);
    if (k.y == NPUQ_TYPE_INT8 && k.form & ROW_SCALE_OR_OFFSET) {
        const ichunk offsets = by_column ? load_integers(d->y_offset + at, n, tail) : ichunk_set(*d->y_offset);
        return store_requant(y, t, offsets, n, how);
    }
    if (k.x == NPUQ_TYPE_INT32 && k.form & ROW_SCALE_OR_OFFSET) {
        t = chunk_mul(t, p->row_scale);
    }
    if (k.form & BIAS) {
        t = chunk_add(t, load_parameters(d->bias + at, n, tail));
    }
#ifdef CONVERTS_BF16
    /* With non-temporal stores, rounding by integers was up to a fifth faster, but not where int4 is unpacked. */
    if (k.converts && (how == FULL || (how == STREAM && k.x == NPUQ_TYPE_QUINT4X2))) {
        return chunk_store_converted_bf16(y, t, how == STREAM);
    }
#endif
    return store_y(k.y, y, t, n, false, how);
}

INLINE store_check compute_columns(kernel_spec k, const rows *r, const parameters *p, size_t count, size_t at, size_t n,
                                   stores how, store_check done)
{
    if (k.from == FROM_INTEGERS) {
        const store_check here = dequantise_columns(k, r, p, at, n, how);
        return p->never_nan ? done : join_checks(here, done, npuq_is_float(k.y));
    }
    return quantise_columns(k, r, *p, count, at, n, how, done);
}

INLINE void compute_columns_exact(kernel_spec k, const rows *all, size_t count, size_t first, size_t n)
{
    rows r = *all;

    for (size_t i = 0; i < count; i++) {
        const parameters p = load_row_parameters(k, &r);
        size_t at = first;

        for (; at + CHUNK <= first + n; at += CHUNK) {
            (void)compute_columns(k, &r, &p, 1, at, CHUNK, EXACT, start_check());
        }
        if (at < first + n) {
            (void)compute_columns(k, &r, &p, 1, at, first + n - at, TAIL, start_check());
        }
        r.x += r.x_stride;
        r.y += r.y_stride;
    }
}

/* All kernels share two functions of the exact path, to which types and operation are not constant: a copy in every
 * kernel would be as much code as all else. */
NOINLINE void NPUQ_KERNEL(quantise, columns_exact)(const rows *r, size_t count, size_t at, size_t n)
{
    const kernel_spec k = r->k;

    assume(is_quantising(k));
    if (k.from == BY_COLUMN) { /* one loop for both would copy registers in every chunk, to load parameters or not */
        compute_columns_exact(k, r, count, at, n);
        return;
    }
    compute_columns_exact(k, r, count, at, n);
}

NOINLINE void NPUQ_KERNEL(dequantise, columns_exact)(const rows *r, size_t at, size_t n)
{
    const kernel_spec k = {FROM_INTEGERS, r->k.y, r->k.x, NPUQ_MUL, false, r->k.form};

    assume(is_dequantising(k));
    compute_columns_exact(k, r, 1, at, n);
}

INLINE void run_exact(kernel_spec k, const rows *r, size_t count, size_t at, size_t n)
{
    if (k.from == FROM_INTEGERS) {
        NPUQ_KERNEL(dequantise, columns_exact)(r, at, n);
    } else {
        NPUQ_KERNEL(quantise, columns_exact)(r, count, at, n);
    }
}

#endif
