/* SPDX-License-Identifier: BSD-3-Clause */
/* The codes of small floats, made and widened, over words of vec_required.h. Included by chunk.h. */
#ifndef NPUQ_SMALL_FLOATS_H
#define NPUQ_SMALL_FLOATS_H

INLINE vchunk chunk_without_nan(vchunk t)
{
    for (int i = 0; i < 4; i++) {
        t.v[i] = (vf)((vi)t.v[i] & (t.v[i] == t.v[i]));
    }
    return t;
}

INLINE vf v_magnitude(vf a)
{
    return (vf)((vu)a & 0x7FFFFFFFu);
}

INLINE small_format find_format(npuq_type type)
{
    const npuq_float_form form = npuq_float_form_of(type);
    const uint32_t drop = 23 - form.mantissa;
    const uint32_t least_exponent = 128 - form.bias;

    return (small_format){npuq_limits_of(type).most, least_exponent << 23, drop, (uint16_t)(least_exponent + drop),
                          (uint16_t)(0 - (1u << (npuq_bits_of(type) - 1)))};
}

/* A magnitude's power of two times 2^f.drop, and the magnitude. The sum rounds half to even as the type does, and ends
 * with an integer in units of the type's last place. The least power is that of the least normal number, so that
 * subnormal numbers are rounded as the type's. */
INLINE vf sum_of_small(vf t, small_format f, npuq_small_rounding rounding)
{
    const vf bounded = v_bounded_magnitude(t, v_set(f.largest));
    const vf power = v_upper((vf)((vu)bounded & 0x7F800000u), (vf)((vu){0} + f.least_normal));
    const vf shift = (vf)((vu)power + (f.drop << 23));

    if (rounding == NPUQ_SMALL_ROUND) { /* a half of the type ends with zeros: with a last bit, it is above the half */
        return (vf)((vu)bounded | 1u) + shift;
    }
    const vf sum = bounded + shift;
    if (rounding == NPUQ_SMALL_FLOOR) { /* of a negative number the larger magnitude, of others the smaller one */
        const vf rounded = sum - shift;
        const vi negative = (vi)t >> 31;

        return (vf)((vi)sum - ((rounded < bounded) & negative) + ((rounded > bounded) & ~negative));
    }
    return sum;
}

INLINE vh halves_by(vf a, vf b, small_format f, npuq_small_rounding rounding)
{
    return small_codes(sum_of_small(a, f, rounding), sum_of_small(b, f, rounding), f) | (h_signs(a, b) & f.sign);
}

/* Not inlined: few calls ask for these roundings. */
NOINLINE vh rounded_halves(vf a, vf b, small_format f, npuq_small_rounding rounding)
{
    return halves_by(a, b, f, rounding);
}

INLINE vh small_halves(vf a, vf b, small_format f, npuq_small_rounding rounding)
{
    return rounding == NPUQ_SMALL_RINT ? halves_by(a, b, f, NPUQ_SMALL_RINT) : rounded_halves(a, b, f, rounding);
}

/* The number, or zero with its sign in place of a subnormal one. */
INLINE vf v_flush(vf v)
{
    const vi is_normal = (vi)v_magnitude(v) > 0x007FFFFF;

    return (vf)((vu)v & ((vu)is_normal | 0x80000000u));
}

/* x / s as the Ascend 950 divides: subnormal operands are zeros, and a quotient that is below 2^-126 before it is
 * rounded is a zero, too. Signs are kept. The product is exact, or infinite where the quotient is not below. */
NOINLINE vf v_div_flushed(vf x, vf s)
{
    const vf a = v_flush(x);
    const vf b = v_flush(s);
    const vi vanishes = v_magnitude(a) * 0x1p126f < v_magnitude(b);

    return (vf)((vu)(a / b) & ((vu)~vanishes | 0x80000000u));
}

INLINE vchunk chunk_div_flushed(vchunk x, vchunk s)
{
    return (vchunk){{v_div_flushed(x.v[0], s.v[0]), v_div_flushed(x.v[1], s.v[1]), v_div_flushed(x.v[2], s.v[2]),
                     v_div_flushed(x.v[3], s.v[3])}};
}

/* The quotients x / s by chunk_quotient(), which may lose the sign of a zero, with their signs. */
INLINE vchunk chunk_with_signs(vchunk quotients, vchunk x, vchunk s)
{
    for (int i = 0; i < 4; i++) {
        quotients.v[i] = (vf)((vu)quotients.v[i] | (((vu)x.v[i] ^ (vu)s.v[i]) & 0x80000000u));
    }
    return quotients;
}

/* Saturates; keeps the sign of zero. The check fails where there is a NaN. */
INLINE icodes encode_small_float(vchunk t, small_format f, npuq_small_rounding rounding, bool exact, store_check *check)
{
    if (exact) {
        t = chunk_without_nan(t);
    } else {
        *check = check_of_floats(t);
    }
    return icodes_of_halves(small_halves(t.v[0], t.v[1], f, rounding), small_halves(t.v[2], t.v[3], f, rounding));
}

/* ---- products of halves with powers of two, as patterns --------------------------------------------------------- */

