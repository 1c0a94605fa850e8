/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract between the operators and the kernels: everything that depends on an instruction set is behind the one
 * table npuq_row_kernels. Kernels know contiguous rows, lengths, and parameters of binary32 (some by column of
 * bfloat16, too); no tensors.
 */
#ifndef NPUQ_ROW_H
#define NPUQ_ROW_H

#include "../type.h"

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "npuquant defines every bit of its results, NaN and infinities included: build it without -ffast-math"
#elif defined(__RECIPROCAL_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__NO_SIGNED_ZEROS__) /* gcc */
#error "npuquant defines every bit of its results: build it without -ffast-math, and without the parts of it"
#endif

/* Where rows lie, and what the CPU likes; no bit of y depends on it. All 0: in the caches. */
typedef struct npuq_hints {
    uint32_t prefetch_bytes; /* about the distance from what is read to what is prefetched; 0: nothing is */
    bool to_l2;              /* prefetched into the second-level cache only */
    bool from_memory;        /* y is more than the caches keep: its stores may be non-temporal */
    uint8_t read_streams;    /* of x, at most, that the CPU likes to read at once; 0: any, but not from memory */
    bool divides_fast;       /* a division takes less time than the inverse made without one, and a product */
} npuq_hints;

/* Rows of n elements, each contiguous; strides are bytes from one row to the next. For int4, n is a multiple of 8.
 * Data is aligned to its element, no more. */
typedef struct npuq_block {
    const void *x;
    void *y;
    ptrdiff_t x_stride;
    ptrdiff_t y_stride;
    size_t rows;
    size_t n;
    size_t first_row; /* the number of the first row where parameters or ranges go by row */
    npuq_hints hints;
    uint8_t flip; /* XORed with each int8 that a product makes: 0x80 makes it the uint8 that is 128 more; else 0 */
} npuq_block;

/* A kernel that takes rows. params is one of the structures below. */
typedef void npuq_rows_fn(const npuq_block *block, const void *params);

/* To nearest, half to even or half away from zero; towards minus infinity. */
typedef enum npuq_small_rounding { NPUQ_SMALL_RINT, NPUQ_SMALL_ROUND, NPUQ_SMALL_FLOOR } npuq_small_rounding;

typedef enum npuq_affine_op { NPUQ_MUL, NPUQ_DIV } npuq_affine_op;
#define NPUQ_AFFINE_OPS (NPUQ_DIV + 1)

/* Along what parameters step. An operator says it of its call, the plan cuts by it, and a kernel goes by it: here is
 * which elements of its parameters an element of x takes, in row r and column i. */
typedef enum npuq_steps {
    NPUQ_ONE,             /* the first of each */
    NPUQ_BY_ROW,          /* scale[r], and offset[r] if there are offsets */
    NPUQ_BY_COLUMN,       /* scale[i] and offset[i] */
    NPUQ_SCALE_BY_COLUMN, /* scale[i], and the first offset if there is one */
    NPUQ_BY_RUN,          /* scale[i / run], and no offset */
    NPUQ_BY_OTHERS        /* of a call: an index space makes rows or columns of other dimensions */
} npuq_steps;

/* To quantise: y = sat(round((x * smooth[i]) * scale + offset)), or (x * smooth[i]) / scale + offset. To a small float
 * the Ascend 950 divides: see chunk_div_flushed(). Where offset is null, nothing is added: a type of y that has -0
 * keeps it. Only NPUQ_ONE and NPUQ_BY_ROW have smooth scales, which may be null. Of quotients, only those that are
 * 8-bit floats have smooth scales or go NPUQ_BY_RUN. Floats of 4 bits are products with the scale alone. Rounded down,
 * a product of bfloat16 is rounded to bfloat16 first, as the Ascend 950 does. By the other roundings that shows only in
 * products with scales that are no powers of two, which no operator has. */
typedef struct npuq_quant_params {
    const void *scale;
    const float *offset;
    const void *smooth;
    const ptrdiff_t *smooth_offsets; /* bytes from smooth to that of row r; null: all rows share it */
    npuq_steps steps;
    unsigned run;      /* columns of a run */
    bool half_columns; /* of a product or a small float, smooth has the type of x, or scale[i] is bfloat16 as x is; else
                          binary32 */
    uint8_t rounding;  /* npuq_small_rounding, of floats of 4 bits; else 0 */
    bool has_shifts;   /* instead of smooth: see NPUQ_NO_SHIFT */
} npuq_quant_params;

