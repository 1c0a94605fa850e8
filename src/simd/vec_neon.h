/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of vec_required.h in AArch64's baseline vector instructions: 4 lanes. */
#ifndef NPUQ_VEC_NEON_H
#define NPUQ_VEC_NEON_H

#if !defined(__aarch64__) || defined(__AARCH64EB__)
#error "this file is for little-endian AArch64"
#endif

#include "row_range.h"

#include <arm_neon.h>

typedef float32x4_t vf;
#include "vec.h"

static inline vf v_set(float value)
{
    return vdupq_n_f32(value);
}

static inline vf v_above(vf a, vf b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

static inline vf v_upper(vf a, vf b)
{
    return vreinterpretq_f32_s32(vmaxq_s32(vreinterpretq_s32_f32(a), vreinterpretq_s32_f32(b)));
}

static inline vf v_lower(vf a, vf b)
{
    return vreinterpretq_f32_s32(vminq_s32(vreinterpretq_s32_f32(a), vreinterpretq_s32_f32(b)));
}

static inline vh h_upper(vh a, vh b)
{
    return vmaxq_u16(a, b);
}

static inline vh h_lower(vh a, vh b)
{
    return vminq_u16(a, b);
}

/* Both bytes of an index beyond the table give 0. */
static inline vh h_look_up(const uint8_t *table, vh at)
{
    return vreinterpretq_u16_u8(vqtbl1q_u8(vld1q_u8(table), vreinterpretq_u8_u16(at | 0xFF00)));
}

static inline vf v_even(vf a, vf b)
{
    return vuzp1q_f32(a, b);
}

static inline vf v_odd(vf a, vf b)
{
    return vuzp2q_f32(a, b);
}

/* See chunk.h: the remainder is exact, and its share corrects the last bit. */
enum { FAST_DIVIDE = 1 };

static inline vf v_quotient(vf x, vf scale, vf inverse)
{
    const vf q = vmulq_f32(x, inverse);
    return vfmaq_f32(q, vfmsq_f32(x, q, scale), inverse);
}

/* Each pattern doubled, less that of 2^-64: the top bit tells whether it is outside of [2^-64, 2^64). */
static inline bool chunk_is_invertible(vchunk s)
{
    uint32x4_t bits = vdupq_n_u32(0);
    for (int i = 0; i < 4; i++) {
        const uint32x4_t doubled = vshlq_n_u32(vreinterpretq_u32_f32(s.v[i]), 1);
        bits = vorrq_u32(bits, vsubq_u32(doubled, vdupq_n_u32(63u << 24)));
    }
    return vmaxvq_u32(bits) < 1u << 31;
}

/* A maximum with NaN is NaN. */
static inline bool has_nan(vchunk t)
{
    const float largest = vmaxvq_f32(vmaxq_f32(vmaxq_f32(t.v[0], t.v[1]), vmaxq_f32(t.v[2], t.v[3])));
    return largest != largest;
}

/* No check of integers fails, so the quotients are tested. */
static inline bool are_quotients_exact(vchunk q)
{
    return !has_nan(q);
}

/* ---- loads ------------------------------------------------------------------------------------------------------ */

static inline vchunk chunk_of_f16(hchunk t)
{
    const float16x8_t a = vreinterpretq_f16_u16(t.v[0]);
    const float16x8_t b = vreinterpretq_f16_u16(t.v[1]);
    return (vchunk){
        {vcvt_f32_f16(vget_low_f16(a)), vcvt_high_f32_f16(a), vcvt_f32_f16(vget_low_f16(b)), vcvt_high_f32_f16(b)}};
}

static inline vchunk chunk_load_f16(const void *p)
{
    return chunk_of_f16(chunk_load_halves(p));
}

static inline vchunk chunk_of_bf16(uint16x8_t a, uint16x8_t b)
{
    return (vchunk){
        {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(a), 16)), vreinterpretq_f32_u32(vshll_high_n_u16(a, 16)),
         vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(b), 16)), vreinterpretq_f32_u32(vshll_high_n_u16(b, 16))}};
}

