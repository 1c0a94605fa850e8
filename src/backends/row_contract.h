/* SPDX-License-Identifier: BSD-3-Clause */
/* The promises of row.h, one function for each kind of kernel: every backend asserts them where its kernels begin. */
#ifndef NPUQ_ROW_CONTRACT_H
#define NPUQ_ROW_CONTRACT_H

#include "row.h"

#include <assert.h>

#define NPUQ_CONTRACT static inline __attribute__((unused))

NPUQ_CONTRACT bool npuq_is_aligned(const void *p, size_t size)
{
    return (uintptr_t)p % size == 0;
}

/* An array of binary32 or int32, not null. */
NPUQ_CONTRACT bool npuq_is_array(const void *p)
{
    return p && npuq_is_aligned(p, 4);
}

/* Rows of whole storage words. */
NPUQ_CONTRACT bool npuq_are_rows_of(const npuq_block *b, const void *first, ptrdiff_t stride, npuq_type type)
{
    const npuq_storage_word word = npuq_word_of(type);

    return npuq_is_aligned(first, word.size) && (b->rows < 2 || stride % word.size == 0) &&
           b->n % npuq_count_elements_in(word) == 0;
}

/* A row from memory is divided by read_streams. */
NPUQ_CONTRACT bool npuq_is_valid_x(const npuq_block *b, npuq_type x)
{
    return npuq_are_rows_of(b, b->x, b->x_stride, x) && (!b->hints.from_memory || b->hints.read_streams > 0);
}

NPUQ_CONTRACT bool npuq_is_valid_y(const npuq_block *b, npuq_type y)
{
    return npuq_are_rows_of(b, b->y, b->y_stride, y) && (b->flip == 0 || y == NPUQ_TYPE_INT8);
}

NPUQ_CONTRACT bool npuq_are_valid_columns(const void *p, bool halves, npuq_type x)
{
    return npuq_is_aligned(p, halves ? 2 : 4) && (!halves || x != NPUQ_TYPE_FLOAT32);
}

NPUQ_CONTRACT bool npuq_is_valid_range(const npuq_block *b, npuq_type x, const npuq_range_params *p)
{
    return npuq_is_valid_x(b, x) && npuq_are_valid_columns(p->smooth, p->half_columns, x) && npuq_is_array(p->hi) &&
           npuq_is_array(p->lo);
}

NPUQ_CONTRACT bool npuq_are_valid_runs(const npuq_block *b, npuq_type x, unsigned run, const float *values)
{
    return npuq_is_valid_x(b, x) && b->rows == 1 && run > 0 && run % NPUQ_LEAST_RUN == 0 && run <= NPUQ_LONGEST_RUN &&
           b->n > 0 && b->n <= NPUQ_MOST_IN_RUNS && npuq_is_array(values);
}

NPUQ_CONTRACT bool npuq_are_valid_magnitudes(const npuq_block *b, npuq_type x, const npuq_column_params *p)
{
    return npuq_is_valid_x(b, x) && npuq_is_array(p->largest);
}

NPUQ_CONTRACT bool npuq_is_valid_quant(const npuq_block *b, npuq_type y, npuq_type x, npuq_affine_op op,
                                       const npuq_quant_params *p)
{
    const bool by_row = p->steps == NPUQ_ONE || p->steps == NPUQ_BY_ROW;
    const bool takes_all = op == NPUQ_MUL || npuq_is_small_float(y);
    const bool has_4_bits = npuq_is_4_bit_float(y);

    return npuq_is_valid_x(b, x) && npuq_is_valid_y(b, y) && p->scale &&
           (has_4_bits
                ? op == NPUQ_MUL && !p->offset && (!p->smooth || p->has_shifts) && p->rounding <= NPUQ_SMALL_FLOOR
                : p->rounding == 0) &&
           npuq_are_valid_columns(p->scale, p->half_columns && !by_row, x) &&
           (!p->half_columns || (takes_all && (by_row || x == NPUQ_TYPE_BFLOAT16))) &&
           (p->steps == NPUQ_BY_RUN ? takes_all && !p->offset && npuq_are_valid_runs(b, x, p->run, p->scale)
                                    : p->steps < NPUQ_BY_RUN && npuq_is_aligned(p->offset, 4)) &&
           (p->offset || p->steps != NPUQ_BY_COLUMN) &&
           (!p->has_shifts ||
            (op == NPUQ_MUL && x != NPUQ_TYPE_FLOAT32 && npuq_is_small_float(y) && !by_row && y != NPUQ_TYPE_HIFLOAT8 &&
             y != NPUQ_TYPE_FLOAT4_E1M2 && p->smooth && p->rounding != NPUQ_SMALL_FLOOR &&
             npuq_is_aligned(p->smooth, 2) && (p->steps != NPUQ_BY_RUN || p->run % NPUQ_LEAST_SHIFTED == 0))) &&
           (!p->smooth || p->has_shifts ||
            (by_row && takes_all && npuq_are_valid_columns(p->smooth, p->half_columns, x)));
}

