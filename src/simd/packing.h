/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters: widened, spread, packed to words, and unpacked. */
#ifndef NPUQ_PACKING_H
#define NPUQ_PACKING_H

#include "chunk.h"

INLINE void put_chunk(float *y, vchunk t)
{
    for (size_t i = 0; i < 4; i++) {
        put_vector(y, i, (vu)t.v[i]);
    }
}

#define WIDEN(NAME, P)                                                                                                 \
    static void NPUQ_KERNEL(widen, f32_from_##NAME)(const void *x, float *y, size_t n)                                 \
    {                                                                                                                  \
        const size_t size = width_##NAME;                                                                              \
        size_t at = 0;                                                                                                 \
                                                                                                                       \
        assert(npuq_is_valid_widen(x, size, y));                                                                       \
        for (; at + CHUNK <= n; at += CHUNK) {                                                                         \
            put_chunk(y + at, chunk_load_##NAME((const char *)x + at * size));                                         \
        }                                                                                                              \
        if (at < n) {                                                                                                  \
            char last[CHUNK * width_##NAME] = {0};                                                                     \
            float widened[CHUNK];                                                                                      \
                                                                                                                       \
            memcpy(last, (const char *)x + at * size, (n - at) * size);                                                \
            put_chunk(widened, chunk_load_##NAME(last));                                                               \
            memcpy(y + at, widened, (n - at) * sizeof *y);                                                             \
        }                                                                                                              \
    }

enum { width_f16 = 2, width_bf16 = 2, width_i8 = 1, width_u8 = 1, width_i32 = 4 };

NPUQ_EACH_PARAMETER(WIDEN)

/* Whole vectors cost less than counting: the next row overwrites the excess. */
static void NPUQ_KERNEL(spread, values)(const float *values, size_t count, size_t n, float *to)
{
    for (size_t r = 0; r < count; r++) {
        const vf v = v_set(values[r]);

        for (size_t i = 0; i < n; i += LANES) {
            memcpy(to + r * n + i, &v, sizeof v);
        }
    }
}

INLINE void pack_vector(const uint32_t *scale, const float *offset, uint64_t *y, bool nearest)
{
    const vi offsets = offset ? round_offset(v_load(offset)) : (vi){0};
    const vu bits = vector_at(scale, 0);

    put_words(y, (nearest ? round_scales(bits) : bits) & ~0x1FFFu, ((vu)offsets & 0x1FF) << 5 | 1u << 14);
}

INLINE void unpack_vector(const uint64_t *y, float *scale, int32_t *offset)
{
    const vf scales = scales_of_words(y);
    const vi offsets = offsets_of_words(y); /* before a store, which might change y for all the compiler knows */

    put_vector(scale, 0, (vu)scales);
    if (offset) {
        put_vector(offset, 0, (vu)offsets);
    }
}

INLINE void pack_vectors(const uint32_t *scale, const float *offset, uint64_t *y, size_t n, bool nearest)
{
    uint32_t last_scales[LANES] = {0};
    float last_offsets[LANES] = {0};
    uint64_t last[LANES];
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        pack_vector(scale + i, offset ? offset + i : NULL, y + i, nearest);
    }
    if (i < n) {
        memcpy(last_scales, scale + i, (n - i) * sizeof *scale);
        if (offset) {
            memcpy(last_offsets, offset + i, (n - i) * sizeof *offset);
        }
        pack_vector(last_scales, last_offsets, last, nearest);
        memcpy(y + i, last, (n - i) * sizeof *y);
    }
}

static void NPUQ_KERNEL(pack, quant_params)(const uint32_t *scale, const float *offset, uint64_t *y, size_t n,
                                            npuq_round_mode mode)
{
    assert(npuq_are_valid_words(y, scale, offset));
    if (mode == NPUQ_ROUND_NEAREST) {
        offset ? pack_vectors(scale, offset, y, n, true) : pack_vectors(scale, NULL, y, n, true);
    } else {
        offset ? pack_vectors(scale, offset, y, n, false) : pack_vectors(scale, NULL, y, n, false);
    }
}

INLINE void unpack_vectors(const uint64_t *y, float *scale, int32_t *offset, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        unpack_vector(y + i, scale + i, offset ? offset + i : NULL);
    }
    if (i < n) {
        uint64_t last[LANES] = {0};
        float last_scales[LANES];
        int32_t last_offsets[LANES];

        memcpy(last, y + i, (n - i) * sizeof *y);
        unpack_vector(last, last_scales, last_offsets);
        memcpy(scale + i, last_scales, (n - i) * sizeof *scale);
        if (offset) {
            memcpy(offset + i, last_offsets, (n - i) * sizeof *offset);
        }
    }
}

static void NPUQ_KERNEL(unpack, quant_params)(const uint64_t *y, float *scale, int32_t *offset, size_t n)
{
    assert(npuq_are_valid_words(y, scale, offset));
    offset ? unpack_vectors(y, scale, offset, n) : unpack_vectors(y, scale, NULL, n);
}

static npuq_word_bits NPUQ_KERNEL(find, word_bits)(const uint64_t *y, size_t n)
{
    npuq_word_bits bits = {0, UINT64_MAX};
    uint64_t any[LANES / 2];
    uint64_t all[LANES / 2];
    vu some = {0};
    vu common = ~some;
    size_t i = 0;

    assert(npuq_are_valid_words(y, NULL, NULL));
    for (; i + LANES <= n; i += LANES) {
        const vu a = vector_at(y + i, 0);
        const vu b = vector_at(y + i, 1);

        some |= a | b;
        common &= a & b;
    }
    put_vector(any, 0, some);
    put_vector(all, 0, common);
    for (size_t k = 0; k < LANES / 2; k++) {
        bits.any |= any[k];
        bits.all &= all[k];
    }
    for (; i < n; i++) {
        bits.any |= y[i];
        bits.all &= y[i];
    }
    return bits;
}

#endif
