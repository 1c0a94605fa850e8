/* SPDX-License-Identifier: BSD-3-Clause */
/* The vocabulary of row_kernels.h in AVX2 with F16C: 8 lanes. */
#ifndef NPUQ_VEC_AVX2_H
#define NPUQ_VEC_AVX2_H

#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "this file is compiled with -mavx2 -mfma -mf16c"
#endif

#include "row_range.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LANES = 8, CHUNK = 4 * LANES };

#define IN_PAIRS(FROM) ((FROM) == BY_ROW || (FROM) == BY_ROW_SMOOTH)

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

static inline vf v_above(vf a, vf b)
{
    return _mm256_max_ps(a, b); /* the second where one is NaN */
}

static inline vf v_ordered(vf v)
{
    const __m256i bits = _mm256_castps_si256(v);
    return _mm256_castsi256_ps(_mm256_xor_si256(bits, _mm256_srli_epi32(_mm256_srai_epi32(bits, 31), 1)));
}

static inline vf v_upper(vf a, vf b)
{
    return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}

static inline vf v_lower(vf a, vf b)
{
    return _mm256_castsi256_ps(_mm256_min_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}

static inline vf lanes_in_order(vf v)
{
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xD8));
}

static inline vf v_even(vf a, vf b)
{
    return lanes_in_order(_mm256_shuffle_ps(a, b, 0x88));
}

static inline vf v_odd(vf a, vf b)
{
    return lanes_in_order(_mm256_shuffle_ps(a, b, 0xDD));
}

/* See chunk.h: the remainder is exact, and its share corrects the last bit. */
enum { FAST_DIVIDE = 1 };

static inline vf v_quotient(vf x, vf scale, vf inverse)
{
    const vf q = _mm256_mul_ps(x, inverse);
    return _mm256_fmadd_ps(_mm256_fnmadd_ps(q, scale, x), inverse, q);
}

/* The top bit of each pattern, doubled, less 2^-64's: whether it is outside of [2^-64, 2^64). */
static inline bool chunk_is_plain(vchunk s)
{
    __m256i bits = _mm256_setzero_si256();
    for (int i = 0; i < 4; i++) {
        const __m256i doubled = _mm256_slli_epi32(_mm256_castps_si256(s.v[i]), 1);
        bits = _mm256_or_si256(bits, _mm256_sub_epi32(doubled, _mm256_set1_epi32(63 << 24)));
    }
    return _mm256_movemask_ps(_mm256_castsi256_ps(bits)) == 0;
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

/* Widening by unpacking takes one operation a vector where the above takes two, and leaves the halves of each 128 bits
 * in two vectors: split order. Packing puts them together again. */
static inline vchunk chunk_load_split_bf16(const void *p)
{
    const __m256i *x = p;
    const __m256i a = _mm256_loadu_si256(x);
    const __m256i b = _mm256_loadu_si256(x + 1);
    const __m256i zero = _mm256_setzero_si256();
    return (vchunk){
        {_mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, a)), _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, a)),
         _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, b)), _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, b))}};
}

/* A chunk brought into split order. */
static inline vchunk chunk_split(vchunk t)
{
    return (vchunk){{_mm256_permute2f128_ps(t.v[0], t.v[1], 0x20), _mm256_permute2f128_ps(t.v[0], t.v[1], 0x31),
                     _mm256_permute2f128_ps(t.v[2], t.v[3], 0x20), _mm256_permute2f128_ps(t.v[2], t.v[3], 0x31)}};
}

static inline __m128i load_low(const char *p)
{
    return _mm_loadl_epi64((const __m128i *)(const void *)p);
}

/* Eight bytes to eight floats. */
static inline vf floats_of_i8(__m128i bytes)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

static inline vchunk chunk_load_i8(const void *p)
{
    const char *x = p;
    return (vchunk){{floats_of_i8(load_low(x)), floats_of_i8(load_low(x + 8)), floats_of_i8(load_low(x + 16)),
                     floats_of_i8(load_low(x + 24))}};
}

