/* SPDX-License-Identifier: BSD-3-Clause */
/* What AVX2 and AVX-512 share. A header first defines its vectors: vf of floats, vq of integers, vhalf of half as many
 * bytes. Then come the names of its instructions, MM(name) and SI(name) for whole vectors, HI(name) for vhalf. Then
 * come the functions that differ. */
#ifndef NPUQ_VEC_X86_H
#define NPUQ_VEC_X86_H

#include "row_range.h"
#include "vec.h"

static inline vf v_set(float value)
{
    return MM(set1_ps)(value);
}

static inline vf v_above(vf a, vf b)
{
    return MM(max_ps)(a, b); /* the second where one is NaN */
}

static inline vf v_upper(vf a, vf b)
{
    return (vf)MM(max_epi32)((vq)a, (vq)b);
}

static inline vf v_lower(vf a, vf b)
{
    return (vf)MM(min_epi32)((vq)a, (vq)b);
}

static inline vh h_upper(vh a, vh b)
{
    return (vh)MM(max_epi16)((vq)a, (vq)b);
}

static inline vh h_lower(vh a, vh b)
{
    return (vh)MM(min_epi16)((vq)a, (vq)b);
}

/* A byte whose top bit is set gives 0. */
static inline vh h_look_up(const uint8_t *table, vh at)
{
    return (vh)MM(shuffle_epi8)(in_each_quarter(table), (vq)(at + 0x8070));
}

/* See chunk.h: the remainder is exact, and its share corrects the last bit. */
enum { FAST_DIVIDE = 1 };

static inline vf v_quotient(vf x, vf scale, vf inverse)
{
    const vf q = x * inverse;
    return MM(fmadd_ps)(MM(fnmadd_ps)(q, scale, x), inverse, q);
}

/* Each pattern doubled, less that of 2^-64: the top bit tells whether it is outside of [2^-64, 2^64). */
static inline bool chunk_is_invertible(vchunk s)
{
    vu beyond = {0};
    for (int i = 0; i < 4; i++) {
        beyond |= ((vu)s.v[i] << 1) - (63u << 24);
    }
    return signs((vq)beyond) == 0;
}

/* ---- loads ------------------------------------------------------------------------------------------------------ */

static inline vhalf load_half(const void *p)
{
    return HI(loadu)(p);
}

static inline vf floats_of_f16(vhalf halves)
{
    return MM(cvtph_ps)(halves);
}

static inline vf floats_of_bf16(vhalf halves)
{
    return (vf)MM(slli_epi32)(MM(cvtepu16_epi32)(halves), 16);
}

static inline vf floats_of_i8(__m128i bytes)
{
    return MM(cvtepi32_ps)(MM(cvtepi8_epi32)(bytes));
}

static inline vf floats_of_u8(__m128i bytes)
{
    return MM(cvtepi32_ps)(MM(cvtepu8_epi32)(bytes));
}