NPUQ_CONTRACT bool npuq_are_valid_short_rows(const float *values, const float *smooth, size_t n, size_t rows,
                                             const float *hi, const float *lo)
{
    return 0 < n && n <= NPUQ_SHORT && 0 < rows && rows <= NPUQ_SHORT_ROWS && npuq_is_array(values) &&
           npuq_is_aligned(smooth, 4) && npuq_is_array(hi) && npuq_is_array(lo);
}

NPUQ_CONTRACT bool npuq_are_valid_parameters(npuq_dynamic_form form, npuq_type y, const float *hi, const float *lo,
                                             const float *scale, const float *offset, const float *inverse_scale)
{
    return form < NPUQ_SYMMETRIC_DIVISOR && (y == NPUQ_TYPE_INT8 || y == NPUQ_TYPE_QUINT4X2) && npuq_is_array(hi) &&
           npuq_is_array(lo) && npuq_is_array(scale) && npuq_is_array(offset) && npuq_is_array(inverse_scale);
}

/* A parameter that the pair of types does not use is null; y_offset may be any. */
NPUQ_CONTRACT bool npuq_is_valid_dequant(const npuq_block *b, npuq_type y, npuq_type x, const npuq_dequant_params *p)
{
    const bool from_int32 = x == NPUQ_TYPE_INT32;
    const bool has_offset = npuq_is_integer(x) && !from_int32;
    const bool are_words = from_int32 && (y == NPUQ_TYPE_INT8 || y == NPUQ_TYPE_FLOAT16) && p->by_column &&
                           !p->row_scale && !p->row_scales && !p->bias && npuq_is_aligned(p->words, 8);

    return npuq_is_valid_x(b, x) && npuq_is_valid_y(b, y) && npuq_is_array(p->scale) && (!p->words || are_words) &&
           npuq_is_aligned(p->offset, 4) && npuq_is_aligned(p->x_bias, 4) && npuq_is_aligned(p->row_scale, 4) &&
           npuq_is_aligned(p->bias, 4) && npuq_is_aligned(p->y_offset, 4) && npuq_is_aligned(p->row_scales, 4) &&
           (npuq_is_small_float(x) ? p->by_column != (p->run > 0) : p->run == 0) &&
           (p->run == 0 || (b->rows <= 1 && p->run % NPUQ_LEAST_SHIFTED == 0 && p->run <= NPUQ_LONGEST_RUN &&
                            b->n <= NPUQ_MOST_IN_RUNS)) &&
           (has_offset || !p->offset) && (from_int32 || !p->x_bias) && !(p->row_scale && p->row_scales) &&
           ((from_int32 && y != NPUQ_TYPE_INT8) || (!p->row_scale && !p->row_scales && !p->bias));
}

/* The words that pack, unpack and word_bits take. */
NPUQ_CONTRACT bool npuq_are_valid_words(const uint64_t *y, const void *scale, const void *offset)
{
    return npuq_is_aligned(y, 8) && npuq_is_aligned(scale, 4) && npuq_is_aligned(offset, 4);
}

NPUQ_CONTRACT bool npuq_is_valid_widen(const void *x, size_t size, const float *y)
{
    return npuq_is_aligned(x, size) && npuq_is_aligned(y, 4);
}

#endif
