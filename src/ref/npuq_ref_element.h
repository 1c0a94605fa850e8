/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arithmetic of one element, in the order of the steps.
 *
 * Each arithmetic step is one IEEE-754 binary32 operation. Its result goes through a volatile object. So a compiler can
 * neither keep the result in a wider register (x87), nor fuse steps (FMA), nor reassociate them. A divisor goes through
 * a volatile object, too, so a division remains a division.
 * The rounding mode must be the default one, to nearest-even, and subnormals must not be flushed.
 */
#ifndef NPUQ_REF_ELEMENT_H
#define NPUQ_REF_ELEMENT_H

#if defined(__FAST_MATH__) || defined(_M_FP_FAST) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "npuquant defines every bit of its results, NaN and infinities included: build it without -ffast-math"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Element types, numbered as in Ascend's aclDataType; QUINT4X2 is eight int4 in an int32 word. FLOAT4 are two in a
 * byte. */
typedef enum npuq_ref_dtype {
    NPUQ_REF_FLOAT32 = 0,
    NPUQ_REF_FLOAT16 = 1,
    NPUQ_REF_INT8 = 2,
    NPUQ_REF_INT32 = 3,
    NPUQ_REF_UINT8 = 4,
    NPUQ_REF_BFLOAT16 = 27,
    NPUQ_REF_HIFLOAT8 = 34,
    NPUQ_REF_FLOAT8_E5M2 = 35,
    NPUQ_REF_FLOAT8_E4M3FN = 36,
    NPUQ_REF_FLOAT8_E8M0 = 37,
    NPUQ_REF_FLOAT4_E2M1 = 40,
    NPUQ_REF_FLOAT4_E1M2 = 41,
    NPUQ_REF_QUINT4X2 = 256
} npuq_ref_dtype;

/* ---- binary32, bit by bit -------------------------------------------------------------------------------------- */

static inline float npuq_ref_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t npuq_ref_to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline bool npuq_ref_is_nan(float value)
{
    return (npuq_ref_to_bits(value) & 0x7FFFFFFFu) > 0x7F800000u;
}

static inline float npuq_ref_add(float a, float b)
{
    volatile float sum = a + b;
    return sum;
}

static inline float npuq_ref_sub(float a, float b)
{
    volatile float difference = a - b;
    return difference;
}

static inline float npuq_ref_mul(float a, float b)
{
    volatile float product = a * b;
    return product;
}

static inline float npuq_ref_div(float a, float b)
{
    volatile float divisor = b; /* the compiler cannot know it: so it takes no reciprocal */
    volatile float quotient = a / divisor;
    return quotient;
}

/* The value next below or next above a quotient: the device's vector unit may return it instead. A quotient that is 0,
 * infinite or NaN stays unchanged. */
static inline float npuq_ref_beside(float quotient, bool above)
{
    const uint32_t bits = npuq_ref_to_bits(quotient);
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    const bool grows = (bits == magnitude) == above; /* of a negative value the one below is the larger magnitude */

    return magnitude == 0 || magnitude >= 0x7F800000u ? quotient : npuq_ref_from_bits(grows ? bits + 1 : bits - 1);
}

static inline float npuq_ref_div_below(float a, float b)
{
    return npuq_ref_beside(npuq_ref_div(a, b), false);
}

static inline float npuq_ref_div_above(float a, float b)
{
    return npuq_ref_beside(npuq_ref_div(a, b), true);
}

/* ---- to binary32 ----------------------------------------------------------------------------------------------- */

/* A bfloat16 is the upper half of a binary32. */
static inline float npuq_ref_bfloat16(uint16_t half)
{
    return npuq_ref_from_bits((uint32_t)half << 16);
}

/* IEEE binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits. Every value is a binary32 value. */
static inline float npuq_ref_float16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1Fu;
    uint32_t fraction = half & 0x3FFu;

    if (exponent == 31) { /* infinity, or NaN with its payload */
        return npuq_ref_from_bits(sign | 0x7F800000u | fraction << 13);
    }
    if (exponent != 0) {
        return npuq_ref_from_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
    }
    if (fraction == 0) {
        return npuq_ref_from_bits(sign);
    }
    /* Subnormal, fraction * 2^-24: shift the leading one up to bit 10, where a normal value has its hidden bit. */
    uint32_t shift = 0;
    while (!(fraction & 0x400u)) {
        fraction <<= 1;
        shift++;
    }
    return npuq_ref_from_bits(sign | (127 - 15 + 1 - shift) << 23 | (fraction & 0x3FFu) << 13);
}

/* 2^exponent, a normal number. A product with it is exact unless the result is too large or subnormal. */
static inline float npuq_ref_power(int32_t exponent)
{
    return npuq_ref_from_bits((uint32_t)(exponent + 127) << 23);
}

/* The types with 8 or 4 bits of sign, exponent and fraction: DO(NAME, bits, fraction, bias, largest). These are the
 * bits of an element and of its fraction, the exponent's bias, and the largest finite value. Exponent field 0 holds
 * zeros and subnormals. Beyond the largest value a fraction of 0 is an infinity, and any other is NaN. */
