/* SPDX-License-Identifier: BSD-3-Clause */
/* Floating point to integers, by parameters for each row or for each column. */
#ifndef NPUQ_AFFINE_H
#define NPUQ_AFFINE_H

#include "rows.h"

FOR_TYPES void quantise_by_row(recipe k, const npuq_block *b, const float *smooth, const float *scale,
                               const float *offset, size_t step)
{
    doubt d = clear_doubt();

    assume(quantises(k) && k.from != BY_COLUMN);
    for (size_t i = 0; i < b->rows; i++) {
        rows r = select_rows(k, b, i);

        r.scales = scale + i * step;
        r.offsets = offset + i * step;
        r.smooth = smooth;
        run_rows(k, &r, 1, b->hints.from_memory, &d);
    }
}

/* The same from memory, of rows that share their parameters by column. */
INLINE void stream_by_column(recipe k, const rows *r, size_t count)
{
    const rows own = *r;
    const parameters p = load_row_parameters(k, &own);
    const size_t end = stream_rows(k, r, &own, &p, count);

    if (end < own.n) {
        call_total(k, r, count, end, own.n - end);
    }
}

INLINE bool scales_are_plain(const float *scales, size_t n)
{
    bool plain = true;
    size_t at = 0;

    for (; at + CHUNK <= n; at += CHUNK) {
        plain &= chunk_is_plain(chunk_load_f32(scales + at));
    }
    if (at < n) { /* in a row from memory, whole chunks begin anywhere, and may take these */
        plain &= chunk_is_plain(chunk_load_part_f32(scales + at, n - at));
    }
    return plain;
}

/* Parameters are loaded, and inverted to divide by, once for SHARING rows. */
FOR_TYPES void quantise_by_column(recipe k, const npuq_block *b, const float *scale, const float *offset,
                                  size_t offset_step)
{
    assume(quantises(k) && k.from == BY_COLUMN);
    enum { SHARING = AT_RUN_TIME ? 1 : 4, MOST_APART = 16 * 1024, LEAST_APART = 32 * 1024 };
    /* Where a CPU reads fastest from one place, rows of float32 share no loads of parameters that stay in the
     * first-level cache, unless x is there, too. Halves do: their parameters are put in another order. */
    const bool apart = k.op == NPUQ_MUL && k.x == NPUQ_X_F32 && b->hints.places == 1 &&
                       b->n * sizeof *scale * (1 + offset_step) <= MOST_APART &&
                       b->rows * b->n * sizeof(float) > LEAST_APART;
    /* Scales are only looked at where an inverse is made of them: a single row in the cache divides. */
    const bool inverts = b->rows >= SHARING || (b->hints.from_memory && shares_from_memory(k));
    const bool plain = inverts && (!FAST_DIVIDE || k.op != NPUQ_DIV || scales_are_plain(scale, b->n));
    const bool stream =
        shares_from_memory(k) && b->hints.from_memory && plain && b->n >= 8 * CHUNK; /* enough for turns */
    /* Streamed together if all rows begin within a line as the first one does. */
    const bool share =
        !apart && plain && (stream ? b->y_step % LINE == 0 : shares_from_memory(k) || !b->hints.from_memory);
    float one_offset[CHUNK];
    doubt d = clear_doubt();
    size_t i = 0;

    if (offset_step == 0) {
        const vchunk one = chunk_set(*offset);
        memcpy(one_offset, &one, sizeof one);
        offset = one_offset;
    }
    while (i < b->rows) {
        const size_t count = share && i + SHARING <= b->rows ? SHARING : 1;
        rows r = select_rows(k, b, i);

        r.scales = scale;
        r.offsets = offset;
        r.offset_step = offset_step;
        if (stream) {
            stream_by_column(k, &r, count);
        } else if (!AT_RUN_TIME && count == SHARING) {
            run_rows(k, &r, SHARING, false, &d);
        } else {
            run_rows(k, &r, 1, !shares_from_memory(k) && b->hints.from_memory, &d);
        }
        i += count;
    }
}

#define AFFINE(NAME, Y, X, OP)                                                                                         \
    static void uniform_##NAME(const npuq_block *b, const float *scale, const float *offset, size_t step)              \
    {                                                                                                                  \
        assert(npuq_is_valid_affine(b, NPUQ_Y_##Y, NPUQ_X_##X, scale, offset, 0));                                     \
        quantise_by_row((recipe){BY_ROW, NPUQ_Y_##Y, NPUQ_X_##X, NPUQ_##OP, false, 0}, b, NULL, scale, offset, step);  \
    }                                                                                                                  \
    static void vector_##NAME(const npuq_block *b, const float *scale, const float *offset, size_t offset_step)        \
    {                                                                                                                  \
        assert(npuq_is_valid_affine(b, NPUQ_Y_##Y, NPUQ_X_##X, scale, offset, offset_step));                           \
        quantise_by_column((recipe){BY_COLUMN, NPUQ_Y_##Y, NPUQ_X_##X, NPUQ_##OP, false, 0}, b, scale, offset,         \
                           offset_step);                                                                               \
    }

#define SMOOTH(NAME, Y, X)                                                                                             \
    static void smooth_##NAME(const npuq_block *b, const float *smooth, const float *back, const float *offset,        \
                              size_t step)                                                                             \
    {                                                                                                                  \
        assert(npuq_is_valid_smooth_affine(b, NPUQ_Y_##Y, NPUQ_X_##X, smooth, back, offset));                          \
        quantise_by_row((recipe){BY_ROW_SMOOTH, NPUQ_Y_##Y, NPUQ_X_##X, NPUQ_MUL, false, 0}, b, smooth, back, offset,  \
                        step);                                                                                         \
    }

NPUQ_EACH_AFFINE(AFFINE)
NPUQ_EACH_SMOOTH(SMOOTH)

#endif
