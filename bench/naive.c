/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain loops, as one writes them without a library: compiled with -Ofast -march=native and the widest vectors. Where
 * another compiler builds the program and Clang is there, Clang makes a second set: each compiler is better at some
 * loops. The loops check no argument, and NaN and infinities may give any result. */
#include "peer.h"

#include <math.h>
#include <string.h>

/* ---- elements ---------------------------------------------------------------------------------------------------- */

/* For each type: the type in memory, the number of elements in one, and element j of one. */
typedef float held_FLOAT32;
typedef uint16_t held_BFLOAT16;
typedef int8_t held_INT8;
typedef uint8_t held_QUINT4X2;
typedef int32_t held_INT32;
typedef uint64_t held_INT64;
enum { PER_FLOAT32 = 1, PER_FLOAT16 = 1, PER_BFLOAT16 = 1, PER_INT8 = 1, PER_QUINT4X2 = 2, PER_INT32 = 1 };
#define READ_FLOAT32(h, j)  (h)
#define READ_FLOAT16(h, j)  (h)
#define READ_BFLOAT16(h, j) float_of((uint32_t)(h) << 16)
#define READ_INT8(h, j)     (h)
#define READ_QUINT4X2(h, j) ((int8_t)((h) << (4 - 4 * (j))) >> 4)
#define READ_INT32(h, j)    (h)
#define WRITE_FLOAT32(t)    (t)
#define WRITE_FLOAT16(t)    ((held_FLOAT16)(t))
#define WRITE_BFLOAT16(t)   round_bf16(t)
#define WRITE_INT8(t)       _Generic((t), float : narrow, int32_t : saturate)(t)
#define WRITE_INT64(t)      (t)

/* f16 only where the compiler has the type. */
#ifdef __FLT16_MAX__
__extension__ typedef _Float16 held_FLOAT16;
#define IF_F16(...) __VA_ARGS__
#else
#define IF_F16(...)
#endif

