/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of vec_required.h in AVX2 with F16C: 8 lanes. */
#ifndef NPUQ_VEC_AVX2_H
#define NPUQ_VEC_AVX2_H

#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "this file is compiled with -mavx2 -mfma -mf16c"
#endif

#include <immintrin.h>

typedef __m256 vf;
typedef __m256i vq;
typedef __m128i vhalf;
#include "vec.h"

#define IN_PAIRS(SPEC) ((SPEC).steps != NPUQ_BY_COLUMN)
#define MM(NAME)       _mm256_##NAME
#define SI(NAME)       _mm256_##NAME##_si256
#define HI(NAME)       _mm_##NAME##_si128

static inline __m128i load_quarter(const void *p)
{
    return _mm_loadl_epi64(p);
}

static inline vq in_each_quarter(const void *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(p));
}

/* A bit for each lane: its own top bit. */
#define ALL_SIGNS 0xFFu
static inline uint32_t signs(vq v)
{
    return (uint32_t)_mm256_movemask_ps((vf)v);
}

/* Of 16 bits, those of every other byte. */
#define ALL_HALF_SIGNS 0xAAAAAAAAu
static inline uint32_t half_signs(vq v)
{
    return (uint32_t)_mm256_movemask_epi8(v) & ALL_HALF_SIGNS;
}

static inline uint16_t reduce_min_epu16(vq v)
{
    const __m128i a = _mm_min_epu16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    return (uint16_t)_mm_cvtsi128_si32(_mm_minpos_epu16(a));
}

static inline vq in_order(vq bytes, bool unpack_order)
{
    return unpack_order ? _mm256_permute4x64_epi64(bytes, 0xD8)
                        : _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Bytes in the order from which unpacking makes that of memory. */
static inline vq to_unpack(vq bytes)
{
    return _mm256_permute4x64_epi64(bytes, 0xD8);
}

/* Of bytes that hold two elements, in the lower half of each 128 bits. */
static inline __m128i nibbles_in_order(vq bytes, bool unpack_order)
{
    const __m128i a = _mm256_castsi256_si128(bytes);
    const __m128i b = _mm256_extracti128_si256(bytes, 1);
    return unpack_order ? _mm_unpacklo_epi32(a, b) : _mm_unpacklo_epi16(a, b);
}

/* The least words of integers: a lane may be wrong if one is INT16_MIN. For floating point, all ones where NaN is. */
#define STORE_CHECK
typedef vq store_check;

static inline store_check start_check(void)
{
    return _mm256_setzero_si256();
}

static inline store_check join_checks(store_check a, store_check b, bool floats)
{
    return floats ? _mm256_or_si256(a, b) : _mm256_min_epi16(a, b);
}

static inline bool is_fast_path_ok(store_check c, bool floats)
{
    return _mm256_movemask_epi8(floats ? c : _mm256_cmpeq_epi16(c, _mm256_set1_epi16(INT16_MIN))) == 0;
}

static inline store_check check_of_least(vq least)
{
    return least;
}

static inline store_check check_of_floats(vchunk t)
{
    const vf ab = _mm256_cmp_ps(t.v[0], t.v[1], _CMP_UNORD_Q);
    const vf cd = _mm256_cmp_ps(t.v[2], t.v[3], _CMP_UNORD_Q);
    return (vq)_mm256_or_ps(ab, cd);
}

/* NaN becomes 0, and a number above INT16_MAX becomes INT16_MAX. A number far below may become INT32_MIN. */
static inline vq clamp_exact(vf t)
{
    const vf ordered = _mm256_and_ps(t, _mm256_cmp_ps(t, t, _CMP_ORD_Q));
    return _mm256_cvtps_epi32(_mm256_min_ps(ordered, _mm256_set1_ps(INT16_MAX)));
}

/* NaN as 0. */
static inline vq to_i32(vf t)
{
    /* INT32_MIN, the result where it is out of range, is INT32_MAX inverted. */
    const vq above = (vq)_mm256_cmp_ps(t, _mm256_set1_ps(2147483648.0f), _CMP_GE_OQ);
    return (_mm256_cvtps_epi32(t) ^ above) & (vq)_mm256_cmp_ps(t, t, _CMP_ORD_Q);
}

static inline vf canonical(vf t)
{
    return _mm256_blendv_ps(t, (vf)_mm256_set1_epi32(0x7FC00000), _mm256_cmp_ps(t, t, _CMP_UNORD_Q));
}

static inline __m128i halves_f16(vf t)
{
    return _mm256_cvtps_ph(t, _MM_FROUND_TO_NEAREST_INT);
}

static inline vq join_halves(vhalf a, vhalf b)
{
    return _mm256_set_m128i(b, a);
}

static inline vhalf first_half(vq v)
{
    return _mm256_castsi256_si128(v);
}

static inline vhalf last_half(vq v)
{
    return _mm256_extracti128_si256(v, 1);
}

/* Rounded half to even at bit 16; the carry may reach the exponent. */
static inline vq round_bf16(vf t)
{
    return (vq)(((vu)t + 0x7FFF + ((vu)t >> 16 & 1)) >> 16);
}

static inline vq pair_words(vq a, vq b)
{
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xD8);
}