#define LOAD(X, LOAD_VECTOR, BYTES)                                                                                    \
    static inline vchunk chunk_load_##X(const void *p)                                                                 \
    {                                                                                                                  \
        enum { SIZE = LANES * (BYTES) };                                                                               \
        const char *x = p;                                                                                             \
        return (vchunk){{floats_of_##X(LOAD_VECTOR(x)), floats_of_##X(LOAD_VECTOR(x + SIZE)),                          \
                         floats_of_##X(LOAD_VECTOR(x + 2 * SIZE)), floats_of_##X(LOAD_VECTOR(x + 3 * SIZE))}};         \
    }

LOAD(f16, load_half, 2)
LOAD(bf16, load_half, 2)
LOAD(i8, load_quarter, 1)
LOAD(u8, load_quarter, 1)
#undef LOAD

static inline hchunk chunk_load_bytes(const void *p)
{
    const vq bytes = to_unpack((vq)vector_at(p, 0));
    const vq zero = {0};
    return (hchunk){{(vh)MM(unpacklo_epi8)(zero, bytes), (vh)MM(unpackhi_epi8)(zero, bytes)}};
}

static inline vchunk chunk_of_f16(hchunk t)
{
    const vq a = (vq)t.v[0];
    const vq b = (vq)t.v[1];
    return (vchunk){{floats_of_f16(first_half(a)), floats_of_f16(last_half(a)), floats_of_f16(first_half(b)),
                     floats_of_f16(last_half(b))}};
}

/* Unpacking widens in one operation a vector, and the above in two. It leaves the halves of each 128 bits in two
 * vectors: unpack order. Packing puts them together again. */
static inline vchunk unpacked_bf16(hchunk t)
{
    const vq a = (vq)t.v[0];
    const vq b = (vq)t.v[1];
    const vq zero = {0};
    return (vchunk){{(vf)MM(unpacklo_epi16)(zero, a), (vf)MM(unpackhi_epi16)(zero, a), (vf)MM(unpacklo_epi16)(zero, b),
                     (vf)MM(unpackhi_epi16)(zero, b)}};
}

static inline vchunk chunk_load_unpacked_bf16(const void *p)
{
    return unpacked_bf16(chunk_load_halves(p));
}

/* ---- encodes ---------------------------------------------------------------------------------------------------- */

/* Saturated to 16 bits, in the order that packing leaves them in. */
typedef struct icodes {
    vq ab;
    vq cd;
} icodes;

/* The narrows saturate further. Numbers beyond int32, and NaN, convert to INT32_MIN, which is right only far below. */
static inline icodes encode_integers(vchunk t, int least, int most, bool exact, store_check *check)
{
    (void)least, (void)most;
    if (exact) {
        return (icodes){MM(packs_epi32)(clamp_exact(t.v[0]), clamp_exact(t.v[1])),
                        MM(packs_epi32)(clamp_exact(t.v[2]), clamp_exact(t.v[3]))};
    }
    const icodes c = {MM(packs_epi32)(MM(cvtps_epi32)(t.v[0]), MM(cvtps_epi32)(t.v[1])),
                      MM(packs_epi32)(MM(cvtps_epi32)(t.v[2]), MM(cvtps_epi32)(t.v[3]))};
    *check = check_of_least(MM(min_epi16)(c.ab, c.cd));
    return c;
}

static inline icodes icodes_of_halves(vh ab, vh cd)
{
    return (icodes){(vq)ab, (vq)cd};
}

static inline vh upper_halves(vf a, vf b)
{
    return (vh)MM(packus_epi32)(MM(srli_epi32)((vq)a, 16), MM(srli_epi32)((vq)b, 16));
}

/* Packing saturates, and keeps the sign. */
static inline vh h_signs(vf a, vf b)
{
    return (vh)MM(srai_epi16)(MM(packs_epi32)((vq)a, (vq)b), 15);
}

/* The upper half of a sum is its exponent, 7 bits left. One operation adds the lower half, shifted alike. */
static inline vh small_codes(vf a, vf b, small_format f)
{
    const int mantissa = 23 - (int)f.drop;
    const vq weights = MM(set1_epi32)(1 << 16 | 1 << (7 - mantissa));
    const vq sums = MM(packs_epi32)(MM(madd_epi16)((vq)a, weights), MM(madd_epi16)((vq)b, weights));
    const vh codes = (vh)sums - (uint16_t)(f.first << 7);
    return (vh)MM(mulhi_epu16)((vq)codes, MM(set1_epi16)((short)(1 << (9 + mantissa))));
}

static inline icodes add_requant_offsets(icodes c, ichunk offsets)
{
    const vq low = MM(set1_epi16)(-256);
    const vq high = MM(set1_epi16)(255);
    const vq ab = MM(max_epi16)(MM(min_epi16)(c.ab, high), low);
    const vq cd = MM(max_epi16)(MM(min_epi16)(c.cd, high), low);
    return (icodes){MM(add_epi16)(ab, MM(packs_epi32)((vq)offsets.v[0], (vq)offsets.v[1])),
                    MM(add_epi16)(cd, MM(packs_epi32)((vq)offsets.v[2], (vq)offsets.v[3]))};
}

/* The check looks at the upper halves of the least integers; INT32_MIN may stand for a number far above, too. */
static inline ichunk encode_int32(vchunk t, bool exact, store_check *check)
{
    if (exact) {
        return (ichunk){{(vi)to_i32(t.v[0]), (vi)to_i32(t.v[1]), (vi)to_i32(t.v[2]), (vi)to_i32(t.v[3])}};
    }
    const vq a = MM(cvtps_epi32)(t.v[0]);
    const vq b = MM(cvtps_epi32)(t.v[1]);
    const vq c = MM(cvtps_epi32)(t.v[2]);
    const vq d = MM(cvtps_epi32)(t.v[3]);
    *check = check_of_least(MM(srai_epi32)(MM(min_epi32)(MM(min_epi32)(a, b), MM(min_epi32)(c, d)), 16));
    return (ichunk){{(vi)a, (vi)b, (vi)c, (vi)d}};
}

/* The check fails where there is a NaN. */
static inline vchunk with_one_nan(vchunk t, bool exact, store_check *check)
{
    if (exact) {
        return (vchunk){{canonical(t.v[0]), canonical(t.v[1]), canonical(t.v[2]), canonical(t.v[3])}};
    }
    *check = check_of_floats(t);
    return t;
}

static inline ichunk encode_float32(vchunk t, bool exact, store_check *check)
{
    return chunk_bits(with_one_nan(t, exact, check));
}

/* Two whole vectors, or four halves, which the conversion to float16 gives, and stores by itself. */
typedef struct hcodes {
    vq whole[2];
    vhalf halves[4];
    bool in_halves;
} hcodes;

static inline hcodes encode_float16(vchunk t, bool exact, store_check *check)
{
    t = with_one_nan(t, exact, check);
    return (hcodes){.halves = {halves_f16(t.v[0]), halves_f16(t.v[1]), halves_f16(t.v[2]), halves_f16(t.v[3])},
                    .in_halves = true};
}

static inline hcodes encode_bfloat16(vchunk t, bool exact, store_check *check)
{
    t = with_one_nan(t, exact, check);
    return (hcodes){.whole = {pair_bf16(t.v[0], t.v[1]), pair_bf16(t.v[2], t.v[3])}};
}

static inline hcodes truncate_bfloat16(vchunk t)
{
    return (hcodes){.whole = {pair_upper(t.v[0], t.v[1]), pair_upper(t.v[2], t.v[3])}};
}

/* ---- narrows ---------------------------------------------------------------------------------------------------- */

static inline vq bytes_int8(icodes c, uint8_t flip, bool unpack_order)
{
    return in_order(MM(packs_epi16)(c.ab, c.cd), unpack_order) ^ MM(set1_epi8)((char)flip);
}

static inline vq bytes_uint8(icodes c, bool unpack_order)
{
    return in_order(MM(packus_epi16)(c.ab, c.cd), unpack_order);
}

/* Bytes as pairs of nibbles in 16 bits, the even element low. */
static inline vq pair_nibbles(vq bytes)
{
    const vq clamped = MM(max_epi8)(MM(min_epi8)(bytes, MM(set1_epi8)(7)), MM(set1_epi8)(-8));
    return MM(maddubs_epi16)(clamped & MM(set1_epi8)(0x0F), MM(set1_epi16)(0x1001));
}

static inline vhalf bytes_int4(icodes c, bool unpack_order)
{
    const vq pairs = pair_nibbles(MM(packs_epi16)(c.ab, c.cd));
    return nibbles_in_order(MM(packus_epi16)(pairs, pairs), unpack_order);
}

static inline void store_whole(void *p, vq v, bool non_temporal)
{
    if (non_temporal) {
        SI(stream)(p, v);
    } else {
        SI(storeu)(p, v);
    }
}

static inline void put_half(void *p, vhalf v, bool non_temporal)
{
    if (non_temporal) {
        HI(stream)(p, v);
    } else {
        HI(storeu)(p, v);
    }
}

static inline void narrow_int8(void *p, icodes c, uint8_t flip, bool unpack_order, bool non_temporal)
{
    store_whole(p, bytes_int8(c, flip, unpack_order), non_temporal);
}

static inline void narrow_uint8(void *p, icodes c, bool unpack_order, bool non_temporal)
{
    store_whole(p, bytes_uint8(c, unpack_order), non_temporal);
}

static inline void narrow_int4(void *p, icodes c, bool unpack_order, bool non_temporal)
{
    put_half(p, bytes_int4(c, unpack_order), non_temporal);
}

static inline void narrow_32(void *p, ichunk c, bool non_temporal)
{
    for (int i = 0; i < 4; i++) {
        store_whole((vq *)p + i, (vq)c.v[i], non_temporal);
    }
}

static inline vq whole_of(hcodes c, int i)
{
    return c.in_halves ? join_halves(c.halves[2 * i], c.halves[2 * i + 1]) : c.whole[i];
}

static inline void narrow_16(void *p, hcodes c, bool non_temporal)
{
    if (c.in_halves && !non_temporal) {
        for (int i = 0; i < 4; i++) {
            put_half((vhalf *)p + i, c.halves[i], false);
        }
        return;
    }
    store_whole(p, whole_of(c, 0), non_temporal); /* non-temporal: by whole lines */
    store_whole((vq *)p + 1, whole_of(c, 1), non_temporal);
}

static inline void fence_stores(void)
{
    _mm_sfence();
}

/* ---- range ------------------------------------------------------------------------------------------------------ */

/* The extremes of the patterns as signed and as unsigned integers; make_row_range() tells the range from them. */
typedef struct vrange {
    vq smax;
    vq umax;
    vq smin;
    vq umin;
} vrange;

static inline vrange vrange_of(vf v)
{
    return (vrange){(vq)v, (vq)v, (vq)v, (vq)v};
}

#define JOIN(NAME, BITS)                                                                                               \
    static inline vrange NAME(vrange a, vrange b, bool mixed_signs)                                                    \
    {                                                                                                                  \
        a.smax = MM(max_epi##BITS)(a.smax, b.smax);                                                                    \
        a.umax = MM(max_epu##BITS)(a.umax, b.umax);                                                                    \
        if (!mixed_signs) {                                                                                            \
            a.smin = MM(min_epi##BITS)(a.smin, b.smin);                                                                \
            a.umin = MM(min_epu##BITS)(a.umin, b.umin);                                                                \
        }                                                                                                              \
        return a;                                                                                                      \
    }

JOIN(vrange_join, 32)
JOIN(hrange_join, 16)
#undef JOIN

static inline bool vrange_has_mixed_signs(vrange a)
{
    return signs(a.smax) != ALL_SIGNS && signs(a.umax) != 0;
}

/* Halves have the extremes of their 16-bit patterns. */
typedef vrange hrange;

static inline hrange hrange_of(vh v)
{
    return (hrange){(vq)v, (vq)v, (vq)v, (vq)v};
}

static inline bool hrange_has_mixed_signs(hrange a)
{
    return half_signs(a.smax) != ALL_HALF_SIGNS && half_signs(a.umax) != 0;
}

static inline uint16_t reduce_flipped(vq v, uint16_t flip)
{
    return (uint16_t)(reduce_min_epu16(SI(xor)(v, MM(set1_epi16)((short)flip))) ^ flip);
}

static inline void hrange_reduce(hrange a, uint16_t *extremes)
{
    extremes[0] = reduce_flipped(a.smax, 0x7FFF);
    extremes[1] = reduce_flipped(a.umax, 0xFFFF);
    extremes[2] = reduce_flipped(a.smin, 0x8000);
    extremes[3] = reduce_min_epu16(a.umin);
}

/* ---- trans_quant_param ------------------------------------------------------------------------------------------ */

/* The limits come first in min and max, so that NaN passes: converted, its last bits are 0. */
static inline vi round_offset(vf t)
{
    return (vi)MM(cvtps_epi32)(MM(max_ps)(v_set(-256.0f), MM(min_ps)(v_set(255.0f), t)));
}

#endif
