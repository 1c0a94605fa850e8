/* SPDX-License-Identifier: BSD-3-Clause */
/* The vocabulary of row_kernels.h in AVX2 with F16C: 8 lanes. */
#ifndef NPUQ_VEC_AVX2_H
#define NPUQ_VEC_AVX2_H

#if !defined(__AVX2__) || !defined(__F16C__)
#error "this file is compiled with -mavx2 -mf16c"
#endif

#include "row_range.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LANES = 8, CHUNK = 4 * LANES, STREAM_ALIGN = 32 };

typedef __m256 vf;
typedef struct vchunk {
    vf v[4];
} vchunk;

static inline vf v_set(float value)
{
    return _mm256_set1_ps(value);
}

static inline vf v_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}

static inline vf v_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}

static inline vf v_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}

/* ---- loads ------------------------------------------------------------------------------------------------------ */

static inline vchunk chunk_load_f32(const void *p)
{
    const float *x = p;
    return (vchunk){{_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8), _mm256_loadu_ps(x + 16), _mm256_loadu_ps(x + 24)}};
}

static inline __m128i load_halves(const uint16_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline vchunk chunk_load_f16(const void *p)
{
    const uint16_t *x = p;
    return (vchunk){{_mm256_cvtph_ps(load_halves(x)), _mm256_cvtph_ps(load_halves(x + 8)),
                     _mm256_cvtph_ps(load_halves(x + 16)), _mm256_cvtph_ps(load_halves(x + 24))}};
}

static inline vf floats_of_bf16(__m128i halves)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

static inline vchunk chunk_load_bf16(const void *p)
{
    const uint16_t *x = p;
    return (vchunk){{floats_of_bf16(load_halves(x)), floats_of_bf16(load_halves(x + 8)),
                     floats_of_bf16(load_halves(x + 16)), floats_of_bf16(load_halves(x + 24))}};
}

/* ---- round, saturate, store ------------------------------------------------------------------------------------- */

/* Integers in [low, high], but 0x80000000 for NaN: the limits come first in min and max, so that NaN passes, and its
 * low bits are the 0 that is wanted. */
static inline __m256i to_integers(vf t, float low, float high)
{
    return _mm256_cvtps_epi32(_mm256_max_ps(_mm256_set1_ps(low), _mm256_min_ps(_mm256_set1_ps(high), t)));
}

/* The low bits of the 32 integers, as bytes in order. */
static inline __m256i to_bytes(vchunk t, float low, float high, short bits)
{
    const __m256i mask = _mm256_set1_epi16(bits);
    const __m256i ab = _mm256_packs_epi32(to_integers(t.v[0], low, high), to_integers(t.v[1], low, high));
    const __m256i cd = _mm256_packs_epi32(to_integers(t.v[2], low, high), to_integers(t.v[3], low, high));
    const __m256i bytes = _mm256_packus_epi16(_mm256_and_si256(ab, mask), _mm256_and_si256(cd, mask));
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static inline void chunk_store_i8(void *p, vchunk t)
{
    _mm256_storeu_si256(p, to_bytes(t, -128.0f, 127.0f, 0xFF));
}

static inline void chunk_store_u8(void *p, vchunk t)
{
    _mm256_storeu_si256(p, to_bytes(t, 0.0f, 255.0f, 0xFF));
}

/* 32 nibbles in 16 bytes, the even element low. */
static inline __m128i to_nibbles(vchunk t)
{
    const __m256i pairs = _mm256_maddubs_epi16(to_bytes(t, -8.0f, 7.0f, 0x0F), _mm256_set1_epi16(0x1001));
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi16(pairs, pairs), 0x08));
}

static inline void chunk_store_i4(void *p, vchunk t)
{
    _mm_storeu_si128(p, to_nibbles(t));
}

static inline __m256i to_i32(vf t)
{
    /* Out of range and NaN convert to INT32_MIN; only the low end is right. */
    const __m256i ordered = _mm256_castps_si256(_mm256_cmp_ps(t, t, _CMP_ORD_Q));
    const __m256i above = _mm256_castps_si256(_mm256_cmp_ps(t, _mm256_set1_ps(2147483648.0f), _CMP_GE_OQ));
    return _mm256_and_si256(_mm256_xor_si256(_mm256_cvtps_epi32(t), above), ordered);
}

static inline void chunk_store_i32(void *p, vchunk t)
{
    __m256i *y = p;
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_si256(y + i, to_i32(t.v[i]));
    }
}

#include "parts_by_copy.h"