static inline vchunk chunk_load_u8(const void *p)
{
    vchunk v;
    for (int i = 0; i < 4; i++) {
        v.v[i] = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load_low((const char *)p + 8 * i)));
    }
    return v;
}

/* 32 nibbles, the even element low. */
static inline vchunk chunk_load_i4(const void *p)
{
    const __m128i bytes = _mm_loadu_si128(p);
    const __m128i low_half = _mm_set1_epi8(0x0F);
    const __m128i sign = _mm_set1_epi8(8);
    const __m128i even = _mm_and_si128(bytes, low_half);
    const __m128i odd = _mm_and_si128(_mm_srli_epi16(bytes, 4), low_half);
    const __m128i a = _mm_sub_epi8(_mm_xor_si128(_mm_unpacklo_epi8(even, odd), sign), sign);
    const __m128i b = _mm_sub_epi8(_mm_xor_si128(_mm_unpackhi_epi8(even, odd), sign), sign);
    return (vchunk){
        {floats_of_i8(a), floats_of_i8(_mm_srli_si128(a, 8)), floats_of_i8(b), floats_of_i8(_mm_srli_si128(b, 8))}};
}

typedef struct ichunk {
    __m256i v[4];
} ichunk;

static inline ichunk chunk_load_ints(const void *p)
{
    const __m256i *x = p;
    return (ichunk){
        {_mm256_loadu_si256(x), _mm256_loadu_si256(x + 1), _mm256_loadu_si256(x + 2), _mm256_loadu_si256(x + 3)}};
}

static inline ichunk ichunk_set(int32_t value)
{
    const __m256i v = _mm256_set1_epi32(value);
    return (ichunk){{v, v, v, v}};
}

static inline ichunk ichunk_add(ichunk a, ichunk b)
{
    return (ichunk){{_mm256_add_epi32(a.v[0], b.v[0]), _mm256_add_epi32(a.v[1], b.v[1]),
                     _mm256_add_epi32(a.v[2], b.v[2]), _mm256_add_epi32(a.v[3], b.v[3])}};
}

static inline vchunk chunk_of_ints(ichunk a)
{
    return (vchunk){{_mm256_cvtepi32_ps(a.v[0]), _mm256_cvtepi32_ps(a.v[1]), _mm256_cvtepi32_ps(a.v[2]),
                     _mm256_cvtepi32_ps(a.v[3])}};
}

static inline vchunk chunk_load_i32(const void *p)
{
    return chunk_of_ints(chunk_load_ints(p));
}

/* ---- round, saturate, store ------------------------------------------------------------------------------------- */

/* A chunk as 32 saturated 16-bit integers, in the order that packing leaves them in. */
typedef struct words {
    __m256i ab;
    __m256i cd;
} words;

/* Whatever 32-bit integers do not hold, NaN too, converts to INT32_MIN, which is right only for what is far below. */
static inline words to_words(vchunk t)
{
    return (words){_mm256_packs_epi32(_mm256_cvtps_epi32(t.v[0]), _mm256_cvtps_epi32(t.v[1])),
                   _mm256_packs_epi32(_mm256_cvtps_epi32(t.v[2]), _mm256_cvtps_epi32(t.v[3]))};
}

/* Of integers the least words: there may be such lanes if one is INT16_MIN. Of floating point all ones where NaN is. */
#define CERTAINTY
typedef __m256i certainty;

static inline certainty certain(void)
{
    return _mm256_setzero_si256();
}

static inline certainty certain_if_both(certainty a, certainty b, bool floats)
{
    return floats ? _mm256_or_si256(a, b) : _mm256_min_epi16(a, b);
}

static inline bool is_certain(certainty c, bool floats)
{
    return _mm256_movemask_epi8(floats ? c : _mm256_cmpeq_epi16(c, _mm256_set1_epi16(INT16_MIN))) == 0;
}