#define NPUQ_REF_EACH_SMALL_FLOAT(DO)                                                                                  \
    DO(FLOAT8_E5M2, 8, 2, 15, 57344.0f)                                                                                \
    DO(FLOAT8_E4M3FN, 8, 3, 7, 448.0f)                                                                                 \
    DO(FLOAT4_E2M1, 4, 1, 1, 6.0f)                                                                                     \
    DO(FLOAT4_E1M2, 4, 2, 1, 1.75f)

typedef struct npuq_ref_small_facts {
    int32_t bits;
    int32_t fraction;
    int32_t bias;
    float largest;
} npuq_ref_small_facts;

static inline npuq_ref_small_facts npuq_ref_small_facts_of(npuq_ref_dtype dtype)
{
    const npuq_ref_small_facts none = {0, 0, 0, 0.0f};

    switch (dtype) {
#define NPUQ_REF_CASE(NAME, bits, fraction, bias, largest)                                                             \
    case NPUQ_REF_##NAME: {                                                                                            \
        const npuq_ref_small_facts facts = {bits, fraction, bias, largest};                                            \
        return facts;                                                                                                  \
    }
        NPUQ_REF_EACH_SMALL_FLOAT(NPUQ_REF_CASE)
#undef NPUQ_REF_CASE
    default: return none; /* of a type with other fields */
    }
}

/* The value of a code. Every NaN is 0x7FC00000. */
static inline float npuq_ref_small_float(npuq_ref_dtype dtype, uint8_t code)
{
    const npuq_ref_small_facts of = npuq_ref_small_facts_of(dtype);
    const uint32_t sign = (uint32_t)code >> (of.bits - 1) << 31;
    const uint32_t magnitude = code & ((1u << (of.bits - 1)) - 1);
    const int32_t exponent = (int32_t)(magnitude >> of.fraction);
    const uint32_t fraction = magnitude & ((1u << of.fraction) - 1);
    /* 0.fraction or 1.fraction, as an integer */
    const float significand = (float)(exponent == 0 ? fraction : fraction | 1u << of.fraction);
    const float value =
        npuq_ref_mul(significand, npuq_ref_power((exponent == 0 ? 1 : exponent) - of.bias - of.fraction));

    if (value > of.largest) {
        return npuq_ref_from_bits(fraction == 0 ? sign | 0x7F800000u : 0x7FC00000u);
    }
    return npuq_ref_from_bits(sign | npuq_ref_to_bits(value));
}

/* HIFLOAT8: below the code's sign, a prefix says how many bits exponent and fraction have. The exponent has its own
 * sign, and no leading one: its magnitude is least + the bits below its sign. */
typedef struct npuq_ref_hifloat8_form {
    uint32_t prefix;
    uint32_t exponent_sign; /* the bit */
    int32_t least;
    int32_t fraction; /* bits */
} npuq_ref_hifloat8_form;

/* The form for a magnitude of the exponent, or that of a code of 8 or more without its sign, if this is not 0. */
static inline npuq_ref_hifloat8_form npuq_ref_hifloat8_form_of(int32_t exponent, uint32_t code)
{
    static const npuq_ref_hifloat8_form forms[] = {
        {0x60, 0x10, 8, 1}, /* 11sxxxm */
        {0x40, 0x10, 4, 2}, /* 10sxxmm */
        {0x20, 0x10, 2, 3}, /* 01sxmmm */
        {0x10, 0x08, 1, 3}, /* 001smmm */
        {0x08, 0x00, 0, 3}, /* 0001mmm */
    };
    size_t i = 0;

    while (code ? code < forms[i].prefix : exponent < forms[i].least) {
        i++;
    }
    return forms[i];
}

/* The value of a HIFLOAT8 code. NaN is 0x7FC00000. */
static inline float npuq_ref_hifloat8(uint8_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x80u) << 24;
    const uint32_t magnitude = code & 0x7Fu;

    if (magnitude == 0) { /* there is one zero: with a sign, the code is NaN */
        return npuq_ref_from_bits(sign ? 0x7FC00000u : 0);
    }
    if (magnitude == 0x6F) {
        return npuq_ref_from_bits(sign | 0x7F800000u);
    }
    if (magnitude < 8) { /* 0000mmm: a power of two without a fraction */
        return npuq_ref_from_bits(sign | npuq_ref_to_bits(npuq_ref_power((int32_t)magnitude - 23)));
    }
    const npuq_ref_hifloat8_form form = npuq_ref_hifloat8_form_of(0, magnitude);
    const uint32_t below = magnitude & ~(form.prefix | form.exponent_sign);
    const int32_t size = form.least + (int32_t)(below >> form.fraction);
    const int32_t exponent = magnitude & form.exponent_sign ? -size : size;
    const uint32_t fraction = below & ((1u << form.fraction) - 1);
    return npuq_ref_from_bits(sign | (uint32_t)(exponent + 127) << 23 | fraction << (23 - form.fraction));
}

/* FLOAT8_E8M0: 2^(code - 127), without a sign. The last code is NaN. */
static inline float npuq_ref_float8_e8m0(uint8_t code)
{
    return npuq_ref_from_bits(code == 0xFF ? 0x7FC00000u : code == 0 ? 0x00400000u : (uint32_t)code << 23);
}