static inline float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint16_t round_bf16(float t)
{
    return (uint16_t)((bits_of(t) + 0x7FFFU + (bits_of(t) >> 16 & 1U)) >> 16);
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

/* The scale and the offset in a word of trans_quant_param. */
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

static inline uint64_t word_of(float scale, float offset)
{
    const uint32_t even = bits_of(scale) + 0xFFFU + (bits_of(scale) >> 13 & 1U);

    return (uint64_t)1 << 46 | (uint64_t)((uint32_t)nine_bits_of(offset) & 0x1FFU) << 37 | (even & 0xFFFFE000U);
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* v is the element, p the index of its parameters: 0 if there is one, else its column. row is the row's scale. S, O, I,
 * W: a parameter as a scale, an offset, an integer offset, a word. */
#define FORM_multiply (v * S(p) + O(p))
#define FORM_group    (v * S(p) + O(0))
#define FORM_divide   (v / S(p) + (float)I(p))
#define FORM_anti     (((float)v + O(p)) * S(p))
#define FORM_weight   ((float)v * S(p))
#define FORM_token    ((float)v * S(p) * row)
#define FORM_bias_i32 ((float)(v + I(p)) * S(p) * row)
#define FORM_bias_f32 ((float)v * S(p) * row + O(p))
#define FORM_requant  (nine_bits_of((float)v * scale_in(W(p))) + offset_in(W(p)))
#define FORM_unpack   ((float)v * scale_in(W(p)))
#define FORM_word     word_of(v, O(p))

#define S(i) ((const float *)scale)[i]
#define O(i) ((const float *)offset)[i]
#define I(i) ((const int32_t *)offset)[i]
#define W(i) ((const uint64_t *)scale)[i]

/* Each form, its operator and mode, and its types. */
#define EACH_FLOAT(DO, ...)          DO(__VA_ARGS__, FLOAT32) DO(__VA_ARGS__, BFLOAT16) IF_F16(DO(__VA_ARGS__, FLOAT16))
#define TO_I8(DO, FORM, OP, MODE, X) DO(FORM, OP, MODE, X, INT8)
#define EACH_LOOP(DO)                                                                                                  \
    EACH_FLOAT(TO_I8, DO, multiply, QUANTIZE, MUL)                                                                     \
    EACH_FLOAT(TO_I8, DO, divide, QUANTIZE, DIV)                                                                       \
    EACH_FLOAT(TO_I8, DO, group, GROUP_QUANT, MUL)                                                                     \
    EACH_FLOAT(DO, anti, ANTI_QUANT, MUL, INT8)                                                                        \
    EACH_FLOAT(DO, anti, ANTI_QUANT, MUL, QUINT4X2)                                                                    \
    EACH_FLOAT(DO, weight, DEQUANT, WEIGHT, INT32)                                                                     \
    EACH_FLOAT(DO, token, DEQUANT, TOKEN, INT32)                                                                       \
    EACH_FLOAT(DO, bias_i32, DEQUANT, TOKEN_BIAS_I32, INT32)                                                           \
    EACH_FLOAT(DO, bias_f32, DEQUANT, TOKEN_BIAS_F32, INT32)                                                           \
    DO(requant, REQUANT, MUL, INT32, INT8)                                                                             \
    IF_F16(DO(unpack, REQUANT, MUL, INT32, FLOAT16))                                                                   \
    DO(word, TRANS_QUANT_PARAM, NEAREST, FLOAT32, INT64)

typedef void loop(const void *restrict from, void *restrict to, size_t n, const void *restrict scale,
                  const void *restrict offset, float row);

#define DEFINE_LOOP(NAME, P, FORM, X, Y)                                                                               \
    static void NAME##_##FORM##_##X##_##Y(const void *restrict from, void *restrict to, size_t n,                      \
                                          const void *restrict scale, const void *restrict offset, float row)          \
    {                                                                                                                  \
        const held_##X *x = from;                                                                                      \
        held_##Y *y = to;                                                                                              \
        (void)scale;                                                                                                   \
        (void)offset;                                                                                                  \
        (void)row;                                                                                                     \
        for (size_t k = 0; k < n / PER_##X; k++) {                                                                     \
            for (size_t j = 0; j < PER_##X; j++) {                                                                     \
                const size_t i = PER_##X * k + j;                                                                      \
                const size_t p = P;                                                                                    \
                const __typeof__(READ_##X(x[k], j)) v = READ_##X(x[k], j);                                             \
                y[i] = WRITE_##Y(FORM_##FORM);                                                                         \
            }                                                                                                          \
        }                                                                                                              \
    }

#define DEFINE_LOOPS(FORM, OP, MODE, X, Y)                                                                             \
    DEFINE_LOOP(one, 0, FORM, X, Y)                                                                                    \
    DEFINE_LOOP(columns, i, FORM, X, Y)
EACH_LOOP(DEFINE_LOOPS)

#define LOOP_ENTRY(FORM, OP, MODE, X, Y)                                                                               \
    {BENCH_##OP, BENCH_##MODE, NPUQ_##X, NPUQ_##Y, one_##FORM##_##X##_##Y, columns_##FORM##_##X##_##Y},
static const struct {
    enum bench_operator op;
    enum bench_mode mode;
    npuq_dtype x;
    npuq_dtype y;
    loop *one; /* with one scale */
    loop *columns;
} loops[] = {EACH_LOOP(LOOP_ENTRY)};

/* The range of a row, or of its magnitudes and their negatives. */
#define DEFINE_RANGE(NAME, IS_MAGNITUDE, X)                                                                            \
    static void NAME##_##X(const void *from, size_t n, float *lo, float *hi)                                           \
    {                                                                                                                  \
        const held_##X *x = from;                                                                                      \
        float lowest = READ_##X(x[0], 0);                                                                              \
        float highest = (IS_MAGNITUDE) ? 0.0F : lowest;                                                                \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const float v = (IS_MAGNITUDE) ? fabsf(READ_##X(x[i], 0)) : READ_##X(x[i], 0);                             \
            lowest = v < lowest ? v : lowest;                                                                          \
            highest = v > highest ? v : highest;                                                                       \
        }                                                                                                              \
        *lo = (IS_MAGNITUDE) ? -highest : lowest;                                                                      \
        *hi = highest;                                                                                                 \
    }
EACH_FLOAT(DEFINE_RANGE, range, false)
EACH_FLOAT(DEFINE_RANGE, magnitude, true)

typedef void range(const void *from, size_t n, float *lo, float *hi);

#define RANGE_ENTRY(NAME, X) [NPUQ_##X] = NAME##_##X,
static range *const ranges[] = {EACH_FLOAT(RANGE_ENTRY, range)};
static range *const magnitudes[] = {EACH_FLOAT(RANGE_ENTRY, magnitude)};

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static const struct operands *o;
static loop *chosen_loop;
static range *chosen_range;
static size_t x_halves; /* half bytes of an element */
static size_t y_size;

/* Finds the parameters of a row, a block, or the tensor. */
static void find_parameters(const void *x, size_t n, size_t at, float *scale, float *offset)
{
    const bool symmetric = !o->offset_out.data;
    float lo;
    float hi;

    chosen_range(x, n, &lo, &hi);
    const float step = (hi - lo) / (symmetric ? 254.0F : 255.0F);
    *scale = 1.0F / step;
    *offset = symmetric ? 0.0F : 127.0F - hi / step;
    ((float *)o->scale_out.data)[at] = step;
    if (!symmetric) {
        ((float *)o->offset_out.data)[at] = *offset;
    }
}

static void run(void)
{
    const struct bench_case *c = o->c;
    const bool one_row = c->ndim == 1 || c->parameters == BENCH_UNIFORM || c->mode == BENCH_TENSOR;
    const size_t rows = one_row ? 1 : (size_t)c->shape[0];
    const size_t columns = bench_elements(c) / rows;
    const size_t block = bench_block(c) > 0 ? (size_t)bench_block(c) : columns;
    const char *x = o->x.data;
    char *y = o->y.data;
    const float *scale = o->scale.data;
    const float *offset = o->offset.data;
    float own_scale;
    float own_offset;
    size_t found = 0;
    size_t group = 0;

    for (size_t r = 0; r < rows; r++) {
        while (o->group_index.data && ((const int64_t *)o->group_index.data)[group] <= (int64_t)r) {
            group++;
            scale += columns;
        }
        const float row = o->activation_scale.data ? ((const float *)o->activation_scale.data)[r] : 1.0F;
        for (size_t begin = 0, n; begin < columns; begin += n) {
            n = block < columns - begin ? block : columns - begin;
            if (chosen_range) {
                find_parameters(x, n, found++, &own_scale, &own_offset);
                scale = &own_scale;
                offset = &own_offset;
            }
            chosen_loop(x, y, n, scale, offset, row);
            x += n * x_halves / 2;
            y += n * y_size;
        }
    }
}

static bool prepare(const struct operands *operands)
{
    const struct bench_case *c = operands->c;
    const bool dynamic = bench_results(c) > 1;
    const bool one = dynamic || c->parameters == BENCH_UNIFORM;
    const enum bench_operator op = dynamic ? BENCH_QUANTIZE : c->op;
    const enum bench_mode mode = dynamic || c->mode == BENCH_SYMMETRIC ? BENCH_MUL : c->mode;

    o = operands;
    x_halves = 2 * o->x_bytes / bench_elements(c);
    y_size = o->y_bytes / bench_elements(c);
    chosen_loop = NULL;
    chosen_range = NULL;
    if (c->parameters == BENCH_AXIS || (dynamic && c->parameters != BENCH_PLAIN)) {
        return false;
    }
    for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++) {
        if (loops[i].op == op && loops[i].mode == mode && loops[i].x == c->x_dtype && loops[i].y == c->y_dtype) {
            chosen_loop = one ? loops[i].one : loops[i].columns;
        }
    }
    if (dynamic && chosen_loop) {
        chosen_range = (o->offset_out.data ? ranges : magnitudes)[c->x_dtype];
    }
    return chosen_loop;
}

static void finish(void)
{
}

#ifdef BENCH_CLANG_LOOP
const struct peer peer_naive_clang = {"clang loop", prepare, run, finish, operands_differing};
#else
const struct peer peer_naive = {"naive loop", prepare, run, finish, operands_differing};
#endif
