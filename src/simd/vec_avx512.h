/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of vec_required.h in AVX-512 (F, BW, VL, DQ): 16 lanes, tails by mask. */
#ifndef NPUQ_VEC_AVX512_H
#define NPUQ_VEC_AVX512_H

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512VL__) || !defined(__AVX512DQ__)
#error "this file is compiled with -mavx512f -mavx512bw -mavx512vl -mavx512dq"
#endif

#include <immintrin.h>

typedef __m512 vf;
typedef __m512i vq;
typedef __m256i vhalf;
#include "vec.h"

#define IN_PAIRS(SPEC) ((SPEC).steps != NPUQ_BY_COLUMN && !(SPEC).is_smooth)
#define MM(NAME)       _mm512_##NAME
#define SI(NAME)       _mm512_##NAME##_si512
#define HI(NAME)       _mm256_##NAME##_si256

static inline __m128i load_quarter(const void *p)
{
    return _mm_loadu_si128(p);
}

static inline vq in_each_quarter(const void *p)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128(p));
}

/* A bit for each lane: its own top bit. */
#define ALL_SIGNS 0xFFFFu
static inline uint32_t signs(vq v)
{
    return _mm512_movepi32_mask(v);
}

#define ALL_HALF_SIGNS 0xFFFFFFFFu
static inline uint32_t half_signs(vq v)
{
    return _mm512_movepi16_mask(v);
}

static inline uint16_t reduce_min_epu16(vq v)
{
    const __m256i a = _mm256_min_epu16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    const __m128i b = _mm_min_epu16(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    return (uint16_t)_mm_cvtsi128_si32(_mm_minpos_epu16(b));
}

static inline vq in_order(vq bytes, bool unpack_order)
{
    return unpack_order ? _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), bytes)
                        : _mm512_permutexvar_epi32(
                              _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), bytes);
}

/* Bytes in the order from which unpacking makes that of memory. */
static inline vq to_unpack(vq bytes)
{
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), bytes);
}

/* Of bytes that hold two elements, in the lower half of each 128 bits. */
static inline __m256i nibbles_in_order(vq bytes, bool unpack_order)
{
    const __m512i whole =
        _mm512_castsi256_si512(_mm256_setr_epi16(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27));
    const __m512i halves = _mm512_castsi256_si512(_mm256_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13));
    return _mm512_castsi512_si256(unpack_order ? _mm512_permutexvar_epi32(halves, bytes)
                                               : _mm512_permutexvar_epi16(whole, bytes));
}

/* The least words of integers: a lane may be wrong if one is INT16_MIN. For floating point, a bit for each NaN, or for
 * another value that may be wrong. Of scales, a bit for each lane that had no other than invertible ones. */
#define STORE_CHECK
typedef struct store_check {
    vq least;
    __mmask16 nan;
    __mmask16 invertible;
} store_check;

static inline store_check start_check(void)
{
    return (store_check){_mm512_setzero_si512(), 0, 0xFFFF};
}

static inline store_check join_checks(store_check a, store_check b, bool floats)
{
    if (floats) {
        a.nan = _kor_mask16(a.nan, b.nan);
    } else {
        a.least = _mm512_min_epi16(a.least, b.least);
        a.invertible &= b.invertible;
    }
    return a;
}

static inline bool is_fast_path_ok(store_check c, bool floats)
{
    return floats ? c.nan == 0
                  : _mm512_cmpeq_epi16_mask(c.least, _mm512_set1_epi16(INT16_MIN)) == 0 && c.invertible == 0xFFFF;
}

static inline store_check check_of_least(vq least)
{
    return (store_check){.least = least, .invertible = 0xFFFF};
}

static inline store_check check_of_floats(vchunk t)
{
    return (store_check){.nan = _kor_mask16(_mm512_cmp_ps_mask(t.v[0], t.v[1], _CMP_UNORD_Q),
                                            _mm512_cmp_ps_mask(t.v[2], t.v[3], _CMP_UNORD_Q))};
}

