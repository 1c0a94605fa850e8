/* SPDX-License-Identifier: BSD-3-Clause */
/* The ref backend: the reference's row kernels, one loop of each kind for all types. */
#define NPUQ_KERNEL(VERB, NAME) VERB##_##NAME##_ref
#include "../ref/npuq_ref_rows.h"
#include "row_table.h"

/* The reference's name for a type. */
static npuq_ref_dtype find_ref_dtype(npuq_type type)
{
#define REF_DTYPE(NAME, ...) NPUQ_REF_##NAME,
    static const npuq_ref_dtype dtypes[] = {EACH_ROW_TYPE(REF_DTYPE)};

    return dtypes[type];
}

static npuq_ref_parameters find_parameters(npuq_dynamic_form form, npuq_type y, npuq_ref_range range)
{
    const npuq_ref_dtype dtype = find_ref_dtype(y);

    assert(y == NPUQ_TYPE_QUINT4X2 || y == NPUQ_TYPE_INT8);
    if (form == NPUQ_ASYMMETRIC) {
        return npuq_ref_range_parameters(range, dtype);
    }
    if (form == NPUQ_SYMMETRIC_BLOCK) {
        return npuq_ref_block_parameters(npuq_ref_largest_of(range), dtype, 0.0f);
    }
    return npuq_ref_symmetric_parameters(npuq_ref_largest_of(range), dtype, form == NPUQ_SYMMETRIC_INVERSE);
}

static const char *find_x_row(const npuq_block *b, size_t r)
{
    return (const char *)b->x + (ptrdiff_t)r * b->x_stride;
}

static char *find_y_row(const npuq_block *b, size_t r)
{
    return (char *)b->y + (ptrdiff_t)r * b->y_stride;
}

/* Of row r, which may have become uint8. */
static void flip_row(const npuq_block *b, size_t r)
{
    for (size_t i = 0; i < b->n && b->flip != 0; i++) {
        find_y_row(b, r)[i] ^= (char)b->flip;
    }
}

/* As of kernels in src/simd that ask for types once a chunk. */
enum { AT_RUN_TIME = 1 };

/* One loop for all types and operations: tests of them cost little next to volatile arithmetic. Copies, which compilers
 * would make, are 36 KB of code. */
#define NOINLINE static __attribute__((noinline))

static const float *find_smooth(const void *smooth, const ptrdiff_t *offsets, size_t row)
{
    return offsets ? (const float *)(const void *)((const char *)smooth + offsets[row]) : smooth;
}

static void multiply_ref_to_4_bits(const npuq_block *b, size_t r, npuq_ref_dtype x, npuq_ref_dtype y,
                                   const npuq_quant_params *p)
{
    const float *scale = p->scale;

    for (size_t i = 0; i < b->n; i++) {
        const size_t at = p->steps == NPUQ_BY_RUN            ? i / p->run
                          : p->steps == NPUQ_SCALE_BY_COLUMN ? i
                          : p->steps == NPUQ_BY_ROW          ? b->first_row + r
                                                             : 0;
        float t = npuq_ref_mul(npuq_ref_load(find_x_row(b, r), x, i), scale[at]);

        if (x == NPUQ_REF_BFLOAT16 && p->rounding == NPUQ_SMALL_FLOOR) {
            t = npuq_ref_bfloat16(npuq_ref_to_bfloat16(t));
        }
        npuq_ref_store_code(find_y_row(b, r), y, i, npuq_ref_to_small_float(y, t, (npuq_ref_rounding)p->rounding));
    }
}

NOINLINE void quantise_ref(const npuq_block *b, npuq_ref_dtype x, npuq_ref_dtype y, bool divide,
                           const npuq_quant_params *p)
{
    const bool by_column = p->steps == NPUQ_BY_COLUMN || p->steps == NPUQ_SCALE_BY_COLUMN;
    const float *scale = p->scale;

    for (size_t r = 0; r < b->rows; r++) {
        const size_t at = p->steps == NPUQ_BY_ROW ? b->first_row + r : 0;
        const float *offset = p->offset ? p->offset + at : NULL;

        if (npuq_ref_small_facts_of(y).bits == 4) {
            multiply_ref_to_4_bits(b, r, x, y, p);
        } else if (p->steps == NPUQ_BY_RUN) {
            for (size_t i = 0; i < b->n; i++) {
                npuq_ref_store(b->y, y, i,
                               npuq_ref_affine(npuq_ref_load(b->x, x, i), scale[i / p->run], NULL, divide, y));
            }
        } else {
            const float *smooth =
                p->smooth && !p->has_shifts ? find_smooth(p->smooth, p->smooth_offsets, b->first_row + r) : NULL;

            npuq_ref_affine_row(find_x_row(b, r), x, smooth, &scale[at], offset, by_column, p->steps == NPUQ_BY_COLUMN,
                                divide, find_y_row(b, r), y, b->n);
        }
        flip_row(b, r);
    }
}