static inline certainty certainty_of_words(words w)
{
    return _mm256_min_epi16(w.ab, w.cd);
}

/* The limits come first in min and max, so that NaN passes. */
static inline __m256i clamp(vf t, float low, float high)
{
    return _mm256_cvtps_epi32(_mm256_max_ps(_mm256_set1_ps(low), _mm256_min_ps(_mm256_set1_ps(high), t)));
}

static inline __m256i ordered_lanes(vf t)
{
    return _mm256_castps_si256(_mm256_cmp_ps(t, t, _CMP_ORD_Q));
}

/* NaN as 0, and nothing too far above; what is far below may convert to INT32_MIN. */
static inline __m256i clamp_total(vf t)
{
    const vf ordered = _mm256_and_ps(t, _mm256_cmp_ps(t, t, _CMP_ORD_Q));
    return _mm256_cvtps_epi32(_mm256_min_ps(ordered, _mm256_set1_ps(INT16_MAX)));
}

static inline words to_words_total(vchunk t)
{
    return (words){_mm256_packs_epi32(clamp_total(t.v[0]), clamp_total(t.v[1])),
                   _mm256_packs_epi32(clamp_total(t.v[2]), clamp_total(t.v[3]))};
}

static inline __m256i in_order(__m256i bytes, bool split)
{
    return split ? _mm256_permute4x64_epi64(bytes, 0xD8)
                 : _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static inline __m256i bytes_i8(words w, bool split)
{
    return in_order(_mm256_packs_epi16(w.ab, w.cd), split);
}

static inline __m256i bytes_u8(words w, bool split)
{
    return in_order(_mm256_packus_epi16(w.ab, w.cd), split);
}

/* 32 nibbles, the even element low. */
static inline __m128i bytes_i4(words w, bool split)
{
    const __m256i clamped =
        _mm256_max_epi8(_mm256_min_epi8(bytes_i8(w, split), _mm256_set1_epi8(7)), _mm256_set1_epi8(-8));
    const __m256i nibbles = _mm256_and_si256(clamped, _mm256_set1_epi8(0x0F));
    const __m256i pairs = _mm256_maddubs_epi16(nibbles, _mm256_set1_epi16(0x1001));
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi16(pairs, pairs), 0x08));
}