/* Constants of a type of x and one of y with a mantissa of one size. */
typedef struct shift_form {
    uint16_t least;      /* x's pattern of the exponent 1 */
    uint16_t drop;       /* mantissa bits that x has, and y has not */
    uint16_t half;       /* what is added to round, besides the last bit that is kept: half to even; or half away */
    uint16_t odd;        /* 1, or 0 for half away */
    uint16_t most;       /* the code of the largest value */
    uint16_t sign;       /* the bits of a code that the sign sets */
    int16_t above_0;     /* patterns that become the least subnormal number are above it: of two bits of exponent */
    int16_t above_least; /* and those that become the next number */
    bool checks_x;       /* whether shifts are negative, which would make normal numbers of others */
} shift_form;

INLINE shift_form find_shift_form(npuq_type x, npuq_type y, npuq_small_rounding rounding)
{
    const npuq_float_form from = npuq_float_form_of(x);
    const npuq_float_form to = npuq_float_form_of(y);
    const uint16_t drop = (uint16_t)(from.mantissa - to.mantissa);
    const uint16_t least = (uint16_t)(1u << from.mantissa);
    const bool to_even = rounding == NPUQ_SMALL_RINT;
    /* The patterns of half the least number, which is 2^-1, and of half the next one. */
    const int16_t half_least = (int16_t)-least;
    const int16_t half_next = (int16_t)(least / 2);

    return (shift_form){least,
                        drop,
                        (uint16_t)((1u << (drop - 1)) - to_even),
                        to_even,
                        npuq_bits_of(y) == 4 ? 7 : (uint16_t)(to.mantissa == 3 ? 0x7E : 0x7B),
                        (uint16_t)(0 - (1u << (npuq_bits_of(y) - 1))),
                        (int16_t)(half_least - !to_even),
                        (int16_t)(half_next - 1),
                        x == NPUQ_TYPE_FLOAT16 && npuq_bits_of(y) == 8};
}

/* The codes of a vector. `inexact` gets nonzero lanes where a code of 8 bits may be wrong: of subnormal numbers. If
 * such a number rounds up to the least normal one, its code is right. */
INLINE vh shifted_codes(vh x, vh shifts, shift_form f, bool has_4_bits, vh *inexact)
{
    const vh magnitude = x & 0x7FFF;
    const vh rounded = magnitude + ((magnitude >> f.drop) & f.odd) - (shifts - f.half);
    vh is_normal = (vh)((vs)rounded > (int16_t)(f.least + f.half - 1));

    if (f.checks_x) {
        is_normal &= (vh)((vs)magnitude > (int16_t)(f.least - 1));
    }
    vh codes = (rounded >> f.drop) & is_normal;

    if (has_4_bits) {
        const vs moved = (vs)(magnitude - shifts);
        const vh subnormal = (vh)(-(moved > f.above_0) - (moved > f.above_least));

        codes = h_upper(codes, subnormal);
    } else {
        *inexact |= magnitude & ~is_normal;
    }
    return h_lower(codes, (vh){0} + f.most) | ((vh)((vs)x >> 15) & f.sign);
}

/* Of a chunk of x in the order of memory, as icodes in unpack order. */
INLINE icodes encode_shifted(const char *x, vh first, vh second, shift_form f, bool has_4_bits, store_check *check)
{
    vh inexact = (vh)(first == NPUQ_NO_SHIFT) | (vh)(second == NPUQ_NO_SHIFT);
    const vh ab = shifted_codes((vh)vector_at(x, 0), first, f, has_4_bits, &inexact);
    const vh cd = shifted_codes((vh)vector_at(x, 1), second, f, has_4_bits, &inexact);
    const vu lanes = (vu)(vh)(inexact != 0);
    const vf nan = (vf)(lanes | lanes << 16); /* all ones in the upper half, or 0 there */

    *check = check_of_floats((vchunk){{nan, nan, nan, nan}});
    return icodes_of_halves(ab, cd);
}

/* ---- hifloat8 ---------------------------------------------------------------------------------------------------- */

/* Tables by the size of an exponent. From 16 on, nothing is kept of the mantissa: h_look_up() gives 0.
 * - 64 less half of hifloat8's last place, in units of the last of 7 bits of mantissa
 * - one less than the last places in a power of two
 * - the code of the power of two with the positive exponent
 * - what is added to it if the exponent is negative */
