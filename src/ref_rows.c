/* SPDX-License-Identifier: BSD-3-Clause */
/* The ref backend: the oracle's row kernels, one instance for each pair of types. */
#include "row.h"

#include "ref/npuq_ref_rows.h"

#define AFFINE(NAME, Y, X, DIVIDE)                                                                                     \
    static void uniform_##NAME(const npuq_block *b, const float *scale, const float *offset, size_t step)              \
    {                                                                                                                  \
        for (size_t r = 0; r < b->rows; r++) {                                                                         \
            npuq_ref_affine_row((const char *)b->x + (ptrdiff_t)r * b->x_step, X, &scale[r * step], &offset[r * step], \
                                0, DIVIDE, (char *)b->y + (ptrdiff_t)r * b->y_step, Y, b->n);                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void vector_##NAME(const npuq_block *b, const float *scale, const float *offset)                            \
    {                                                                                                                  \
        for (size_t r = 0; r < b->rows; r++) {                                                                         \
            npuq_ref_affine_row((const char *)b->x + (ptrdiff_t)r * b->x_step, X, scale, offset, 1, DIVIDE,            \
                                (char *)b->y + (ptrdiff_t)r * b->y_step, Y, b->n);                                     \
        }                                                                                                              \
    }

#define SMOOTH_AFFINE(NAME, Y, X)                                                                                      \
    static void smooth_##NAME(const npuq_block *b, const float *smooth, const float *back, const float *offset,        \
                              size_t step)                                                                             \
    {                                                                                                                  \
        for (size_t r = 0; r < b->rows; r++) {                                                                         \
            npuq_ref_smooth_affine_row((const char *)b->x + (ptrdiff_t)r * b->x_step, X, smooth, back[r * step],       \
                                       offset[r * step], (char *)b->y + (ptrdiff_t)r * b->y_step, Y, b->n);            \
        }                                                                                                              \
    }

#define RANGE(NAME, X)                                                                                                 \
    static void range_##NAME(const npuq_block *b, const float *smooth, float *hi, float *lo)                           \
    {                                                                                                                  \
        for (size_t r = 0; r < b->rows; r++) {                                                                         \
            npuq_ref_range range = {hi[r], lo[r]};                                                                     \
            range = npuq_ref_range_row((const char *)b->x + (ptrdiff_t)r * b->x_step, X, smooth, b->n, range);         \
            hi[r] = range.hi;                                                                                          \
            lo[r] = range.lo;                                                                                          \
        }                                                                                                              \
    }

#define FOR_X(DO, NAME, ...)                                                                                           \
    DO(NAME##_f32, __VA_ARGS__, NPUQ_REF_FLOAT32)                                                                      \
    DO(NAME##_f16, __VA_ARGS__, NPUQ_REF_FLOAT16)                                                                      \
    DO(NAME##_bf16, __VA_ARGS__, NPUQ_REF_BFLOAT16)

#define BOTH_OPS(NAME, Y, X) AFFINE(NAME##_mul, Y, X, false) AFFINE(NAME##_div, Y, X, true)

FOR_X(BOTH_OPS, i8, NPUQ_REF_INT8)
FOR_X(BOTH_OPS, u8, NPUQ_REF_UINT8)
FOR_X(BOTH_OPS, i32, NPUQ_REF_INT32)
FOR_X(BOTH_OPS, i4, NPUQ_REF_QUINT4X2)
FOR_X(SMOOTH_AFFINE, i8, NPUQ_REF_INT8)
FOR_X(SMOOTH_AFFINE, i4, NPUQ_REF_QUINT4X2)
RANGE(f32, NPUQ_REF_FLOAT32)
RANGE(f16, NPUQ_REF_FLOAT16)
RANGE(bf16, NPUQ_REF_BFLOAT16)

static void pack(const uint32_t *scale, const float *offset, uint64_t *y, size_t n, npuq_round_mode mode)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = npuq_ref_pack(scale[i], offset[i], mode == NPUQ_ROUND_NEAREST);
    }
}

/* In the order of npuq_x_type and npuq_affine_op. */
#define OPS(KIND, Y, X)                                                                                                \
    {                                                                                                                  \
        KIND##_##Y##_##X##_mul, KIND##_##Y##_##X##_div                                                                 \
    }
#define ALL_X(KIND, Y)                                                                                                 \
    {                                                                                                                  \
        OPS(KIND, Y, f32), OPS(KIND, Y, f16), OPS(KIND, Y, bf16)                                                       \
    }
#define ALL_Y(KIND)                                                                                                    \
    {                                                                                                                  \
        [NPUQ_Y_I8] = ALL_X(KIND, i8), [NPUQ_Y_U8] = ALL_X(KIND, u8), [NPUQ_Y_I32] = ALL_X(KIND, i32),                 \
        [NPUQ_Y_I4] = ALL_X(KIND, i4)                                                                                  \
    }

const npuq_row_kernels npuq_rows_ref = {
    .affine_uniform = ALL_Y(uniform),
    .affine_vector = ALL_Y(vector),
    .range = {range_f32, range_f16, range_bf16},
    .smooth_affine =
        {
            [NPUQ_Y_I8] = {smooth_i8_f32, smooth_i8_f16, smooth_i8_bf16},
            [NPUQ_Y_I4] = {smooth_i4_f32, smooth_i4_f16, smooth_i4_bf16},
        },
    .pack = pack,
};