#define STORE(NAME, Y, HOW)                                                                                            \
    static inline certainty NAME(void *p, vchunk t, bool split)                                                        \
    {                                                                                                                  \
        const words w = to_words(t);                                                                                   \
        HOW(p, bytes_##Y(w, split));                                                                                   \
        return certainty_of_words(w);                                                                                  \
    }

STORE(chunk_store_i8, i8, _mm256_storeu_si256)
STORE(chunk_store_u8, u8, _mm256_storeu_si256)
STORE(chunk_store_i4, i4, _mm_storeu_si128)
STORE(chunk_stream_i8, i8, _mm256_stream_si256)
STORE(chunk_stream_u8, u8, _mm256_stream_si256)
STORE(chunk_stream_i4, i4, _mm_stream_si128)
#undef STORE

static inline void chunk_store_total_i8(void *p, vchunk t)
{
    _mm256_storeu_si256(p, bytes_i8(to_words_total(t), false));
}

static inline void chunk_store_total_u8(void *p, vchunk t)
{
    _mm256_storeu_si256(p, bytes_u8(to_words_total(t), false));
}

static inline void chunk_store_total_i4(void *p, vchunk t)
{
    _mm_storeu_si128(p, bytes_i4(to_words_total(t), false));
}

static inline __m256i to_i32(vf t)
{
    /* INT32_MIN, the result where it is out of range, is INT32_MAX inverted. */
    const __m256i above = _mm256_castps_si256(_mm256_cmp_ps(t, _mm256_set1_ps(2147483648.0f), _CMP_GE_OQ));
    return _mm256_xor_si256(_mm256_cvtps_epi32(t), above);
}

static inline certainty certainty_of_floats(vchunk t)
{
    const vf ab = _mm256_cmp_ps(t.v[0], t.v[1], _CMP_UNORD_Q);
    const vf cd = _mm256_cmp_ps(t.v[2], t.v[3], _CMP_UNORD_Q);
    return _mm256_castps_si256(_mm256_or_ps(ab, cd));
}

/* Upper halves of the least integers; INT32_MIN may stand for what is far above, too. */
static inline certainty certainty_of_ints(ichunk a)
{
    const __m256i ab = _mm256_min_epi32(a.v[0], a.v[1]);
    const __m256i cd = _mm256_min_epi32(a.v[2], a.v[3]);
    return _mm256_srai_epi32(_mm256_min_epi32(ab, cd), 16);
}

#define STORE_I32(NAME, HOW)                                                                                           \
    static inline certainty NAME(void *p, vchunk t, bool split)                                                        \
    {                                                                                                                  \
        __m256i *y = p;                                                                                                \
        ichunk a;                                                                                                      \
        (void)split; /* never true: nothing is packed */                                                               \
        for (int i = 0; i < 4; i++) {                                                                                  \
            a.v[i] = _mm256_cvtps_epi32(t.v[i]);                                                                       \
        }                                                                                                              \
        for (int i = 0; i < 4; i++) {                                                                                  \
            HOW(y + i, a.v[i]);                                                                                        \
        }                                                                                                              \
        return certainty_of_ints(a);                                                                                   \
    }

STORE_I32(chunk_store_i32, _mm256_storeu_si256)
STORE_I32(chunk_stream_i32, _mm256_stream_si256)
#undef STORE_I32

static inline void chunk_store_total_i32(void *p, vchunk t)
{
    __m256i *y = p;
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_si256(y + i, _mm256_and_si256(to_i32(t.v[i]), ordered_lanes(t.v[i])));
    }
}

/* int8 after requant's first clamp, and its offsets. */
static inline __m256i bytes_requant(words w, ichunk offsets)
{
    const __m256i low = _mm256_set1_epi16(-256);
    const __m256i high = _mm256_set1_epi16(255);
    const __m256i ab = _mm256_max_epi16(_mm256_min_epi16(w.ab, high), low);
    const __m256i cd = _mm256_max_epi16(_mm256_min_epi16(w.cd, high), low);
    const words sums = {_mm256_add_epi16(ab, _mm256_packs_epi32(offsets.v[0], offsets.v[1])),
                        _mm256_add_epi16(cd, _mm256_packs_epi32(offsets.v[2], offsets.v[3]))};
    return bytes_i8(sums, false);
}

static inline certainty chunk_store_requant(void *p, vchunk t, ichunk offsets)
{
    const words w = to_words(t);
    _mm256_storeu_si256(p, bytes_requant(w, offsets));
    return certainty_of_words(w);
}

static inline certainty chunk_stream_requant(void *p, vchunk t, ichunk offsets)
{
    const words w = to_words(t);
    _mm256_stream_si256(p, bytes_requant(w, offsets));
    return certainty_of_words(w);
}

static inline void chunk_store_total_requant(void *p, vchunk t, ichunk offsets)
{
    _mm256_storeu_si256(p, bytes_requant(to_words_total(t), offsets));
}

/* ---- store as floating point ------------------------------------------------------------------------------------- */

/* NaN becomes 0x7FC00000. */
static inline vchunk canonical(vchunk t)
{
    const vf nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000));
    for (int i = 0; i < 4; i++) {
        t.v[i] = _mm256_blendv_ps(t.v[i], nan, _mm256_cmp_ps(t.v[i], t.v[i], _CMP_UNORD_Q));
    }
    return t;
}

static inline __m128i halves_f16(vf t)
{
    return _mm256_cvtps_ph(t, _MM_FROUND_TO_NEAREST_INT);
}

