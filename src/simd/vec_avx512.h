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

enum { LANES = 16, CHUNK = 4 * LANES };

#define IN_PAIRS(FROM) ((FROM) == BY_ROW)

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

static inline vf v_above(vf a, vf b)
{
    return _mm512_max_ps(a, b); /* the second where one is NaN */
}

static inline vf v_ordered(vf v)
{
    const __m512i bits = _mm512_castps_si512(v);
    return _mm512_castsi512_ps(_mm512_xor_si512(bits, _mm512_srli_epi32(_mm512_srai_epi32(bits, 31), 1)));
}

static inline vf v_upper(vf a, vf b)
{
    return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}

static inline vf v_lower(vf a, vf b)
{
    return _mm512_castsi512_ps(_mm512_min_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}

static inline vf v_even(vf a, vf b)
{
    const __m512i lanes = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, lanes, b);
}

static inline vf v_odd(vf a, vf b)
{
    const __m512i lanes = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(a, lanes, b);
}

/* See chunk.h: the remainder is exact, and its share corrects the last bit. */
enum { FAST_DIVIDE = 1 };

static inline vf v_quotient(vf x, vf scale, vf inverse)
{
    const vf q = _mm512_mul_ps(x, inverse);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(q, scale, x), inverse, q);
}

/* The top bit of each pattern, doubled, less 2^-64's: whether it is outside of [2^-64, 2^64). */
static inline bool chunk_is_plain(vchunk s)
{
    __m512i bits = _mm512_setzero_si512();
    for (int i = 0; i < 4; i++) {
        const __m512i doubled = _mm512_slli_epi32(_mm512_castps_si512(s.v[i]), 1);
        bits = _mm512_or_si512(bits, _mm512_sub_epi32(doubled, _mm512_set1_epi32(63 << 24)));
    }
    return _mm512_movepi32_mask(bits) == 0;
}

/* Where the quotient is NaN, x times the inverse is right if x is infinite or NaN. A finite x overflows: then all are
 * divided. */
#define TOTAL_QUOTIENT 1
static inline vchunk chunk_quotient_total(vchunk x, vchunk s, vchunk inverse)
{
    enum { NOT_FINITE = 0x99 };
    __mmask16 overflow = 0;
    vchunk q;
    for (int i = 0; i < 4; i++) {
        const vf t = v_quotient(x.v[i], s.v[i], inverse.v[i]);
        const __mmask16 nan = _mm512_cmp_ps_mask(t, t, _CMP_UNORD_Q);
        q.v[i] = _mm512_mask_mul_ps(t, nan, x.v[i], inverse.v[i]);
        overflow |= nan ^ _mm512_mask_fpclass_ps_mask(nan, x.v[i], NOT_FINITE);
    }
    if (overflow) {
        for (int i = 0; i < 4; i++) {
            q.v[i] = v_div(x.v[i], s.v[i]);
        }
    }
    return q;
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

static inline vf floats_of_i8(__m128i bytes)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

static inline vchunk chunk_load_i8(const void *p)
{
    const __m128i *x = p;
    return (vchunk){{floats_of_i8(_mm_loadu_si128(x)), floats_of_i8(_mm_loadu_si128(x + 1)),
                     floats_of_i8(_mm_loadu_si128(x + 2)), floats_of_i8(_mm_loadu_si128(x + 3))}};
}

static inline vchunk chunk_load_u8(const void *p)
{
    const uint8_t *x = p;
    vchunk v;
    for (int i = 0; i < 4; i++) {
        v.v[i] = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(x + 16 * i))));
    }
    return v;
}

/* 64 nibbles, the even element low. */
static inline vchunk floats_of_i4(__m256i bytes)
{
    const __m256i low_half = _mm256_set1_epi8(0x0F);
    const __m256i sign = _mm256_set1_epi8(8);
    const __m256i even = _mm256_and_si256(bytes, low_half);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low_half);
    const __m256i a = _mm256_sub_epi8(_mm256_xor_si256(_mm256_unpacklo_epi8(even, odd), sign), sign);
    const __m256i b = _mm256_sub_epi8(_mm256_xor_si256(_mm256_unpackhi_epi8(even, odd), sign), sign);
    return (vchunk){{floats_of_i8(_mm256_castsi256_si128(a)), floats_of_i8(_mm256_castsi256_si128(b)),
                     floats_of_i8(_mm256_extracti128_si256(a, 1)), floats_of_i8(_mm256_extracti128_si256(b, 1))}};
}

