/* SPDX-License-Identifier: BSD-3-Clause */
/* Integers to floating point, and int32 to int8. */
#ifndef NPUQ_DEQUANTISE_H
#define NPUQ_DEQUANTISE_H

#include "rows.h"

INLINE unsigned find_form(kernel_spec k, const npuq_dequant_params *p)
{
    const void *second = k.x != NPUQ_TYPE_INT32  ? (const void *)p->offset
                         : k.y == NPUQ_TYPE_INT8 ? (const void *)p->y_offset
                                                 : p->row_scale;

    return (p->increment ? SCALES : 0u) | (second ? ROW_SCALE_OR_OFFSET : 0u) |
           (k.x == NPUQ_TYPE_INT32 && p->x_bias ? X_BIAS : 0u) | (k.x == NPUQ_TYPE_INT32 && p->bias ? BIAS : 0u);
}

/* Whether finite parameters rule out a NaN: none goes by column then. They would for int32, too, but with less to do
 * for each line, rows in the second-level cache were slower. */
INLINE bool may_rule_out_nan(kernel_spec k)
{
    return !AT_RUN_TIME && !(k.form & SCALES) && k.x != NPUQ_TYPE_INT32 && !k.converts;
}

INLINE bool are_finite(const npuq_dequant_params *p)
{
    return *p->scale * 0.0f + (p->offset ? *p->offset * 0.0f : 0.0f) == 0.0f;
}

/* Calls run_chunks() with a loop for each of the forms that are met most. Other forms are tested in every chunk, which
 * was measured to take up to a tenth longer. */
INLINE size_t run_form(kernel_spec k, const rows *r, const parameters *p, size_t at)
{
    parameters known = *p;

#define FORM(SET)                                                                                                      \
    case SET:                                                                                                          \
        k.form = (SET);                                                                                                \
        known.never_nan = may_rule_out_nan(k);                                                                         \
        return run_chunks(k, r, &known, 1, at);
    if (!AT_RUN_TIME) {
        switch (k.form) {
            FORM(0)
            FORM(SCALES)
            FORM(ROW_SCALE_OR_OFFSET)
            FORM(SCALES | ROW_SCALE_OR_OFFSET)
        default: break;
        }
    }
#undef FORM
    return run_chunks(k, r, p, 1, at);
}

/* Computes columns from `at` on that chunks from `from` on have left over, and returns where they end. */
NOINLINE size_t run_rest(const rows *r, size_t from, size_t at, retry_state *d)
{
    return d->left > 0 ? run_exact_only(r, 1, at, d) : retry_exact(r, 1, from, at, d);
}

/* Rows are often short, and run_rows() would load for each what is the same for all: here it is loaded once. Each pair
 * of types has its own kernel, with TYPES_AT_RUN_TIME as well: tests of types in each chunk took up to a third of the
 * time. */
INLINE void dequantise_rows(kernel_spec k, const npuq_block *b, const npuq_dequant_params *p)
{
    const npuq_dequant_params integers = *p; /* copies that no store can change, as in run_rows() */
    const bool from_memory = !AT_RUN_TIME && b->hints.from_memory;
    retry_state d = make_retry_state();

    assume(is_dequantising(k));
    k.form = find_form(k, p);
    rows r = select_rows(k, b, 0);
    r.integers = p;
    rows local_row = r;
    local_row.integers = &integers;
    const size_t count = local_row.n > 0 ? b->rows : 0;
    const bool may_be_nan = count > 0 && may_rule_out_nan(k) && !are_finite(p);
    while (local_row.first < count) {
        const parameters q = load_row_parameters(k, &local_row);
        size_t at = from_memory ? stream_rows(k, &r, &local_row, &q, 1) : 0;

        if (may_be_nan && d.left < local_row.n) {
            d.left = local_row.n;
        }
        while (at < local_row.n) {
            const size_t from = at;

            if (d.left == 0) {
                at = run_form(k, &local_row, &q, at);
            }
            if (at == local_row.n) {
                d.strip = STRIP;
            } else {
                at = run_rest(&r, from, at, &d);
            }
        }
        r.x = local_row.x += local_row.x_stride;
        r.y = local_row.y += local_row.y_stride;
        r.first = ++local_row.first;
    }
}

#define DEQUANT(NAME, Y, X)                                                                                            \
    static void NPUQ_KERNEL(dequantise, NAME)(const npuq_block *b, const npuq_dequant_params *p)                       \
    {                                                                                                                  \
        assert(npuq_is_valid_dequant(b, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, p));                                             \
        dequantise_rows((kernel_spec){FROM_INTEGERS, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, NPUQ_MUL, false, 0}, b, p);         \
    }

NPUQ_EACH_DEQUANT(DEQUANT)

#ifdef CONVERTS_BF16
#define CONVERT(NAME, Y, X)                                                                                            \
    static void NPUQ_KERNEL(convert, NAME)(const npuq_block *b, const npuq_dequant_params *p)                          \
    {                                                                                                                  \
        assert(npuq_is_valid_dequant(b, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, p));                                             \
        dequantise_rows((kernel_spec){FROM_INTEGERS, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, NPUQ_MUL, true, 0}, b, p);          \
    }

NPUQ_EACH_INTEGER_X(CONVERT, bf16, BFLOAT16)
#endif

#endif