/* Rounded half to even at bit 16, not yet cut there; the carry may reach the exponent. */
static inline __m256i round_bf16(vf t)
{
    const __m256i bits = _mm256_castps_si256(t);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
}

static inline __m256i halves_bf16(vf a, vf b)
{
    const __m256i packed =
        _mm256_packus_epi32(_mm256_srli_epi32(round_bf16(a), 16), _mm256_srli_epi32(round_bf16(b), 16));
    return _mm256_permute4x64_epi64(packed, 0xD8);
}

#define PUT(F32, F16, BF16, STORE_FLOATS, STORE_128, STORE_256)                                                        \
    static inline void F32(void *p, vchunk t)                                                                          \
    {                                                                                                                  \
        float *y = p;                                                                                                  \
        for (int i = 0; i < 4; i++) {                                                                                  \
            STORE_FLOATS(y + 8 * i, t.v[i]);                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static inline void F16(void *p, vchunk t)                                                                          \
    {                                                                                                                  \
        __m128i *y = p;                                                                                                \
        for (int i = 0; i < 4; i++) {                                                                                  \
            STORE_128(y + i, halves_f16(t.v[i]));                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static inline void BF16(void *p, vchunk t)                                                                         \
    {                                                                                                                  \
        __m256i *y = p;                                                                                                \
        STORE_256(y, halves_bf16(t.v[0], t.v[1]));                                                                     \
        STORE_256(y + 1, halves_bf16(t.v[2], t.v[3]));                                                                 \
    }

PUT(put_f32, put_f16, put_bf16, _mm256_storeu_ps, _mm_storeu_si128, _mm256_storeu_si256)
PUT(put_around_f32, put_around_f16, put_around_bf16, _mm256_stream_ps, _mm_stream_si128, _mm256_stream_si256)
#undef PUT

#include "float_stores.h"

#define STORE_TOTAL(NAME, HOW)                                                                                         \
    static inline void NAME(void *p, vchunk t)                                                                         \
    {                                                                                                                  \
        HOW(p, canonical(t));                                                                                          \
    }

STORE_TOTAL(chunk_store_total_f32, put_f32)
STORE_TOTAL(chunk_store_total_f16, put_f16)
STORE_TOTAL(chunk_store_total_bf16, put_bf16)
#undef STORE_TOTAL

static inline void stream_end(void)
{
    _mm_sfence();
}

/* ---- range ------------------------------------------------------------------------------------------------------ */

/* The extremes of the patterns as signed and as unsigned integers; make_row_range() tells the range from them. */
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

/* both: the smallest patterns do not matter, see make_row_range_of_both(). */
static inline vrange vrange_join(vrange a, vrange b, bool both)
{
    a.smax = _mm256_max_epi32(a.smax, b.smax);
    a.umax = _mm256_max_epu32(a.umax, b.umax);
    if (!both) {
        a.smin = _mm256_min_epi32(a.smin, b.smin);
        a.umin = _mm256_min_epu32(a.umin, b.umin);
    }
    return a;
}

static inline bool vrange_both(vrange a)
{
    return _mm256_movemask_ps(_mm256_castsi256_ps(a.smax)) != 0xFF &&
           _mm256_movemask_ps(_mm256_castsi256_ps(a.umax)) != 0;
}

/* Lane 0 of each joined with all others. */
static inline row_range vrange_reduce(vrange a, bool both)
{
#define JOIN(HOW)     a = vrange_join(a, (vrange){HOW(a.smax), HOW(a.umax), HOW(a.smin), HOW(a.umin)}, both)
#define HALVES(V)     _mm256_permute4x64_epi64(V, 0x4E)
#define QUARTERS(V)   _mm256_shuffle_epi32(V, 0x4E)
#define LANE_PAIRS(V) _mm256_shuffle_epi32(V, 0xB1)
    JOIN(HALVES);
    JOIN(QUARTERS);
    JOIN(LANE_PAIRS);
#undef JOIN
#undef HALVES
#undef QUARTERS
#undef LANE_PAIRS
#define LANE_0(V) _mm256_extract_epi32(V, 0)
    return both ? make_row_range_of_both(LANE_0(a.smax), LANE_0(a.umax))
                : make_row_range(LANE_0(a.smax), LANE_0(a.umax), LANE_0(a.smin), LANE_0(a.umin));
#undef LANE_0
}

/* The same for 16-bit patterns. */
typedef struct hchunk {
    __m256i v[2];
} hchunk;

typedef vrange hrange;

static inline hchunk chunk_load_halves(const void *p)
{
    const __m256i *x = p;
    return (hchunk){{_mm256_loadu_si256(x), _mm256_loadu_si256(x + 1)}};
}

static inline hrange hrange_of(__m256i v)
{
    return (hrange){v, v, v, v};
}

static inline hrange hrange_join(hrange a, hrange b, bool both)
{
    a.smax = _mm256_max_epi16(a.smax, b.smax);
    a.umax = _mm256_max_epu16(a.umax, b.umax);
    if (!both) {
        a.smin = _mm256_min_epi16(a.smin, b.smin);
        a.umin = _mm256_min_epu16(a.umin, b.umin);
    }
    return a;
}

/* The sign bits are those of every other byte. */
static inline bool hrange_both(hrange a)
{
    return (~(uint32_t)_mm256_movemask_epi8(a.smax) & 0xAAAAAAAAu) != 0 &&
           ((uint32_t)_mm256_movemask_epi8(a.umax) & 0xAAAAAAAAu) != 0;
}

/* The smallest of 16 unsigned numbers. */
static inline uint16_t reduce_min_epu16(__m256i v)
{
    const __m128i a = _mm_min_epu16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    return (uint16_t)_mm_cvtsi128_si32(_mm_minpos_epu16(a));
}

static inline uint16_t reduce_flipped(__m256i v, uint16_t flip)
{
    return (uint16_t)(reduce_min_epu16(_mm256_xor_si256(v, _mm256_set1_epi16((short)flip))) ^ flip);
}

/* smax, umax, smin, umin */
static inline void hrange_reduce(hrange a, uint16_t *extremes)
{
    extremes[0] = reduce_flipped(a.smax, 0x7FFF);
    extremes[1] = reduce_flipped(a.umax, 0xFFFF);
    extremes[2] = reduce_flipped(a.smin, 0x8000);
    extremes[3] = reduce_min_epu16(a.umin);
}

#include "parts_by_copy.h"

/* ---- trans_quant_param ------------------------------------------------------------------------------------------ */

enum { PACK = 8 };

static inline void pack_store(const uint32_t *scale, const float *offset, uint64_t *y, bool nearest)
{
    const __m256i exponents = _mm256_set1_epi32(0x7F800000);
    __m256i s = _mm256_loadu_si256((const __m256i *)(const void *)scale);
    __m256i high = offset ? clamp(_mm256_loadu_ps(offset), -256.0f, 255.0f) : _mm256_setzero_si256();

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

static inline void unpack_store(const uint64_t *y, float *scale, int32_t *offset)
{
    const __m256 a = _mm256_loadu_ps((const float *)(const void *)y);
    const __m256 b = _mm256_loadu_ps((const float *)(const void *)(y + 4));
    const __m256i low = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)); /* words 0 1 4 5 2 3 6 7 */
    const __m256i high = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xDD));
    const __m256i s = _mm256_and_si256(_mm256_permute4x64_epi64(low, 0xD8), _mm256_set1_epi32(~0x1FFF));
    const __m256i o = _mm256_srai_epi32(_mm256_slli_epi32(_mm256_permute4x64_epi64(high, 0xD8), 18), 23);
    _mm256_storeu_si256((__m256i *)(void *)scale, s);
    _mm256_storeu_si256((__m256i *)(void *)offset, o);
}

#endif
