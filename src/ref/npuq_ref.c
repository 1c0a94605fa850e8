/* SPDX-License-Identifier: BSD-3-Clause */
#include "npuq_ref.h"

void npuq_ref_quantize(const void *x, npuq_ref_dtype x_dtype, const size_t *shape, int ndim, const void *scales,
                       npuq_ref_dtype scales_dtype, size_t scales_count, const void *zero_points,
                       npuq_ref_dtype zero_points_dtype, int axis, bool div_mode, void *y, npuq_ref_dtype y_dtype)
{
    int a;
    size_t outer = 1;
    size_t inner = 1;

    if (div_mode) {
        a = axis < 0 ? axis + ndim : axis;
    } else {
        a = axis == -2 ? ndim - 2 : ndim - 1;
    }
    if (scales_count == 1) { /* one scale for all: any dimension will do */
        a = ndim - 1;
    }
    for (int d = 0; d < a; d++) {
        outer *= shape[d];
    }
    for (int d = a + 1; d < ndim; d++) {
        inner *= shape[d];
    }

    for (size_t o = 0; o < outer; o++) {
        for (size_t c = 0; c < shape[a]; c++) {
            const size_t p = scales_count == 1 ? 0 : c;
            const float s = npuq_ref_load(scales, scales_dtype, p);
            const float z = zero_points ? npuq_ref_load(zero_points, zero_points_dtype, p) : 0.0f;

            for (size_t i = 0; i < inner; i++) {
                const size_t at = (o * shape[a] + c) * inner + i;
                const float v = npuq_ref_load(x, x_dtype, at);
                npuq_ref_store(y, y_dtype, at, npuq_ref_affine(v, s, z, div_mode));
            }
        }
    }
}

void npuq_ref_group_quant(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t H, const void *scale,
                          npuq_ref_dtype scale_dtype, size_t E, const int64_t *group_index, const void *offset, void *y,
                          npuq_ref_dtype y_dtype)
{
    const float z = offset ? npuq_ref_load(offset, scale_dtype, 0) : 0.0f;
    size_t e = 0;

    (void)E;
    for (size_t r = 0; r < S; r++) {
        while ((size_t)group_index[e] <= r) {
            e++;
        }
        for (size_t h = 0; h < H; h++) {
            const float v = npuq_ref_load(x, x_dtype, r * H + h);
            const float s = npuq_ref_load(scale, scale_dtype, e * H + h);
            npuq_ref_store(y, y_dtype, r * H + h, npuq_ref_affine(v, s, z, false));
        }
    }
}

void npuq_ref_trans_quant_param(const float *scale, size_t scale_count, const float *offset, size_t offset_count,
                                bool round_to_nearest, uint64_t *y)
{
    const size_t n = offset && offset_count > scale_count ? offset_count : scale_count;

    for (size_t i = 0; i < n; i++) {
        const float z = offset ? offset[offset_count == 1 ? 0 : i] : 0.0f;
        uint32_t bits; /* never a float: copying a signalling NaN as one may change it */
        memcpy(&bits, &scale[scale_count == 1 ? 0 : i], sizeof bits);
        y[i] = npuq_ref_pack(bits, z, round_to_nearest);
    }
}

/* Element i of x, times its smooth scale if there are any. */
static float smoothed(const void *x, npuq_ref_dtype x_dtype, size_t i, const void *smooth, npuq_ref_dtype smooth_dtype,
                      size_t smooth_i)
{
    const float v = npuq_ref_load(x, x_dtype, i);
    return smooth ? npuq_ref_mul(v, npuq_ref_load(smooth, smooth_dtype, smooth_i)) : v;
}

void npuq_ref_dynamic_quant_asymmetric(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t H,
                                       const void *smooth_scales, npuq_ref_dtype smooth_dtype, size_t E,
                                       const int64_t *group_index, bool per_tensor, void *y, npuq_ref_dtype y_dtype,
                                       float *scale, float *offset)
{
    /* A token is what shares one scale: a row, or the tensor as one long row. */
    const size_t tokens = per_tensor ? 1 : S;
    const size_t length = per_tensor ? S * H : H;
    size_t e = 0;

    (void)E;
    for (size_t r = 0; r < tokens; r++) {
        while (group_index && (size_t)group_index[e] <= r) {
            e++;
        }

        npuq_ref_range range = npuq_ref_range_empty();
        for (size_t i = 0; i < length; i++) {
            range = npuq_ref_range_with(
                range, smoothed(x, x_dtype, r * length + i, smooth_scales, smooth_dtype, e * H + i % H));
        }

        const npuq_ref_parameters p = npuq_ref_range_parameters(range, y_dtype);
        scale[r] = p.scale;
        offset[r] = p.offset;

        for (size_t i = 0; i < length; i++) {
            const float v = smoothed(x, x_dtype, r * length + i, smooth_scales, smooth_dtype, e * H + i % H);
            npuq_ref_store(y, y_dtype, r * length + i, npuq_ref_affine(v, p.back, p.offset, false));
        }
    }
}
