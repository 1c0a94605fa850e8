/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The row kernels, written once over the vocabulary of a vector header. An ISA's file includes its vector header, then
 * this, and defines its table with NPUQ_ROW_TABLE.
 *
 * The vocabulary: LANES, CHUNK (four vectors), vf, vchunk; v_set, v_add, v_mul, v_div; chunk_load_<x>,
 * chunk_store_<y>, both also as _part for 0 < n <= CHUNK elements, touching no other memory (lanes beyond n repeat the
 * first); vrange_of, vrange_join, vrange_reduce; PACK and pack_store. All arithmetic in here is one binary32 operation
 * a step: no vector header may fuse.
 */
#ifndef NPUQ_ROW_KERNELS_H
#define NPUQ_ROW_KERNELS_H

#include "../row_table.h"
#include "row_range.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { X_SIZE_f32 = 4, X_SIZE_f16 = 2, X_SIZE_bf16 = 2 };
enum { Y_BITS_i8 = 8, Y_BITS_u8 = 8, Y_BITS_i32 = 32, Y_BITS_i4 = 4 };

INLINE const char *x_row(const npuq_block *b, size_t r)
{
    return (const char *)b->x + (ptrdiff_t)r * b->x_step;
}

INLINE char *y_row(const npuq_block *b, size_t r)
{
    return (char *)b->y + (ptrdiff_t)r * b->y_step;
}

INLINE vchunk chunk_set(float value)
{
    const vf v = v_set(value);
    return (vchunk){{v, v, v, v}};
}

/* x * scale + offset, or x / scale + offset: two roundings. */
INLINE vchunk chunk_mul(vchunk x, vchunk scale, vchunk offset)
{
    vchunk t;
    for (int i = 0; i < 4; i++) {
        t.v[i] = v_add(v_mul(x.v[i], scale.v[i]), offset.v[i]);
    }
    return t;
}

INLINE vchunk chunk_div(vchunk x, vchunk scale, vchunk offset)
{
    vchunk t;
    for (int i = 0; i < 4; i++) {
        t.v[i] = v_add(v_div(x.v[i], scale.v[i]), offset.v[i]);
    }
    return t;
}

INLINE vchunk chunk_smooth(vchunk x, vchunk smooth)
{
    vchunk t;
    for (int i = 0; i < 4; i++) {
        t.v[i] = v_mul(x.v[i], smooth.v[i]);
    }
    return t;
}

#define UNIFORM(NAME, Y, X, OP)                                                                                        \
    static void uniform_##NAME(const npuq_block *b, const float *scale, const float *offset, size_t step)              \
    {                                                                                                                  \
        for (size_t r = 0; r < b->rows; r++) {                                                                         \
            const char *x = x_row(b, r);                                                                               \
            char *y = y_row(b, r);                                                                                     \
            const vchunk s = chunk_set(scale[r * step]);                                                               \
            const vchunk o = chunk_set(offset[r * step]);                                                              \
            size_t left = b->n;                                                                                        \
                                                                                                                       \
            for (; left >= CHUNK; left -= CHUNK) {                                                                     \
                chunk_store_##Y(y, chunk_##OP(chunk_load_##X(x), s, o));                                               \
                x += CHUNK * X_SIZE_##X;                                                                               \
                y += CHUNK * Y_BITS_##Y / 8;                                                                           \
            }                                                                                                          \
            if (left > 0) {                                                                                            \
                chunk_store_part_##Y(y, chunk_##OP(chunk_load_part_##X(x, left), s, o), left);                         \
            }                                                                                                          \
        }                                                                                                              \
    }

