/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of vec_required.h in the compiler's own vector types of 16 bytes: 4 lanes. These types have no minimum, and
 * no saturating conversion or narrowing: sums, comparisons and selections take their place. */
#ifndef NPUQ_VEC_GENERIC_H
#define NPUQ_VEC_GENERIC_H

#if !(defined(__SSE2_MATH__) || defined(__VSX__) || defined(__loongarch_sx) || defined(__wasm_simd128__) ||            \
      (defined(__riscv_v) && __riscv_v_intrinsic >= 12000) ||                                                          \
      (defined(__s390x__) && defined(__linux__) && !defined(__clang__)))
#error "this file is for targets with vectors of 16 bytes in which arithmetic is IEEE's"
#endif

#include "row_range.h"

typedef __attribute__((__vector_size__(16))) float vf;
#include "vec.h"

/* A kernel for every pair of types would be too much code for these targets: kernels test the types once a chunk. */
#define TYPES_AT_RUN_TIME 1

typedef __attribute__((__vector_size__(16))) uint8_t vb;
typedef __attribute__((__vector_size__(16))) uint64_t vl;

static inline vf v_set(float value)
{
    return (vf){value, value, value, value};
}

static inline vu u_set(uint32_t value)
{
    return (vu){value, value, value, value};
}

enum { FAST_DIVIDE = 0 };

static inline vf v_quotient(vf x, vf scale, vf inverse)
{
    (void)inverse;
    return x / scale;
}

static inline bool chunk_is_invertible(vchunk s)
{
    (void)s;
    return true;
}

static inline bool are_quotients_exact(vchunk q)
{
    (void)q;
    return true;
}

/* ---- lanes ------------------------------------------------------------------------------------------------------ */

/* Where the mask is all ones a, elsewhere b. */
static inline vf v_select(vi mask, vf a, vf b)
{
    return (vf)(((vi)a & mask) | ((vi)b & ~mask));
}

static inline bool all_set(vl mask)
{
    return (mask[0] & mask[1]) == UINT64_MAX;
}

/* gcc makes four instructions of a selection, where SSE has one. */
static inline vf v_above(vf a, vf b)
{
#ifdef __SSE2__
    return __builtin_ia32_maxps(a, b);
#else
    return v_select(a > b, a, b);
#endif
}

static inline vf v_below(vf a, vf b)
{
#ifdef __SSE2__
    return __builtin_ia32_minps(a, b);
#else
    return v_select(a < b, a, b);
#endif
}

static inline vf v_upper(vf a, vf b)
{
    return v_select((vi)a > (vi)b, a, b);
}

static inline vf v_lower(vf a, vf b)
{
    return v_select((vi)a < (vi)b, a, b);
}

static inline vh h_upper(vh a, vh b)
{
    const vh greater = (vh)((vs)a > (vs)b);
    return (a & greater) | (b & ~greater);
}

static inline vh h_lower(vh a, vh b)
{
    const vh less = (vh)((vs)a < (vs)b);
    return (a & less) | (b & ~less);
}

static inline vh h_look_up(const uint8_t *table, vh at)
{
    vh found = {0};
    for (int i = 0; i < 2 * LANES; i++) {
        found[i] = at[i] < 16 ? table[at[i]] : 0;
    }
    return found;
}

static inline vf v_even(vf a, vf b)
{
    return __builtin_shufflevector(a, b, 0, 2, 4, 6);
}

static inline vf v_odd(vf a, vf b)
{
    return __builtin_shufflevector(a, b, 1, 3, 5, 7);
}