/* NaN becomes 0, and a number above INT16_MAX becomes INT16_MAX. A number far below may become INT32_MIN. */
static inline vq clamp_exact(vf t)
{
    return _mm512_cvtps_epi32(_mm512_maskz_min_ps(_mm512_cmp_ps_mask(t, t, _CMP_ORD_Q), t, _mm512_set1_ps(INT16_MAX)));
}

/* NaN as 0. */
static inline vq to_i32(vf t)
{
    const __mmask16 above = _mm512_cmp_ps_mask(t, _mm512_set1_ps(2147483648.0f), _CMP_GE_OQ);
    const vq integers = _mm512_mask_mov_epi32(_mm512_cvtps_epi32(t), above, _mm512_set1_epi32(INT32_MAX));
    return _mm512_maskz_mov_epi32(_mm512_cmp_ps_mask(t, t, _CMP_ORD_Q), integers);
}

static inline vf canonical(vf t)
{
    const __mmask16 nan = _mm512_cmp_ps_mask(t, t, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(t, nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000)));
}

static inline __m256i halves_f16(vf t)
{
    return _mm512_maskz_cvtps_ph(0xFFFF, t, _MM_FROUND_TO_NEAREST_INT); /* the plain one warns in gcc 12, without -O */
}

/* Two vectors, rounded half to even at bit 16; the carry may reach the exponent. Upper and lower halves of the lanes of
 * both are interleaved, a's first: rounding 32 lanes at once takes fewer operations than 16 twice. */
static inline vq pair_bf16(vf a, vf b)
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

static inline vq pair_upper(vf a, vf b)
{
    const __m512i upper = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                                           25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    return _mm512_permutex2var_epi16((vq)a, upper, (vq)b);
}

static inline vhalf first_half(vq v)
{
    return _mm512_castsi512_si256(v);
}

static inline vhalf last_half(vq v)
{
    return _mm512_extracti64x4_epi64(v, 1);
}

static inline vq join_halves(vhalf a, vhalf b)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}

#include "vec_x86.h"

/* To bfloat16 by the instruction of AVX512_BF16, for npuq_rows_avx512_bf16. Asm, because this file is not
 * compiled for AVX512_BF16. The instruction takes subnormal numbers as zeros and keeps a NaN's payload: the check fails
 * for both. */
#define CONVERTS_BF16
static inline vq convert_bf16(vf a, vf b)
{
    vq halves;
    __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(halves) : "v"(a), "v"(b));
    return halves;
}

static inline hcodes encode_converted_bfloat16(vchunk t, store_check *check)
{
    enum { NAN_OR_SUBNORMAL = 0xA1 };
    for (int i = 0; i < 4; i++) {
        check->nan |= _mm512_fpclass_ps_mask(t.v[i], NAN_OR_SUBNORMAL);
    }
    return (hcodes){.whole = {convert_bf16(t.v[0], t.v[1]), convert_bf16(t.v[2], t.v[3])}};
}

/* The entries of a table for 32 int4. Bytes come in `order`, and each 16 bits are shifted so that an int4 is low. Only
 * five bits of an index count: the table has its 16 entries twice. */
static inline vq look_up_32(const void *x, vq order, int64_t shifts, vq table)
{
    const vq bytes = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(x)), order);
    return _mm512_permutexvar_epi16(_mm512_srlv_epi16(bytes, _mm512_set1_epi64(shifts)), table);
}

#define LOOKS_UP_I4 1
static inline hcodes look_up_int4(const void *x, vu results)
{
    const vq order = _mm512_set_epi64(0x0F0E0F0E0F0E0F0E, 0x0D0C0D0C0D0C0D0C, 0x0B0A0B0A0B0A0B0A, 0x0908090809080908,
                                      0x0706070607060706, 0x0504050405040504, 0x0302030203020302, 0x0100010001000100);
    const int64_t shifts = 0x000C000800040000;
    return (hcodes){.whole = {look_up_32(x, order, shifts, (vq)results),
                              look_up_32((const __m128i *)x + 1, order, shifts, (vq)results)}};
}