static inline vq pair_bf16(vf a, vf b)
{
    return pair_words(round_bf16(a), round_bf16(b));
}

static inline vq pair_upper(vf a, vf b)
{
    return pair_words(_mm256_srli_epi32((vq)a, 16), _mm256_srli_epi32((vq)b, 16));
}

#include "vec_x86.h"

/* Each lane has the word of its int4: shifted to the top, and back with its sign. */
static inline vf floats_of_word(const char *x)
{
    int32_t word;
    memcpy(&word, x, sizeof word);
    const vq top = _mm256_sllv_epi32(_mm256_set1_epi32(word), _mm256_setr_epi32(28, 24, 20, 16, 12, 8, 4, 0));
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(top, 28));
}

static inline vchunk chunk_load_i4(const void *p)
{
    const char *x = p;
    return (vchunk){{floats_of_word(x), floats_of_word(x + 4), floats_of_word(x + 8), floats_of_word(x + 12)}};
}

/* Low and high bytes are looked up, and joined within 128 bits. */
static inline hchunk look_up_in_order(const void *x, vu results, vq order)
{
    const vq low_first =
        _mm256_set_epi64x(0x0F0D0B0907050301, 0x0E0C0A0806040200, 0x0F0D0B0907050301, 0x0E0C0A0806040200);
    const vq halves = _mm256_shuffle_epi8((vq)results, low_first);
    const vq pairs = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load_half(x)), order);
    const vq nibbles = (pairs | _mm256_slli_epi16(pairs, 4)) & _mm256_set1_epi8(0x0F);
    const vq low = _mm256_shuffle_epi8(_mm256_permute4x64_epi64(halves, 0x88), nibbles);
    const vq high = _mm256_shuffle_epi8(_mm256_permute4x64_epi64(halves, 0xDD), nibbles);
    return (hchunk){{(vh)_mm256_unpacklo_epi8(low, high), (vh)_mm256_unpackhi_epi8(low, high)}};
}

/* The first 128 bits take int4 0-7 and 16-23. */
#define LOOKS_UP_I4 1
static inline hcodes look_up_int4(const void *x, vu results)
{
    const vq order = _mm256_setr_epi8(0, -1, 1, -1, 2, -1, 3, -1, 8, -1, 9, -1, 10, -1, 11, -1, 4, -1, 5, -1, 6, -1, 7,
                                      -1, 12, -1, 13, -1, 14, -1, 15, -1);
    const hchunk found = look_up_in_order(x, results, order);
    return (hcodes){.whole = {(vq)found.v[0], (vq)found.v[1]}};
}

/* The first 128 bits take every other four elements, as results are unpacked twice. */
static inline vchunk chunk_look_up(const void *x, vu table)
{
    const vq order = _mm256_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1, 2, -1, 3, -1, 6, -1, 7,
                                      -1, 10, -1, 11, -1, 14, -1, 15, -1);
    return unpacked_bf16(look_up_in_order(x, table, order));
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

static inline vchunk chunk_to_unpack_order(vchunk t)
{
    return (vchunk){{_mm256_permute2f128_ps(t.v[0], t.v[1], 0x20), _mm256_permute2f128_ps(t.v[0], t.v[1], 0x31),
                     _mm256_permute2f128_ps(t.v[2], t.v[3], 0x20), _mm256_permute2f128_ps(t.v[2], t.v[3], 0x31)}};
}

/* Lane 0 of each joined with all others. */
static inline row_range vrange_reduce(vrange a, bool mixed_signs)
{
#define JOIN(HOW)     a = vrange_join(a, (vrange){HOW(a.smax), HOW(a.umax), HOW(a.smin), HOW(a.umin)}, mixed_signs)
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
    return mixed_signs ? make_mixed_row_range(LANE_0(a.smax), LANE_0(a.umax))
                       : make_row_range(LANE_0(a.smax), LANE_0(a.umax), LANE_0(a.smin), LANE_0(a.umin));
#undef LANE_0
}

#include "without_masks.h"

/* ---- trans_quant_param ------------------------------------------------------------------------------------------ */

static inline void put_words(uint64_t *y, vu low, vu high)
{
    const vq a = _mm256_unpacklo_epi32((vq)low, (vq)high); /* words 0 1 4 5 */
    const vq b = _mm256_unpackhi_epi32((vq)low, (vq)high); /* words 2 3 6 7 */
    put_vector(y, 0, (vu)_mm256_permute2x128_si256(a, b, 0x20));
    put_vector(y, 1, (vu)_mm256_permute2x128_si256(a, b, 0x31));
}

#endif
