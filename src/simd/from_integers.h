/* SPDX-License-Identifier: BSD-3-Clause */
/* Integers to floating point, and int32 to int8. */
#ifndef NPUQ_FROM_INTEGERS_H
#define NPUQ_FROM_INTEGERS_H

#include "rows.h"

INLINE unsigned find_form(recipe k, const npuq_dequant_params *p)
{
    const void *second = k.x != NPUQ_X_I32  ? (const void *)p->offset
                         : k.y == NPUQ_Y_I8 ? (const void *)p->y_offset
                                            : p->row_scale;

    return (p->step ? SCALES : 0u) | (second ? SECOND : 0u) | (k.x == NPUQ_X_I32 && p->x_bias ? X_BIAS : 0u) |
           (k.x == NPUQ_X_I32 && p->bias ? BIAS : 0u);
}

/* Whether finite parameters tell that no result is NaN: nothing goes by column then. Of int32 the same would hold, but
 * with less to do for each line, what lies in the second-level cache was slower. */
INLINE bool may_know_numbers(recipe k)
{
    return !AT_RUN_TIME && !(k.form & SCALES) && k.x != NPUQ_X_I32 && !k.converts;
}

INLINE bool are_finite(const npuq_dequant_params *p)
{
    return *p->scale * 0.0f + (p->offset ? *p->offset * 0.0f : 0.0f) == 0.0f;
}

/* run_chunks() with a loop for each of the forms that are met most. For others, their bits are asked for in every
 * chunk: that was measured to take up to a tenth longer. */
INLINE size_t run_form(recipe k, const rows *r, const parameters *p, size_t at)
{
    parameters known = *p;

#define FORM(SET)                                                                                                      \
    case SET:                                                                                                          \
        k.form = (SET);                                                                                                \
        known.numbers = may_know_numbers(k);                                                                           \
        return run_chunks(k, r, &known, 1, at);
    if (!AT_RUN_TIME) {
        switch (k.form) {
            FORM(0)
            FORM(SCALES)
            FORM(SECOND)
            FORM(SCALES | SECOND)
        default: break;
        }
    }
#undef FORM
    return run_chunks(k, r, p, 1, at);
}

/* Columns of a row that chunks from `from` on have left to be done, from `at` on; returns where they end. */
NOINLINE size_t run_what_is_left(const rows *r, size_t from, size_t at, doubt *d)
{
    return d->left > 0 ? run_columns_unasked(r, 1, at, d) : run_columns_uncertain(r, 1, from, at, d);
}

/* Rows are often short beside what run_rows() does for each: so what rows have alike is made once. There is one for
 * each pair of types, which are few. That holds with TYPES_AT_RUN_TIME as well: asked for in each chunk, types would
 * take up to a third of the time. */
INLINE void dequantise(recipe k, const npuq_block *b, const npuq_dequant_params *p)
{
    const npuq_dequant_params integers = *p; /* copies that no store can change, as in run_rows() */
    const bool from_memory = !AT_RUN_TIME && b->hints.from_memory;
    doubt d = clear_doubt();

    assume(dequantises(k));
    k.form = find_form(k, p);
    rows r = select_rows(k, b, 0);
    r.integers = p;
    rows own = r;
    own.integers = &integers;
    const size_t count = own.n > 0 ? b->rows : 0;
    const bool may_be_nan = count > 0 && may_know_numbers(k) && !are_finite(p);
    while (own.first < count) {
        const parameters q = load_row_parameters(k, &own);
        size_t at = from_memory ? stream_rows(k, &r, &own, &q, 1) : 0;

        if (may_be_nan && d.left < own.n) {
            d.left = own.n;
        }
        while (at < own.n) {
            const size_t from = at;

            if (d.left == 0) {
                at = run_form(k, &own, &q, at);
            }
            if (at == own.n) {
                d.strip = STRIP;
            } else {
                at = run_what_is_left(&r, from, at, &d);
            }
        }
        r.x = own.x += own.x_step;
        r.y = own.y += own.y_step;
        r.first = ++own.first;
    }
}

#define DEQUANT(NAME, Y, X)                                                                                            \
    static void dequant_##NAME(const npuq_block *b, const npuq_dequant_params *p)                                      \
    {                                                                                                                  \
        assert(npuq_is_valid_dequant(b, NPUQ_Y_##Y, NPUQ_X_##X, p));                                                   \
        dequantise((recipe){FROM_INTEGERS, NPUQ_Y_##Y, NPUQ_X_##X, NPUQ_MUL, false, 0}, b, p);                         \
    }

NPUQ_EACH_DEQUANT(DEQUANT)

#ifdef CONVERTS_BF16
#define CONVERT(NAME, Y, X)                                                                                            \
    static void convert_##NAME(const npuq_block *b, const npuq_dequant_params *p)                                      \
    {                                                                                                                  \
        assert(npuq_is_valid_dequant(b, NPUQ_Y_##Y, NPUQ_X_##X, p));                                                   \
        dequantise((recipe){FROM_INTEGERS, NPUQ_Y_##Y, NPUQ_X_##X, NPUQ_MUL, true, 0}, b, p);                          \
    }

NPUQ_EACH_INTEGER_X(CONVERT, bf16, BF16)
#endif

#endif
