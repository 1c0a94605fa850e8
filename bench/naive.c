/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain loops, as one writes them without a library: compiled with -Ofast -march=native and the widest vectors. Where
 * another compiler builds the program and Clang is there, Clang makes a second set: each compiler is better at some
 * loops. The loops check no argument, and NaN and infinities may give any result. */
#include "peer.h"

#include <math.h>
#include <string.h>

/* ---- elements ---------------------------------------------------------------------------------------------------- */

/* For each type: the type in memory, the number of elements in one, and element j of one. */
typedef float held_f32;
typedef uint16_t held_bf16;
typedef int8_t held_i8;
typedef uint8_t held_i4;
typedef int32_t held_i32;
enum { PER_f32 = 1, PER_f16 = 1, PER_bf16 = 1, PER_i8 = 1, PER_i4 = 2, PER_i32 = 1 };
#define DTYPE_f32       NPUQ_FLOAT32
#define DTYPE_f16       NPUQ_FLOAT16
#define DTYPE_bf16      NPUQ_BFLOAT16
#define DTYPE_i8        NPUQ_INT8
#define DTYPE_i4        NPUQ_QUINT4X2
#define DTYPE_i32       NPUQ_INT32
#define READ_f32(h, j)  (h)
#define READ_f16(h, j)  (h)
#define READ_bf16(h, j) float_of((uint32_t)(h) << 16)
#define READ_i8(h, j)   (h)
#define READ_i4(h, j)   ((int8_t)((h) << (4 - 4 * (j))) >> 4)
#define READ_i32(h, j)  (h)
#define WRITE_f32(t)    (t)
#define WRITE_f16(t)    ((held_f16)(t))
#define WRITE_bf16(t)   round_bf16(t)
#define WRITE_i8(t)     _Generic((t), float : narrow, int32_t : saturate)(t)