static inline vchunk chunk_load_i4(const void *p)
{
    return floats_of_i4(_mm256_loadu_si256(p));
}

typedef struct ichunk {
    __m512i v[4];
} ichunk;

static inline ichunk chunk_load_ints(const void *p)
{
    const int32_t *x = p;
    return (ichunk){
        {_mm512_loadu_si512(x), _mm512_loadu_si512(x + 16), _mm512_loadu_si512(x + 32), _mm512_loadu_si512(x + 48)}};
}

static inline ichunk ichunk_set(int32_t value)
{
    const __m512i v = _mm512_set1_epi32(value);
    return (ichunk){{v, v, v, v}};
}

static inline ichunk ichunk_add(ichunk a, ichunk b)
{
    return (ichunk){{_mm512_add_epi32(a.v[0], b.v[0]), _mm512_add_epi32(a.v[1], b.v[1]),
                     _mm512_add_epi32(a.v[2], b.v[2]), _mm512_add_epi32(a.v[3], b.v[3])}};
}

static inline vchunk chunk_of_ints(ichunk a)
{
    return (vchunk){{_mm512_cvtepi32_ps(a.v[0]), _mm512_cvtepi32_ps(a.v[1]), _mm512_cvtepi32_ps(a.v[2]),
                     _mm512_cvtepi32_ps(a.v[3])}};
}

static inline vchunk chunk_load_i32(const void *p)
{
    return chunk_of_ints(chunk_load_ints(p));
}

/* Widening by unpacking takes one operation a vector where the above takes two, and leaves the halves of each 128 bits
 * in two vectors: split order. Packing puts them together again. */
static inline vchunk chunk_load_split_bf16(const void *p)
{
    const uint16_t *x = p;
    const __m512i a = _mm512_loadu_si512(x);
    const __m512i b = _mm512_loadu_si512(x + 32);
    const __m512i zero = _mm512_setzero_si512();
    return (vchunk){
        {_mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, a)), _mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, a)),
         _mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, b)), _mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, b))}};
}

