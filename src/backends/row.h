/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract between the operators and the kernels: everything that depends on an instruction set is behind the one
 * table npuq_row_kernels. Kernels know contiguous rows, binary32 parameters and lengths; no tensors.
 */
#ifndef NPUQ_ROW_H
#define NPUQ_ROW_H

#include "../type.h"

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "npuquant defines every bit of its results, NaN and infinities included: build it without -ffast-math"
#elif defined(__RECIPROCAL_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__NO_SIGNED_ZEROS__) /* gcc */
#error "npuquant defines every bit of its results: build it without -ffast-math, and without the parts of it"
#endif

typedef enum npuq_affine_op { NPUQ_MUL, NPUQ_DIV } npuq_affine_op;
#define NPUQ_AFFINE_OPS (NPUQ_DIV + 1)

/* Where rows lie; no bit of y depends on it. All 0: in the caches. */
typedef struct npuq_hints {
    uint32_t prefetch_bytes; /* about the distance from what is read to what is prefetched; 0: nothing is */
    bool to_l2;              /* prefetched into the second-level cache only */
    bool from_memory;        /* y is more than the caches keep: its stores may be non-temporal */
    uint8_t read_streams;    /* of x, at most, that the CPU likes to read at once; 0: any, but not from memory */
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
    npuq_hints hints;
    uint8_t flip; /* XORed with each int8 that a product makes: 0x80 makes it the uint8 that is 128 more; else 0 */
} npuq_block;

/* y = sat(round(x * scale + offset)), or x / scale + offset; row r takes element r * increment of both. */
typedef void npuq_affine_uniform_fn(const npuq_block *block, const float *scale, const float *offset, size_t increment);

/* Does the same; element i of every row takes scale[i] and offset[i * offset_increment], an increment of 0 or 1. */
typedef void npuq_affine_vector_fn(const npuq_block *block, const float *scale, const float *offset,
                                   size_t offset_increment);

/* Widens hi[r] and lo[r] by the elements of row r, each times smooth[i] if smooth is not null. At first they are -Inf
 * and +Inf. A NaN makes both 0x7FC00000 for good. +0 is above -0. */
typedef void npuq_range_fn(const npuq_block *block, const float *smooth, float *hi, float *lo);

/* Short rows, one after the other. Multiplies values[r * n + i] by smooth[r * n + i] if smooth is not null. Then sets
 * hi[r] and lo[r] to the range of row r, as above. 0 < n <= NPUQ_SHORT and 0 < rows <= NPUQ_SHORT_ROWS. All arrays have
 * room, which may be read and written: values and smooth for NPUQ_LANES more, hi and lo for the next multiple of
 * NPUQ_LANES. */
enum { NPUQ_SHORT = 32, NPUQ_SHORT_ROWS = 64, NPUQ_LANES = 16 };
_Static_assert(NPUQ_SHORT_ROWS % NPUQ_LANES == 0, "what has a float for each of the rows has room for whole vectors");
typedef void npuq_short_rows_fn(float *values, const float *smooth, size_t n, size_t rows, float *hi, float *lo);

/* Runs of columns, each with parameters of its own: the one row of a block holds whole runs of 1 << log2 columns, one
 * after the other. */
enum { NPUQ_LEAST_RUN = 4, NPUQ_LONGEST_RUN = 8 }; /* of log2 */

/* The largest magnitude of each run; NaN, with any payload, if an element is NaN. largest has room for the next
 * multiple of NPUQ_LANES. */
typedef void npuq_run_magnitudes_fn(const npuq_block *block, unsigned log2, float *largest);

/* y = sat(round(x * scale[i])) for run i; scale can be read up to the next multiple of NPUQ_LANES. */
typedef void npuq_scale_runs_fn(const npuq_block *block, unsigned log2, const float *scale);

/* What dynamic quantisation makes of a range: scale and offset, or a scale alone in one of its two forms. Of a block,
 * the inverse scale is rounded twice. */
typedef enum npuq_dynamic_form {
    NPUQ_ASYMMETRIC,
    NPUQ_SYMMETRIC_PRODUCT,
    NPUQ_SYMMETRIC_INVERSE,
    NPUQ_SYMMETRIC_BLOCK
} npuq_dynamic_form;