#define QUANTISE(NAME, Y, X, VERB, OP)                                                                                 \
    static void NPUQ_KERNEL(VERB, NAME)(const npuq_block *b, const void *params)                                       \
    {                                                                                                                  \
        assert(npuq_is_valid_quant(b, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, NPUQ_##OP, params));                               \
        quantise_ref(b, find_ref_dtype(NPUQ_TYPE_##X), find_ref_dtype(NPUQ_TYPE_##Y), NPUQ_##OP == NPUQ_DIV, params);  \
    }
#define PRODUCT(NAME, Y, X)  QUANTISE(NAME, Y, X, multiply, MUL)
#define QUOTIENT(NAME, Y, X) QUANTISE(NAME, Y, X, divide, DIV)

NOINLINE void find_ranges_ref(const npuq_block *b, npuq_ref_dtype x, const npuq_range_params *p)
{
    for (size_t r = 0; r < b->rows; r++) {
        const size_t at = b->first_row + r;
        const npuq_ref_range before = {p->hi[at], p->lo[at]};
        const npuq_ref_range wider =
            npuq_ref_range_row(find_x_row(b, r), x, find_smooth(p->smooth, p->smooth_offsets, at), b->n, before);
        p->hi[at] = wider.hi;
        p->lo[at] = wider.lo;
    }
}

#define RANGE(NAME, X)                                                                                                 \
    static void NPUQ_KERNEL(find, range_from_##NAME)(const npuq_block *b, const void *params)                          \
    {                                                                                                                  \
        assert(npuq_is_valid_range(b, NPUQ_TYPE_##X, params));                                                         \
        find_ranges_ref(b, find_ref_dtype(NPUQ_TYPE_##X), params);                                                     \
    }

#define RUN_MAGNITUDES(NAME, X)                                                                                        \
    static void NPUQ_KERNEL(find, run_magnitudes_of_##NAME)(const npuq_block *b, unsigned run, float *largest)         \
    {                                                                                                                  \
        assert(npuq_are_valid_runs(b, NPUQ_TYPE_##X, run, largest));                                                   \
        for (size_t i = 0; i < b->n; i++) {                                                                            \
            float *const of_run = &largest[i / run];                                                                   \
            const float before = i % run == 0 ? 0.0f : *of_run;                                                        \
            *of_run = npuq_ref_largest_with(before, npuq_ref_load(b->x, find_ref_dtype(NPUQ_TYPE_##X), i));            \
        }                                                                                                              \
    }

NOINLINE void find_magnitudes_ref(const npuq_block *b, npuq_ref_dtype x, float *largest)
{
    for (size_t r = 0; r < b->rows; r++) {
        for (size_t i = 0; i < b->n; i++) {
            largest[i] = npuq_ref_largest_with(largest[i], npuq_ref_load(find_x_row(b, r), x, i));
        }
    }
}

#define COLUMN_MAGNITUDES(NAME, X)                                                                                     \
    static void NPUQ_KERNEL(find, column_magnitudes_of_##NAME)(const npuq_block *b, const void *params)                \
    {                                                                                                                  \
        const npuq_column_params *p = params;                                                                          \
        assert(npuq_are_valid_magnitudes(b, NPUQ_TYPE_##X, p));                                                        \
        find_magnitudes_ref(b, find_ref_dtype(NPUQ_TYPE_##X), p->largest);                                             \
    }

NOINLINE void dequantise_ref(const npuq_block *b, npuq_ref_dtype x, npuq_ref_dtype y, const npuq_dequant_params *p)
{
    for (size_t i = 0; i < b->n && p->run > 0; i++) {
        npuq_ref_store_float(b->y, y, i, npuq_ref_mul(npuq_ref_load(b->x, x, i), p->scale[i / p->run]));
    }
    for (size_t r = 0; r < b->rows && p->run == 0; r++) {
        npuq_ref_dequant_row(find_x_row(b, r), x, p->scale, p->offset, p->y_offset, p->by_column, p->x_bias,
                             p->row_scale ? p->row_scale + b->first_row + r : p->row_scales, p->row_scale ? 0 : 1,
                             p->bias, find_y_row(b, r), y, b->n);
    }
}

#define DEQUANT(NAME, Y, X)                                                                                            \
    static void NPUQ_KERNEL(dequantise, NAME)(const npuq_block *b, const void *params)                                 \
    {                                                                                                                  \
        assert(npuq_is_valid_dequant(b, NPUQ_TYPE_##Y, NPUQ_TYPE_##X, params));                                        \
        dequantise_ref(b, find_ref_dtype(NPUQ_TYPE_##X), find_ref_dtype(NPUQ_TYPE_##Y), params);                       \
    }

static void NPUQ_KERNEL(find, short_ranges)(float *values, const float *smooth, size_t n, size_t rows, float *hi,
                                            float *lo)
{
    assert(npuq_are_valid_short_rows(values, smooth, n, rows, hi, lo));
    for (size_t i = 0; i < rows * n && smooth; i++) {
        values[i] = npuq_ref_mul(values[i], smooth[i]);
    }
    for (size_t r = 0; r < rows; r++) {
        const npuq_ref_range range =
            npuq_ref_range_row(values + r * n, NPUQ_REF_FLOAT32, NULL, n, npuq_ref_range_empty());
        hi[r] = range.hi;
        lo[r] = range.lo;
    }
}

static void NPUQ_KERNEL(compute, scales)(npuq_dynamic_form form, npuq_type y, const float *hi, const float *lo,
                                         size_t n, float *scale, float *offset, float *inverse_scale)
{
    assert(npuq_are_valid_parameters(form, y, hi, lo, scale, offset, inverse_scale));
    for (size_t r = 0; r < n; r++) {
        const npuq_ref_parameters p = find_parameters(form, y, (npuq_ref_range){hi[r], lo[r]});

        scale[r] = p.scale;
        offset[r] = p.offset;
        inverse_scale[r] = p.back;
    }
}

NPUQ_EACH_PRODUCT(PRODUCT)
NPUQ_EACH_QUOTIENT(QUOTIENT)
NPUQ_EACH_RANGE(RANGE)
NPUQ_EACH_RANGE(RUN_MAGNITUDES)
NPUQ_EACH_RANGE(COLUMN_MAGNITUDES)
NPUQ_EACH_DEQUANT(DEQUANT, DEQUANT, DEQUANT)

#define WIDEN(TYPE, NAME, TO_FLOAT)                                                                                    \
    static void NPUQ_KERNEL(widen, f32_from_##NAME)(const void *x, float *y, size_t n)                                 \
    {                                                                                                                  \
        assert(npuq_is_valid_widen(x, sizeof(TYPE), y));                                                               \
        const TYPE *p = x;                                                                                             \
        for (size_t i = 0; i < n; i++) {                                                                               \
            y[i] = TO_FLOAT(p[i]);                                                                                     \
        }                                                                                                              \
    }

static void NPUQ_KERNEL(spread, values)(const float *values, size_t rows, size_t n, float *to)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < n; i++) {
            to[r * n + i] = values[r];
        }
    }
}

WIDEN(uint16_t, f16, npuq_ref_float16)
WIDEN(uint16_t, bf16, npuq_ref_bfloat16)
WIDEN(int8_t, i8, )
WIDEN(uint8_t, u8, )
WIDEN(int32_t, i32, npuq_ref_int32)

static void NPUQ_KERNEL(pack, quant_params)(const uint32_t *scale, const float *offset, uint64_t *y, size_t n,
                                            npuq_round_mode mode)
{
    assert(npuq_are_valid_words(y, scale, offset));
    for (size_t i = 0; i < n; i++) {
        y[i] = npuq_ref_pack(scale[i], offset ? offset[i] : 0.0f, mode == NPUQ_ROUND_NEAREST);
    }
}

static void NPUQ_KERNEL(unpack, quant_params)(const uint64_t *words, float *scale, int32_t *offset, size_t n)
{
    assert(npuq_are_valid_words(words, scale, offset));
    for (size_t i = 0; i < n; i++) {
        scale[i] = npuq_ref_word_scale(words[i]);
        if (offset) {
            offset[i] = npuq_ref_word_offset(words[i]);
        }
    }
}

static npuq_word_bits NPUQ_KERNEL(find, word_bits)(const uint64_t *words, size_t n)
{
    npuq_word_bits bits = {0, UINT64_MAX};

    assert(npuq_are_valid_words(words, NULL, NULL));
    for (size_t i = 0; i < n; i++) {
        bits.any |= words[i];
        bits.all &= words[i];
    }
    return bits;
}

static void fence_stores(void)
{
}

const npuq_row_kernels npuq_rows_ref = NPUQ_ROW_TABLE;