static inline vchunk chunk_load_bf16(const void *p)
{
    const hchunk t = chunk_load_halves(p);
    return chunk_of_bf16(t.v[0], t.v[1]);
}

static inline hchunk chunk_load_bytes(const void *p)
{
    const uint8x16_t x = vld1q_u8(p);
    return (hchunk){{vshll_n_u8(vget_low_u8(x), 8), vshll_high_n_u8(x, 8)}};
}

/* A magnitude's two bytes are looked up; the sign is the code's upper bit. */
static inline uint16x8_t look_up_halves(uint8x8_t codes, vu table)
{
    const uint16x8_t code = vmovl_u8(codes);
    const uint16x8_t bytes = vmlaq_n_u16(vdupq_n_u16(0x0100), vandq_u16(code, vdupq_n_u16(7)), 0x0202);
    const uint16x8_t magnitude =
        vreinterpretq_u16_u8(vqtbl1q_u8(vreinterpretq_u8_u32(table), vreinterpretq_u8_u16(bytes)));
    return vorrq_u16(magnitude, vshlq_n_u16(vshrq_n_u16(code, 3), 15));
}

static inline vchunk chunk_look_up(const void *p, vu table)
{
    const uint8x8_t bytes = vld1_u8(p);
    const uint8x8_t even = vand_u8(bytes, vdup_n_u8(15));
    const uint8x8_t odd = vshr_n_u8(bytes, 4);
    return chunk_of_bf16(look_up_halves(vzip1_u8(even, odd), table), look_up_halves(vzip2_u8(even, odd), table));
}

static inline vchunk floats_of_i16(int16x8_t a, int16x8_t b)
{
    return (vchunk){{vcvtq_f32_s32(vmovl_s16(vget_low_s16(a))), vcvtq_f32_s32(vmovl_high_s16(a)),
                     vcvtq_f32_s32(vmovl_s16(vget_low_s16(b))), vcvtq_f32_s32(vmovl_high_s16(b))}};
}

static inline vchunk floats_of_i8(int8x16_t x)
{
    return floats_of_i16(vmovl_s8(vget_low_s8(x)), vmovl_high_s8(x));
}

static inline vchunk chunk_load_i8(const void *p)
{
    return floats_of_i8(vld1q_s8(p));
}

/* 16 nibbles, the even element low. */
static inline vchunk chunk_load_i4(const void *p)
{
    const int8x8_t bytes = vld1_s8(p);
    const int8x8_t even = vshr_n_s8(vshl_n_s8(bytes, 4), 4);
    const int8x8_t odd = vshr_n_s8(bytes, 4);
    return floats_of_i8(vcombine_s8(vzip1_s8(even, odd), vzip2_s8(even, odd)));
}

static inline vchunk chunk_load_u8(const void *p)
{
    const uint8x16_t x = vld1q_u8(p);
    return floats_of_i16(vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(x))), vreinterpretq_s16_u16(vmovl_high_u8(x)));
}

/* ---- encodes ---------------------------------------------------------------------------------------------------- */

/* Saturated to 16 bits; the narrows saturate further. */
typedef struct icodes {
    int16x8_t v[2];
} icodes;

static inline int16x8_t to_i16(vf low, vf high)
{
    return vqmovn_high_s32(vqmovn_s32(vcvtnq_s32_f32(low)), vcvtnq_s32_f32(high));
}

/* The conversion rounds half to even, saturates, and takes NaN to 0: no check of integers fails. */
static inline icodes encode_integers(vchunk t, int least, int most, bool exact, bool *check)
{
    (void)least, (void)most, (void)exact, (void)check;
    return (icodes){{to_i16(t.v[0], t.v[1]), to_i16(t.v[2], t.v[3])}};
}

static inline icodes icodes_of_halves(vh ab, vh cd)
{
    return (icodes){{vreinterpretq_s16_u16(ab), vreinterpretq_s16_u16(cd)}};
}