/* The parameters of n rows, for any hi and lo; y is int8 or int4. A NaN may have any payload. All arrays have room for
 * the next multiple of NPUQ_LANES, with any contents, which may be read and written. */
typedef void npuq_parameters_fn(npuq_dynamic_form form, npuq_type y, const float *hi, const float *lo, size_t n,
                                float *scale, float *offset, float *inverse_scale);

/* y = sat(round((x * smooth[i]) * inverse_scale + offset)), whose parameters go from row to row as above. */
typedef void npuq_smooth_affine_fn(const npuq_block *block, const float *smooth, const float *inverse_scale,
                                   const float *offset, size_t increment);

/* Parameters of dequantisation, by column unless a member says otherwise. increment is 0 where one scale, offset or
 * y_offset serves all columns, else 1. Null means absent. */
typedef struct npuq_dequant_params {
    const float *scale;
    const float *offset;     /* int8 and int4: added before the product */
    const int32_t *x_bias;   /* int32: added to x first, modulo 2^32 */
    const float *row_scale;  /* int32 to floating point: a second factor, one for each row */
    const float *row_scales; /* the same by column, of several rows taken as one; one of the two is null */
    const float *bias;       /* int32 to floating point: added after the products */
    const int32_t *y_offset; /* int32 to int8: added after rounding; elsewhere not read */
    size_t increment;
} npuq_dequant_params;

/* To floating point, each sum and product rounded, from left to right, and the last to y's type; NaN is 0x7FC00000,
 * 0x7E00 or 0x7FC0:
 * - from int8 and int4: y = (x + offset[i]) * scale[i]
 * - from int32: y = (x + x_bias[i]) * scale[i] * row_scale[r] + bias[i]
 * int32 to int8: q = round((x + x_bias[i]) * scale[i]), clamped to -256..255, 0 if NaN. Then y = q + y_offset[i],
 * clamped to -128..127, with y_offset in -256..255. A binary32 y may lie over its int32 x. */
typedef void npuq_dequant_fn(const npuq_block *block, const npuq_dequant_params *p);

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

typedef struct npuq_row_kernels {
    /* null where no operator asks for it, see row_table.h */
    npuq_affine_uniform_fn *affine_uniform[NPUQ_AFFINE_OPS][NPUQ_ROW_TYPES][NPUQ_ROW_TYPES]; /* y, x */
    npuq_affine_vector_fn *affine_vector[NPUQ_AFFINE_OPS][NPUQ_ROW_TYPES][NPUQ_ROW_TYPES];
    npuq_range_fn *range[NPUQ_ROW_TYPES];
    npuq_short_rows_fn *short_rows;
    npuq_run_magnitudes_fn *run_magnitudes[NPUQ_ROW_TYPES];
    npuq_scale_runs_fn *scale_runs[NPUQ_ROW_TYPES][NPUQ_ROW_TYPES];
    npuq_parameters_fn *parameters;
    npuq_smooth_affine_fn *smooth_affine[NPUQ_ROW_TYPES][NPUQ_ROW_TYPES];
    npuq_dequant_fn *dequant[NPUQ_ROW_TYPES][NPUQ_ROW_TYPES];
    npuq_pack_fn *pack;
    npuq_unpack_fn *unpack;
    npuq_word_bits_fn *word_bits;
    npuq_widen_fn *widen[NPUQ_ROW_TYPES];
    npuq_spread_fn *spread;
    npuq_fence_stores_fn *fence_stores;
} npuq_row_kernels;

/* The one list of backends, the fastest first: DO(ID, name) for NPUQ_BACKEND_<ID>, named name, with the table
 * npuq_rows_<name>. The last one runs everywhere. The build defines NPUQ_WITH_<ID> for each of its backends except
 * ref. */
#define NPUQ_EACH_BACKEND(DO) DO(AVX512, avx512) DO(AVX2, avx2) DO(NEON, neon) DO(GENERIC, generic) DO(REF, ref)

#define NPUQ_DECLARE_ROWS(ID, name) extern const npuq_row_kernels npuq_rows_##name;
NPUQ_EACH_BACKEND(NPUQ_DECLARE_ROWS)
NPUQ_DECLARE_ROWS(AVX512, avx512_bf16) /* of the backend avx512, where the CPU has AVX512_BF16 */
#undef NPUQ_DECLARE_ROWS

#endif