/* ---- around the cache ------------------------------------------------------------------------------------------- */

static inline void chunk_stream_i8(void *p, vchunk t)
{
    _mm256_stream_si256(p, to_bytes(t, -128.0f, 127.0f, 0xFF));
}

static inline void chunk_stream_u8(void *p, vchunk t)
{
    _mm256_stream_si256(p, to_bytes(t, 0.0f, 255.0f, 0xFF));
}

static inline void chunk_stream_i4(void *p, vchunk t)
{
    _mm_stream_si128(p, to_nibbles(t));
}

static inline void chunk_stream_i32(void *p, vchunk t)
{
    __m256i *y = p;
    for (int i = 0; i < 4; i++) {
        _mm256_stream_si256(y + i, to_i32(t.v[i]));
    }
}

/* Such stores are ordered with nothing, not even with those that hand the result to another thread. */
static inline void stream_end(void)
{
    _mm_sfence();
}

/* ---- range ------------------------------------------------------------------------------------------------------ */

/* The extremes of the patterns as signed and as unsigned integers; row_range_of() tells the range from them. */
typedef struct vrange {
    __m256i smax;
    __m256i umax;
    __m256i smin;
    __m256i umin;
} vrange;

static inline vrange vrange_of(vf v)
{
    const __m256i bits = _mm256_castps_si256(v);
    return (vrange){bits, bits, bits, bits};
}

static inline vrange vrange_join(vrange a, vrange b)
{
    return (vrange){_mm256_max_epi32(a.smax, b.smax), _mm256_max_epu32(a.umax, b.umax),
                    _mm256_min_epi32(a.smin, b.smin), _mm256_min_epu32(a.umin, b.umin)};
}

static inline row_range vrange_reduce(vrange a)
{
    vrange b;

#define SWAP(HOW)                                                                                                      \
    b = (vrange){HOW(a.smax), HOW(a.umax), HOW(a.smin), HOW(a.umin)};                                                  \
    a = vrange_join(a, b)
#define HALVES(V)     _mm256_permute4x64_epi64(V, 0x4E)
#define QUARTERS(V)   _mm256_shuffle_epi32(V, 0x4E)
#define LANE_PAIRS(V) _mm256_shuffle_epi32(V, 0xB1)
    SWAP(HALVES);
    SWAP(QUARTERS);
    SWAP(LANE_PAIRS);
#undef SWAP
#undef HALVES
#undef QUARTERS
#undef LANE_PAIRS
    return row_range_of(_mm256_extract_epi32(a.smax, 0), (uint32_t)_mm256_extract_epi32(a.umax, 0),
                        _mm256_extract_epi32(a.smin, 0), (uint32_t)_mm256_extract_epi32(a.umin, 0));
}

/* ---- trans_quant_param ------------------------------------------------------------------------------------------ */

enum { PACK = 8 };

static inline void pack_store(const uint32_t *scale, const float *offset, uint64_t *y, bool nearest)
{
    const __m256i exponents = _mm256_set1_epi32(0x7F800000);
    __m256i s = _mm256_loadu_si256((const __m256i *)(const void *)scale);
    __m256i high = to_integers(_mm256_loadu_ps(offset), -256.0f, 255.0f);

    if (nearest) {
        const __m256i exponent = _mm256_and_si256(s, exponents);
        const __m256i special = _mm256_cmpeq_epi32(exponent, exponents);
        const __m256i subnormal = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(s, 13), _mm256_set1_epi32(1));
        const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0xFFF));
        const __m256i sign = _mm256_and_si256(s, _mm256_set1_epi32(INT32_MIN));
        s = _mm256_add_epi32(s, _mm256_andnot_si256(special, half));
        s = _mm256_blendv_epi8(s, sign, subnormal);
    }
    s = _mm256_and_si256(s, _mm256_set1_epi32(~0x1FFF));
    high = _mm256_or_si256(_mm256_slli_epi32(_mm256_and_si256(high, _mm256_set1_epi32(0x1FF)), 5),
                           _mm256_set1_epi32(1 << 14));
    const __m256i a = _mm256_unpacklo_epi32(s, high); /* words 0 1 4 5 */
    const __m256i b = _mm256_unpackhi_epi32(s, high); /* words 2 3 6 7 */
    _mm256_storeu_si256((__m256i *)(void *)y, _mm256_permute2x128_si256(a, b, 0x20));
    _mm256_storeu_si256((__m256i *)(void *)(y + 4), _mm256_permute2x128_si256(a, b, 0x31));
}

#endif