static const uint8_t hifloat8_not_half[16] = {56, 56, 56, 56, 48, 48, 48, 48, 32, 32, 32, 32, 32, 32, 32, 32};
static const uint8_t hifloat8_places[16] = {7, 7, 7, 7, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
static const uint8_t hifloat8_powers[16] = {0x08, 0x10, 0x20, 0x28, 0x40, 0x44, 0x48, 0x4C,
                                            0x60, 0x62, 0x64, 0x66, 0x68, 0x6A, 0x6C, 0x6E};
static const uint8_t hifloat8_negative[16] = {0, 8, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16};

/* The exponents of numbers' upper halves, without their signs. */
INLINE vh h_exponents(vh magnitudes)
{
    return (magnitudes >> 7) - 127;
}

INLINE vh h_sizes(vh exponents)
{
    const vh negative = (vh)((vs)exponents >> 15);

    return (exponents ^ negative) - negative;
}

INLINE vh h_set(uint16_t value)
{
    return (vh){0} + value;
}

/* Halves are rounded away from zero, which no bit beyond the upper half can change. */
NOINLINE vh hifloat8_halves(vf a, vf b)
{
    const vh upper = upper_halves(a, b);
    const vh magnitude = upper & 0x7FFF;
    const vh nonzero = (vh)(magnitude > ((127 - 23) << 7) - 1);
    const vh bounded = h_upper(h_lower(magnitude, h_set((127 + 15) << 7)), h_set((127 - 22) << 7));
    const vh rounded = bounded + 64 - h_look_up(hifloat8_not_half, h_sizes(h_exponents(bounded)));
    const vh exponents = h_exponents(rounded);
    const vh sizes = h_sizes(exponents);
    const vh mantissa = rounded & 0x7F;
    const vh places = (mantissa * h_look_up(hifloat8_places, sizes) + mantissa) >> 7;
    const vh negative = (vh)((vs)exponents >> 15) & h_look_up(hifloat8_negative, sizes);
    const vh without_mantissa = (23 - sizes) & (vh)(sizes > 15);

    return ((h_look_up(hifloat8_powers, sizes) + negative + places + without_mantissa) |
            ((vh)((vs)upper >> 15) & (uint16_t)-128)) &
           nonzero;
}

/* Rounds halves away from zero and saturates; a negative number that becomes zero loses its sign. The check fails where
 * there is a NaN. */
INLINE icodes encode_hifloat8(vchunk t, bool exact, store_check *check)
{
    if (exact) {
        t = chunk_without_nan(t);
    } else {
        *check = check_of_floats(t);
    }
    return icodes_of_halves(hifloat8_halves(t.v[0], t.v[1]), hifloat8_halves(t.v[2], t.v[3]));
}

/* Upper halves of the values of codes 0 to 7. */
#define E2M1(SIGN)                                                                                                     \
    (SIGN) + 0x0000, (SIGN) + 0x3F00, (SIGN) + 0x3F80, (SIGN) + 0x3FC0, (SIGN) + 0x4000, (SIGN) + 0x4040,              \
        (SIGN) + 0x4080, (SIGN) + 0x40C0
#define E1M2(SIGN)                                                                                                     \
    (SIGN) + 0x0000, (SIGN) + 0x3E80, (SIGN) + 0x3F00, (SIGN) + 0x3F40, (SIGN) + 0x3F80, (SIGN) + 0x3FA0,              \
        (SIGN) + 0x3FC0, (SIGN) + 0x3FE0
static const uint16_t upper_of_e2m1[] = {E2M1(0), E2M1(0x8000), E2M1(0), E2M1(0x8000)};
static const uint16_t upper_of_e1m2[] = {E1M2(0), E1M2(0x8000), E1M2(0), E1M2(0x8000)};

INLINE small_code find_code(npuq_type type)
{
    const npuq_float_form form = npuq_float_form_of(type);

    if (npuq_is_4_bit_float(type)) {
        return (small_code){.table = vector_at(type == NPUQ_TYPE_FLOAT4_E2M1 ? upper_of_e2m1 : upper_of_e1m2, 0)};
    }
    return (small_code){.shift = form.mantissa - 2,
                        .mask = (uint16_t)(0x8000 | 0x7F << (10 - form.mantissa)),
                        .power = (float)(1 << (15 - form.bias))};
}

/* What has all bits of float16's exponent is Inf or NaN; of FLOAT8_E4M3FN, the code with all bits is NaN. */
INLINE vh float16_of_code(vh code, small_code c)
{
    const vh half = (vh)((vs)code >> c.shift) & c.mask;

    return half | (vh)((half | 0x8000) == c.mask);
}

/* Floats of 8 or 4 bits. */
INLINE vchunk load_small_floats(const char *x, small_code c, size_t n, bool tail, bool has_4_bits)
{
    char last[CHUNK] = {0};

    if (tail) {
        memcpy(last, x, has_4_bits ? n / 2 : n);
        x = last;
    }
    if (has_4_bits) {
        return chunk_look_up(x, c.table);
    }
    const hchunk codes = chunk_load_bytes(x);
    const hchunk halves = {{float16_of_code(codes.v[0], c), float16_of_code(codes.v[1], c)}};
    vchunk t = chunk_of_f16(halves);

    for (int i = 0; i < 4; i++) {
        t.v[i] = t.v[i] * v_set(c.power);
    }
    return t;
}

/* Whether bfloat16 has all numbers of a chunk; fails where a lane is NaN. */
INLINE store_check check_of_bfloat16(vchunk t)
{
    const vu bits = ((vu)t.v[0] | (vu)t.v[1]) | ((vu)t.v[2] | (vu)t.v[3]);

    t.v[0] = (vf)((vi)t.v[0] | ((vi)(bits & 0xFFFF) > 0));
    return check_of_floats(t);
}

#endif
