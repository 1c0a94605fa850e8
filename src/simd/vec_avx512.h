/* SPDX-License-Identifier: BSD-3-Clause */
/* The vocabulary of row_kernels.h in AVX-512 (F, BW, VL, DQ): 16 lanes, tails by mask. */
#ifndef NPUQ_VEC_AVX512_H
#define NPUQ_VEC_AVX512_H

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512VL__) || !defined(__AVX512DQ__)
#error "this file is compiled with -mavx512f -mavx512bw -mavx512vl -mavx512dq"
#endif

#include "row_range.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LANES = 16, CHUNK = 4 * LANES, STREAM_ALIGN = 64 };

typedef __m512 vf;
typedef struct vchunk {
    vf v[4];
} vchunk;

static inline vf v_set(float value)
{
    return _mm512_set1_ps(value);
}

static inline vf v_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

static inline vf v_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

static inline vf v_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

/* ---- loads ------------------------------------------------------------------------------------------------------ */

static inline vchunk chunk_load_f32(const void *p)
{
    const float *x = p;
    return (vchunk){{_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16), _mm512_loadu_ps(x + 32), _mm512_loadu_ps(x + 48)}};
}

static inline vchunk floats_of_f16(__m256i a, __m256i b, __m256i c, __m256i d)
{
    return (vchunk){{_mm512_cvtph_ps(a), _mm512_cvtph_ps(b), _mm512_cvtph_ps(c), _mm512_cvtph_ps(d)}};
}

static inline vf vector_of_bf16(__m256i halves)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

static inline vchunk floats_of_bf16(__m256i a, __m256i b, __m256i c, __m256i d)
{
    return (vchunk){{vector_of_bf16(a), vector_of_bf16(b), vector_of_bf16(c), vector_of_bf16(d)}};
}

static inline __m256i load_halves(const uint16_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static inline vchunk chunk_load_f16(const void *p)
{
    const uint16_t *x = p;
    return floats_of_f16(load_halves(x), load_halves(x + 16), load_halves(x + 32), load_halves(x + 48));
}

static inline vchunk chunk_load_bf16(const void *p)
{
    const uint16_t *x = p;
    return floats_of_bf16(load_halves(x), load_halves(x + 16), load_halves(x + 32), load_halves(x + 48));
}

/* The first n lanes of a chunk, 0 < n <= CHUNK. */
static inline uint64_t first_lanes(size_t n)
{
    return ~(uint64_t)0 >> (CHUNK - n);
}

static inline __mmask16 lanes_of(uint64_t lanes, int vector)
{
    return (__mmask16)(lanes >> (16 * vector));
}

static inline vchunk chunk_load_part_f32(const void *p, size_t n)
{
    const float *x = p;
    const uint64_t lanes = first_lanes(n);
    const vf first = _mm512_set1_ps(*x);
    return (vchunk){{_mm512_mask_loadu_ps(first, lanes_of(lanes, 0), x),
                     _mm512_mask_loadu_ps(first, lanes_of(lanes, 1), x + 16),
                     _mm512_mask_loadu_ps(first, lanes_of(lanes, 2), x + 32),
                     _mm512_mask_loadu_ps(first, lanes_of(lanes, 3), x + 48)}};
}

static inline __m256i load_part_halves(const uint16_t *x, uint64_t lanes, int vector)
{
    return _mm256_mask_loadu_epi16(_mm256_set1_epi16((short)*x), lanes_of(lanes, vector), x + 16 * vector);
}

static inline vchunk chunk_load_part_f16(const void *p, size_t n)
{
    const uint64_t lanes = first_lanes(n);
    return floats_of_f16(load_part_halves(p, lanes, 0), load_part_halves(p, lanes, 1), load_part_halves(p, lanes, 2),
                         load_part_halves(p, lanes, 3));
}

static inline vchunk chunk_load_part_bf16(const void *p, size_t n)
{
    const uint64_t lanes = first_lanes(n);
    return floats_of_bf16(load_part_halves(p, lanes, 0), load_part_halves(p, lanes, 1), load_part_halves(p, lanes, 2),
                          load_part_halves(p, lanes, 3));
}

/* ---- round, saturate, store ------------------------------------------------------------------------------------- */

/* Integers in [low, high], but 0x80000000 for NaN: the limits come first in min and max, so that NaN passes, and its
 * low bits are the 0 that is wanted. */
static inline __m512i to_integers(vf t, float low, float high)
{
    return _mm512_cvtps_epi32(_mm512_max_ps(_mm512_set1_ps(low), _mm512_min_ps(_mm512_set1_ps(high), t)));
}

/* The low bits of the 64 integers, as bytes in order. */
static inline __m512i to_bytes(vchunk t, float low, float high, short bits)
{
    const __m512i mask = _mm512_set1_epi16(bits);
    const __m512i ab = _mm512_packs_epi32(to_integers(t.v[0], low, high), to_integers(t.v[1], low, high));
    const __m512i cd = _mm512_packs_epi32(to_integers(t.v[2], low, high), to_integers(t.v[3], low, high));
    const __m512i bytes = _mm512_packus_epi16(_mm512_and_si512(ab, mask), _mm512_and_si512(cd, mask));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, bytes);
}

static inline void chunk_store_i8(void *p, vchunk t)
{
    _mm512_storeu_si512(p, to_bytes(t, -128.0f, 127.0f, 0xFF));
}

static inline void chunk_store_part_i8(void *p, vchunk t, size_t n)
{
    _mm512_mask_storeu_epi8(p, first_lanes(n), to_bytes(t, -128.0f, 127.0f, 0xFF));
}