/* Parameters are loaded once for as many rows as follow each other in ROWS. */
#define VECTOR(NAME, Y, X, OP)                                                                                         \
    INLINE void vector_rows_##NAME(const npuq_block *b, size_t first, size_t rows, const float *scale,                 \
                                   const float *offset)                                                                \
    {                                                                                                                  \
        const char *x = x_row(b, first);                                                                               \
        char *y = y_row(b, first);                                                                                     \
        size_t left = b->n;                                                                                            \
                                                                                                                       \
        for (; left >= CHUNK; left -= CHUNK) {                                                                         \
            const vchunk s = chunk_load_f32(scale);                                                                    \
            const vchunk o = chunk_load_f32(offset);                                                                   \
            for (size_t r = 0; r < rows; r++) {                                                                        \
                chunk_store_##Y(y + (ptrdiff_t)r * b->y_step,                                                          \
                                chunk_##OP(chunk_load_##X(x + (ptrdiff_t)r * b->x_step), s, o));                       \
            }                                                                                                          \
            x += CHUNK * X_SIZE_##X;                                                                                   \
            y += CHUNK * Y_BITS_##Y / 8;                                                                               \
            scale += CHUNK;                                                                                            \
            offset += CHUNK;                                                                                           \
        }                                                                                                              \
        if (left > 0) {                                                                                                \
            const vchunk s = chunk_load_part_f32(scale, left);                                                         \
            const vchunk o = chunk_load_part_f32(offset, left);                                                        \
            for (size_t r = 0; r < rows; r++) {                                                                        \
                chunk_store_part_##Y(y + (ptrdiff_t)r * b->y_step,                                                     \
                                     chunk_##OP(chunk_load_part_##X(x + (ptrdiff_t)r * b->x_step, left), s, o), left); \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void vector_##NAME(const npuq_block *b, const float *scale, const float *offset)                            \
    {                                                                                                                  \
        size_t r = 0;                                                                                                  \
                                                                                                                       \
        for (; r + 4 <= b->rows; r += 4) {                                                                             \
            vector_rows_##NAME(b, r, 4, scale, offset);                                                                \
        }                                                                                                              \
        for (; r < b->rows; r++) {                                                                                     \
            vector_rows_##NAME(b, r, 1, scale, offset);                                                                \
        }                                                                                                              \
    }

#define AFFINE(NAME, Y, X, OP) UNIFORM(NAME, Y, X, OP) VECTOR(NAME, Y, X, OP)

#define SMOOTH(NAME, Y, X)                                                                                             \
    static void smooth_##NAME(const npuq_block *b, const float *smooth, const float *back, const float *offset,        \
                              size_t step)                                                                             \
    {                                                                                                                  \
        for (size_t r = 0; r < b->rows; r++) {                                                                         \
            const char *x = x_row(b, r);                                                                               \
            const float *m = smooth;                                                                                   \
            char *y = y_row(b, r);                                                                                     \
            const vchunk s = chunk_set(back[r * step]);                                                                \
            const vchunk o = chunk_set(offset[r * step]);                                                              \
            size_t left = b->n;                                                                                        \
                                                                                                                       \
            for (; left >= CHUNK; left -= CHUNK) {                                                                     \
                chunk_store_##Y(y, chunk_mul(chunk_smooth(chunk_load_##X(x), chunk_load_f32(m)), s, o));               \
                x += CHUNK * X_SIZE_##X;                                                                               \
                y += CHUNK * Y_BITS_##Y / 8;                                                                           \
                m += CHUNK;                                                                                            \
            }                                                                                                          \
            if (left > 0) {                                                                                            \
                const vchunk v = chunk_smooth(chunk_load_part_##X(x, left), chunk_load_part_f32(m, left));             \
                chunk_store_part_##Y(y, chunk_mul(v, s, o), left);                                                     \
            }                                                                                                          \
        }                                                                                                              \
    }

INLINE vrange chunk_range(vchunk v)
{
    return vrange_join(vrange_join(vrange_of(v.v[0]), vrange_of(v.v[1])),
                       vrange_join(vrange_of(v.v[2]), vrange_of(v.v[3])));
}

#define RANGE(X)                                                                                                       \
    INLINE vchunk range_values_##X(const char *x, const float *smooth, size_t at, size_t n)                            \
    {                                                                                                                  \
        const char *from = x + at * X_SIZE_##X;                                                                        \
        const vchunk v = n == CHUNK ? chunk_load_##X(from) : chunk_load_part_##X(from, n);                             \
        if (!smooth) {                                                                                                 \
            return v;                                                                                                  \
        }                                                                                                              \
        return chunk_smooth(v, n == CHUNK ? chunk_load_f32(smooth + at) : chunk_load_part_f32(smooth + at, n));        \
    }                                                                                                                  \
    INLINE void range_rows_##X(const npuq_block *b, const float *smooth, float *hi, float *lo)                         \
    {                                                                                                                  \
        for (size_t r = 0; r < b->rows && b->n > 0; r++) {                                                             \
            const char *x = x_row(b, r);                                                                               \
            const size_t tail = b->n % CHUNK;                                                                          \
            vrange range = chunk_range(range_values_##X(x, smooth, 0, b->n < CHUNK ? b->n : CHUNK));                   \
                                                                                                                       \
            for (size_t i = CHUNK; i + CHUNK <= b->n; i += CHUNK) {                                                    \
                range = vrange_join(range, chunk_range(range_values_##X(x, smooth, i, CHUNK)));                        \
            }                                                                                                          \
            if (b->n > CHUNK && tail > 0) {                                                                            \
                range = vrange_join(range, chunk_range(range_values_##X(x, smooth, b->n - tail, tail)));               \
            }                                                                                                          \
            row_range_widen(vrange_reduce(range), &hi[r], &lo[r]);                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void range_##X(const npuq_block *b, const float *smooth, float *hi, float *lo)                              \
    {                                                                                                                  \
        if (smooth) {                                                                                                  \
            range_rows_##X(b, smooth, hi, lo);                                                                         \
        } else {                                                                                                       \
            range_rows_##X(b, NULL, hi, lo);                                                                           \
        }                                                                                                              \
    }

NPUQ_EACH_AFFINE(AFFINE)
NPUQ_EACH_SMOOTH(SMOOTH)
NPUQ_EACH_RANGE(RANGE)

static void pack(const uint32_t *scale, const float *offset, uint64_t *y, size_t n, npuq_round_mode mode)
{
    const bool nearest = mode == NPUQ_ROUND_NEAREST;
    uint32_t last_scales[PACK] = {0};
    float last_offsets[PACK] = {0};
    uint64_t last[PACK];
    size_t i = 0;

    for (; i + PACK <= n; i += PACK) {
        pack_store(scale + i, offset + i, y + i, nearest);
    }
    if (i < n) {
        memcpy(last_scales, scale + i, (n - i) * sizeof *scale);
        memcpy(last_offsets, offset + i, (n - i) * sizeof *offset);
        pack_store(last_scales, last_offsets, last, nearest);
        memcpy(y + i, last, (n - i) * sizeof *y);
    }
}

#endif