/* The upper halves of elements i and i + 16 come side by side. */
static inline vchunk chunk_look_up(const void *p, vu table)
{
    const vq order = _mm512_set_epi64(0x0F0F07070F0F0707, 0x0E0E06060E0E0606, 0x0D0D05050D0D0505, 0x0C0C04040C0C0404,
                                      0x0B0B03030B0B0303, 0x0A0A02020A0A0202, 0x0909010109090101, 0x0808000008080000);
    const int64_t shifts = 0x0004000400000000;
    const vq upper = _mm512_set1_epi32((int32_t)0xFFFF0000u);
    const vq a = look_up_32(p, order, shifts, (vq)table);
    const vq b = look_up_32((const __m128i *)p + 1, order, shifts, (vq)table);
    return (vchunk){{(vf)_mm512_slli_epi32(a, 16), (vf)(a & upper), (vf)_mm512_slli_epi32(b, 16), (vf)(b & upper)}};
}

static inline vchunk chunk_load_i4(const void *p)
{
    const vq table =
        _mm512_broadcast_i64x4(_mm256_setr_epi32(0x3F800000, 0x40404000, 0x40A04080, 0x40E040C0, (int32_t)0xC0E0C100u,
                                                 (int32_t)0xC0A0C0C0u, (int32_t)0xC040C080u, (int32_t)0xBF80C000u));
    return chunk_look_up(p, (vu)table);
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

/* Rounded to zero, and one more, the first step is above the inverse: docs/kernels.md says why it must be. */
#define FAST_INVERSE 1
static inline vf v_inverse(vf s, vf near)
{
    const vf one = v_set(1.0f);
    const vf below =
        _mm512_fmadd_round_ps(near, _mm512_fnmadd_ps(s, near, one), near, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const vf above = (vf)((vu)below + 1);
    return _mm512_fmadd_ps(above, _mm512_fnmadd_ps(s, above, one), above);
}

/* Two vectors by inverses, while the divider has the other two. */
static inline vchunk chunk_div_checked(vchunk x, vchunk s, store_check *done)
{
    const vu top = (vu)v_set(2.0f); /* of the exponent: after the sum it is set in [2^-64, 2^64) only */
    vu inside = top;
    for (int i = 0; i < 2; i++) {
        inside &= (vu)s.v[i] + (65u << 23);
        x.v[i] = v_quotient(x.v[i], s.v[i], v_inverse(s.v[i], _mm512_rcp14_ps(s.v[i])));
        x.v[i + 2] = x.v[i + 2] / s.v[i + 2];
    }
    done->invertible = _mm512_mask_test_epi32_mask(done->invertible, (vq)inside, (vq)top);
    return x;
}

/* Where the quotient is NaN, x times the inverse is right if x is infinite or NaN. A finite x overflows: then all are
 * divided. */
#define EXACT_QUOTIENT 1
static inline vchunk chunk_quotient_exact(vchunk x, vchunk s, vchunk inverse)
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
            q.v[i] = x.v[i] / s.v[i];
        }
    }
    return q;
}

static inline vchunk chunk_to_unpack_order(vchunk t)
{
    return (vchunk){{_mm512_shuffle_f32x4(t.v[0], t.v[1], 0x88), _mm512_shuffle_f32x4(t.v[0], t.v[1], 0xDD),
                     _mm512_shuffle_f32x4(t.v[2], t.v[3], 0x88), _mm512_shuffle_f32x4(t.v[2], t.v[3], 0xDD)}};
}

/* ---- tails ------------------------------------------------------------------------------------------------------ */