/* Products of halves with powers of two may be made of patterns: npuq_quant_params may have shifts, which lie as the
 * scales do, uint16_t each. A kernel may read either. A shift is what is subtracted from the pattern of |x|, to bias
 * its exponent as that of y. It is NPUQ_NO_SHIFT where it would not do: where the scale is NaN, or so large that a
 * subnormal number of x shows in a y of 4 bits or, of bfloat16, becomes a normal y. NPUQ_ALL_SHIFTED is that of the
 * scale 0. Where there is a shift, x is finite, and no product has a larger exponent than the largest y. Runs are
 * multiples of NPUQ_LEAST_SHIFTED columns: a vector is of one. */
enum { NPUQ_NO_SHIFT = 0x8000, NPUQ_ALL_SHIFTED = 0x7FFF, NPUQ_LEAST_SHIFTED = 32 };

/* The one row of a block in runs: a multiple of NPUQ_LEAST_RUN columns each, but the last may be any shorter. */
enum { NPUQ_LEAST_RUN = 16, NPUQ_LONGEST_RUN = 1024, NPUQ_MOST_IN_RUNS = 1 << 24 };

/* To dequantise. What goes by column does so if by_column is set; else its first element serves all. Null means absent.
 * To floating point, each sum and product is rounded, from left to right, and the last to y's type; NaN is 0x7FC00000,
 * 0x7E00 or 0x7FC0:
 * - from int8 and int4: y = (x + offset[i]) * scale[i]
 * - from floats of 8 and 4 bits: y = x * scale[i], always by column. Of one row in runs, y = x * scale[i / run]
 * - from int32: y = (x + x_bias[i]) * scale[i] * row_scale[r] + bias[i]
 * int32 to int8: q = round((x + x_bias[i]) * scale[i]), clamped to -256..255, 0 if NaN. Then y = q + y_offset[i],
 * clamped to -128..127, with y_offset in -256..255. A binary32 y may lie over its int32 x.
 * To int8 and float16, words of trans_quant_param by column may be in place of scale and y_offset. Then scale has one
 * element, which is not used, and y_offset is not read: it is null where no word has an offset. */
typedef struct npuq_dequant_params {
    const float *scale;
    const float *offset;
    const int32_t *x_bias;   /* always by column; the sum is modulo 2^32 */
    const float *row_scale;  /* by row */
    const float *row_scales; /* the same by column, of several rows taken as one; one of the two is null */
    const float *bias;       /* always by column */
    const int32_t *y_offset; /* to floating point not read */
    const uint64_t *words;   /* always by column */
    bool by_column;          /* scale, offset and y_offset */
    unsigned run;            /* columns of a run, a multiple of NPUQ_LEAST_SHIFTED; else 0 */
} npuq_dequant_params;

/* For ranges: widens hi[r] and lo[r] by the elements of row r, each times smooth[i] if smooth is not null. At first
 * they are -Inf and +Inf. A NaN makes both 0x7FC00000 for good. +0 is above -0. */
typedef struct npuq_range_params {
    const void *smooth;
    const ptrdiff_t *smooth_offsets; /* as above */
    float *hi;
    float *lo;
    bool half_columns; /* smooth has the type of x, no binary32 */
} npuq_range_params;

/* Short rows, one after the other. Multiplies values[r * n + i] by smooth[r * n + i] if smooth is not null. Then sets
 * hi[r] and lo[r] to the range of row r, as above. 0 < n <= NPUQ_SHORT and 0 < rows <= NPUQ_SHORT_ROWS. All arrays have
 * room, which may be read and written: values and smooth for NPUQ_LANES more, hi and lo for the next multiple of
 * NPUQ_LANES. */
enum { NPUQ_SHORT = 64, NPUQ_SHORT_ROWS = 32, NPUQ_LANES = 16 };
_Static_assert(NPUQ_SHORT_ROWS % NPUQ_LANES == 0, "what has a float for each of the rows has room for whole vectors");
typedef void npuq_short_rows_fn(float *values, const float *smooth, size_t n, size_t rows, float *hi, float *lo);