static inline float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t round_bf16(float t)
{
    uint32_t bits;

    memcpy(&bits, &t, sizeof bits);
    return (uint16_t)((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

static inline float clamp(float value, float lowest, float highest)
{
    return value < lowest ? lowest : value > highest ? highest : value;
}

static inline int8_t narrow(float t)
{
    return (int8_t)clamp(rintf(t), -128.0F, 127.0F);
}

static inline int8_t saturate(int32_t t)
{
    return (int8_t)(t < -128 ? -128 : t > 127 ? 127 : t);
}

/* The scale in a word of trans_quant_param. */
static inline float scale_in(uint64_t word)
{
    return float_of((uint32_t)word);
}

static inline int32_t offset_in(uint64_t word)
{
    return (int32_t)(uint32_t)(word >> 14) >> 23;
}

static inline int32_t nine_bits_of(float t)
{
    return (int32_t)rintf(clamp(t, -256.0F, 255.0F));
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* S, O, I, W: parameter i as a scale, an offset, an integer offset, a word; v is the element, row the row's scale. */
#define FORM_uniform      (v * S(0) + O(0))
#define FORM_columns      (v * S(i) + O(i))
#define FORM_group        (v * S(i) + O(0))
#define FORM_divide       (v / S(i) + (float)I(i))
#define FORM_anti_uniform (((float)v + O(0)) * S(0))
#define FORM_anti_columns (((float)v + O(i)) * S(i))
#define FORM_weight_one   ((float)v * S(0))
#define FORM_weight       ((float)v * S(i))
#define FORM_token        ((float)v * S(i) * row)
#define FORM_bias_i32     ((float)(v + I(i)) * S(i) * row)
#define FORM_bias_f32     ((float)v * S(i) * row + O(i))
#define FORM_requant_one  (nine_bits_of((float)v * scale_in(W(0))) + offset_in(W(0)))
#define FORM_requant      (nine_bits_of((float)v * scale_in(W(i))) + offset_in(W(i)))
#define FORM_words_one    ((float)v * scale_in(W(0)))
#define FORM_words        ((float)v * scale_in(W(i)))

#define S(i) ((const float *)scale)[i]
#define O(i) ((const float *)offset)[i]
#define I(i) ((const int32_t *)offset)[i]
#define W(i) ((const uint64_t *)scale)[i]

/* f16 only where the compiler has the type. */
#ifdef __FLT16_MAX__
__extension__ typedef _Float16 held_f16;
#define QUANTISE_F16(DO) QUANTISE(DO, f16)
#define RANGE_F16(DO)    DO(f16)
#define WORDS_F16(DO)    DO(words_one, i32, f16) DO(words, i32, f16)
#define TO_F16(DO)       ANTI(DO, i8, f16) ANTI(DO, i4, f16) DEQUANT(DO, f16) WORDS_F16(DO)
#else
#define QUANTISE_F16(DO)
#define RANGE_F16(DO)
#define TO_F16(DO)
#endif
#define QUANTISE(DO, X) DO(uniform, X, i8) DO(columns, X, i8) DO(group, X, i8) DO(divide, X, i8)
#define ANTI(DO, X, Y)  DO(anti_uniform, X, Y) DO(anti_columns, X, Y)
#define DEQUANT(DO, Y)                                                                                                 \
    DO(weight_one, i32, Y) DO(weight, i32, Y) DO(token, i32, Y) DO(bias_i32, i32, Y) DO(bias_f32, i32, Y)

#define EACH_LOOP(DO)                                                                                                  \
    QUANTISE(DO, f32)                                                                                                  \
    QUANTISE(DO, bf16)                                                                                                 \
    QUANTISE_F16(DO)                                                                                                   \
    ANTI(DO, i8, f32)                                                                                                  \
    ANTI(DO, i8, bf16)                                                                                                 \
    ANTI(DO, i4, f32)                                                                                                  \
    ANTI(DO, i4, bf16)                                                                                                 \
    DEQUANT(DO, f32)                                                                                                   \
    DEQUANT(DO, bf16)                                                                                                  \
    TO_F16(DO)                                                                                                         \
    DO(requant_one, i32, i8)                                                                                           \
    DO(requant, i32, i8)

#define DEFINE_LOOP(FORM, X, Y)                                                                                        \
    static void FORM##_##X##_##Y(const void *restrict from, void *restrict to, size_t n, const void *restrict scale,   \
                                 const void *restrict offset, float row)                                               \
    {                                                                                                                  \
        const held_##X *x = from;                                                                                      \
        held_##Y *y = to;                                                                                              \
        (void)offset;                                                                                                  \
        (void)row;                                                                                                     \
        for (size_t k = 0; k < n / PER_##X; k++) {                                                                     \
            for (size_t j = 0; j < PER_##X; j++) {                                                                     \
                const size_t i = PER_##X * k + j;                                                                      \
                const __typeof__(READ_##X(x[k], j)) v = READ_##X(x[k], j);                                             \
                y[i] = WRITE_##Y(FORM_##FORM);                                                                         \
            }                                                                                                          \
        }                                                                                                              \
    }

EACH_LOOP(DEFINE_LOOP)

/* The range of a row, or its largest magnitude in *hi. */
#define DEFINE_RANGES(X)                                                                                               \
    static void range_##X(const void *from, size_t n, float *lo, float *hi)                                            \
    {                                                                                                                  \
        const held_##X *x = from;                                                                                      \
        float lowest = READ_##X(x[0], 0);                                                                              \
        float highest = lowest;                                                                                        \
        for (size_t i = 1; i < n; i++) {                                                                               \
            const float v = READ_##X(x[i], 0);                                                                         \
            lowest = v < lowest ? v : lowest;                                                                          \
            highest = v > highest ? v : highest;                                                                       \
        }                                                                                                              \
        *lo = lowest;                                                                                                  \
        *hi = highest;                                                                                                 \
    }                                                                                                                  \
                                                                                                                       \
    static void magnitude_##X(const void *from, size_t n, float *lo, float *hi)                                        \
    {                                                                                                                  \
        const held_##X *x = from;                                                                                      \
        float highest = 0.0F;                                                                                          \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const float v = fabsf(READ_##X(x[i], 0));                                                                  \
            highest = v > highest ? v : highest;                                                                       \
        }                                                                                                              \
        *lo = -highest;                                                                                                \
        *hi = highest;                                                                                                 \
    }

#define EACH_RANGE(DO) DO(f32) DO(bf16) RANGE_F16(DO)
EACH_RANGE(DEFINE_RANGES)

typedef void loop(const void *restrict from, void *restrict to, size_t n, const void *restrict scale,
                  const void *restrict offset, float row);
typedef void range(const void *from, size_t n, float *lo, float *hi);

#define LOOP_ENTRY(FORM, X, Y) {#FORM, DTYPE_##X, DTYPE_##Y, FORM##_##X##_##Y},
static const struct {
    const char *form;
    npuq_dtype x;
    npuq_dtype y;
    loop *run;
} loops[] = {EACH_LOOP(LOOP_ENTRY)};

#define RANGE_ENTRY(X) {DTYPE_##X, range_##X, magnitude_##X},
static const struct {
    npuq_dtype x;
    range *range;
    range *magnitude;
} ranges[] = {EACH_RANGE(RANGE_ENTRY)};

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static const struct operands *o;
static loop *chosen_loop;
static range *chosen_range;

/* The form of a case; null if no loop has this form. */
static const char *form_of(const struct bench_case *c)
{
    const bool uniform = c->parameters == BENCH_UNIFORM;

    switch (c->op) {
    case BENCH_QUANTIZE:
        return uniform                          ? "uniform"
               : c->parameters != BENCH_CHANNEL ? NULL
               : c->mode == BENCH_DIV           ? "divide"
                                                : "columns";
    case BENCH_GROUP_QUANT: return "group";
    case BENCH_DYNAMIC_QUANT_ASYMMETRIC:
    case BENCH_DYNAMIC_QUANT:
    case BENCH_DYNAMIC_BLOCK_QUANT: return c->parameters == BENCH_PLAIN ? "uniform" : NULL;
    case BENCH_ANTI_QUANT: return uniform ? "anti_uniform" : "anti_columns";
    case BENCH_DEQUANT:
        switch (c->mode) {
        case BENCH_TOKEN: return "token";
        case BENCH_TOKEN_BIAS_I32: return "bias_i32";
        case BENCH_TOKEN_BIAS_F32: return "bias_f32";
        default: return uniform ? "weight_one" : "weight";
        }
    case BENCH_REQUANT:
        return c->y_dtype == NPUQ_INT8 ? (uniform ? "requant_one" : "requant") : (uniform ? "words_one" : "words");
    case BENCH_TRANS_QUANT_PARAM: break;
    }
    return NULL;
}

static void run_words(void)
{
    const uint32_t *bits = o->x.data;
    const float *offset = o->offset.data;
    uint64_t *y = o->y.data;
    const size_t n = bench_elements(o->c);

    for (size_t i = 0; i < n; i++) {
        const uint32_t even = bits[i] + 0xFFFU + (bits[i] >> 13 & 1U);
        const uint32_t nine_bits = (uint32_t)nine_bits_of(offset[i]) & 0x1FFU;
        y[i] = (uint64_t)1 << 46 | (uint64_t)nine_bits << 37 | (even & 0xFFFFE000U);
    }
}

/* Finds the parameters of row r, block r, or the tensor. */
static void find_parameters(const void *x, size_t n, size_t r, float *scale, float *offset)
{
    const bool symmetric = o->c->op != BENCH_DYNAMIC_QUANT_ASYMMETRIC;
    float lo;
    float hi;

    chosen_range(x, n, &lo, &hi);
    const float step = (hi - lo) / (symmetric ? 254.0F : 255.0F);
    *scale = 1.0F / step;
    *offset = symmetric ? 0.0F : 127.0F - hi / step;
    ((float *)o->scale_out.data)[r] = step;
    if (!symmetric) {
        ((float *)o->offset_out.data)[r] = *offset;
    }
}

static void run_rows(void)
{
    const struct bench_case *c = o->c;
    const bool one_row = c->parameters == BENCH_UNIFORM || c->mode == BENCH_TENSOR;
    const size_t rows = one_row ? 1 : (size_t)c->shape[0];
    const size_t n = bench_elements(c) / rows;
    const char *x = o->x.data;
    char *y = o->y.data;
    const float *scale = o->scale.data;
    const float *offset = o->offset.data;
    float own_scale;
    float own_offset;
    size_t group = 0;

    if (one_row && c->mode == BENCH_DIV) {
        own_scale = 1.0F / *scale;
        own_offset = (float)*(const int32_t *)o->offset.data;
        scale = &own_scale;
        offset = &own_offset;
    }
    for (size_t r = 0; r < rows; r++, x += o->x_bytes / rows, y += o->y_bytes / rows) {
        if (chosen_range) {
            find_parameters(x, n, r, &own_scale, &own_offset);
            scale = &own_scale;
            offset = &own_offset;
        }
        while (c->op == BENCH_GROUP_QUANT && ((const int64_t *)o->group_index.data)[group] <= (int64_t)r) {
            group++;
            scale += n;
        }
        chosen_loop(x, y, n, scale, offset,
                    o->activation_scale.data ? ((const float *)o->activation_scale.data)[r] : 1.0F);
    }
}

static void run_blocks(void)
{
    const size_t block = (size_t)bench_block(o->c);
    const size_t cols = (size_t)o->c->shape[1];
    const size_t size = npuq_dtype_size(o->c->x_dtype);
    const char *x = o->x.data;
    int8_t *y = o->y.data;
    size_t count = 0;
    float scale;
    float offset;

    for (size_t i = 0, n; i < bench_elements(o->c); i += n) {
        n = block < cols - i % cols ? block : cols - i % cols;
        find_parameters(x + i * size, n, count++, &scale, &offset);
        chosen_loop(x + i * size, y + i, n, &scale, &offset, 1.0F);
    }
}

static void run(void)
{
    if (o->c->op == BENCH_TRANS_QUANT_PARAM) {
        run_words();
    } else if (bench_block(o->c) > 0) {
        run_blocks();
    } else {
        run_rows();
    }
}

static bool prepare(const struct operands *operands)
{
    const struct bench_case *c = operands->c;
    const char *form = form_of(c);

    o = operands;
    chosen_loop = NULL;
    chosen_range = NULL;
    for (size_t i = 0; i < sizeof loops / sizeof loops[0] && form; i++) {
        if (strcmp(loops[i].form, form) == 0 && loops[i].x == c->x_dtype && loops[i].y == c->y_dtype) {
            chosen_loop = loops[i].run;
        }
    }
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && bench_is_dynamic(c); i++) {
        if (ranges[i].x == c->x_dtype) {
            chosen_range = c->op == BENCH_DYNAMIC_QUANT_ASYMMETRIC ? ranges[i].range : ranges[i].magnitude;
        }
    }
    return chosen_loop || c->op == BENCH_TRANS_QUANT_PARAM;
}

static void finish(void)
{
}

#ifdef BENCH_CLANG_LOOP
const struct peer peer_naive_clang = {"clang loop", prepare, run, finish, operands_differing, false};
#else
const struct peer peer_naive = {"naive loop", prepare, run, finish, operands_differing, false};
#endif