/* Code i of an array of 4-bit codes, two in a byte: the even one in the low half. */
static inline uint8_t npuq_ref_nibble(const uint8_t *bytes, size_t i)
{
    return bytes[i / 2] >> (4 * (i % 2)) & 0xFu;
}

/* An int32 rounds half to even when it has more than 24 significant bits. */
static inline float npuq_ref_int32(int32_t integer)
{
    volatile float value = (float)integer;
    return value;
}

/* Nibble i of a word, from the low end, as two's complement. */
static inline int32_t npuq_ref_int4(uint32_t word, unsigned i)
{
    const int32_t nibble = (int32_t)(word >> (4 * i) & 15u);
    return nibble < 8 ? nibble : nibble - 16;
}

/* Element i of an array, as binary32. */
static inline float npuq_ref_load(const void *array, npuq_ref_dtype dtype, size_t i)
{
    switch (dtype) {
    case NPUQ_REF_FLOAT32: return ((const float *)array)[i];
    case NPUQ_REF_FLOAT16: return npuq_ref_float16(((const uint16_t *)array)[i]);
    case NPUQ_REF_BFLOAT16: return npuq_ref_bfloat16(((const uint16_t *)array)[i]);
    case NPUQ_REF_INT8: return (float)((const int8_t *)array)[i];
    case NPUQ_REF_UINT8: return (float)((const uint8_t *)array)[i];
    case NPUQ_REF_INT32: return npuq_ref_int32(((const int32_t *)array)[i]);
    case NPUQ_REF_QUINT4X2: return (float)npuq_ref_int4(((const uint32_t *)array)[i / 8], (unsigned)(i % 8));
    case NPUQ_REF_FLOAT8_E5M2:
    case NPUQ_REF_FLOAT8_E4M3FN: return npuq_ref_small_float(dtype, ((const uint8_t *)array)[i]);
    case NPUQ_REF_FLOAT4_E2M1:
    case NPUQ_REF_FLOAT4_E1M2: return npuq_ref_small_float(dtype, npuq_ref_nibble((const uint8_t *)array, i));
    case NPUQ_REF_HIFLOAT8: return npuq_ref_hifloat8(((const uint8_t *)array)[i]);
    case NPUQ_REF_FLOAT8_E8M0: return npuq_ref_float8_e8m0(((const uint8_t *)array)[i]);
    }
    return 0.0f;
}

/* ---- from binary32 to an integer ------------------------------------------------------------------------------- */

/* Rounds half to even. |t| < 2^31. */
static inline int32_t npuq_ref_round(float t)
{
    int32_t integer = (int32_t)t;              /* towards zero */
    const float fraction = t - (float)integer; /* exact: 0 from 2^23 on, and below that a part of t's own bits */
    const bool odd = integer % 2 != 0;
    const bool up = (fraction > 0.5f) | ((fraction == 0.5f) & odd); /* no branches: they would be guesses */
    const bool down = (fraction < -0.5f) | ((fraction == -0.5f) & odd);

    return integer + up - down;
}

/* sat(round(t)) to [low, high]; NaN gives 0. The ends are integers, so it is the same to clamp before rounding. */
static inline int32_t npuq_ref_saturate(float t, int32_t low, int32_t high)
{
    if (npuq_ref_is_nan(t)) {
        return 0;
    }
    if (t >= (float)high) { /* (float)INT32_MAX is 2^31, and no float lies between the two */
        return high;
    }
    if (t <= (float)low) {
        return low;
    }
    return npuq_ref_round(t);
}

/* ---- from binary32 to another floating-point type ---------------------------------------------------------------- */

/* Replaces every NaN by the same one: machines differ in the NaN that they make. */
static inline float npuq_ref_canonical(float t)
{
    return npuq_ref_is_nan(t) ? npuq_ref_from_bits(0x7FC00000u) : t;
}

