/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters: widened, spread, packed to words, and unpacked. */
#ifndef NPUQ_PACKING_H
#define NPUQ_PACKING_H

#include "chunk.h"

#define WIDEN(NAME, P)                                                                                                 \
    static void widen_##NAME(const void *x, float *y, size_t n)                                                        \
    {                                                                                                                  \
        const size_t size = width_##NAME;                                                                              \
        char last[CHUNK * width_##NAME] = {0};                                                                         \
        vchunk v;                                                                                                      \
        size_t at = 0;                                                                                                 \
                                                                                                                       \
        assert(npuq_is_valid_widen(x, size, y));                                                                       \
        for (; at + CHUNK <= n; at += CHUNK) {                                                                         \
            v = chunk_load_##NAME((const char *)x + at * size);                                                        \
            memcpy(y + at, &v, sizeof v);                                                                              \
        }                                                                                                              \
        if (at < n) {                                                                                                  \
            memcpy(last, (const char *)x + at * size, (n - at) * size);                                                \
            v = chunk_load_##NAME(last);                                                                               \
            memcpy(y + at, &v, (n - at) * sizeof *y);                                                                  \
        }                                                                                                              \
    }

enum { width_f16 = 2, width_bf16 = 2, width_i8 = 1, width_u8 = 1, width_i32 = 4 };

NPUQ_EACH_PARAMETER(WIDEN)

/* Whole vectors cost less than counting: the next row's go over what is too much. */
static void spread(const float *values, size_t count, size_t n, float *to)
{
    for (size_t r = 0; r < count; r++) {
        const vf v = v_set(values[r]);

        for (size_t i = 0; i < n; i += LANES) {
            memcpy(to + r * n + i, &v, sizeof v);
        }
    }
}

static void pack(const uint32_t *scale, const float *offset, uint64_t *y, size_t n, npuq_round_mode mode)
{
    const bool nearest = mode == NPUQ_ROUND_NEAREST;
    uint32_t last_scales[PACK] = {0};
    float last_offsets[PACK] = {0};
    uint64_t last[PACK];
    size_t i = 0;

    assert(npuq_are_valid_words(y, scale, offset));
    for (; i + PACK <= n; i += PACK) {
        pack_store(scale + i, offset ? offset + i : NULL, y + i, nearest);
    }
    if (i < n) {
        memcpy(last_scales, scale + i, (n - i) * sizeof *scale);
        if (offset) {
            memcpy(last_offsets, offset + i, (n - i) * sizeof *offset);
        }
        pack_store(last_scales, last_offsets, last, nearest);
        memcpy(y + i, last, (n - i) * sizeof *y);
    }
}

static void unpack(const uint64_t *y, float *scale, int32_t *offset, size_t n)
{
    uint64_t last[PACK] = {0};
    float last_scales[PACK];
    int32_t last_offsets[PACK];
    size_t i = 0;

    assert(npuq_are_valid_words(y, scale, offset));
    for (; i + PACK <= n; i += PACK) {
        unpack_store(y + i, scale + i, offset + i);
    }
    if (i < n) {
        memcpy(last, y + i, (n - i) * sizeof *y);
        unpack_store(last, last_scales, last_offsets);
        memcpy(scale + i, last_scales, (n - i) * sizeof *scale);
        memcpy(offset + i, last_offsets, (n - i) * sizeof *offset);
    }
}

#endif