/* The largest magnitude of each run of columns, as above; NaN, with any payload, if an element is NaN. largest has room
 * for the next multiple of NPUQ_LANES. */
typedef void npuq_run_magnitudes_fn(const npuq_block *block, unsigned run, float *largest);

/* For the largest magnitude of each column of a block: widens largest[i] by |x[r][i]| of each row. At first they are 0.
 * NaN, with any payload, if an element is NaN. largest has room for the next multiple of NPUQ_LANES. */
typedef struct npuq_column_params {
    float *largest;
} npuq_column_params;

/* What dynamic quantisation makes of a range: scale and offset, or a scale alone in one of its two forms. Of a block,
 * the inverse scale is rounded twice. The others are for small floats: no kernel makes them. They are divided by the
 * scale, of a row and of a block; or of a group, they are multiplied by a power of two. */
typedef enum npuq_dynamic_form {
    NPUQ_ASYMMETRIC,
    NPUQ_SYMMETRIC_PRODUCT,
    NPUQ_SYMMETRIC_INVERSE,
    NPUQ_SYMMETRIC_BLOCK,
    NPUQ_SYMMETRIC_DIVISOR,
    NPUQ_SYMMETRIC_BLOCK_DIVISOR,
    NPUQ_SYMMETRIC_GROUP
} npuq_dynamic_form;

/* The parameters of n rows, for any hi and lo; y is int8 or int4. A NaN may have any payload. All arrays have room for
 * the next multiple of NPUQ_LANES, with any contents, which may be read and written. */
typedef void npuq_parameters_fn(npuq_dynamic_form form, npuq_type y, const float *hi, const float *lo, size_t n,
                                float *scale, float *offset, float *inverse_scale);

/* The words of trans_quant_param; scale is given as its bits, offset may be null. */
typedef void npuq_pack_fn(const uint32_t *scale, const float *offset, uint64_t *y, size_t n, npuq_round_mode mode);

/* The other way: the scale and the offset, -256..255, of each word; offset may be null. */
typedef void npuq_unpack_fn(const uint64_t *words, float *scale, int32_t *offset, size_t n);

/* The bits that any, and that all of the words have. */
typedef struct npuq_word_bits {
    uint64_t any;
    uint64_t all;
} npuq_word_bits;
typedef npuq_word_bits npuq_word_bits_fn(const uint64_t *words, size_t n);

/* y[i] = x[i] as binary32, rounded to nearest-even; a NaN may have any payload. */
typedef void npuq_widen_fn(const void *x, float *y, size_t n);

/* to[r * n + i] = values[r]: for the n columns of each row its value. to has room for NPUQ_LANES more. */
typedef void npuq_spread_fn(const float *values, size_t rows, size_t n, float *to);

/* After rows from memory, before another thread may read y: non-temporal stores are not ordered with the stores that
 * hand y over. The fence waits for all stores, so one serves many rows. */
typedef void npuq_fence_stores_fn(void);

/* ---- the one list of row kernels, which numbers them ------------------------------------------------------------- */

/* clang-format off: macros of lists */