static inline vh upper_halves(vf a, vf b)
{
    return vuzp2q_u16(vreinterpretq_u16_f32(a), vreinterpretq_u16_f32(b));
}

static inline vh small_codes(vf a, vf b, small_format f)
{
    const int32x4_t right = vdupq_n_s32(-(int)f.drop);
    const uint32x4_t first = vreinterpretq_u32_f32(a);
    const uint32x4_t last = vreinterpretq_u32_f32(b);
    return vuzp1q_u16(vreinterpretq_u16_u32(first + vshlq_u32(first, right)),
                      vreinterpretq_u16_u32(last + vshlq_u32(last, right))) -
           (uint16_t)(f.first << (23 - f.drop));
}

static inline bool check_of_floats(vchunk t)
{
    return !has_nan(t);
}

static inline icodes add_requant_offsets(icodes c, ichunk offsets)
{
    for (int i = 0; i < 2; i++) {
        const int16x8_t clamped = vmaxq_s16(vminq_s16(c.v[i], vdupq_n_s16(255)), vdupq_n_s16(-256));
        c.v[i] = vaddq_s16(clamped, vmovn_high_s32(vmovn_s32(offsets.v[2 * i]), offsets.v[2 * i + 1]));
    }
    return c;
}

static inline ichunk encode_int32(vchunk t, bool exact, bool *check)
{
    (void)exact, (void)check;
    return (ichunk){{vcvtnq_s32_f32(t.v[0]), vcvtnq_s32_f32(t.v[1]), vcvtnq_s32_f32(t.v[2]), vcvtnq_s32_f32(t.v[3])}};
}

/* The check fails where there is a NaN. */
static inline vchunk with_one_nan(vchunk t, bool exact, bool *check)
{
    if (!exact) {
        *check = !has_nan(t);
        return t;
    }
    for (int i = 0; i < 4; i++) {
        t.v[i] = vbslq_f32(vceqq_f32(t.v[i], t.v[i]), t.v[i], vreinterpretq_f32_u32(vdupq_n_u32(0x7FC00000u)));
    }
    return t;
}

static inline ichunk encode_float32(vchunk t, bool exact, bool *check)
{
    return chunk_bits(with_one_nan(t, exact, check));
}

static inline uint16x8_t halves_f16(vf low, vf high)
{
    return vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(low), high));
}

static inline hchunk encode_float16(vchunk t, bool exact, bool *check)
{
    t = with_one_nan(t, exact, check);
    return (hchunk){{halves_f16(t.v[0], t.v[1]), halves_f16(t.v[2], t.v[3])}};
}

/* Upper halves, plus one where the lower half is above the middle, or is the middle and the upper half is odd. The
 * carry may reach the exponent. */
static inline uint16x8_t halves_bf16(vf low, vf high)
{
    const uint16x8_t a = vreinterpretq_u16_f32(low);
    const uint16x8_t b = vreinterpretq_u16_f32(high);
    const uint16x8_t upper = vuzp2q_u16(a, b);
    const uint16x8_t rest = vorrq_u16(vuzp1q_u16(a, b), vandq_u16(upper, vdupq_n_u16(1)));
    return vsubq_u16(upper, vcgtq_u16(rest, vdupq_n_u16(0x8000)));
}

static inline hchunk encode_bfloat16(vchunk t, bool exact, bool *check)
{
    t = with_one_nan(t, exact, check);
    return (hchunk){{halves_bf16(t.v[0], t.v[1]), halves_bf16(t.v[2], t.v[3])}};
}

static inline hchunk truncate_bfloat16(vchunk t)
{
    return (hchunk){{upper_halves(t.v[0], t.v[1]), upper_halves(t.v[2], t.v[3])}};
}

/* ---- narrows ---------------------------------------------------------------------------------------------------- */

static inline uint8x16_t bytes_int8(icodes c)
{
    return vreinterpretq_u8_s8(vqmovn_high_s16(vqmovn_s16(c.v[0]), c.v[1]));
}