/* The upper half, rounded half to even; the carry may reach the exponent, and make the largest values infinite. */
static inline uint16_t npuq_ref_to_bfloat16(float t)
{
    const uint32_t bits = npuq_ref_to_bits(t);

    if (npuq_ref_is_nan(t)) {
        return 0x7FC0u;
    }
    return (uint16_t)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

/* IEEE binary16, rounded half to even. */
static inline uint16_t npuq_ref_to_float16(float t)
{
    const uint32_t bits = npuq_ref_to_bits(t);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t magnitude = bits & 0x7FFFFFFFu;

    if (npuq_ref_is_nan(t)) {
        return 0x7E00u;
    }
    if (magnitude >= 0x477FF000u) { /* 65520, halfway between the largest float16 and the next power of two */
        return (uint16_t)(sign | 0x7C00u);
    }
    if (magnitude >= 0x38800000u) { /* 2^-14: normal. The exponent's bias changes, and 13 bits are rounded off. */
        const uint32_t rebiased = magnitude - ((127u - 15u) << 23);
        return (uint16_t)(sign | (rebiased + 0xFFFu + ((rebiased >> 13) & 1u)) >> 13);
    }
    if (magnitude < 0x33000000u) { /* below 2^-25, half of the least subnormal */
        return (uint16_t)sign;
    }
    /* Subnormal: the significand with its hidden bit, in units of 2^-24. */
    const uint32_t shift = 126u - (magnitude >> 23); /* 14 to 24 */
    const uint32_t significand = (magnitude & 0x7FFFFFu) | 0x800000u;
    const uint32_t half = 1u << (shift - 1);
    return (uint16_t)(sign | (significand + (half - 1u) + ((significand >> shift) & 1u)) >> shift);
}

/* How a cast to a small type rounds: half to even, half away from zero, or towards minus infinity. */
typedef enum npuq_ref_rounding { NPUQ_REF_RINT, NPUQ_REF_ROUND, NPUQ_REF_FLOOR } npuq_ref_rounding;

/* The code of t. What is beyond the largest value, infinities included, becomes the largest. NaN becomes 0, and the
 * sign of zero is kept, also where a negative value becomes zero. */
static inline uint8_t npuq_ref_to_small_float(npuq_ref_dtype dtype, float t, npuq_ref_rounding rounding)
{
    const npuq_ref_small_facts of = npuq_ref_small_facts_of(dtype);
    const uint32_t sign = npuq_ref_to_bits(t) >> 31;
    const uint32_t largest = npuq_ref_to_bits(of.largest);
    uint32_t magnitude = npuq_ref_to_bits(t) & 0x7FFFFFFFu;

    if (npuq_ref_is_nan(t)) {
        return 0;
    }
    magnitude = magnitude < largest ? magnitude : largest;

    /* The significand, an integer. Below the type's least exponent more bits are rounded off, but 25 take all. */
    const int32_t field = (int32_t)(magnitude >> 23);
    const uint32_t significand = (magnitude & 0x7FFFFFu) | (field != 0 ? 0x800000u : 0);
    const int32_t exponent = field - 127;
    const int32_t least = 1 - of.bias;
    const int32_t deeper = 23 - of.fraction + (exponent < least ? least - exponent : 0);
    const int32_t shift = deeper < 25 ? deeper : 25;
    const uint32_t kept = significand >> shift;
    const uint32_t rest = significand & ((1u << shift) - 1);
    const uint32_t half = 1u << (shift - 1);
    bool up = false;

    switch (rounding) {
    case NPUQ_REF_RINT: up = rest > half || (rest == half && kept % 2 != 0); break;
    case NPUQ_REF_ROUND: up = rest >= half; break;
    case NPUQ_REF_FLOOR: up = rest != 0 && sign; break; /* a negative value falls to the larger magnitude */
    }
    /* The leading one in kept counts as the least exponent. A carry may reach the exponent, too. */
    const uint32_t exponents = (uint32_t)(exponent < least ? 0 : exponent - least) << of.fraction;
    return (uint8_t)(sign << (of.bits - 1) | (exponents + kept + up));
}

/* The HIFLOAT8 code of t: the nearest value, halves away from zero. From 2^15 on it is that of 2^15. NaN becomes 0, and
 * zero has no sign. */
static inline uint8_t npuq_ref_to_hifloat8(float t)
{
    const uint32_t sign = npuq_ref_to_bits(t) >> 24 & 0x80u;
    const uint32_t magnitude = npuq_ref_to_bits(t) & 0x7FFFFFFFu;

    if (npuq_ref_is_nan(t) || magnitude < 0x34000000u) { /* 2^-23, half of the least value */
        return 0;
    }
    if (magnitude < 0x34800000u) { /* 2^-22, the least value */
        return (uint8_t)(sign | 1u);
    }
    if (magnitude >= 0x47000000u) { /* 2^15 */
        return (uint8_t)(sign | 0x6Eu);
    }
    /* Half of the last bit that is kept is added, and the bits below are dropped. The carry may reach the exponent:
     * then the fraction is 0, however many bits it has there. */
    const int32_t before = (int32_t)(magnitude >> 23) - 127;
    const int32_t kept = before < -15 ? 0 : npuq_ref_hifloat8_form_of(before < 0 ? -before : before, 0).fraction;
    const uint32_t rounded = magnitude + (1u << (22 - kept));
    const int32_t exponent = (int32_t)(rounded >> 23) - 127;

    if (exponent < -15) {
        return (uint8_t)(sign | (uint32_t)(exponent + 23));
    }
    const int32_t size = exponent < 0 ? -exponent : exponent;
    const npuq_ref_hifloat8_form form = npuq_ref_hifloat8_form_of(size, 0);
    const uint32_t fraction = (rounded & 0x7FFFFFu) >> (23 - form.fraction);
    return (uint8_t)(sign | form.prefix | (exponent < 0 ? form.exponent_sign : 0) |
                     (uint32_t)(size - form.least) << form.fraction | fraction);
}

/* Stores code i of an array of 4-bit codes. The even one of a byte is stored first: it clears the odd one. */
static inline void npuq_ref_store_nibble(uint8_t *bytes, size_t i, uint8_t code)
{
    bytes[i / 2] = (uint8_t)(i % 2 == 0 ? code : bytes[i / 2] | code << 4);
}

/* Stores code i of an array of a small type with 8 or 4 bits. */
static inline void npuq_ref_store_code(void *array, npuq_ref_dtype dtype, size_t i, uint8_t code)
{
    if (npuq_ref_small_facts_of(dtype).bits == 4) {
        npuq_ref_store_nibble((uint8_t *)array, i, code);
    } else {
        ((uint8_t *)array)[i] = code;
    }
}

/* ---- stores ----------------------------------------------------------------------------------------------------- */

/* Stores t, rounded and saturated, as element i of an array of integers or of a small floating-point type; nothing
 * becomes a FLOAT8_E8M0. Elements of QUINT4X2 and FLOAT4 arrays are stored in order, i = 0, 1, 2, ...: the first of a
 * word or a byte clears the others. */
static inline void npuq_ref_store(void *array, npuq_ref_dtype dtype, size_t i, float t)
{
    switch (dtype) {
    case NPUQ_REF_INT8: ((int8_t *)array)[i] = (int8_t)npuq_ref_saturate(t, INT8_MIN, INT8_MAX); break;
    case NPUQ_REF_UINT8: ((uint8_t *)array)[i] = (uint8_t)npuq_ref_saturate(t, 0, UINT8_MAX); break;
    case NPUQ_REF_INT32: ((int32_t *)array)[i] = npuq_ref_saturate(t, INT32_MIN, INT32_MAX); break;
    case NPUQ_REF_QUINT4X2: {
        uint32_t *word = (uint32_t *)array + i / 8;
        const uint32_t nibble = (uint32_t)npuq_ref_saturate(t, -8, 7) & 0xFu;
        *word = (i % 8 == 0 ? 0 : *word) | nibble << (4 * (i % 8));
        break;
    }
    case NPUQ_REF_FLOAT8_E5M2:
    case NPUQ_REF_FLOAT8_E4M3FN:
    case NPUQ_REF_FLOAT4_E2M1:
    case NPUQ_REF_FLOAT4_E1M2:
        npuq_ref_store_code(array, dtype, i, npuq_ref_to_small_float(dtype, t, NPUQ_REF_RINT));
        break;
    case NPUQ_REF_HIFLOAT8: ((uint8_t *)array)[i] = npuq_ref_to_hifloat8(t); break;
    case NPUQ_REF_FLOAT8_E8M0: break;
    case NPUQ_REF_FLOAT32:
    case NPUQ_REF_FLOAT16:
    case NPUQ_REF_BFLOAT16: break; /* npuq_ref_store_float() */
    }
}

/* Stores t as element i of an array of FLOAT32, FLOAT16 or BFLOAT16, which keep infinities and NaN. */
static inline void npuq_ref_store_float(void *array, npuq_ref_dtype dtype, size_t i, float t)
{
    switch (dtype) {
    case NPUQ_REF_FLOAT32: ((float *)array)[i] = npuq_ref_canonical(t); break;
    case NPUQ_REF_FLOAT16: ((uint16_t *)array)[i] = npuq_ref_to_float16(t); break;
    case NPUQ_REF_BFLOAT16: ((uint16_t *)array)[i] = npuq_ref_to_bfloat16(t); break;
    case NPUQ_REF_INT8:
    case NPUQ_REF_INT32:
    case NPUQ_REF_UINT8:
    case NPUQ_REF_QUINT4X2:
    case NPUQ_REF_FLOAT8_E5M2:
    case NPUQ_REF_FLOAT8_E4M3FN:
    case NPUQ_REF_FLOAT4_E2M1:
    case NPUQ_REF_FLOAT4_E1M2:
    case NPUQ_REF_HIFLOAT8:
    case NPUQ_REF_FLOAT8_E8M0: break; /* npuq_ref_store() */
    }
}

/* ---- quantize and group_quant ---------------------------------------------------------------------------------- */

/* Zero in place of a subnormal number, with its sign. */
static inline float npuq_ref_flush(float value)
{
    const uint32_t bits = npuq_ref_to_bits(value);

    return npuq_ref_from_bits((bits & 0x7F800000u) == 0 ? bits & 0x80000000u : bits);
}

/* x / s. To small floats as the Ascend 950 divides: subnormal operands are zeros, and a quotient that is below 2^-126
 * before it is rounded is a zero, too. Signs are kept. */
static inline float npuq_ref_quotient(float x, float s, npuq_ref_dtype y_dtype)
{
    if (y_dtype != NPUQ_REF_HIFLOAT8 && npuq_ref_small_facts_of(y_dtype).bits == 0) {
        return npuq_ref_div(x, s);
    }
    const double a = (double)npuq_ref_flush(x);
    const double b = (double)npuq_ref_flush(s);
    const float quotient = npuq_ref_div((float)a, (float)b);
    const bool vanishes = (a < 0 ? -a : a) < (b < 0 ? -b : b) * (double)npuq_ref_power(-126); /* exact, in binary64 */

    return vanishes ? npuq_ref_from_bits(npuq_ref_to_bits(quotient) & 0x80000000u) : quotient;
}

/* t = x / s + *z, or x * s + *z. Where z is null, nothing is added: -0 stays -0. */
static inline float npuq_ref_affine(float x, float s, const float *z, bool divide, npuq_ref_dtype y_dtype)
{
    const float scaled = divide ? npuq_ref_quotient(x, s, y_dtype) : npuq_ref_mul(x, s);
    return z ? npuq_ref_add(scaled, *z) : scaled;
}

/* ---- dynamic_quant_asymmetric ---------------------------------------------------------------------------------- */

/* The range of the values seen so far. hi is +0 rather than -0, lo -0 rather than +0; one NaN makes both NaN. */
typedef struct npuq_ref_range {
    float hi;
    float lo;
} npuq_ref_range;

static inline npuq_ref_range npuq_ref_range_empty(void)
{
    const npuq_ref_range range = {npuq_ref_from_bits(0xFF800000u), npuq_ref_from_bits(0x7F800000u)}; /* -Inf, +Inf */
    return range;
}

static inline npuq_ref_range npuq_ref_range_with(npuq_ref_range range, float v)
{
    if (npuq_ref_is_nan(v) || npuq_ref_is_nan(range.hi)) {
        range.hi = range.lo = npuq_ref_from_bits(0x7FC00000u);
        return range;
    }
    if (v > range.hi || (v == range.hi && npuq_ref_to_bits(v) == 0)) {
        range.hi = v;
    }
    if (v < range.lo || (v == range.lo && npuq_ref_to_bits(v) == 0x80000000u)) {
        range.lo = v;
    }
    return range;
}

/* The parameters of a row or a tensor: y = sat(round(v * back + offset)). */
typedef struct npuq_ref_parameters {
    float scale;
    float offset; /* 0x7FC00000 when it is NaN */
    float back;
} npuq_ref_parameters;

/* What the largest magnitude becomes: the high end of the range of INT8, which UINT8 takes, too, and of int4. */
static inline float npuq_ref_dmax(npuq_ref_dtype y_dtype)
{
    return y_dtype == NPUQ_REF_QUINT4X2 ? 7.0f : 127.0f;
}

static inline npuq_ref_parameters npuq_ref_range_parameters(npuq_ref_range range, npuq_ref_dtype y_dtype)
{
    const float dmax = npuq_ref_dmax(y_dtype);
    const float steps = 2.0f * dmax + 1.0f;
    const float least = npuq_ref_from_bits(0x2B8CBCCCu); /* 1e-12f; as a constant C lets it be wider, or one off */
    const float d = npuq_ref_div(npuq_ref_sub(range.hi, range.lo), steps);
    npuq_ref_parameters p;

    p.scale = d > least ? d : least; /* false for NaN */
    p.offset = npuq_ref_canonical(npuq_ref_sub(dmax, npuq_ref_div(range.hi, p.scale)));
    p.back = npuq_ref_div(1.0f, p.scale);
    return p;
}

/* ---- dynamic_quant ---------------------------------------------------------------------------------------------- */

/* The largest |v| seen so far, starting from 0; one NaN makes it NaN. */
static inline float npuq_ref_largest_with(float largest, float v)
{
    const float magnitude = npuq_ref_from_bits(npuq_ref_to_bits(v) & 0x7FFFFFFFu);

    if (npuq_ref_is_nan(v) || npuq_ref_is_nan(largest)) {
        return npuq_ref_from_bits(0x7FC00000u);
    }
    return magnitude > largest ? magnitude : largest;
}

/* The largest |v| of a range. */
static inline float npuq_ref_largest_of(npuq_ref_range range)
{
    return npuq_ref_largest_with(npuq_ref_largest_with(0.0f, range.hi), range.lo);
}

/* The scale has two forms: the product m * (1 / DMAX), and the inverse 1 / (DMAX / m). y does not depend on the form.
 */
static inline npuq_ref_parameters npuq_ref_symmetric_parameters(float largest, npuq_ref_dtype y_dtype,
                                                                bool inverse_form)
{
    const float dmax = npuq_ref_dmax(y_dtype);
    const float one_in_dmax = npuq_ref_div(1.0f, dmax);
    npuq_ref_parameters p;

    p.offset = 0.0f;
    p.back = npuq_ref_div(dmax, largest);
    p.scale = npuq_ref_canonical(inverse_form ? npuq_ref_div(1.0f, p.back) : npuq_ref_mul(largest, one_in_dmax));
    return p;
}

/* What the largest magnitude becomes in an 8-bit float. dst_type_max is of HIFLOAT8 alone; 0 stands for 32768. */
static inline float npuq_ref_float8_dmax(npuq_ref_dtype y_dtype, float dst_type_max)
{
    return dst_type_max != 0.0f              ? dst_type_max
           : y_dtype == NPUQ_REF_HIFLOAT8    ? 32768.0f
           : y_dtype == NPUQ_REF_FLOAT8_E5M2 ? 57344.0f
                                             : 448.0f;
}

/* Of 8-bit floats, which are divided by the scale: `back` is it, too. */
static inline npuq_ref_parameters npuq_ref_float8_parameters(float largest, npuq_ref_dtype y_dtype, float dst_type_max)
{
    npuq_ref_parameters p;

    p.offset = 0.0f;
    p.scale =
        npuq_ref_canonical(npuq_ref_mul(largest, npuq_ref_div(1.0f, npuq_ref_float8_dmax(y_dtype, dst_type_max))));
    p.back = p.scale;
    return p;
}

/* UINT8 is INT8 with its upper bit flipped. So 0 becomes 128, also the 0 that stands for a NaN. */
static inline void npuq_ref_store_symmetric(void *array, npuq_ref_dtype dtype, size_t i, float t)
{
    npuq_ref_store(array, dtype == NPUQ_REF_UINT8 ? NPUQ_REF_INT8 : dtype, i, t);
    if (dtype == NPUQ_REF_UINT8) {
        ((uint8_t *)array)[i] ^= 0x80u;
    }
}

/* ---- dynamic_block_quant ----------------------------------------------------------------------------------------- */

/* The parameters of a block. 1 / m is rounded before the product with DMAX. If min_scale is above 0, it limits both. */
static inline npuq_ref_parameters npuq_ref_block_parameters(float largest, npuq_ref_dtype y_dtype, float min_scale)
{
    npuq_ref_parameters p = npuq_ref_symmetric_parameters(largest, y_dtype, false);

    p.back = npuq_ref_mul(npuq_ref_div(1.0f, largest), npuq_ref_dmax(y_dtype));
    if (min_scale > 0.0f) {
        const float most = npuq_ref_div(1.0f, min_scale);

        p.back = p.back < min_scale ? min_scale : p.back;
        p.scale = p.scale > most ? most : p.scale;
    }
    return p;
}

/* The scale of a block of 8-bit floats. A min_scale above 0 limits it, unless it is infinite. */
static inline float npuq_ref_float8_block_scale(float largest, npuq_ref_dtype y_dtype, float min_scale,
                                                float dst_type_max)
{
    const float scale =
        npuq_ref_canonical(npuq_ref_quotient(largest, npuq_ref_float8_dmax(y_dtype, dst_type_max), y_dtype));

    if (min_scale > 0.0f && npuq_ref_to_bits(scale) < 0x7F800000u) {
        const float most = npuq_ref_quotient(1.0f, min_scale, y_dtype);

        return scale > most ? most : scale;
    }
    return scale;
}

/* ---- dynamic_mx_quant ------------------------------------------------------------------------------------------- */

/* When a group is so small that its scale S is 0. */
typedef enum npuq_ref_small_groups {
    NPUQ_REF_RULE_S, /* its elements become zeros */
    NPUQ_REF_RULE_E, /* they do where the exponent field that S was made from is 0 */
    NPUQ_REF_RULE_N  /* they are multiplied by 2^127 */
} npuq_ref_small_groups;

/* The operator's options. If all are 0, they are the device's defaults. */
typedef struct npuq_ref_mx {
    size_t block; /* elements in a group; 0 stands for 32 */
    npuq_ref_rounding rounding;
    int scale_algorithm;                /* 0, 1 for 8 bits, 2 for FLOAT4_E2M1 */
    npuq_ref_small_groups small_groups; /* for algorithm 0, and 2 with dst_type_max 0, 6 or 7 */
    float dst_type_max;                 /* for algorithm 2: 0, or 6 to 12 */
    float max_low_bound;                /* for algorithm 1: no group's largest magnitude counts as less, except 0 */
    bool bad_is_nan; /* a group with NaN or Inf, of 8 bits: its elements become NaN, and otherwise zeros without sign */
} npuq_ref_mx;

/* What a group's largest magnitude gives: the FLOAT8_E8M0 code of its scale, 0xFF if it has NaN or Inf, and R. */
typedef struct npuq_ref_mx_group {
    uint8_t S;
    float R; /* by which its elements are multiplied */
} npuq_ref_mx_group;

static inline int32_t npuq_ref_exponent(float v)
{
    return (int32_t)(npuq_ref_to_bits(v) >> 23 & 0xFFu);
}

static inline uint32_t npuq_ref_mantissa(float v)
{
    return npuq_ref_to_bits(v) & 0x7FFFFFu;
}

/* Algorithm 0: the largest magnitude comes into the type's last power of two. */
static inline int32_t npuq_ref_mx_scale_by_exponent(float a, npuq_ref_dtype y_dtype)
{
    const int32_t emax = npuq_ref_exponent(npuq_ref_small_facts_of(y_dtype).largest) - 127; /* 8, 15, 2, 0 */

    return npuq_ref_exponent(a) > emax ? npuq_ref_exponent(a) - emax : 0;
}

/* Algorithms 1, and 2 with most values of dst_type_max: t is the quotient by the largest result, and the next power of
 * two is the scale. A subnormal t above 2^-127 goes up in algorithm 1 only. */
static inline int32_t npuq_ref_mx_scale_by_product(float t, int algorithm)
{
    const int32_t exponent = npuq_ref_exponent(t);
    const bool up = (0 < exponent && exponent < 254 && npuq_ref_mantissa(t) > 0) ||
                    (algorithm == 1 && exponent == 0 && npuq_ref_mantissa(t) > 0x400000u);

    return exponent + up;
}

/* Algorithm 2 with dst_type_max 0, 6 or 7: h is a bfloat16, whose larger mantissas are carried to the exponent. */
static inline int32_t npuq_ref_mx_scale_by_half(float h, float dst_type_max)
{
    const uint32_t k = dst_type_max == 7.0f ? 0x1F : 0x3F;
    const uint32_t pattern = npuq_ref_to_bits(h) >> 16;

    return npuq_ref_exponent(h) < 2 ? 0 : (int32_t)((pattern + k) & 0x7F80u) / 128 - 2;
}

/* a is the largest |x| of the group. */
static inline npuq_ref_mx_group npuq_ref_mx_group_of(float a, npuq_ref_dtype x_dtype, bool is_last_axis,
                                                     npuq_ref_dtype y_dtype, const npuq_ref_mx *options)
{
    const int algorithm = options->scale_algorithm;
    const float dmax = options->dst_type_max;
    const bool by_half = algorithm == 2 && (dmax == 0.0f || dmax == 6.0f || dmax == 7.0f);
    const npuq_ref_mx_group bad = {0xFF, 0.0f};
    float seen = a; /* whose exponent S is made from */
    bool is_small;
    int32_t S;

    if (by_half && x_dtype == NPUQ_REF_FLOAT32 && is_last_axis) { /* the device has two kernels */
        seen = npuq_ref_from_bits(npuq_ref_to_bits(a) & 0xFFFF0000u);
    } else if (by_half) {
        seen = npuq_ref_bfloat16(npuq_ref_to_bfloat16(a));
    }
    if (npuq_ref_exponent(seen) == 255) { /* Inf or NaN. The half may be Inf where a is not. */
        return bad;
    }

    if (algorithm == 0 || by_half) {
        S = by_half ? npuq_ref_mx_scale_by_half(seen, dmax) : npuq_ref_mx_scale_by_exponent(seen, y_dtype);
        is_small = options->small_groups == NPUQ_REF_RULE_S ? S == 0 : npuq_ref_exponent(seen) == 0;
    } else {
        /* 3B124925 and 37924925 of the 8-bit types. The quotient by dmax in binary64, which the device rounds again, is
         * the same: 53 bits are more than twice 24. */
        const float c = npuq_ref_div(1.0f, algorithm == 1 ? npuq_ref_small_facts_of(y_dtype).largest : dmax);
        const float bound = algorithm == 1 ? options->max_low_bound : 0.0f;

        S = npuq_ref_mx_scale_by_product(npuq_ref_mul(a != 0.0f && a < bound ? bound : a, c), algorithm);
        is_small = a == 0.0f;
    }
    if (options->small_groups == NPUQ_REF_RULE_N) {
        is_small = false;
    }
    const npuq_ref_mx_group group = {(uint8_t)S, is_small ? 0.0f : npuq_ref_float8_e8m0((uint8_t)(254 - S))};
    return group;
}

/* The code of an element of a group. */
static inline uint8_t npuq_ref_mx_code(float x, npuq_ref_dtype x_dtype, npuq_ref_mx_group group, npuq_ref_dtype y_dtype,
                                       const npuq_ref_mx *options)
{
    if (group.S == 0xFF) {
        const bool has_sign = npuq_ref_is_nan(x) && npuq_ref_to_bits(x) >> 31;
        return !options->bad_is_nan ? 0 : has_sign ? 0xFF : 0x7F;
    }
    float p = npuq_ref_mul(x, group.R);
    if (x_dtype == NPUQ_REF_BFLOAT16) {
        p = npuq_ref_bfloat16(npuq_ref_to_bfloat16(p));
    }
    return npuq_ref_to_small_float(y_dtype, p, options->rounding);
}

/* ---- anti_quant, dequant, requant -------------------------------------------------------------------------------- */

/* The sum modulo 2^32, as the matrix unit's accumulators have it. */
static inline int32_t npuq_ref_wrapping_add(int32_t a, int32_t b)
{
    const uint32_t sum = (uint32_t)a + (uint32_t)b;
    int32_t wrapped;
    memcpy(&wrapped, &sum, sizeof wrapped);
    return wrapped;
}

/* The scale that requant takes from a word of trans_quant_param. */
static inline float npuq_ref_word_scale(uint64_t word)
{
    return npuq_ref_from_bits((uint32_t)word & 0xFFFFE000u);
}

static inline int32_t npuq_ref_word_offset(uint64_t word)
{
    const int32_t nine_bits = (int32_t)(word >> 37 & 0x1FFu);
    return nine_bits < 256 ? nine_bits : nine_bits - 512;
}

/* The int8 of a product p: two clamps, in this order. */
static inline int8_t npuq_ref_two_clamps(float p, int32_t offset)
{
    const int32_t sum = npuq_ref_saturate(p, -256, 255) + offset;
    return (int8_t)(sum < -128 ? -128 : sum > 127 ? 127 : sum);
}

/* ---- trans_quant_param ----------------------------------------------------------------------------------------- */

/* The 64-bit word for a scale, given as its binary32 bits, and an offset (0 when absent). */
static inline uint64_t npuq_ref_pack(uint32_t scale, float offset, bool round_to_nearest)
{
    const uint32_t exponent = scale & 0x7F800000u;

    if (round_to_nearest && exponent == 0) {
        scale &= 0x80000000u; /* zeros and subnormals */
    } else if (round_to_nearest && exponent != 0x7F800000u) {
        scale += 0xFFFu + ((scale >> 13) & 1u); /* half to even at bit 13; the carry may reach the exponent */
    }
    scale &= 0xFFFFE000u;

    const uint32_t nine_bits = (uint32_t)npuq_ref_saturate(offset, -256, 255) & 0x1FFu;
    return (uint64_t)1 << 46 | (uint64_t)nine_bits << 37 | scale;
}

#endif