/* A chunk brought into split order. */
static inline vchunk chunk_split(vchunk t)
{
    return (vchunk){{_mm512_shuffle_f32x4(t.v[0], t.v[1], 0x88), _mm512_shuffle_f32x4(t.v[0], t.v[1], 0xDD),
                     _mm512_shuffle_f32x4(t.v[2], t.v[3], 0x88), _mm512_shuffle_f32x4(t.v[2], t.v[3], 0xDD)}};
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

static inline vchunk chunk_load_part_i8(const void *p, size_t n)
{
    const int8_t *x = p;
    const uint64_t lanes = first_lanes(n);
    const __m128i first = _mm_set1_epi8(*x);
    return (vchunk){{floats_of_i8(_mm_mask_loadu_epi8(first, lanes_of(lanes, 0), x)),
                     floats_of_i8(_mm_mask_loadu_epi8(first, lanes_of(lanes, 1), x + 16)),
                     floats_of_i8(_mm_mask_loadu_epi8(first, lanes_of(lanes, 2), x + 32)),
                     floats_of_i8(_mm_mask_loadu_epi8(first, lanes_of(lanes, 3), x + 48))}};
}

/* n is a multiple of 8, a word. */
static inline vchunk chunk_load_part_i4(const void *p, size_t n)
{
    const int32_t *x = p;
    return floats_of_i4(_mm256_mask_loadu_epi32(_mm256_set1_epi32(*x), (__mmask8)first_lanes(n / 8), x));
}

static inline ichunk chunk_load_part_ints(const void *p, size_t n)
{
    const int32_t *x = p;
    const uint64_t lanes = first_lanes(n);
    const __m512i first = _mm512_set1_epi32(*x);
    return (ichunk){{_mm512_mask_loadu_epi32(first, lanes_of(lanes, 0), x),
                     _mm512_mask_loadu_epi32(first, lanes_of(lanes, 1), x + 16),
                     _mm512_mask_loadu_epi32(first, lanes_of(lanes, 2), x + 32),
                     _mm512_mask_loadu_epi32(first, lanes_of(lanes, 3), x + 48)}};
}

/* ---- round, saturate, store ------------------------------------------------------------------------------------- */

/* A chunk as 64 saturated 16-bit integers, in the order that packing leaves them in. */
typedef struct words {
    __m512i ab;
    __m512i cd;
} words;

/* Whatever 32-bit integers do not hold, NaN too, converts to INT32_MIN, which is right only for what is far below. */
static inline words to_words(vchunk t)
{
    return (words){_mm512_packs_epi32(_mm512_cvtps_epi32(t.v[0]), _mm512_cvtps_epi32(t.v[1])),
                   _mm512_packs_epi32(_mm512_cvtps_epi32(t.v[2]), _mm512_cvtps_epi32(t.v[3]))};
}

/* Of integers the least words: there may be such lanes if one is INT16_MIN. Of floating point where NaN is. */
#define CERTAINTY
typedef struct certainty {
    __m512i least;
    __mmask16 nan;
} certainty;

static inline certainty certain(void)
{
    return (certainty){_mm512_setzero_si512(), 0};
}

static inline certainty certain_if_both(certainty a, certainty b, bool floats)
{
    if (floats) {
        a.nan |= b.nan;
    } else {
        a.least = _mm512_min_epi16(a.least, b.least);
    }
    return a;
}

static inline bool is_certain(certainty c, bool floats)
{
    return floats ? c.nan == 0 : _mm512_cmpeq_epi16_mask(c.least, _mm512_set1_epi16(INT16_MIN)) == 0;
}

static inline certainty certainty_of_words(words w)
{
    return (certainty){.least = _mm512_min_epi16(w.ab, w.cd)};
}

/* The limits come first in min and max, so that NaN passes. */
static inline __m512i clamp(vf t, float low, float high)
{
    return _mm512_cvtps_epi32(_mm512_max_ps(_mm512_set1_ps(low), _mm512_min_ps(_mm512_set1_ps(high), t)));
}

/* NaN as 0, and nothing too far above; what is far below may convert to INT32_MIN. */
static inline __m512i clamp_total(vf t)
{
    return _mm512_cvtps_epi32(_mm512_maskz_min_ps(_mm512_cmp_ps_mask(t, t, _CMP_ORD_Q), t, _mm512_set1_ps(INT16_MAX)));
}

static inline words to_words_total(vchunk t)
{
    return (words){_mm512_packs_epi32(clamp_total(t.v[0]), clamp_total(t.v[1])),
                   _mm512_packs_epi32(clamp_total(t.v[2]), clamp_total(t.v[3]))};
}

static inline __m512i in_order(__m512i bytes, bool split)
{
    return split ? _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), bytes)
                 : _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                                            bytes);
}

/* Of pairs of nibbles, in the lower half. */
static inline __m512i in_order_nibbles(__m512i bytes, bool split)
{
    const __m512i whole =
        _mm512_castsi256_si512(_mm256_setr_epi16(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27));
    const __m512i halves = _mm512_castsi256_si512(_mm256_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13));
    return split ? _mm512_permutexvar_epi32(halves, bytes) : _mm512_permutexvar_epi16(whole, bytes);
}

static inline __m512i bytes_i8(words w, bool split)
{
    return in_order(_mm512_packs_epi16(w.ab, w.cd), split);
}

static inline __m512i bytes_u8(words w, bool split)
{
    return in_order(_mm512_packus_epi16(w.ab, w.cd), split);
}

/* 64 nibbles, the even element low. */
static inline __m256i bytes_i4(words w, bool split)
{
    const __m512i bytes = _mm512_packs_epi16(w.ab, w.cd);
    const __m512i clamped = _mm512_max_epi8(_mm512_min_epi8(bytes, _mm512_set1_epi8(7)), _mm512_set1_epi8(-8));
    const __m512i nibbles = _mm512_and_si512(clamped, _mm512_set1_epi8(0x0F));
    const __m512i pairs = _mm512_maddubs_epi16(nibbles, _mm512_set1_epi16(0x1001));
    return _mm512_castsi512_si256(in_order_nibbles(_mm512_packus_epi16(pairs, pairs), split));
}