static inline void chunk_store_u8(void *p, vchunk t)
{
    _mm512_storeu_si512(p, to_bytes(t, 0.0f, 255.0f, 0xFF));
}

static inline void chunk_store_part_u8(void *p, vchunk t, size_t n)
{
    _mm512_mask_storeu_epi8(p, first_lanes(n), to_bytes(t, 0.0f, 255.0f, 0xFF));
}

/* 64 nibbles in 32 bytes, the even element low. */
static inline __m256i to_nibbles(vchunk t)
{
    const __m512i bytes = to_bytes(t, -8.0f, 7.0f, 0x0F);
    return _mm512_cvtepi16_epi8(_mm512_maddubs_epi16(bytes, _mm512_set1_epi16(0x1001)));
}

static inline void chunk_store_i4(void *p, vchunk t)
{
    _mm256_storeu_si256(p, to_nibbles(t));
}

static inline void chunk_store_part_i4(void *p, vchunk t, size_t n)
{
    _mm256_mask_storeu_epi8(p, (__mmask32)first_lanes(n / 2), to_nibbles(t));
}

static inline __m512i to_i32(vf t)
{
    /* Out of range and NaN convert to INT32_MIN; only the low end is right. */
    const __mmask16 ordered = _mm512_cmp_ps_mask(t, t, _CMP_ORD_Q);
    const __mmask16 above = _mm512_cmp_ps_mask(t, _mm512_set1_ps(2147483648.0f), _CMP_GE_OQ);
    return _mm512_mask_mov_epi32(_mm512_maskz_cvtps_epi32(ordered, t), above, _mm512_set1_epi32(INT32_MAX));
}

static inline void chunk_store_i32(void *p, vchunk t)
{
    int32_t *y = p;
    for (int i = 0; i < 4; i++) {
        _mm512_storeu_si512(y + 16 * i, to_i32(t.v[i]));
    }
}

static inline void chunk_store_part_i32(void *p, vchunk t, size_t n)
{
    int32_t *y = p;
    for (int i = 0; i < 4; i++) {
        _mm512_mask_storeu_epi32(y + 16 * i, lanes_of(first_lanes(n), i), to_i32(t.v[i]));
    }
}

/* ---- around the cache ------------------------------------------------------------------------------------------- */

static inline void chunk_stream_i8(void *p, vchunk t)
{
    _mm512_stream_si512(p, to_bytes(t, -128.0f, 127.0f, 0xFF));
}

static inline void chunk_stream_u8(void *p, vchunk t)
{
    _mm512_stream_si512(p, to_bytes(t, 0.0f, 255.0f, 0xFF));
}

static inline void chunk_stream_i4(void *p, vchunk t)
{
    _mm256_stream_si256(p, to_nibbles(t));
}

static inline void chunk_stream_i32(void *p, vchunk t)
{
    int32_t *y = p;
    for (int i = 0; i < 4; i++) {
        _mm512_stream_si512((void *)(y + 16 * i), to_i32(t.v[i]));
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
    __m512i smax;
    __m512i umax;
    __m512i smin;
    __m512i umin;
} vrange;

static inline vrange vrange_of(vf v)
{
    const __m512i bits = _mm512_castps_si512(v);
    return (vrange){bits, bits, bits, bits};
}

static inline vrange vrange_join(vrange a, vrange b)
{
    return (vrange){_mm512_max_epi32(a.smax, b.smax), _mm512_max_epu32(a.umax, b.umax),
                    _mm512_min_epi32(a.smin, b.smin), _mm512_min_epu32(a.umin, b.umin)};
}

static inline row_range vrange_reduce(vrange a)
{
    return row_range_of(_mm512_reduce_max_epi32(a.smax), _mm512_reduce_max_epu32(a.umax),
                        _mm512_reduce_min_epi32(a.smin), _mm512_reduce_min_epu32(a.umin));
}

/* ---- trans_quant_param ------------------------------------------------------------------------------------------ */

enum { PACK = 16 };

static inline void pack_store(const uint32_t *scale, const float *offset, uint64_t *y, bool nearest)
{
    const __m512i exponents = _mm512_set1_epi32(0x7F800000);
    __m512i s = _mm512_loadu_si512(scale);
    __m512i high = to_integers(_mm512_loadu_ps(offset), -256.0f, 255.0f);

    if (nearest) {
        const __m512i exponent = _mm512_and_si512(s, exponents);
        const __mmask16 finite = _mm512_cmpneq_epi32_mask(exponent, exponents);
        const __mmask16 subnormal = _mm512_testn_epi32_mask(exponent, exponents);
        const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(s, 13), _mm512_set1_epi32(1));
        s = _mm512_mask_add_epi32(s, finite, s, _mm512_add_epi32(odd, _mm512_set1_epi32(0xFFF)));
        s = _mm512_mask_and_epi32(s, subnormal, _mm512_loadu_si512(scale), _mm512_set1_epi32(INT32_MIN));
    }
    s = _mm512_and_si512(s, _mm512_set1_epi32(~0x1FFF));
    high = _mm512_or_si512(_mm512_slli_epi32(_mm512_and_si512(high, _mm512_set1_epi32(0x1FF)), 5),
                           _mm512_set1_epi32(1 << 14));
    const __m512i low_words = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high_words = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    _mm512_storeu_si512(y, _mm512_permutex2var_epi32(s, low_words, high));
    _mm512_storeu_si512(y + 8, _mm512_permutex2var_epi32(s, high_words, high));
}

#endif
