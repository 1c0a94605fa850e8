/* SPDX-License-Identifier: BSD-3-Clause */
#include "npuq_ref.h"

/* The elements of dimensions first to end - 1. */
static size_t elements_of(const size_t *shape, int first, int end)
{
    size_t elements = 1;

    for (int d = first; d < end; d++) {
        elements *= shape[d];
    }
    return elements;
}

void npuq_ref_quantize(const void *x, npuq_ref_dtype x_dtype, const size_t *shape, int ndim, const void *scales,
                       npuq_ref_dtype scales_dtype, size_t scales_count, const void *zero_points,
                       npuq_ref_dtype zero_points_dtype, int axis, bool div_mode, void *y, npuq_ref_dtype y_dtype)
{
    int a;

    if (div_mode) {
        a = axis < 0 ? axis + ndim : axis;
    } else {
        a = axis == -2 ? ndim - 2 : ndim - 1;
    }
    if (scales_count == 1) { /* one scale for all: any dimension will do */
        a = ndim - 1;
    }
    const size_t outer = elements_of(shape, 0, a);
    const size_t inner = elements_of(shape, a + 1, ndim);

    for (size_t o = 0; o < outer; o++) {
        for (size_t c = 0; c < shape[a]; c++) {
            const size_t p = scales_count == 1 ? 0 : c;
            const float s = npuq_ref_load(scales, scales_dtype, p);
            const float z = zero_points ? npuq_ref_load(zero_points, zero_points_dtype, p) : 0.0f;

            for (size_t i = 0; i < inner; i++) {
                const size_t at = (o * shape[a] + c) * inner + i;
                const float v = npuq_ref_load(x, x_dtype, at);
                npuq_ref_store(y, y_dtype, at, npuq_ref_affine(v, s, zero_points ? &z : NULL, div_mode, y_dtype));
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
            npuq_ref_store(y, y_dtype, r * H + h, npuq_ref_affine(v, s, offset ? &z : NULL, false, y_dtype));
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
            npuq_ref_store(y, y_dtype, r * length + i, npuq_ref_affine(v, p.back, &p.offset, false, y_dtype));
        }
    }
}

/* What symmetric operators do with the largest magnitude of a token. */
typedef struct symmetric_form {
    bool is_float8;
    bool inverse_form;
    float dst_type_max;
} symmetric_form;

static void dynamic_quant(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t H, const void *smooth_scales,
                          npuq_ref_dtype smooth_dtype, const int64_t *group_index, bool per_tensor, symmetric_form form,
                          void *y, npuq_ref_dtype y_dtype, float *scale)
{
    const size_t tokens = per_tensor ? 1 : S;
    const size_t length = per_tensor ? S * H : H;
    size_t e = 0;

    for (size_t r = 0; r < tokens; r++) {
        while (group_index && (size_t)group_index[e] <= r) {
            e++;
        }

        float largest = 0.0f;
        for (size_t i = 0; i < length; i++) {
            largest = npuq_ref_largest_with(
                largest, smoothed(x, x_dtype, r * length + i, smooth_scales, smooth_dtype, e * H + i % H));
        }

        const npuq_ref_parameters p = form.is_float8
                                          ? npuq_ref_float8_parameters(largest, y_dtype, form.dst_type_max)
                                          : npuq_ref_symmetric_parameters(largest, y_dtype, form.inverse_form);
        scale[r] = p.scale;

        for (size_t i = 0; i < length; i++) {
            const float v = smoothed(x, x_dtype, r * length + i, smooth_scales, smooth_dtype, e * H + i % H);
            npuq_ref_store_symmetric(y, y_dtype, r * length + i,
                                     npuq_ref_affine(v, p.back, NULL, form.is_float8, y_dtype));
        }
    }
}

void npuq_ref_dynamic_quant(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t H, const void *smooth_scales,
                            npuq_ref_dtype smooth_dtype, size_t E, const int64_t *group_index, bool per_tensor,
                            bool inverse_form, void *y, npuq_ref_dtype y_dtype, float *scale)
{
    const symmetric_form form = {false, inverse_form, 0.0f};

    (void)E;
    dynamic_quant(x, x_dtype, S, H, smooth_scales, smooth_dtype, group_index, per_tensor, form, y, y_dtype, scale);
}

void npuq_ref_dynamic_quant_float8(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t H, const void *smooth_scales,
                                   npuq_ref_dtype smooth_dtype, size_t E, const int64_t *group_index, bool per_tensor,
                                   float dst_type_max, void *y, npuq_ref_dtype y_dtype, float *scale)
{
    const symmetric_form form = {true, false, dst_type_max};

    (void)E;
    dynamic_quant(x, x_dtype, S, H, smooth_scales, smooth_dtype, group_index, per_tensor, form, y, y_dtype, scale);
}

/* The end of the block that begins here. */
static size_t end_of_block(size_t begin, size_t block, size_t extent)
{
    return block < extent - begin ? begin + block : extent;
}

void npuq_ref_dynamic_block_quant(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t N, size_t B, float min_scale,
                                  void *y, npuq_ref_dtype y_dtype, float *scale)
{
    for (size_t s = 0; s < S; s++) {
        for (size_t begin = 0, end; begin < N; begin = end) {
            float largest = 0.0f;

            end = end_of_block(begin, B, N);

            for (size_t n = begin; n < end; n++) {
                largest = npuq_ref_largest_with(largest, npuq_ref_load(x, x_dtype, s * N + n));
            }

            const npuq_ref_parameters p = npuq_ref_block_parameters(largest, y_dtype, min_scale);
            *scale++ = p.scale;

            for (size_t n = begin; n < end; n++) {
                const float v = npuq_ref_load(x, x_dtype, s * N + n);
                npuq_ref_store_symmetric(y, y_dtype, s * N + n, npuq_ref_mul(v, p.back));
            }
        }
    }
}

/* Rows from `top` on and columns from `left` on of a matrix that begins at element `first`. Returns the scale. */
static float quantise_float8_block(const void *x, npuq_ref_dtype x_dtype, size_t first, size_t N, size_t top,
                                   size_t bottom, size_t left, size_t right, float min_scale, float dst_type_max,
                                   void *y, npuq_ref_dtype y_dtype)
{
    float largest = 0.0f;

    for (size_t m = top; m < bottom; m++) {
        for (size_t n = left; n < right; n++) {
            largest = npuq_ref_largest_with(largest, npuq_ref_load(x, x_dtype, first + m * N + n));
        }
    }

    const float scale = npuq_ref_float8_block_scale(largest, y_dtype, min_scale, dst_type_max);

    for (size_t m = top; m < bottom; m++) {
        for (size_t n = left; n < right; n++) {
            const size_t i = first + m * N + n;

            npuq_ref_store(y, y_dtype, i, npuq_ref_affine(npuq_ref_load(x, x_dtype, i), scale, NULL, true, y_dtype));
        }
    }
    return scale;
}

void npuq_ref_dynamic_block_quant_float8(const void *x, npuq_ref_dtype x_dtype, size_t matrices, size_t M, size_t N,
                                         size_t row_block, size_t column_block, float min_scale, float dst_type_max,
                                         void *y, npuq_ref_dtype y_dtype, float *scale)
{
    for (size_t matrix = 0; matrix < matrices; matrix++) {
        for (size_t top = 0, bottom; top < M; top = bottom) {
            bottom = end_of_block(top, row_block, M);
            for (size_t left = 0, right; left < N; left = right) {
                right = end_of_block(left, column_block, N);
                *scale++ = quantise_float8_block(x, x_dtype, matrix * M * N, N, top, bottom, left, right, min_scale,
                                                 dst_type_max, y, y_dtype);
            }
        }
    }
}

/* The groups along an axis of extent n. */
typedef struct mx_groups {
    size_t block;
    size_t count;
    size_t outer; /* elements of the dimensions before the axis */
    size_t n;
    size_t inner; /* and of those after it */
} mx_groups;

static mx_groups groups_of(const size_t *shape, int ndim, int axis, const npuq_ref_mx *options)
{
    const int a = axis < 0 ? axis + ndim : axis;
    mx_groups groups;

    groups.block = options->block == 0 ? 32 : options->block;
    groups.count = shape[a] / groups.block + (shape[a] % groups.block != 0);
    groups.outer = elements_of(shape, 0, a);
    groups.n = shape[a];
    groups.inner = elements_of(shape, a + 1, ndim);
    return groups;
}

/* Where mxscale has the scale of group g. */
static size_t mxscale_index(mx_groups groups, size_t o, size_t g, size_t i)
{
    const size_t pairs = groups.count / 2 + groups.count % 2;

    return ((o * pairs + g / 2) * groups.inner + i) * 2 + g % 2;
}

/* Of the group that begins at element `first` of x and has n elements, each `step` after the one before. */
static npuq_ref_mx_group mx_group(const void *x, npuq_ref_dtype x_dtype, size_t first, size_t n, size_t step,
                                  bool is_last_axis, npuq_ref_dtype y_dtype, const npuq_ref_mx *options)
{
    float largest = 0.0f;

    for (size_t c = 0; c < n; c++) {
        largest = npuq_ref_largest_with(largest, npuq_ref_load(x, x_dtype, first + c * step));
    }
    return npuq_ref_mx_group_of(largest, x_dtype, is_last_axis, y_dtype, options);
}

void npuq_ref_dynamic_mx_quant(const void *x, npuq_ref_dtype x_dtype, const size_t *shape, int ndim, int axis,
                               const npuq_ref_mx *options, void *y, npuq_ref_dtype y_dtype, uint8_t *mxscale)
{
    const mx_groups groups = groups_of(shape, ndim, axis, options);
    const bool is_last_axis = axis == -1 || axis == ndim - 1;

    for (size_t o = 0; o < groups.outer; o++) {
        for (size_t g = 0; g < groups.count; g++) {
            const size_t begin = g * groups.block;
            const size_t n = end_of_block(begin, groups.block, groups.n) - begin;

            for (size_t i = 0; i < groups.inner; i++) {
                const size_t first = (o * groups.n + begin) * groups.inner + i;
                const npuq_ref_mx_group group =
                    mx_group(x, x_dtype, first, n, groups.inner, is_last_axis, y_dtype, options);

                mxscale[mxscale_index(groups, o, g, i)] = group.S;
                if (g % 2 == 0 && g + 1 == groups.count) { /* no group completes the pair */
                    mxscale[mxscale_index(groups, o, g + 1, i)] = 0;
                }
                for (size_t c = 0; c < n; c++) {
                    const size_t at = first + c * groups.inner;
                    const float v = npuq_ref_load(x, x_dtype, at);
                    npuq_ref_store_code(y, y_dtype, at, npuq_ref_mx_code(v, x_dtype, group, y_dtype, options));
                }
            }
        }
    }
}

void npuq_ref_anti_mx_quant(const void *x, npuq_ref_dtype x_dtype, const size_t *shape, int ndim,
                            const uint8_t *mxscale, int axis, const npuq_ref_mx *options, void *y,
                            npuq_ref_dtype y_dtype)
{
    const mx_groups groups = groups_of(shape, ndim, axis, options);

    for (size_t at = 0; at < groups.outer * groups.n * groups.inner; at++) {
        const size_t o = at / groups.inner / groups.n;
        const size_t g = at / groups.inner % groups.n / groups.block;
        const uint8_t code = mxscale[mxscale_index(groups, o, g, at % groups.inner)];
        const float product = npuq_ref_mul(npuq_ref_load(x, x_dtype, at), npuq_ref_float8_e8m0(code));

        npuq_ref_store_float(y, y_dtype, at, product);
    }
}

void npuq_ref_anti_quant(const void *x, npuq_ref_dtype x_dtype, size_t S, size_t H, const void *scale,
                         npuq_ref_dtype scale_dtype, size_t scale_count, const void *offset, void *y,
                         npuq_ref_dtype y_dtype)
{
    for (size_t i = 0; i < S * H; i++) {
        const size_t group = i / H / (scale_count > H ? S * H / scale_count : S);
        const size_t p = scale_count == 1 ? 0 : group * H + i % H;
        float t = npuq_ref_load(x, x_dtype, i);

        if (offset) {
            t = npuq_ref_add(t, npuq_ref_load(offset, scale_dtype, p));
        }
        t = npuq_ref_mul(t, npuq_ref_load(scale, scale_dtype, p));
        npuq_ref_store_float(y, y_dtype, i, t);
    }
}

void npuq_ref_dequant(const int32_t *x, size_t M, size_t N, const void *weight_scale, npuq_ref_dtype weight_scale_dtype,
                      size_t weight_scale_count, const float *activation_scale, const void *bias,
                      npuq_ref_dtype bias_dtype, void *y, npuq_ref_dtype y_dtype)
{
    for (size_t m = 0; m < M; m++) {
        for (size_t n = 0; n < N; n++) {
            int32_t sum = x[m * N + n];

            if (bias && bias_dtype == NPUQ_REF_INT32) {
                sum = npuq_ref_wrapping_add(sum, ((const int32_t *)bias)[n]);
            }
            float t = npuq_ref_int32(sum);
            t = npuq_ref_mul(t, npuq_ref_load(weight_scale, weight_scale_dtype, weight_scale_count == 1 ? 0 : n));
            if (activation_scale) {
                t = npuq_ref_mul(t, activation_scale[m]);
            }
            if (bias && bias_dtype != NPUQ_REF_INT32) {
                t = npuq_ref_add(t, npuq_ref_load(bias, bias_dtype, n));
            }
            npuq_ref_store_float(y, y_dtype, m * N + n, t);
        }
    }
}

void npuq_ref_requant(const int32_t *x, size_t M, size_t N, const uint64_t *words, size_t words_count,
                      const int32_t *bias, void *y, npuq_ref_dtype y_dtype)
{
    for (size_t i = 0; i < M * N; i++) {
        const uint64_t word = words[words_count == 1 ? 0 : i % N];
        const int32_t sum = bias ? npuq_ref_wrapping_add(x[i], bias[i % N]) : x[i];
        const float p = npuq_ref_mul(npuq_ref_int32(sum), npuq_ref_word_scale(word));

        if (y_dtype == NPUQ_REF_INT8) {
            ((int8_t *)y)[i] = npuq_ref_two_clamps(p, npuq_ref_word_offset(word));
        } else {
            npuq_ref_store_float(y, y_dtype, i, p);
        }
    }
}

void npuq_ref_quant_matmul(const int8_t *x1, const int8_t *x2, size_t M, size_t K, size_t N, const int32_t *bias,
                           int32_t *y)
{
    for (size_t m = 0; m < M; m++) {
        for (size_t n = 0; n < N; n++) {
            int32_t sum = bias ? bias[n] : 0;

            for (size_t k = 0; k < K; k++) {
                sum = npuq_ref_wrapping_add(sum, x1[m * K + k] * x2[k * N + n]);
            }
            y[m * N + n] = sum;
        }
    }
}