/* DO(name, Y, X) for every kernel that quantises, by NPUQ_TYPE_<Y> and NPUQ_TYPE_<X>: by a product, and by division. */
#define NPUQ_EACH_FLOAT_X(DO, y, Y)                                                                                    \
    DO(y##_from_f32, Y, FLOAT32) DO(y##_from_f16, Y, FLOAT16) DO(y##_from_bf16, Y, BFLOAT16)
#define NPUQ_EACH_SMALL(DO)                                                                                            \
    NPUQ_EACH_FLOAT_X(DO, e4m3fn, FLOAT8_E4M3FN)                                                                       \
    NPUQ_EACH_FLOAT_X(DO, e5m2, FLOAT8_E5M2) NPUQ_EACH_FLOAT_X(DO, hif8, HIFLOAT8)
#define NPUQ_EACH_4_BITS(DO) NPUQ_EACH_FLOAT_X(DO, e2m1, FLOAT4_E2M1) NPUQ_EACH_FLOAT_X(DO, e1m2, FLOAT4_E1M2)
#define NPUQ_EACH_PRODUCT_TO(DO, SMALL)                                                                                \
    NPUQ_EACH_FLOAT_X(DO, i8, INT8)                                                                                    \
    NPUQ_EACH_FLOAT_X(DO, i4, QUINT4X2) NPUQ_EACH_SMALL(SMALL) NPUQ_EACH_4_BITS(SMALL)
#define NPUQ_EACH_PRODUCT(DO) NPUQ_EACH_PRODUCT_TO(DO, DO)
#define NPUQ_EACH_QUOTIENT_TO(DO, SMALL)                                                                               \
    NPUQ_EACH_FLOAT_X(DO, i8, INT8)                                                                                    \
    NPUQ_EACH_FLOAT_X(DO, u8, UINT8) NPUQ_EACH_FLOAT_X(DO, i32, INT32) NPUQ_EACH_SMALL(SMALL)
#define NPUQ_EACH_QUOTIENT(DO) NPUQ_EACH_QUOTIENT_TO(DO, DO)

/* DO(name, X) */
#define NPUQ_EACH_RANGE(DO) DO(f32, FLOAT32) DO(f16, FLOAT16) DO(bf16, BFLOAT16)

/* DO(name, Y, X) for what comes from integers; TO_BF16(name, Y, X) for what becomes bfloat16; SMALL(name, Y, X) for
 * what comes from small floats */
#define NPUQ_EACH_INTEGER_X(DO, y, Y) DO(y##_from_i8, Y, INT8) DO(y##_from_i4, Y, QUINT4X2) DO(y##_from_i32, Y, INT32)
#define NPUQ_EACH_SMALL_X(DO, y, Y)                                                                                    \
    DO(y##_from_e4m3fn, Y, FLOAT8_E4M3FN)                                                                              \
    DO(y##_from_e5m2, Y, FLOAT8_E5M2) DO(y##_from_e2m1, Y, FLOAT4_E2M1) DO(y##_from_e1m2, Y, FLOAT4_E1M2)
#define NPUQ_EACH_DEQUANT(DO, TO_BF16, SMALL)                                                                          \
    NPUQ_EACH_INTEGER_X(DO, f32, FLOAT32)                                                                              \
    NPUQ_EACH_INTEGER_X(DO, f16, FLOAT16)                                                                              \
    NPUQ_EACH_INTEGER_X(TO_BF16, bf16, BFLOAT16)                                                                       \
    DO(i8_from_i32, INT8, INT32)                                                                                       \
    NPUQ_EACH_SMALL_X(SMALL, f32, FLOAT32)                                                                             \
    NPUQ_EACH_SMALL_X(SMALL, f16, FLOAT16) NPUQ_EACH_SMALL_X(SMALL, bf16, BFLOAT16)

/* DO(name, P) for the parameters that are widened */
#define NPUQ_EACH_PARAMETER(DO) DO(f16, FLOAT16) DO(bf16, BFLOAT16) DO(i8, INT8) DO(u8, UINT8) DO(i32, INT32)

/* clang-format on */

#define NPUQ_PRODUCT_NUMBER(name, Y, X)  NPUQ_PRODUCT_##name,
#define NPUQ_QUOTIENT_NUMBER(name, Y, X) NPUQ_QUOTIENT_##name,
#define NPUQ_DEQUANT_NUMBER(name, Y, X)  NPUQ_DEQUANT_##name,
#define NPUQ_RANGE_NUMBER(name, X)       NPUQ_RANGE_##name,
#define NPUQ_WIDEN_NUMBER(name, P)       NPUQ_WIDEN_##name,
enum {
    NPUQ_EACH_PRODUCT(NPUQ_PRODUCT_NUMBER) NPUQ_EACH_QUOTIENT(NPUQ_QUOTIENT_NUMBER)
        NPUQ_EACH_DEQUANT(NPUQ_DEQUANT_NUMBER, NPUQ_DEQUANT_NUMBER, NPUQ_DEQUANT_NUMBER) NPUQ_ROWS_KERNELS
};
enum { NPUQ_EACH_RANGE(NPUQ_RANGE_NUMBER) NPUQ_RANGES };
enum { NPUQ_EACH_PARAMETER(NPUQ_WIDEN_NUMBER) NPUQ_WIDENED };

/* By y and x, 1 more than their numbers; 0 where no operator asks for one. A power of 2: a small call has no time to
 * multiply. */
enum { NPUQ_TYPE_ROOM = NPUQ_ROW_TYPES <= 8 ? 8 : 16 };
typedef struct npuq_kernel_index {
    uint8_t quantise[NPUQ_AFFINE_OPS][NPUQ_TYPE_ROOM][NPUQ_TYPE_ROOM];
    uint8_t dequantise[NPUQ_TYPE_ROOM][NPUQ_TYPE_ROOM];
    uint8_t range[NPUQ_TYPE_ROOM];
    uint8_t widen[NPUQ_TYPE_ROOM];
} npuq_kernel_index;
extern const npuq_kernel_index npuq_index_of_kernels;

typedef struct npuq_row_kernels {
    bool takes_any_columns; /* halves next to x of their type, and words; else only binary32 and int32 */
    npuq_rows_fn *rows[NPUQ_ROWS_KERNELS];
    npuq_rows_fn *range[NPUQ_RANGES];
    npuq_short_rows_fn *short_rows;
    npuq_run_magnitudes_fn *run_magnitudes[NPUQ_RANGES];
    npuq_rows_fn *column_magnitudes[NPUQ_RANGES];
    npuq_parameters_fn *parameters;
    npuq_pack_fn *pack;
    npuq_unpack_fn *unpack;
    npuq_word_bits_fn *word_bits;
    npuq_widen_fn *widen[NPUQ_WIDENED];
    npuq_spread_fn *spread;
    npuq_fence_stores_fn *fence_stores;
} npuq_row_kernels;

/* The place of a kernel that exists. */
static inline size_t npuq_place_of_kernel(uint8_t number)
{
    assert(number > 0);
    return number - 1u;
}

static inline npuq_rows_fn *npuq_quantise_kernel(const npuq_row_kernels *kernels, npuq_affine_op op, npuq_type y,
                                                 npuq_type x)
{
    return kernels->rows[npuq_place_of_kernel(npuq_index_of_kernels.quantise[op][y][x])];
}

static inline npuq_rows_fn *npuq_dequantise_kernel(const npuq_row_kernels *kernels, npuq_type y, npuq_type x)
{
    return kernels->rows[npuq_place_of_kernel(npuq_index_of_kernels.dequantise[y][x])];
}

static inline npuq_rows_fn *npuq_range_kernel(const npuq_row_kernels *kernels, npuq_type x)
{
    return kernels->range[npuq_place_of_kernel(npuq_index_of_kernels.range[x])];
}

static inline npuq_run_magnitudes_fn *npuq_run_kernel(const npuq_row_kernels *kernels, npuq_type x)
{
    return kernels->run_magnitudes[npuq_place_of_kernel(npuq_index_of_kernels.range[x])];
}

static inline npuq_rows_fn *npuq_column_kernel(const npuq_row_kernels *kernels, npuq_type x)
{
    return kernels->column_magnitudes[npuq_place_of_kernel(npuq_index_of_kernels.range[x])];
}

static inline npuq_widen_fn *npuq_widen_kernel(const npuq_row_kernels *kernels, npuq_type parameter)
{
    return kernels->widen[npuq_place_of_kernel(npuq_index_of_kernels.widen[parameter])];
}

/* The one list of backends, the fastest first: DO(ID, name) for NPUQ_BACKEND_<ID>, named name, with the table
 * npuq_rows_<name>. The last one runs everywhere. The build defines NPUQ_WITH_<ID> for each of its backends except
 * ref. */
#define NPUQ_EACH_BACKEND(DO) DO(AVX512, avx512) DO(AVX2, avx2) DO(NEON, neon) DO(GENERIC, generic) DO(REF, ref)

#define NPUQ_DECLARE_ROWS(ID, name) extern const npuq_row_kernels npuq_rows_##name;
NPUQ_EACH_BACKEND(NPUQ_DECLARE_ROWS)
NPUQ_DECLARE_ROWS(AVX512, avx512_bf16) /* of the backend avx512, where the CPU has AVX512_BF16 */
#undef NPUQ_DECLARE_ROWS

#endif