/* The first n lanes of a chunk, 0 < n <= CHUNK; those of a vector. */
static inline uint64_t first_lanes(size_t n)
{
    return ~(uint64_t)0 >> (CHUNK - n);
}

static inline __mmask16 lanes_of(size_t n, int vector)
{
    return (__mmask16)(first_lanes(n) >> (LANES * vector));
}

static inline __m512i load_tail_ints(const char *x, size_t n, int vector)
{
    int32_t first; /* or the bits of a float */
    memcpy(&first, x, sizeof first);
    return _mm512_mask_loadu_epi32(_mm512_set1_epi32(first), lanes_of(n, vector), x + 64 * vector);
}

static inline __m256i load_tail_halves(const uint16_t *x, size_t n, int vector)
{
    return _mm256_mask_loadu_epi16(_mm256_set1_epi16((short)*x), lanes_of(n, vector), x + LANES * vector);
}

static inline __m128i load_tail_bytes(const int8_t *x, size_t n, int vector)
{
    return _mm_mask_loadu_epi8(_mm_set1_epi8(*x), lanes_of(n, vector), x + LANES * vector);
}

#define LOAD_TAIL(X, CHUNK_TYPE, FROM, LOAD_VECTOR)                                                                    \
    static inline CHUNK_TYPE chunk_load_tail_##X(const void *p, size_t n)                                              \
    {                                                                                                                  \
        return (CHUNK_TYPE){{FROM(LOAD_VECTOR(p, n, 0)), FROM(LOAD_VECTOR(p, n, 1)), FROM(LOAD_VECTOR(p, n, 2)),       \
                             FROM(LOAD_VECTOR(p, n, 3))}};                                                             \
    }

LOAD_TAIL(f32, vchunk, (vf), load_tail_ints)
LOAD_TAIL(f16, vchunk, floats_of_f16, load_tail_halves)
LOAD_TAIL(bf16, vchunk, floats_of_bf16, load_tail_halves)
LOAD_TAIL(i8, vchunk, floats_of_i8, load_tail_bytes)
LOAD_TAIL(ints, ichunk, (vi), load_tail_ints)
#undef LOAD_TAIL

/* n is a multiple of 8, a word. */
static inline vf v_bounded_magnitude(vf t, vf most)
{
    enum { LEAST_MAGNITUDE = 2, NO_SIGN = 2 << 2 };
    return _mm512_range_ps(t, most, LEAST_MAGNITUDE | NO_SIGN);
}

static inline vchunk chunk_load_tail_i4(const void *p, size_t n)
{
    const int32_t *x = p;
    const __m256i whole = _mm256_mask_loadu_epi32(_mm256_set1_epi32(*x), (__mmask8)first_lanes(n / 8), x);
    return chunk_load_i4(&whole);
}

static inline hchunk chunk_load_tail_halves(const void *p, size_t n)
{
    const uint16_t *x = p;
    const __m512i first = _mm512_set1_epi16((short)*x);
    return (hchunk){{(vh)_mm512_mask_loadu_epi16(first, (__mmask32)first_lanes(n), x),
                     (vh)_mm512_mask_loadu_epi16(first, (__mmask32)(first_lanes(n) >> 32), x + 32)}};
}

static inline void put_tail(void *p, vq bytes, size_t n)
{
    _mm512_mask_storeu_epi8(p, first_lanes(n), bytes);
}

static inline void narrow_tail_16(void *p, hcodes c, size_t n)
{
    _mm512_mask_storeu_epi16(p, (__mmask32)first_lanes(n), whole_of(c, 0));
    _mm512_mask_storeu_epi16((vq *)p + 1, (__mmask32)(first_lanes(n) >> 32), whole_of(c, 1));
}

static inline void narrow_tail_int8(void *p, icodes c, uint8_t flip, size_t n)
{
    put_tail(p, bytes_int8(c, flip, false), n);
}

static inline void narrow_tail_uint8(void *p, icodes c, size_t n)
{
    put_tail(p, bytes_uint8(c, false), n);
}

