/* SPDX-License-Identifier: BSD-3-Clause */
/* What one writes without a library: plain loops over float32 and bfloat16, made for this machine by a compiler's own
 * means (-O3 -ffast-math -march=native). Where the compiler is not Clang and Clang is there, it makes a second set: the
 * two are good at different loops. They look at no argument and promise nothing for values that are not numbers. */
#include "peer.h"

#include <math.h>
#include <string.h>

static const struct operands *o;

static float widen(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &wide, sizeof value);
    return value;
}

static float same(float value)
{
    return value;
}

static int8_t narrow(float value)
{
    const float rounded = rintf(value);

    return (int8_t)(rounded < -128.0F ? -128.0F : rounded > 127.0F ? 127.0F : rounded);
}

/* Rows of one scale, of scales by column, and the range of a row; T is what x has, WIDEN makes float of it. */
#define DEFINE_LOOPS(NAME, T, WIDEN)                                                                                   \
    static void uniform_##NAME(const T *restrict x, int8_t *restrict y, size_t n, float scale, float offset)           \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            y[i] = narrow(WIDEN(x[i]) * scale + offset);                                                               \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void columns_##NAME(const T *restrict x, int8_t *restrict y, size_t n, const float *restrict scale,         \
                               const float *restrict offset)                                                           \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            y[i] = narrow(WIDEN(x[i]) * scale[i] + offset[i]);                                                         \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void columns_constant_##NAME(const T *restrict x, int8_t *restrict y, size_t n,                             \
                                        const float *restrict scale, float offset)                                     \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            y[i] = narrow(WIDEN(x[i]) * scale[i] + offset);                                                            \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void divide_##NAME(const T *restrict x, int8_t *restrict y, size_t n, const float *restrict scale,          \
                              const int32_t *restrict offset)                                                          \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            y[i] = narrow(WIDEN(x[i]) / scale[i] + (float)offset[i]);                                                  \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void range_##NAME(const T *x, size_t n, float *lowest, float *highest)                                      \
    {                                                                                                                  \
        float lo = WIDEN(x[0]);                                                                                        \
        float hi = lo;                                                                                                 \
        for (size_t i = 1; i < n; i++) {                                                                               \
            const float value = WIDEN(x[i]);                                                                           \
            lo = value < lo ? value : lo;                                                                              \
            hi = value > hi ? value : hi;                                                                              \
        }                                                                                                              \
        *lowest = lo;                                                                                                  \
        *highest = hi;                                                                                                 \
    }                                                                                                                  \
                                                                                                                       \
    static void run_##NAME(void)                                                                                       \
    {                                                                                                                  \
        const struct bench_case *c = o->c;                                                                             \
        const T *x = o->x.data;                                                                                        \
        int8_t *y = o->y.data;                                                                                         \
        const float *scale = o->scale.data;                                                                            \
        const float *offset = o->offset.data;                                                                          \
        const bool is_uniform = c->parameters == BENCH_UNIFORM;                                                        \
        const bool is_row = is_uniform || c->mode == BENCH_TENSOR;                                                     \
        const size_t rows = is_row ? 1 : (size_t)c->shape[0];                                                          \
        const size_t n = bench_elements(c) / rows;                                                                     \
        for (size_t r = 0; r < rows; r++, x += n, y += n) {                                                            \
            if (bench_is_dynamic(c)) {                                                                                 \
                float lo;                                                                                              \
                float hi;                                                                                              \
                range_##NAME(x, n, &lo, &hi);                                                                          \
                const float step = (hi - lo) / 255.0F;                                                                 \
                ((float *)o->scale_out.data)[r] = step;                                                                \
                ((float *)o->offset_out.data)[r] = 127.0F - hi / step;                                                 \
                uniform_##NAME(x, y, n, 1.0F / step, 127.0F - hi / step);                                              \
            } else if (c->op == BENCH_GROUP_QUANT) {                                                                   \
                const int64_t *ends = o->group_index.data;                                                             \
                size_t group = 0;                                                                                      \
                while (ends[group] <= (int64_t)r) {                                                                    \
                    group++;                                                                                           \
                }                                                                                                      \
                columns_constant_##NAME(x, y, n, scale + group * n, *offset);                                          \
            } else if (c->mode == BENCH_DIV && is_uniform) {                                                           \
                uniform_##NAME(x, y, n, 1.0F / *scale, (float)*(const int32_t *)o->offset.data);                       \
            } else if (c->mode == BENCH_DIV) {                                                                         \
                divide_##NAME(x, y, n, scale, o->offset.data);                                                         \
            } else if (is_uniform) {                                                                                   \
                uniform_##NAME(x, y, n, *scale, *offset);                                                              \
            } else {                                                                                                   \
                columns_##NAME(x, y, n, scale, offset);                                                                \
            }                                                                                                          \
        }                                                                                                              \
    }

DEFINE_LOOPS(f32, float, same)
DEFINE_LOOPS(bf16, uint16_t, widen)

static void run_words(void)
{
    const uint32_t *bits = o->x.data;
    const float *offset = o->offset.data;
    uint64_t *y = o->y.data;
    const size_t n = bench_elements(o->c);

    for (size_t i = 0; i < n; i++) {
        const float clamped = offset[i] < -256.0F ? -256.0F : offset[i] > 255.0F ? 255.0F : offset[i];
        const uint32_t even = bits[i] + 0xFFFU + (bits[i] >> 13 & 1U);
        y[i] = (uint64_t)1 << 46 | (uint64_t)((uint32_t)(int32_t)rintf(clamped) & 0x1FFU) << 37 | (even & 0xFFFFE000U);
    }
}

static void run(void)
{
    if (o->c->op == BENCH_TRANS_QUANT_PARAM) {
        run_words();
    } else if (o->c->x_dtype == NPUQ_FLOAT32) {
        run_f32();
    } else {
        run_bf16();
    }
}

static bool prepare(const struct operands *operands)
{
    const struct bench_case *c = operands->c;
    const bool takes_types = (c->x_dtype == NPUQ_FLOAT32 || c->x_dtype == NPUQ_BFLOAT16) && c->y_dtype == NPUQ_INT8;

    o = operands;
    switch (c->op) {
    case BENCH_QUANTIZE: return takes_types && c->parameters != BENCH_AXIS;
    case BENCH_GROUP_QUANT: return takes_types;
    case BENCH_DYNAMIC: return takes_types && c->parameters == BENCH_PLAIN;
    case BENCH_TRANS_QUANT_PARAM: return true;
    default: return false;
    }
}

static void finish(void)
{
}

#ifdef BENCH_CLANG_LOOP
const struct peer peer_naive_clang = {"clang loop", prepare, run, finish, operands_differing, false};
#else
const struct peer peer_naive = {"naive loop", prepare, run, finish, operands_differing, false};
#endif