#define STORE(NAME, Y, HOW)                                                                                            \
    static inline certainty NAME(void *p, vchunk t, bool split)                                                        \
    {                                                                                                                  \
        const words w = to_words(t);                                                                                   \
        HOW(p, bytes_##Y(w, split));                                                                                   \
        return certainty_of_words(w);                                                                                  \
    }

STORE(chunk_store_i8, i8, _mm512_storeu_si512)
STORE(chunk_store_u8, u8, _mm512_storeu_si512)
STORE(chunk_store_i4, i4, _mm256_storeu_si256)
STORE(chunk_stream_i8, i8, _mm512_stream_si512)
STORE(chunk_stream_u8, u8, _mm512_stream_si512)
STORE(chunk_stream_i4, i4, _mm256_stream_si256)
#undef STORE

static inline void chunk_store_part_i8(void *p, vchunk t, size_t n)
{
    _mm512_mask_storeu_epi8(p, first_lanes(n), bytes_i8(to_words_total(t), false));
}

static inline void chunk_store_part_u8(void *p, vchunk t, size_t n)
{
    _mm512_mask_storeu_epi8(p, first_lanes(n), bytes_u8(to_words_total(t), false));
}

static inline void chunk_store_part_i4(void *p, vchunk t, size_t n)
{
    _mm256_mask_storeu_epi8(p, (__mmask32)first_lanes(n / 2), bytes_i4(to_words_total(t), false));
}

static inline __m512i to_i32(vf t)
{
    const __mmask16 above = _mm512_cmp_ps_mask(t, _mm512_set1_ps(2147483648.0f), _CMP_GE_OQ);
    return _mm512_mask_mov_epi32(_mm512_cvtps_epi32(t), above, _mm512_set1_epi32(INT32_MAX));
}

static inline certainty certainty_of_floats(vchunk t)
{
    return (certainty){.nan = _kor_mask16(_mm512_cmp_ps_mask(t.v[0], t.v[1], _CMP_UNORD_Q),
                                          _mm512_cmp_ps_mask(t.v[2], t.v[3], _CMP_UNORD_Q))};
}

/* Upper halves of the least integers; INT32_MIN may stand for what is far above, too. */
static inline certainty certainty_of_ints(ichunk a)
{
    const __m512i ab = _mm512_min_epi32(a.v[0], a.v[1]);
    const __m512i cd = _mm512_min_epi32(a.v[2], a.v[3]);
    return (certainty){.least = _mm512_srai_epi32(_mm512_min_epi32(ab, cd), 16)};
}

#define STORE_I32(NAME, HOW)                                                                                           \
    static inline certainty NAME(void *p, vchunk t, bool split)                                                        \
    {                                                                                                                  \
        int32_t *y = p;                                                                                                \
        ichunk a;                                                                                                      \
        (void)split; /* never true: nothing is packed */                                                               \
        for (int i = 0; i < 4; i++) {                                                                                  \
            a.v[i] = _mm512_cvtps_epi32(t.v[i]);                                                                       \
        }                                                                                                              \
        for (int i = 0; i < 4; i++) {                                                                                  \
            HOW((void *)(y + 16 * i), a.v[i]);                                                                         \
        }                                                                                                              \
        return certainty_of_ints(a);                                                                                   \
    }

STORE_I32(chunk_store_i32, _mm512_storeu_si512)
STORE_I32(chunk_stream_i32, _mm512_stream_si512)
#undef STORE_I32

static inline void chunk_store_part_i32(void *p, vchunk t, size_t n)
{
    int32_t *y = p;
    for (int i = 0; i < 4; i++) {
        const __mmask16 ordered = _mm512_cmp_ps_mask(t.v[i], t.v[i], _CMP_ORD_Q);
        _mm512_mask_storeu_epi32(y + 16 * i, lanes_of(first_lanes(n), i),
                                 _mm512_maskz_mov_epi32(ordered, to_i32(t.v[i])));
    }
}

/* int8 after requant's first clamp, and its offsets. */
static inline __m512i bytes_requant(words w, ichunk offsets)
{
    const __m512i low = _mm512_set1_epi16(-256);
    const __m512i high = _mm512_set1_epi16(255);
    const __m512i ab = _mm512_max_epi16(_mm512_min_epi16(w.ab, high), low);
    const __m512i cd = _mm512_max_epi16(_mm512_min_epi16(w.cd, high), low);
    const words sums = {_mm512_add_epi16(ab, _mm512_packs_epi32(offsets.v[0], offsets.v[1])),
                        _mm512_add_epi16(cd, _mm512_packs_epi32(offsets.v[2], offsets.v[3]))};
    return bytes_i8(sums, false);
}

static inline certainty chunk_store_requant(void *p, vchunk t, ichunk offsets)
{
    const words w = to_words(t);
    _mm512_storeu_si512(p, bytes_requant(w, offsets));
    return certainty_of_words(w);
}

static inline certainty chunk_stream_requant(void *p, vchunk t, ichunk offsets)
{
    const words w = to_words(t);
    _mm512_stream_si512(p, bytes_requant(w, offsets));
    return certainty_of_words(w);
}

static inline void chunk_store_part_requant(void *p, vchunk t, ichunk offsets, size_t n)
{
    _mm512_mask_storeu_epi8(p, first_lanes(n), bytes_requant(to_words_total(t), offsets));
}

/* ---- store as floating point ------------------------------------------------------------------------------------- */

static inline __m256i halves_f16(vf t)
{
    return _mm512_maskz_cvtps_ph(0xFFFF, t, _MM_FROUND_TO_NEAREST_INT); /* the plain one warns in gcc 12, without -O */
}

/* Two vectors, rounded half to even at bit 16; the carry may reach the exponent. Upper and lower halves of the lanes of
 * both are interleaved, a's first: rounding 32 lanes at once takes fewer operations than 16 twice. */
static inline __m512i pair_bf16(vf a, vf b)
{
    enum { CHOOSE = 0xD8, OR_ODD = 0xF8 }; /* of a, b, c: b where c is 1, else a; and a | (b & c) */
    const __m512i a_bits = _mm512_castps_si512(a);
    const __m512i b_bits = _mm512_castps_si512(b);
    const __m512i odd_lanes = _mm512_set1_epi32((int32_t)0xFFFF0000u);
    const __m512i upper = _mm512_ternarylogic_epi32(_mm512_srli_epi32(a_bits, 16), b_bits, odd_lanes, CHOOSE);
    const __m512i lower = _mm512_ternarylogic_epi32(a_bits, _mm512_slli_epi32(b_bits, 16), odd_lanes, CHOOSE);
    /* The lower half with the odd bit of the upper half: above 0x8000 it rounds up. */
    const __m512i sticky = _mm512_ternarylogic_epi32(lower, upper, _mm512_set1_epi32(0x00010001), OR_ODD);
    const __mmask32 up = _mm512_cmpgt_epu16_mask(sticky, _mm512_set1_epi32((int32_t)0x80008000u));
    const __m512i rounded = _mm512_mask_sub_epi16(upper, up, upper, _mm512_set1_epi32(-1));
    const __m512i order = _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 30, 28, 26, 24,
                                           22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    return _mm512_permutexvar_epi16(order, rounded);
}

static inline __m512i pair_f16(vf a, vf b)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(halves_f16(a)), halves_f16(b), 1);
}