static inline void narrow_tail_int4(void *p, icodes c, size_t n)
{
    _mm256_mask_storeu_epi8(p, (__mmask32)first_lanes(n / 2), bytes_int4(c, false));
}

static inline void narrow_tail_32(void *p, ichunk c, size_t n)
{
    for (int i = 0; i < 4; i++) {
        _mm512_mask_storeu_epi32((vq *)p + i, lanes_of(n, i), (vq)c.v[i]);
    }
}

/* ---- range ------------------------------------------------------------------------------------------------------ */

static inline row_range vrange_reduce(vrange a, bool mixed_signs)
{
    const int32_t smax = _mm512_reduce_max_epi32(a.smax);
    const int32_t umax = (int32_t)_mm512_reduce_max_epu32(a.umax);

    return mixed_signs
               ? make_mixed_row_range(smax, umax)
               : make_row_range(smax, umax, _mm512_reduce_min_epi32(a.smin), (int32_t)_mm512_reduce_min_epu32(a.umin));
}

/* The range of floats once both signs have been seen. Intel's CPUs compare twice as many floats in a cycle as integers.
 * The order of zeros does not matter: an extreme that is zero has a known sign. A NaN makes a sum of products NaN;
 * infinite or huge values may, too. */
#define FLOAT_RANGES
typedef struct frange {
    vf hi;
    vf lo;
    vf sums[2];
} frange;

static inline frange frange_of_mixed_signs(void)
{
    return (frange){v_set(0.0f), v_set(0.0f), {v_set(1.0f), v_set(1.0f)}};
}

static inline frange frange_with(frange a, vchunk c)
{
    for (int i = 0; i < 4; i++) {
        __asm__("" : "+v"(c.v[i])); /* else compilers load each three times, slowly from the second-level cache */
    }
    const vf hi = _mm512_max_ps(_mm512_max_ps(c.v[0], c.v[1]), _mm512_max_ps(c.v[2], c.v[3]));
    const vf lo = _mm512_min_ps(_mm512_min_ps(c.v[0], c.v[1]), _mm512_min_ps(c.v[2], c.v[3]));
    return (frange){_mm512_max_ps(a.hi, hi),
                    _mm512_min_ps(a.lo, lo),
                    {_mm512_fmadd_ps(c.v[0], c.v[1], a.sums[0]), _mm512_fmadd_ps(c.v[2], c.v[3], a.sums[1])}};
}

static inline bool frange_is_exact(frange a)
{
    return _mm512_cmp_ps_mask(a.sums[0], a.sums[1], _CMP_UNORD_Q) == 0;
}

static inline vrange vrange_of_floats(frange a)
{
    return (vrange){.smax = _mm512_castps_si512(a.hi), .umax = _mm512_castps_si512(a.lo)};
}

/* ---- trans_quant_param ------------------------------------------------------------------------------------------ */

static inline vu round_scales(vu s)
{
    const vq exponents = _mm512_set1_epi32(0x7F800000);
    const vq exponent = (vq)s & exponents;
    const __mmask16 finite = _mm512_cmpneq_epi32_mask(exponent, exponents);
    const __mmask16 subnormal = _mm512_testn_epi32_mask(exponent, exponents);
    const vq rounded = _mm512_mask_add_epi32((vq)s, finite, (vq)s, (vq)((s >> 13 & 1) + 0xFFF));
    return (vu)_mm512_mask_and_epi32(rounded, subnormal, (vq)s, _mm512_set1_epi32(INT32_MIN));
}

static inline void put_words(uint64_t *y, vu low, vu high)
{
    const __m512i low_words = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high_words = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    put_vector(y, 0, (vu)_mm512_permutex2var_epi32((vq)low, low_words, (vq)high));
    put_vector(y, 1, (vu)_mm512_permutex2var_epi32((vq)low, high_words, (vq)high));
}

#endif
