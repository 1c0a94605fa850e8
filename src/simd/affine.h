/* SPDX-License-Identifier: BSD-3-Clause */
/* Floating point to integers, by parameters for each row or for each column. */
#ifndef NPUQ_AFFINE_H
#define NPUQ_AFFINE_H

#include "rows.h"

FOR_TYPES void quantise_by_row(kernel_spec k, const npuq_block *b, const float *smooth, const float *scale,
                               const float *offset, size_t increment)
{
    retry_state d = make_retry_state();

    assume(is_quantising(k) && k.from != BY_COLUMN);
    for (size_t i = 0; i < b->rows; i++) {
        rows r = select_rows(k, b, i);

        r.scales = scale + i * increment;
        r.offsets = offset + i * increment;
        r.smooth = smooth;
        run_rows(k, &r, 1, b->hints.from_memory, &d);
    }
}

INLINE void stream_by_column(kernel_spec k, const rows *r, size_t count)
{
    const rows local_row = *r;
    const parameters p = load_row_parameters(k, &local_row);
    const size_t end = stream_rows(k, r, &local_row, &p, count);

    if (end < local_row.n) {
        run_exact(k, r, count, end, local_row.n - end);
    }
}

INLINE bool are_scales_invertible(const float *scales, size_t n)
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

/* Parameters are loaded, and inverted to divide by, once for SHARING rows. */
FOR_TYPES void quantise_by_column(kernel_spec k, const npuq_block *b, const float *scale, const float *offset,
                                  size_t offset_increment)
{
    assume(is_quantising(k) && k.from == BY_COLUMN);
    enum { SHARING = AT_RUN_TIME ? 1 : 4, MOST_PARAMETER_BYTES = 16 * 1024, LEAST_X_BYTES = 32 * 1024 };
    /* Where a CPU reads fastest from one stream, rows of float32 share no loads of parameters that stay in the
     * first-level cache, unless x is there, too. Rows of halves do: their parameters are put in another order. */
    const bool no_sharing = k.op == NPUQ_MUL && k.x == NPUQ_TYPE_FLOAT32 && b->hints.read_streams == 1 &&
                            b->n * sizeof *scale * (1 + offset_increment) <= MOST_PARAMETER_BYTES &&
                            b->rows * b->n * sizeof(float) > LEAST_X_BYTES;
    /* Scales are only checked where their inverses are used: a single row in the cache divides. */
    const bool inverts = b->rows >= SHARING || (b->hints.from_memory && may_share_streams(k));
    const bool invertible = inverts && (!FAST_DIVIDE || k.op != NPUQ_DIV || are_scales_invertible(scale, b->n));
    const bool stream =
        may_share_streams(k) && b->hints.from_memory && invertible && b->n >= 8 * CHUNK; /* enough for a stream */
    /* Streamed together if all rows begin within a line as the first one does. */
    const bool share =
        !no_sharing && invertible && (stream ? b->y_stride % LINE == 0 : may_share_streams(k) || !b->hints.from_memory);
    float one_offset[CHUNK];
    retry_state d = make_retry_state();
    size_t i = 0;

    if (offset_increment == 0) {
        const vchunk one = chunk_set(*offset);
        memcpy(one_offset, &one, sizeof one);
        offset = one_offset;
    }
    while (i < b->rows) {
        const size_t count = share && i + SHARING <= b->rows ? SHARING : 1;
        rows r = select_rows(k, b, i);

        r.scales = scale;
        r.offsets = offset;
        r.offset_increment = offset_increment;
        if (stream) {
            stream_by_column(k, &r, count);
        } else if (!AT_RUN_TIME && count == SHARING) {
            run_rows(k, &r, SHARING, false, &d);
        } else {
            run_rows(k, &r, 1, !may_share_streams(k) && b->hints.from_memory, &d);
        }
        i += count;
    }
}

#define AFFINE(NAME, Y, X, OP)                                                                                         \
    static void NPUQ_KERNEL(quantise, NAME##_by_row)(const npuq_block *b, const float *scale, const float *offset,     \
                                                     size_t increment)                                                 \
    {                                                                                                                  \
        assert(npuq_is_valid_affine(b, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, scale, offset, 0));                               \
        quantise_by_row((kernel_spec){BY_ROW, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, NPUQ_##OP, false, 0}, b, NULL, scale,      \
                        offset, increment);                                                                            \
    }                                                                                                                  \
    static void NPUQ_KERNEL(quantise, NAME##_by_column)(const npuq_block *b, const float *scale, const float *offset,  \
                                                        size_t increment)                                              \
    {                                                                                                                  \
        assert(npuq_is_valid_affine(b, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, scale, offset, increment));                       \
        quantise_by_column((kernel_spec){BY_COLUMN, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, NPUQ_##OP, false, 0}, b, scale,      \
                           offset, increment);                                                                         \
    }

#define SMOOTH(NAME, Y, X)                                                                                             \
    static void NPUQ_KERNEL(quantise, NAME##_smooth)(                                                                  \
        const npuq_block *b, const float *smooth, const float *inverse_scale, const float *offset, size_t increment)   \
    {                                                                                                                  \
        assert(npuq_is_valid_smooth_affine(b, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, smooth, inverse_scale, offset));           \
        quantise_by_row((kernel_spec){BY_ROW_SMOOTH, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, NPUQ_MUL, false, 0}, b, smooth,     \
                        inverse_scale, offset, increment);                                                             \
    }

NPUQ_EACH_AFFINE(AFFINE)
NPUQ_EACH_SMOOTH(SMOOTH)

#endif