#define PUT(F32, F16, BF16, STORE_FLOATS, STORE_512)                                                                   \
    static inline void F32(void *p, vchunk t)                                                                          \
    {                                                                                                                  \
        float *y = p;                                                                                                  \
        for (int i = 0; i < 4; i++) {                                                                                  \
            STORE_FLOATS(y + 16 * i, t.v[i]);                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static inline void F16(void *p, vchunk t)                                                                          \
    {                                                                                                                  \
        uint16_t *y = p;                                                                                               \
        STORE_512((void *)y, pair_f16(t.v[0], t.v[1]));                                                                \
        STORE_512((void *)(y + 32), pair_f16(t.v[2], t.v[3]));                                                         \
    }                                                                                                                  \
    static inline void BF16(void *p, vchunk t)                                                                         \
    {                                                                                                                  \
        uint16_t *y = p;                                                                                               \
        STORE_512((void *)y, pair_bf16(t.v[0], t.v[1]));                                                               \
        STORE_512((void *)(y + 32), pair_bf16(t.v[2], t.v[3]));                                                        \
    }

PUT(put_f32, put_f16, put_bf16, _mm512_storeu_ps, _mm512_storeu_si512)
PUT(put_around_f32, put_around_f16, put_around_bf16, _mm512_stream_ps, _mm512_stream_si512)
#undef PUT

#include "float_stores.h"

/* NaN becomes 0x7FC00000. */
static inline vf canonical(vf t)
{
    const __mmask16 nan = _mm512_cmp_ps_mask(t, t, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(t, nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000)));
}

static inline void chunk_store_part_f32(void *p, vchunk t, size_t n)
{
    float *y = p;
    for (int i = 0; i < 4; i++) {
        _mm512_mask_storeu_ps(y + 16 * i, lanes_of(first_lanes(n), i), canonical(t.v[i]));
    }
}

static inline void store_part_halves(uint16_t *y, __m512i low, __m512i high, size_t n)
{
    _mm512_mask_storeu_epi16(y, (__mmask32)first_lanes(n), low);
    _mm512_mask_storeu_epi16(y + 32, (__mmask32)(first_lanes(n) >> 32), high);
}

static inline void chunk_store_part_f16(void *p, vchunk t, size_t n)
{
    store_part_halves(p, pair_f16(canonical(t.v[0]), canonical(t.v[1])), pair_f16(canonical(t.v[2]), canonical(t.v[3])),
                      n);
}

static inline void chunk_store_part_bf16(void *p, vchunk t, size_t n)
{
    store_part_halves(p, pair_bf16(canonical(t.v[0]), canonical(t.v[1])),
                      pair_bf16(canonical(t.v[2]), canonical(t.v[3])), n);
}

#define STORE_TOTAL(NAME, PART)                                                                                        \
    static inline void NAME(void *p, vchunk t)                                                                         \
    {                                                                                                                  \
        PART(p, t, CHUNK);                                                                                             \
    }

STORE_TOTAL(chunk_store_total_i8, chunk_store_part_i8)
STORE_TOTAL(chunk_store_total_u8, chunk_store_part_u8)
STORE_TOTAL(chunk_store_total_i32, chunk_store_part_i32)
STORE_TOTAL(chunk_store_total_i4, chunk_store_part_i4)
STORE_TOTAL(chunk_store_total_f32, chunk_store_part_f32)
STORE_TOTAL(chunk_store_total_f16, chunk_store_part_f16)
STORE_TOTAL(chunk_store_total_bf16, chunk_store_part_bf16)
#undef STORE_TOTAL

static inline void chunk_store_total_requant(void *p, vchunk t, ichunk offsets)
{
    chunk_store_part_requant(p, t, offsets, CHUNK);
}

static inline void stream_end(void)
{
    _mm_sfence();
}

/* ---- range ------------------------------------------------------------------------------------------------------ */

/* The extremes of the patterns as signed and as unsigned integers; make_row_range() tells the range from them. */
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

/* both: the smallest patterns do not matter, see make_row_range_of_both(). */
static inline vrange vrange_join(vrange a, vrange b, bool both)
{
    a.smax = _mm512_max_epi32(a.smax, b.smax);
    a.umax = _mm512_max_epu32(a.umax, b.umax);
    if (!both) {
        a.smin = _mm512_min_epi32(a.smin, b.smin);
        a.umin = _mm512_min_epu32(a.umin, b.umin);
    }
    return a;
}

static inline bool vrange_both(vrange a)
{
    return _mm512_movepi32_mask(a.smax) != 0xFFFF && _mm512_movepi32_mask(a.umax) != 0;
}

static inline row_range vrange_reduce(vrange a, bool both)
{
    const int32_t smax = _mm512_reduce_max_epi32(a.smax);
    const int32_t umax = (int32_t)_mm512_reduce_max_epu32(a.umax);

    return both ? make_row_range_of_both(smax, umax)
                : make_row_range(smax, umax, _mm512_reduce_min_epi32(a.smin), (int32_t)_mm512_reduce_min_epu32(a.umin));
}

/* The range of floats of which both signs have been seen, by comparing floats: Intel's CPUs compare twice as many of
 * them in a cycle as of integers. It does not matter which zero is the larger, as an extreme that is zero has a known
 * sign. Where a value is NaN, so is a sum of products; and it may be where values are infinite or huge. */
#define FLOAT_RANGES
typedef struct frange {
    vf hi;
    vf lo;
    vf sums[2];
} frange;

static inline frange frange_of_both(void)
{
    return (frange){v_set(0.0f), v_set(0.0f), {v_set(1.0f), v_set(1.0f)}};
}

static inline frange frange_with(frange a, vchunk c)
{
    for (int i = 0; i < 4; i++) {
        __asm__("" : "+v"(c.v[i])); /* else compilers load each three times, and the second cache is the slower */
    }
    const vf hi = _mm512_max_ps(_mm512_max_ps(c.v[0], c.v[1]), _mm512_max_ps(c.v[2], c.v[3]));
    const vf lo = _mm512_min_ps(_mm512_min_ps(c.v[0], c.v[1]), _mm512_min_ps(c.v[2], c.v[3]));
    return (frange){_mm512_max_ps(a.hi, hi),
                    _mm512_min_ps(a.lo, lo),
                    {_mm512_fmadd_ps(c.v[0], c.v[1], a.sums[0]), _mm512_fmadd_ps(c.v[2], c.v[3], a.sums[1])}};
}

static inline bool frange_is_certain(frange a)
{
    return _mm512_cmp_ps_mask(a.sums[0], a.sums[1], _CMP_UNORD_Q) == 0;
}

static inline vrange vrange_of_floats(frange a)
{
    return (vrange){.smax = _mm512_castps_si512(a.hi), .umax = _mm512_castps_si512(a.lo)};
}

/* The same for 16-bit patterns. */
typedef struct hchunk {
    __m512i v[2];
} hchunk;

typedef vrange hrange;

static inline hchunk chunk_load_halves(const void *p)
{
    const uint16_t *x = p;
    return (hchunk){{_mm512_loadu_si512(x), _mm512_loadu_si512(x + 32)}};
}

static inline hchunk chunk_load_part_halves(const void *p, size_t n)
{
    const uint16_t *x = p;
    const uint64_t lanes = first_lanes(n);
    const __m512i first = _mm512_set1_epi16((short)*x);
    return (hchunk){{_mm512_mask_loadu_epi16(first, (__mmask32)lanes, x),
                     _mm512_mask_loadu_epi16(first, (__mmask32)(lanes >> 32), x + 32)}};
}

static inline hrange hrange_of(__m512i v)
{
    return (hrange){v, v, v, v};
}

static inline hrange hrange_join(hrange a, hrange b, bool both)
{
    a.smax = _mm512_max_epi16(a.smax, b.smax);
    a.umax = _mm512_max_epu16(a.umax, b.umax);
    if (!both) {
        a.smin = _mm512_min_epi16(a.smin, b.smin);
        a.umin = _mm512_min_epu16(a.umin, b.umin);
    }
    return a;
}

static inline bool hrange_both(hrange a)
{
    return _mm512_movepi16_mask(a.smax) != 0xFFFFFFFF && _mm512_movepi16_mask(a.umax) != 0;
}

/* The smallest of 32 unsigned numbers. */
static inline uint16_t reduce_min_epu16(__m512i v)
{
    const __m256i a = _mm256_min_epu16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    const __m128i b = _mm_min_epu16(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    return (uint16_t)_mm_cvtsi128_si32(_mm_minpos_epu16(b));
}

static inline uint16_t reduce_flipped(__m512i v, uint16_t flip)
{
    return (uint16_t)(reduce_min_epu16(_mm512_xor_si512(v, _mm512_set1_epi16((short)flip))) ^ flip);
}

/* smax, umax, smin, umin */
static inline void hrange_reduce(hrange a, uint16_t *extremes)
{
    extremes[0] = reduce_flipped(a.smax, 0x7FFF);
    extremes[1] = reduce_flipped(a.umax, 0xFFFF);
    extremes[2] = reduce_flipped(a.smin, 0x8000);
    extremes[3] = reduce_min_epu16(a.umin);
}

/* ---- trans_quant_param ------------------------------------------------------------------------------------------ */

enum { PACK = 16 };

static inline void pack_store(const uint32_t *scale, const float *offset, uint64_t *y, bool nearest)
{
    const __m512i exponents = _mm512_set1_epi32(0x7F800000);
    __m512i s = _mm512_loadu_si512(scale);
    __m512i high = offset ? clamp(_mm512_loadu_ps(offset), -256.0f, 255.0f) : _mm512_setzero_si512();

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

static inline void unpack_store(const uint64_t *y, float *scale, int32_t *offset)
{
    const __m512i a = _mm512_loadu_si512(y);
    const __m512i b = _mm512_loadu_si512(y + 8);
    const __m512i low_halves = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i high_halves = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    const __m512i high = _mm512_permutex2var_epi32(a, high_halves, b);
    _mm512_storeu_si512(scale,
                        _mm512_and_si512(_mm512_permutex2var_epi32(a, low_halves, b), _mm512_set1_epi32(~0x1FFF)));
    _mm512_storeu_si512(offset, _mm512_srai_epi32(_mm512_slli_epi32(high, 18), 23));
}

#endif