static inline void narrow_int8(void *p, icodes c, uint8_t flip, bool unpack_order, bool non_temporal)
{
    (void)unpack_order, (void)non_temporal;
    vst1q_u8(p, veorq_u8(bytes_int8(c), vdupq_n_u8(flip)));
}

static inline void narrow_uint8(void *p, icodes c, bool unpack_order, bool non_temporal)
{
    (void)unpack_order, (void)non_temporal;
    vst1q_u8(p, vqmovun_high_s16(vqmovun_s16(c.v[0]), c.v[1]));
}

/* 16 nibbles in 8 bytes, the even element low. */
static inline void narrow_int4(void *p, icodes c, bool unpack_order, bool non_temporal)
{
    const int8x16_t bytes = vreinterpretq_s8_u8(bytes_int8(c));
    const uint8x16_t high = vreinterpretq_u8_s8(vqshlq_n_s8(bytes, 4)); /* saturated at 4 bits, in the upper ones */
    const uint16x8_t swapped = vreinterpretq_u16_u8(vrev16q_u8(high));
    (void)unpack_order, (void)non_temporal;
    vst1_u8(p, vshrn_n_u16(vsriq_n_u16(vreinterpretq_u16_u8(high), swapped, 4), 8));
}

/* ---- range ------------------------------------------------------------------------------------------------------ */

/* The instructions order -0 below +0 and keep NaN, so signs do not matter. */
typedef struct vrange {
    vf hi;
    vf lo;
} vrange;

static inline vrange vrange_of(vf v)
{
    return (vrange){v, v};
}

static inline vrange vrange_join(vrange a, vrange b, bool mixed_signs)
{
    (void)mixed_signs;
    return (vrange){vmaxq_f32(a.hi, b.hi), vminq_f32(a.lo, b.lo)};
}

static inline row_range vrange_reduce(vrange a, bool mixed_signs)
{
    (void)mixed_signs;
    return (row_range){order_float(vmaxvq_f32(a.hi)), order_float(vminvq_f32(a.lo))};
}

/* Halves by their patterns, as signed and as unsigned integers; make_row_range() tells the range from them. */
typedef struct hrange {
    int16x8_t smax;
    uint16x8_t umax;
    int16x8_t smin;
    uint16x8_t umin;
} hrange;

static inline hrange hrange_of(vh v)
{
    return (hrange){vreinterpretq_s16_u16(v), v, vreinterpretq_s16_u16(v), v};
}

static inline hrange hrange_join(hrange a, hrange b, bool mixed_signs)
{
    a.smax = vmaxq_s16(a.smax, b.smax);
    a.umax = vmaxq_u16(a.umax, b.umax);
    if (!mixed_signs) {
        a.smin = vminq_s16(a.smin, b.smin);
        a.umin = vminq_u16(a.umin, b.umin);
    }
    return a;
}

static inline bool hrange_has_mixed_signs(hrange a)
{
    return vmaxvq_s16(a.smax) >= 0 && vmaxvq_u16(a.umax) >= 0x8000;
}

static inline void hrange_reduce(hrange a, uint16_t *extremes)
{
    extremes[0] = (uint16_t)vmaxvq_s16(a.smax);
    extremes[1] = vmaxvq_u16(a.umax);
    extremes[2] = (uint16_t)vminvq_s16(a.smin);
    extremes[3] = vminvq_u16(a.umin);
}

#include "plain.h"
#include "without_masks.h"

/* ---- trans_quant_param ------------------------------------------------------------------------------------------ */

static inline vi round_offset(vf t)
{
    return vmaxq_s32(vminq_s32(vcvtnq_s32_f32(t), vdupq_n_s32(255)), vdupq_n_s32(-256));
}

static inline void put_words(uint64_t *y, vu low, vu high)
{
    put_vector(y, 0, vzip1q_u32(low, high));
    put_vector(y, 1, vzip2q_u32(low, high));
}

#endif