/* No NaN. */
static inline vf v_clamp(vf t, float low, float high)
{
    return v_below(v_above(t, v_set(low)), v_set(high));
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOW_THEN_HIGH(low, high) (low), (high)
#else
#define LOW_THEN_HIGH(low, high) (high), (low)
#endif
enum { LOW = 1 - LOW_FIRST, HIGH = LOW_FIRST }; /* where the parts of a lane are, in parts */

/* Join low and high parts to lanes of twice the width: the first lanes, and the last ones. */
static inline vu join_first_h(vh low, vh high)
{
    return (vu)__builtin_shufflevector(LOW_THEN_HIGH(low, high), 0, 8, 1, 9, 2, 10, 3, 11);
}

static inline vu join_last_h(vh low, vh high)
{
    return (vu)__builtin_shufflevector(LOW_THEN_HIGH(low, high), 4, 12, 5, 13, 6, 14, 7, 15);
}

static inline vh join_first_b(vb low, vb high)
{
    return (vh)__builtin_shufflevector(LOW_THEN_HIGH(low, high), 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
                                       23);
}

static inline vh join_last_b(vb low, vb high)
{
    return (vh)__builtin_shufflevector(LOW_THEN_HIGH(low, high), 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,
                                       15, 31);
}

/* The high halves of all lanes, and the low ones, whose top bit means nothing. Of the shuffle, gcc makes eight SSE2
 * instructions; one instruction narrows lanes of small numbers. */
static inline vh high_halves(vu a, vu b)
{
#ifdef __SSE2__
    return (vh)__builtin_ia32_packssdw128((vi)a >> 16, (vi)b >> 16);
#else
    return __builtin_shufflevector((vh)a, (vh)b, HIGH, HIGH + 2, HIGH + 4, HIGH + 6, HIGH + 8, HIGH + 10, HIGH + 12,
                                   HIGH + 14);
#endif
}

static inline vh low_halves(vu a, vu b)
{
#ifdef __SSE2__
    return (vh)__builtin_ia32_packssdw128((vi)a & 0x7FFF, (vi)b & 0x7FFF);
#else
    return __builtin_shufflevector((vh)a, (vh)b, LOW, LOW + 2, LOW + 4, LOW + 6, LOW + 8, LOW + 10, LOW + 12, LOW + 14);
#endif
}

static inline vb low_bytes_h(vh a, vh b)
{
    return __builtin_shufflevector((vb)a, (vb)b, LOW, LOW + 2, LOW + 4, LOW + 6, LOW + 8, LOW + 10, LOW + 12, LOW + 14,
                                   LOW + 16, LOW + 18, LOW + 20, LOW + 22, LOW + 24, LOW + 26, LOW + 28, LOW + 30);
}

/* An int4 is a nibble of a word, counted from its low end. */
static inline vb words_to_bytes(vb words)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return words;
#else
    return __builtin_shufflevector(words, words, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
#endif
}

/* ---- loads ------------------------------------------------------------------------------------------------------ */

/* The exponent's bias is corrected, for infinities and NaNs twice. A subnormal f * 2^-24 becomes t = 2^-15 + f * 2^-25:
 * t + (t - 2^-14) puts it right. */
static inline vf widened_f16(vu half)
{
    const vu magnitude = half & 0x7FFF;
    const vu special = (vu)((vi)magnitude > 0x7BFF) & (112u << 23);
    const vf t = (vf)((magnitude << 13) + (112u << 23) + special);
    const vf below = (vf)((vi)(t - v_set(0x1p-14f)) & ((vi)magnitude < 0x400));
    return (vf)((vu)(t + below) | (half & 0x8000) << 16);
}

static __attribute__((noinline)) vchunk floats_of_any_f16(hchunk t)
{
    const vh zero = {0};
    return (vchunk){{widened_f16(join_first_h(t.v[0], zero)), widened_f16(join_last_h(t.v[0], zero)),
                     widened_f16(join_first_h(t.v[1], zero)), widened_f16(join_last_h(t.v[1], zero))}};
}

/* The upper half of the float, if it is normal or zero; the lower half is shifted only. */
static inline vh upper_of_f16(vh half)
{
    const vh magnitude = half & 0x7FFF;
    return (((magnitude >> 3) + (112 << 7)) & (vh)(magnitude != 0)) | (half ^ magnitude);
}

/* The uppermost bit is set if a half is neither normal nor zero. */
static inline vh other_f16(vh half)
{
    const vh magnitude = half & 0x7FFF;
    return (magnitude + 0x400) | ((magnitude - 0x400) & (vh)(magnitude != 0));
}

static inline vchunk chunk_of_f16(hchunk t)
{
    const vl others = (vl)((other_f16(t.v[0]) | other_f16(t.v[1])) & 0x8000);

    if ((others[0] | others[1]) != 0) {
        return floats_of_any_f16(t);
    }
    const vh first = upper_of_f16(t.v[0]);
    const vh last = upper_of_f16(t.v[1]);
    return (vchunk){{(vf)join_first_h(t.v[0] << 13, first), (vf)join_last_h(t.v[0] << 13, first),
                     (vf)join_first_h(t.v[1] << 13, last), (vf)join_last_h(t.v[1] << 13, last)}};
}

static inline vchunk chunk_load_f16(const void *p)
{
    return chunk_of_f16(chunk_load_halves(p));
}

static inline hchunk chunk_load_bytes(const void *p)
{
    const vb bytes = (vb)vector_at(p, 0);
    const vb zero = {0};
    return (hchunk){{join_first_b(zero, bytes), join_last_b(zero, bytes)}};
}

/* The sign is the code's upper bit. */
static inline vchunk chunk_look_up(const void *p, vu table)
{
    const uint8_t *x = p;
    uint32_t bits[CHUNK];
    vchunk t;

    for (unsigned i = 0; i < CHUNK; i++) {
        const uint32_t code = (uint32_t)x[i / 2] >> 4 * (i % 2) & 15;
        bits[i] = (uint32_t)((vh)table)[code & 7] << 16 | code >> 3 << 31;
    }
    memcpy(&t, bits, sizeof t);
    return t;
}

static inline vchunk chunk_load_bf16(const void *p)
{
    const hchunk t = chunk_load_halves(p);
    const vh zero = {0};
    return (vchunk){{(vf)join_first_h(zero, t.v[0]), (vf)join_last_h(zero, t.v[0]), (vf)join_first_h(zero, t.v[1]),
                     (vf)join_last_h(zero, t.v[1])}};
}

/* With the exponent of 2^23, an integer is a float's last bits. `zero` is the byte that stands for 0. */
static inline vchunk floats_of_bytes(vb bytes, float zero)
{
    const vb none = {0};
    const vh exponent = (vh){0} + 0x4B00;
    const vh first = join_first_b(bytes, none);
    const vh last = join_last_b(bytes, none);
    const vf subtract = v_set(0x1p23f + zero);
    return (vchunk){{(vf)join_first_h(first, exponent) - subtract, (vf)join_last_h(first, exponent) - subtract,
                     (vf)join_first_h(last, exponent) - subtract, (vf)join_last_h(last, exponent) - subtract}};
}

static inline vchunk chunk_load_u8(const void *p)
{
    return floats_of_bytes((vb)vector_at(p, 0), 0.0f);
}

static inline vchunk chunk_load_i8(const void *p)
{
    return floats_of_bytes((vb)vector_at(p, 0) ^ 0x80, 128.0f);
}

static inline vchunk chunk_load_i4(const void *p)
{
    uint64_t words;
    memcpy(&words, p, sizeof words);
    const vb bytes = words_to_bytes((vb)(vl){words, 0});
    const vb odd = (vb)((vh)bytes >> 4) & 15;
    const vb nibbles = __builtin_shufflevector(bytes & 15, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return floats_of_bytes(nibbles ^ 8, 8.0f);
}

/* ---- encodes ---------------------------------------------------------------------------------------------------- */

/* The sum with this number is rounded half to even to an integer, and ends with the integer's bits. */
enum { ROUNDING = 0x4B400000 }; /* 1.5 * 2^23 */

static inline vu rounded_bits(vf t)
{
    return (vu)(t + (vf)u_set(ROUNDING));
}

static inline vf nan_to_zero(vf t)
{
    return (vf)((vi)t & (t == t));
}

static inline ichunk rounded(vchunk t)
{
    return (ichunk){
        {(vi)rounded_bits(t.v[0]), (vi)rounded_bits(t.v[1]), (vi)rounded_bits(t.v[2]), (vi)rounded_bits(t.v[3])}};
}

/* With the clamps that encode_integers() mostly leaves out. */
static inline ichunk saturated(vchunk t, float low, float high)
{
    for (int i = 0; i < 4; i++) {
        t.v[i] = v_clamp(nan_to_zero(t.v[i]), low, high);
    }
    return rounded(t);
}

/* Whether all integers are in low..low + count - 1; count is a power of 2. Beyond 2^22 the sums have other
 * exponents. */
static inline bool chunk_fits(ichunk sums, uint32_t low, uint32_t count)
{
    const vu zero = u_set(ROUNDING + low);
    const vl beyond =
        (vl)(((((vu)sums.v[0] - zero) | ((vu)sums.v[1] - zero)) | (((vu)sums.v[2] - zero) | ((vu)sums.v[3] - zero))) &
             ~(count - 1));
    return (beyond[0] | beyond[1]) == 0;
}

static inline vb low_bytes(ichunk t)
{
    return low_bytes_h(low_halves((vu)t.v[0], (vu)t.v[1]), low_halves((vu)t.v[2], (vu)t.v[3]));
}

/* Floats from 2^23 on are integers. Adding 2^23 of the same sign rounds the others to integers. */
static inline vi saturated_i32(vf t)
{
    const vf number = nan_to_zero(t);
    const vf with_sign = (vf)(((vu)number & 0x80000000u) | 0x4B000000u);
    const vi small = (vi)((vu)number & 0x7FFFFFFF) < 0x4B000000;
    const vf integer = v_select(small, (number + with_sign) - with_sign, number);
    const vi above = integer >= v_set(0x1p31f);
    return __builtin_convertvector(v_clamp(integer, -0x1p31f, 0x1.fffffep30f), vi) | (vi)((vu)above >> 25);
}

static __attribute__((noinline)) ichunk saturated_chunk_i32(vchunk t)
{
    return (ichunk){{saturated_i32(t.v[0]), saturated_i32(t.v[1]), saturated_i32(t.v[2]), saturated_i32(t.v[3])}};
}

/* These encodes clamp only where an integer is beyond the type, or for int32 beyond the sums: without an instruction
 * for them, clamps are half of the work. No check fails. */
static inline ichunk encode_int32(vchunk t, bool exact, bool *check)
{
    ichunk c = rounded(t);

    (void)exact, (void)check;
    if (!chunk_fits(c, 0u - (1u << 22), 1u << 23)) {
        return saturated_chunk_i32(t);
    }
    for (int i = 0; i < 4; i++) {
        c.v[i] = (vi)((vu)c.v[i] - ROUNDING);
    }
    return c;
}

/* Sums that end with the integers. The narrows take them as they are. */
typedef ichunk icodes;

static inline icodes encode_integers(vchunk t, int least, int most, bool exact, bool *check)
{
    const ichunk sums = rounded(t);

    (void)exact, (void)check;
    return chunk_fits(sums, (uint32_t)least, (uint32_t)(most - least + 1)) ? sums
                                                                           : saturated(t, (float)least, (float)most);
}

static inline icodes add_requant_offsets(icodes c, ichunk offsets)
{
    c = ichunk_add(c, offsets);
    for (int i = 0; i < 4; i++) {
        c.v[i] = (vi)v_clamp((vf)c.v[i], 0x1.8p23f - 128.0f, 0x1.8p23f + 127.0f);
    }
    return c;
}

static inline icodes icodes_of_halves(vh ab, vh cd)
{
    const vh zero = {0};
    return (icodes){
        {(vi)join_first_h(ab, zero), (vi)join_last_h(ab, zero), (vi)join_first_h(cd, zero), (vi)join_last_h(cd, zero)}};
}

static inline vh upper_halves(vf a, vf b)
{
    return high_halves((vu)a, (vu)b);
}

static inline vh small_codes(vf a, vf b, small_format f)
{
    return low_halves((vu)a + ((vu)a >> f.drop), (vu)b + ((vu)b >> f.drop)) - (uint16_t)(f.first << (23 - f.drop));
}

/* A sum with a NaN is NaN. A sum of infinities or very large numbers may be, too: such a chunk takes the longer path
 * needlessly. */
static inline bool has_no_nan(vchunk t)
{
    const vf sum = (t.v[0] + t.v[1]) + (t.v[2] + t.v[3]);
    return all_set((vl)(sum == sum));
}

static inline bool check_of_floats(vchunk t)
{
    return has_no_nan(t);
}

static inline vchunk with_one_nan(vchunk t)
{
    for (int i = 0; i < 4; i++) {
        t.v[i] = v_select(t.v[i] == t.v[i], t.v[i], (vf)u_set(0x7FC00000));
    }
    return t;
}

static __attribute__((noinline)) ichunk exact_float32(vchunk t)
{
    return chunk_bits(with_one_nan(t));
}

static inline ichunk encode_float32(vchunk t, bool exact, bool *check)
{
    (void)check;
    return exact || __builtin_expect(!has_no_nan(t), false) ? exact_float32(t) : chunk_bits(t);
}

/* Half to even at bit 16. */
static inline vu rounded_bf16(vf t)
{
    return (vu)t + 0x7FFF + ((vu)t >> 16 & 1);
}

static inline hchunk halves_of_bf16(vchunk t)
{
    return (hchunk){{high_halves(rounded_bf16(t.v[0]), rounded_bf16(t.v[1])),
                     high_halves(rounded_bf16(t.v[2]), rounded_bf16(t.v[3]))}};
}

static inline hchunk truncate_bfloat16(vchunk t)
{
    return (hchunk){{high_halves((vu)t.v[0], (vu)t.v[1]), high_halves((vu)t.v[2], (vu)t.v[3])}};
}

static __attribute__((noinline)) hchunk exact_bfloat16(vchunk t)
{
    return halves_of_bf16(with_one_nan(t));
}

static inline hchunk encode_bfloat16(vchunk t, bool exact, bool *check)
{
    (void)check;
    return exact || __builtin_expect(!has_no_nan(t), false) ? exact_bfloat16(t) : halves_of_bf16(t);
}

/* A magnitude up to 2^16 as float16, in the low halves. Adding its power of two times 2^13 rounds as float16 does; the
 * power is at least 2^-14, the least normal float16. The sum then ends with an integer in units of the result's last
 * place. The sum's exponent, too large by 126, is added to this integer: 0x800 is -126 * 2^10 modulo 2^16. */
static inline vu narrowed_f16(vf magnitude)
{
    const vf power = v_above((vf)((vu)magnitude & 0x7F800000), v_set(0x1p-14f));
    const vu sum = (vu)(magnitude + (vf)((vu)power + ((13 << 23) + 0x800)));
    return sum + (sum >> 13);
}

static inline vf magnitude_of(vf t)
{
    return (vf)((vu)t & 0x7FFFFFFF);
}

static inline vh pair_f16(vf a, vf b)
{
    const vh magnitudes = low_halves(narrowed_f16(magnitude_of(a)), narrowed_f16(magnitude_of(b)));
    return magnitudes | (high_halves((vu)a, (vu)b) & 0x8000);
}

static inline hchunk halves_of_f16(vchunk t)
{
    return (hchunk){{pair_f16(t.v[0], t.v[1]), pair_f16(t.v[2], t.v[3])}};
}

/* 2^16 becomes infinity, and so 1.5 * 2^16 the NaN. */
static __attribute__((noinline)) hchunk exact_float16(vchunk t)
{
    for (int i = 0; i < 4; i++) {
        const vf bounded = v_clamp(t.v[i], -0x1p16f, 0x1p16f);
        t.v[i] = v_select(t.v[i] == t.v[i], bounded, v_set(0x1.8p16f));
    }
    return halves_of_f16(t);
}

static inline hchunk encode_float16(vchunk t, bool exact, bool *check)
{
    const vf sum = (magnitude_of(t.v[0]) + magnitude_of(t.v[1])) + (magnitude_of(t.v[2]) + magnitude_of(t.v[3]));

    (void)check;
    return exact || __builtin_expect(!all_set((vl)(sum < v_set(0x1p16f))), false) ? exact_float16(t) : halves_of_f16(t);
}

/* ---- narrows ---------------------------------------------------------------------------------------------------- */

static inline void narrow_int8(void *p, icodes c, uint8_t flip, bool unpack_order, bool non_temporal)
{
    (void)unpack_order, (void)non_temporal;
    put_vector(p, 0, (vu)(low_bytes(c) ^ flip));
}

static inline void narrow_uint8(void *p, icodes c, bool unpack_order, bool non_temporal)
{
    narrow_int8(p, c, 0, unpack_order, non_temporal);
}

static inline void narrow_int4(void *p, icodes c, bool unpack_order, bool non_temporal)
{
    const vh pairs = (vh)(low_bytes(c) & 15);
    const vh joined = LOW_FIRST ? pairs | pairs >> 4 : pairs >> 8 | pairs << 4;
    const vl words = (vl)words_to_bytes(low_bytes_h(joined, joined));
    (void)unpack_order, (void)non_temporal;
    memcpy(p, &words, sizeof words / 2);
}

/* ---- range ------------------------------------------------------------------------------------------------------ */

/* Both extremes of the patterns that order_bits() maps: signs do not matter. */
typedef struct vrange {
    vi hi;
    vi lo;
} vrange;

static inline vrange vrange_of(vf v)
{
    const vi ordered = (vi)v_ordered(v);
    return (vrange){ordered, ordered};
}

static inline vrange vrange_join(vrange a, vrange b, bool mixed_signs)
{
    (void)mixed_signs;
    return (vrange){b.hi ^ ((a.hi ^ b.hi) & (a.hi > b.hi)), a.lo ^ ((a.lo ^ b.lo) & (a.lo > b.lo))};
}

static inline row_range vrange_reduce(vrange a, bool mixed_signs)
{
    row_range range = {a.hi[0], a.lo[0]};

    (void)mixed_signs;
    for (int i = 1; i < LANES; i++) {
        range.hi = a.hi[i] > range.hi ? a.hi[i] : range.hi;
        range.lo = a.lo[i] < range.lo ? a.lo[i] : range.lo;
    }
    return range;
}

typedef struct hrange {
    vs hi;
    vs lo;
} hrange;

static inline vs ordered_halves(vs v)
{
    return v ^ (vs)((vh)(v >> 15) >> 1);
}

static inline hrange hrange_of(vh v)
{
    const vs ordered = ordered_halves((vs)v);
    return (hrange){ordered, ordered};
}

static inline hrange hrange_join(hrange a, hrange b, bool mixed_signs)
{
    const vs hi = a.hi > b.hi;
    const vs lo = a.lo < b.lo;

    (void)mixed_signs;
    return (hrange){(a.hi & hi) | (b.hi & ~hi), (a.lo & lo) | (b.lo & ~lo)};
}

static inline bool hrange_has_mixed_signs(hrange a)
{
    (void)a;
    return true;
}

/* The patterns of the largest and the smallest value: with both signs, the signed and the unsigned maximum. */
static inline void hrange_reduce(hrange a, uint16_t *extremes)
{
    for (int i = 1; i < 2 * LANES; i++) {
        a.hi[0] = a.hi[i] > a.hi[0] ? a.hi[i] : a.hi[0];
        a.lo[0] = a.lo[i] < a.lo[0] ? a.lo[i] : a.lo[0];
    }
    extremes[0] = (uint16_t)ordered_halves(a.hi)[0];
    extremes[1] = (uint16_t)ordered_halves(a.lo)[0];
}

#include "plain.h"
#include "without_masks.h"

/* ---- trans_quant_param ------------------------------------------------------------------------------------------ */

static inline vi round_offset(vf t)
{
    return (vi)rounded_bits(v_clamp(nan_to_zero(t), -256.0f, 255.0f));
}

static inline void put_words(uint64_t *y, vu low, vu high)
{
    put_vector(y, 0, __builtin_shufflevector(LOW_THEN_HIGH(low, high), 0, 4, 1, 5));
    put_vector(y, 1, __builtin_shufflevector(LOW_THEN_HIGH(low, high), 2, 6, 3, 7));
}

#endif
