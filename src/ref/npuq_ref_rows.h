/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scalar row kernels: the loops of the operators cut down to one contiguous row and binary32 parameters, as a vector
 * implementation would have them. Inline, so that a caller with constant types gets a loop made for them.
 */
#ifndef NPUQ_REF_ROWS_H
#define NPUQ_REF_ROWS_H

#include "npuq_ref_element.h"

/* y[i] = sat(round((x[i] * smooth[i]) / scale + offset)), or (x[i] * smooth[i]) * scale + offset. Element i takes its
 * parameters from scale[i * scale_step] and offset[i * offset_step]: step 0 for one that serves all, 1 for one each.
 * smooth and offset may be null. */
static inline void npuq_ref_affine_row(const void *x, npuq_ref_dtype x_dtype, const float *smooth, const float *scale,
                                       const float *offset, size_t scale_step, size_t offset_step, bool divide, void *y,
                                       npuq_ref_dtype y_dtype, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float v = npuq_ref_load(x, x_dtype, i);
        npuq_ref_store(y, y_dtype, i,
                       npuq_ref_affine(smooth ? npuq_ref_mul(v, smooth[i]) : v, scale[i * scale_step],
                                       offset ? &offset[i * offset_step] : NULL, divide, y_dtype));
    }
}

/* The range of x[i], or of x[i] * smooth[i] when smooth is given, together with what is in range already. */
static inline npuq_ref_range npuq_ref_range_row(const void *x, npuq_ref_dtype x_dtype, const float *smooth, size_t n,
                                                npuq_ref_range range)
{
    for (size_t i = 0; i < n; i++) {
        const float v = npuq_ref_load(x, x_dtype, i);
        range = npuq_ref_range_with(range, smooth ? npuq_ref_mul(v, smooth[i]) : v);
    }
    return range;
}

/* anti_quant, dequant and requant, from left to right: y[i] = (x[i] + x_bias[i] + offset[i]) * scale[i] * row_scale +
 * bias[i]. A null operand is left out. x_bias goes with INT32 and is added modulo 2^32. For INT8 the two clamps of
 * requant follow, with y_offset between them. scale, offset and y_offset have step 0 or 1, row_scale has row_step. */
static inline void npuq_ref_dequant_row(const void *x, npuq_ref_dtype x_dtype, const float *scale, const float *offset,
                                        const int32_t *y_offset, size_t step, const int32_t *x_bias,
                                        const float *row_scale, size_t row_step, const float *bias, void *y,
                                        npuq_ref_dtype y_dtype, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float t = x_bias ? npuq_ref_int32(npuq_ref_wrapping_add(((const int32_t *)x)[i], x_bias[i]))
                         : npuq_ref_load(x, x_dtype, i);

        if (offset) {
            t = npuq_ref_add(t, offset[i * step]);
        }
        t = npuq_ref_mul(t, scale[i * step]);
        if (row_scale) {
            t = npuq_ref_mul(t, row_scale[i * row_step]);
        }
        if (bias) {
            t = npuq_ref_add(t, bias[i]);
        }
        if (y_dtype == NPUQ_REF_INT8) {
            ((int8_t *)y)[i] = npuq_ref_two_clamps(t, y_offset ? y_offset[i * step] : 0);
        } else {
            npuq_ref_store_float(y, y_dtype, i, t);
        }
    }
}

#endif
