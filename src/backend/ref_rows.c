/* SPDX-License-Identifier: BSD-3-Clause */
/* The ref backend: the oracle's row kernels, one instance for each pair of types. */
#include "../ref/npuq_ref_rows.h"
#include "row_table.h"

/* The oracle's types and operations, by the table's names for them. */
static const npuq_ref_dtype ref_f32 = NPUQ_REF_FLOAT32;
static const npuq_ref_dtype ref_f16 = NPUQ_REF_FLOAT16;
static const npuq_ref_dtype ref_bf16 = NPUQ_REF_BFLOAT16;
static const npuq_ref_dtype ref_i8 = NPUQ_REF_INT8;
static const npuq_ref_dtype ref_u8 = NPUQ_REF_UINT8;
static const npuq_ref_dtype ref_i32 = NPUQ_REF_INT32;
static const npuq_ref_dtype ref_i4 = NPUQ_REF_QUINT4X2;
static const bool ref_multiply = false;
static const bool ref_divide = true;

static const char *x_row(const npuq_block *b, size_t r)
{
    return (const char *)b->x + (ptrdiff_t)r * b->x_step;
}

static char *y_row(const npuq_block *b, size_t r)
{
    return (char *)b->y + (ptrdiff_t)r * b->y_step;
}

#define AFFINE(NAME, Y, X, OP)                                                                                         \
    static void uniform_##NAME(const npuq_block *b, const float *scale, const float *offset, size_t step)              \
    {                                                                                                                  \
        for (size_t r = 0; r < b->rows; r++) {                                                                         \
            npuq_ref_affine_row(x_row(b, r), ref_##X, &scale[r * step], &offset[r * step], 0, 0, ref_##OP,             \
                                y_row(b, r), ref_##Y, b->n);                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void vector_##NAME(const npuq_block *b, const float *scale, const float *offset, size_t offset_step)        \
    {                                                                                                                  \
        for (size_t r = 0; r < b->rows; r++) {                                                                         \
            npuq_ref_affine_row(x_row(b, r), ref_##X, scale, offset, 1, offset_step, ref_##OP, y_row(b, r), ref_##Y,   \
                                b->n);                                                                                 \
        }                                                                                                              \
    }

#define SMOOTH(NAME, Y, X)                                                                                             \
    static void smooth_##NAME(const npuq_block *b, const float *smooth, const float *back, const float *offset,        \
                              size_t step)                                                                             \
    {                                                                                                                  \
        for (size_t r = 0; r < b->rows; r++) {                                                                         \
            npuq_ref_smooth_affine_row(x_row(b, r), ref_##X, smooth, back[r * step], offset[r * step], y_row(b, r),    \
                                       ref_##Y, b->n);                                                                 \
        }                                                                                                              \
    }

#define RANGE(X)                                                                                                       \
    static void range_##X(const npuq_block *b, const float *smooth, float *hi, float *lo)                              \
    {                                                                                                                  \
        for (size_t r = 0; r < b->rows; r++) {                                                                         \
            const npuq_ref_range range = {hi[r], lo[r]};                                                               \
            const npuq_ref_range wider = npuq_ref_range_row(x_row(b, r), ref_##X, smooth, b->n, range);                \
            hi[r] = wider.hi;                                                                                          \
            lo[r] = wider.lo;                                                                                          \
        }                                                                                                              \
    }

#define DEQUANT(NAME, Y, X)                                                                                            \
    static void dequant_##NAME(const npuq_block *b, const npuq_dequant_params *p)                                      \
    {                                                                                                                  \
        for (size_t r = 0; r < b->rows; r++) {                                                                         \
            npuq_ref_dequant_row(x_row(b, r), ref_##X, p->scale, p->offset, p->y_offset, p->step, p->x_bias,           \
                                 p->row_scale ? p->row_scale + r : NULL, p->bias, y_row(b, r), ref_##Y, b->n);         \
        }                                                                                                              \
    }

NPUQ_EACH_AFFINE(AFFINE)
NPUQ_EACH_SMOOTH(SMOOTH)
NPUQ_EACH_RANGE(RANGE)
NPUQ_EACH_DEQUANT(DEQUANT)

#define WIDEN(TYPE, NAME, TO_FLOAT)                                                                                    \
    static void widen_##NAME(const void *x, float *y, size_t n)                                                        \
    {                                                                                                                  \
        const TYPE *p = x;                                                                                             \
        for (size_t i = 0; i < n; i++) {                                                                               \
            y[i] = TO_FLOAT(p[i]);                                                                                     \
        }                                                                                                              \
    }

WIDEN(uint16_t, f16, npuq_ref_float16)
WIDEN(uint16_t, bf16, npuq_ref_bfloat16)
WIDEN(int8_t, i8, )
WIDEN(uint8_t, u8, )
WIDEN(int32_t, i32, npuq_ref_int32)

static void pack(const uint32_t *scale, const float *offset, uint64_t *y, size_t n, npuq_round_mode mode)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = npuq_ref_pack(scale[i], offset[i], mode == NPUQ_ROUND_NEAREST);
    }
}

static void unpack(const uint64_t *words, float *scale, int32_t *offset, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        scale[i] = npuq_ref_word_scale(words[i]);
        offset[i] = npuq_ref_word_offset(words[i]);
    }
}

const npuq_row_kernels npuq_rows_ref = NPUQ_ROW_TABLE;
