/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference's arithmetic of single elements against other ways to compute each result, and against the library's.
 * All inputs where there are few. */
#include "support.h"

#include "element.h"

#include "ref/npuq_ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

/* All values of a type of 16 bits, by the C library. */
static void check_halves(float (*widen)(uint16_t bits), int fraction_bits)
{
    const uint32_t ones = (1U << (15 - fraction_bits)) - 1; /* an exponent of ones */
    const int least = 2 - (int)(ones + 1) / 2;

    for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
        const double sign = bits & 0x8000u ? -1.0 : 1.0;
        const uint32_t exponent = bits >> fraction_bits & ones;
        const double fraction = ldexp(bits & ((1U << fraction_bits) - 1), -fraction_bits);
        const float got = widen((uint16_t)bits);

        if (exponent == ones && fraction != 0.0) {
            assert_true(isnan(got));
        } else if (exponent == ones) {
            assert_true(isinf(got) && (double)got * sign > 0);
        } else {
            const double expected =
                sign * (exponent == 0 ? ldexp(fraction, least) : ldexp(1.0 + fraction, least - 1 + (int)exponent));
            assert_true((double)got == expected);
            assert_true(copysign(1.0, (double)got) == copysign(1.0, expected));
        }
    }
}

static void test_float16(void **unused)
{
    (void)unused;
    check_halves(npuq_ref_float16, 10);
}

static void test_bfloat16(void **unused)
{
    (void)unused;
    check_halves(npuq_ref_bfloat16, 7);
}

/* sat(round(t)) in the C library's double arithmetic. */
static int32_t expected_saturate(float t, double low, double high)
{
    const double rounded = nearbyint((double)t);
    return isnan(t) ? 0 : (int32_t)(rounded < low ? low : rounded > high ? high : rounded);
}

static void check_saturate(float t)
{
    assert_int_equal(npuq_ref_saturate(t, -8, 7), expected_saturate(t, -8, 7));
    assert_int_equal(npuq_ref_saturate(t, -128, 127), expected_saturate(t, -128, 127));
    assert_int_equal(npuq_ref_saturate(t, 0, 255), expected_saturate(t, 0, 255));
    assert_int_equal(npuq_ref_saturate(t, -256, 255), expected_saturate(t, -256, 255));
    assert_int_equal(npuq_ref_saturate(t, INT32_MIN, INT32_MAX), expected_saturate(t, INT32_MIN, INT32_MAX));
}

/* Every exponent and the ends and middle of every binade, every half around the ranges, and many at random. */
static void test_saturate(void **unused)
{
    (void)unused;
    for (uint32_t high = 0; high <= 0xFFFF; high++) {
        static const uint32_t lows[] = {0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
        for (size_t i = 0; i < sizeof lows / sizeof lows[0]; i++) {
            check_saturate(npuq_ref_from_bits(high << 16 | lows[i]));
        }
    }
    for (int half = -1200; half <= 1200; half++) {
        const float t = (float)half * 0.5f;
        check_saturate(t);
        check_saturate(nextafterf(t, INFINITY));
        check_saturate(nextafterf(t, -INFINITY));
    }
    for (int i = 0; i < 1000000; i++) {
        check_saturate(npuq_ref_from_bits((uint32_t)test_random()));
    }
}

/* The values next to a quotient, by the C library. */
static void test_quotients(void **unused)
{
    (void)unused;
    for (int again = 0; again < 100000; again++) {
        const float a = test_float(false);
        const float b = test_float(false);
        const float q = npuq_ref_div(a, b);
        const bool alone = q == 0 || !isfinite(q);

        if (isnan(q)) {
            assert_true(isnan(npuq_ref_div_below(a, b)) && isnan(npuq_ref_div_above(a, b)));
        } else {
            assert_int_equal(npuq_ref_to_bits(npuq_ref_div_below(a, b)),
                             npuq_ref_to_bits(alone ? q : nextafterf(q, -INFINITY)));
            assert_int_equal(npuq_ref_to_bits(npuq_ref_div_above(a, b)),
                             npuq_ref_to_bits(alone ? q : nextafterf(q, INFINITY)));
        }
    }
}

static void assert_same_bits(float got, float expected)
{
    assert_int_equal(npuq_ref_to_bits(got), npuq_ref_to_bits(expected));
}

static void test_halves(void **unused)
{
    (void)unused;
    for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
        assert_same_bits(npuq_widen_float16((uint16_t)bits), npuq_ref_float16((uint16_t)bits));
        assert_same_bits(npuq_widen_bfloat16((uint16_t)bits), npuq_ref_bfloat16((uint16_t)bits));
    }
}

static void test_words(void **unused)
{
    (void)unused;
    for (uint64_t i = 0; i < 512 * 512; i++) {
        const uint64_t word = test_random() ^ i << 37;

        assert_same_bits(npuq_scale_of_word(word), npuq_ref_word_scale(word));
        assert_int_equal(npuq_offset_of_word(word), npuq_ref_word_offset(word));
    }
}

/* All pairs of values, the last of them random, joined to the range before. */
static void test_ranges(void **unused)
{
    static const uint32_t chosen[] = {0x00000000u, 0x80000000u, 0x00000001u, 0x80000001u, 0x3F800000u, 0xBF800000u,
                                      0x7F7FFFFFu, 0xFF7FFFFFu, 0x7F800000u, 0xFF800000u, 0x7FC00000u, 0xFFC00001u};
    enum { CHOSEN = sizeof chosen / sizeof chosen[0], VALUES = 200 };

    (void)unused;
    for (size_t i = 0; i < (size_t)VALUES * VALUES; i++) {
        const size_t at[] = {i / VALUES, i % VALUES};
        npuq_range range = npuq_empty_range();
        npuq_ref_range expected = npuq_ref_range_empty();

        assert_same_bits(range.hi, expected.hi);
        assert_same_bits(range.lo, expected.lo);
        for (size_t k = 0; k < 2; k++) {
            const float v = at[k] < CHOSEN ? npuq_ref_from_bits(chosen[at[k]]) : test_float(false);
            const npuq_ref_range one = npuq_ref_range_with(npuq_ref_range_empty(), v);

            range = npuq_join_ranges(range, (npuq_range){one.hi, one.lo});
            expected = npuq_ref_range_with(expected, v);
            assert_same_bits(range.hi, expected.hi);
            assert_same_bits(range.lo, expected.lo);
        }
        assert_same_bits(npuq_canonical(range.hi), npuq_ref_canonical(range.hi));
    }
    assert_same_bits(npuq_canonical(npuq_ref_from_bits(0xFF800001u)), npuq_ref_from_bits(0x7FC00000u));
}

/* ---- 8 and 4 bits: values by the definition, casts by a search -------------------------------------------------- */

typedef struct small_type {
    const char *name;
    npuq_ref_dtype dtype;
    unsigned sign; /* the bit */
    unsigned fraction_bits;
    double least;       /* above 0 */
    size_t count;       /* of finite values from +0 on */
    double values[128]; /* ascending */
    uint8_t codes[128]; /* theirs */
} small_type;

enum { SMALL_TYPES = 5, HIFLOAT8 = 4 };

static small_type small_types[SMALL_TYPES] = {
    {"e5m2", NPUQ_REF_FLOAT8_E5M2, 0x80, 2, 0x1p-16, 0x7C, {0}, {0}},
    {"e4m3fn", NPUQ_REF_FLOAT8_E4M3FN, 0x80, 3, 0x1p-9, 0x7F, {0}, {0}},
    {"e2m1", NPUQ_REF_FLOAT4_E2M1, 8, 1, 0.5, 8, {0}, {0}},
    {"e1m2", NPUQ_REF_FLOAT4_E1M2, 8, 2, 0.25, 8, {0}, {0}},
    {"hifloat8", NPUQ_REF_HIFLOAT8, 0x80, 0, 0, 0, {0}, {0}},
};

static float decode_small(const small_type *type, unsigned code)
{
    const uint8_t codes[4] = {(uint8_t)code}; /* room for any type */

    return npuq_ref_load(codes, type->dtype, 0);
}

static unsigned encode_small(const small_type *type, float t, npuq_ref_rounding rounding)
{
    return type->dtype == NPUQ_REF_HIFLOAT8 ? npuq_ref_to_hifloat8(t)
                                            : npuq_ref_to_small_float(type->dtype, t, rounding);
}

/* The value of a HIFLOAT8 code without sign, from the letters of its form. */
static double hifloat8_by_letters(unsigned code)
{
    static const char *const forms[] = {"0000mmm", "0001mmm", "001smmm", "01sxmmm", "10sxxmm", "11sxxxm"};
    unsigned s = 0;
    unsigned x = 0;
    unsigned m = 0;
    unsigned ones = 0; /* of m */
    size_t form = 0;

    for (bool fits = false; !fits; form += fits ? 0 : 1) {
        fits = true;
        s = m = ones = 0;
        x = 1;
        for (unsigned i = 0; i < 7; i++) {
            const unsigned bit = code >> (6 - i) & 1;

            switch (forms[form][i]) {
            case 's': s = bit; break;
            case 'x': x = x * 2 + bit; break;
            case 'm': m = m * 2 + bit, ones = ones * 2 + 1; break;
            default: fits = fits && (unsigned)(forms[form][i] - '0') == bit;
            }
        }
    }
    if (form == 0) {
        return m == 0 ? 0.0 : ldexp(1.0, (int)m - 23);
    }
    const int size = form == 1 ? 0 : (int)x;
    return ldexp(1.0 + (double)m / (ones + 1), s ? -size : size);
}

/* Inserts a finite value in order. */
static void add_value(small_type *type, double value, unsigned code)
{
    size_t i = type->count++;

    for (; i > 0 && type->values[i - 1] > value; i--) {
        type->values[i] = type->values[i - 1];
        type->codes[i] = type->codes[i - 1];
    }
    type->values[i] = value;
    type->codes[i] = (uint8_t)code;
}

/* The steps from value to value double from the second exponent on, and with each. */
static int list_values(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < HIFLOAT8; k++) {
        small_type *type = &small_types[k];
        const unsigned count = (unsigned)type->count;
        const unsigned per_exponent = 1U << type->fraction_bits;
        double value = 0.0;
        double step = type->least;

        type->count = 0;
        for (unsigned code = 0; code < count; code++, value += step) {
            step *= code % per_exponent == 0 && code >= 2 * per_exponent ? 2 : 1;
            add_value(type, value, code);
        }
    }
    for (unsigned code = 0; code < 0x80; code++) {
        if (code != 0x6F) {
            add_value(&small_types[HIFLOAT8], hifloat8_by_letters(code), code);
        }
    }
    return 0;
}

static void assert_canonical_nan(float value)
{
    assert_int_equal(npuq_ref_to_bits(value), 0x7FC00000u);
}

/* Every code: its value, and its way back. Codes of NaN go back as 0, those of infinities as the largest. */
static void test_small_values(void **unused)
{
    static const double largest[SMALL_TYPES] = {57344, 448, 6, 1.75, 32768};

    (void)unused;
    for (size_t k = 0; k < SMALL_TYPES; k++) {
        const small_type *type = &small_types[k];
        size_t finite = 0;

        assert_true(type->values[type->count - 1] == largest[k]);
        for (size_t i = 0; i < type->count; i++) {
            for (unsigned sign = 0; sign <= type->sign; sign += type->sign) {
                const unsigned code = type->codes[i] | sign;
                const float got = decode_small(type, code);

                if (type->dtype == NPUQ_REF_HIFLOAT8 && code == 0x80) {
                    assert_canonical_nan(got);
                    continue;
                }
                finite++;
                assert_true((double)fabsf(got) == type->values[i] && !signbit(got) == !sign);
                for (npuq_ref_rounding rounding = NPUQ_REF_RINT; rounding <= NPUQ_REF_FLOOR; rounding++) {
                    assert_int_equal(encode_small(type, got, rounding), code);
                }
            }
        }
        assert_int_equal(finite, 2 * type->count - (type->dtype == NPUQ_REF_HIFLOAT8 ? 1 : 0));
    }
    for (unsigned sign = 0; sign <= 0x80; sign += 0x80) {
        const float infinity = sign ? -INFINITY : INFINITY;

        assert_canonical_nan(decode_small(&small_types[1], sign | 0x7F));
        for (unsigned code = 0x7D; code <= 0x7F; code++) {
            assert_canonical_nan(decode_small(&small_types[0], sign | code));
        }
        assert_true(decode_small(&small_types[0], sign | 0x7C) == infinity);
        assert_true(decode_small(&small_types[HIFLOAT8], sign | 0x6F) == infinity);
    }
    for (int code = 0; code < 0xFF; code++) {
        assert_true((double)npuq_ref_float8_e8m0((uint8_t)code) == ldexp(1.0, code - 127));
    }
    assert_canonical_nan(npuq_ref_float8_e8m0(0xFF));
}

/* The code of the nearest value, found among all of them. */
static unsigned nearest_code(const small_type *type, float t, npuq_ref_rounding rounding)
{
    const size_t last = type->count - 1;
    const double magnitude = fmin(fabs((double)t), type->values[last]);
    size_t i = 0;

    if (isnan(t)) {
        return 0;
    }
    while (i < last && type->values[i + 1] <= magnitude) {
        i++;
    }
    if (type->values[i] < magnitude) {
        const double middle = (type->values[i] + type->values[i + 1]) / 2;
        const bool is_up = rounding == NPUQ_REF_FLOOR ? signbit(t) != 0
                           : magnitude == middle      ? rounding == NPUQ_REF_ROUND || type->codes[i] % 2 != 0
                                                      : magnitude > middle;
        i += is_up;
    }
    return type->codes[i] | (signbit(t) && !(type->dtype == NPUQ_REF_HIFLOAT8 && i == 0) ? type->sign : 0);
}

static void check_small(const small_type *type, float t)
{
    for (int negative = 0; negative < 2; negative++, t = -t) {
        for (npuq_ref_rounding rounding = NPUQ_REF_RINT; rounding <= NPUQ_REF_FLOOR; rounding++) {
            const npuq_ref_rounding own = type->dtype == NPUQ_REF_HIFLOAT8 ? NPUQ_REF_ROUND : rounding;
            const unsigned got = encode_small(type, t, own);
            const unsigned expected = nearest_code(type, t, own);

            if (got != expected) {
                fail_msg("%s of %a, rounding %d: %02X, not %02X", type->name, (double)t, (int)own, got, expected);
            }
        }
    }
}

static void check_beside(const small_type *type, double t)
{
    check_small(type, (float)t);
    check_small(type, nextafterf((float)t, INFINITY));
    check_small(type, nextafterf((float)t, 0.0f));
}

/* All values of 16 bits; each value of a type and each middle, and what is next to them; ends of the range. */
static void test_small_codes(void **unused)
{
    static const uint32_t chosen[] = {0x7F7FFFFFu, 0x7F800000u, 0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu,
                                      0x00000001u, 0x007FFFFFu, 0x00800000u, 0x00000000u};

    (void)unused;
    for (size_t k = 0; k < SMALL_TYPES; k++) {
        const small_type *type = &small_types[k];

        for (uint32_t bits = 0; bits < 0x8000; bits++) {
            check_small(type, npuq_ref_float16((uint16_t)bits));
            check_small(type, npuq_ref_bfloat16((uint16_t)bits));
        }
        for (size_t i = 1; i < type->count; i++) {
            check_beside(type, type->values[i]);
            check_beside(type, (type->values[i - 1] + type->values[i]) / 2);
        }
        check_beside(type, type->values[type->count - 1] * 1.0625); /* half a step beyond, in one of the types */
        check_beside(type, type->values[type->count - 1] * 1.25);
        for (size_t i = 0; i < COUNT(chosen); i++) {
            check_small(type, npuq_ref_from_bits(chosen[i]));
        }
    }
}

static void assert_bytes(const uint8_t *got, const char *expected)
{
    for (size_t i = 0; *expected; i++) {
        char *end = NULL;
        assert_int_equal(got[i], strtoul(expected, &end, 16));
        expected = end;
    }
}

/* The examples of the definition of the casts, as it gives them. */
static void quantise_by_1(const float *values, size_t n, bool div_mode, npuq_dtype dtype, uint8_t *codes)
{
    static const float one = 1.0f;
    const npuq_tensor x = npuq_vector(values, NPUQ_FLOAT32, (int64_t)n);
    const npuq_tensor y = npuq_vector(codes, dtype, (int64_t)n);
    const npuq_tensor scales = npuq_vector(&one, NPUQ_FLOAT32, 1);

    assert_int_equal(npuq_quantize(&x, &scales, NULL, 0, div_mode, &y, NULL), NPUQ_OK);
}

static void test_small_examples(void **unused)
{
    static const float values[] = {448,
                                   464,
                                   465,
                                   -464.00003f,
                                   1e9f,
                                   INFINITY,
                                   -INFINITY,
                                   NAN,
                                   0,
                                   -0.0f,
                                   0x1p-9f,
                                   0x1p-10f,
                                   1.0001f * 0x1p-10f,
                                   3 * 0x1p-10f,
                                   17,
                                   18,
                                   19,
                                   -17,
                                   -18.5f,
                                   .0019f,
                                   .2f,
                                   -.3f,
                                   1.0f / 3};
    static const float hifloat8_values[] = {
        0,         -0.0f,    1,         -1,   1.0625f,  1.1875f,  15,       16,       17,
        18,        20,       22,        256,  320,      384,      448,      32768,    40960,
        1e9f,      INFINITY, -INFINITY, NAN,  0x1p-15f, 0x1p-16f, 0x1p-22f, 0x1p-23f, 1.999f * 0x1p-24f,
        -0x1p-23f, .1f,      -.3f,      3.3f, 100};
    uint8_t e4m3fn[COUNT(values)];
    uint8_t e5m2[COUNT(values)];
    uint8_t hifloat8[COUNT(hifloat8_values)];

    (void)unused;
    FOR_EACH_BACKEND()
    {
        for (int div_mode = 0; div_mode < 2; div_mode++) {
            quantise_by_1(values, COUNT(values), div_mode, NPUQ_FLOAT8_E4M3FN, e4m3fn);
            quantise_by_1(values, COUNT(values), div_mode, NPUQ_FLOAT8_E5M2, e5m2);
            quantise_by_1(hifloat8_values, COUNT(hifloat8_values), div_mode, NPUQ_HIFLOAT8, hifloat8);
            assert_bytes(e4m3fn, "7E 7E 7E FE 7E 7E FE 00 00 80 01 00 01 02 58 59 5A D8 D9 01 25 AA 2B");
            assert_bytes(e5m2, "5F 5F 5F DF 7B 7B FB 00 00 80 18 14 14 1A 4C 4C 4D CC CD 18 32 B5 35");
            assert_bytes(hifloat8,
                         "00 00 08 88 09 0A 2F 40 40 41 41 42 60 61 61 62 6E 6E 6E 6E EE 00 7E 07 01 01 00 81 52 "
                         "B2 15 4A");
        }
    }
}

/* Rows whose scale and codes are known. */
static void test_small_rows(void **unused)
{
    static const struct {
        npuq_dtype y;
        float dst_type_max;
        float x[8];
        uint32_t scale;
        const char *codes;
    } rows[] = {
        {NPUQ_FLOAT8_E4M3FN, 0, {0x1p-119f, -0x1p-119f, 0x1p-126f, 0, -0.0f}, 0x00249249, "7E FE 7E 00 00 00 00 00"},
        {NPUQ_FLOAT8_E5M2, 0, {0, -0.0f, 0}, 0, "00 00 00 00 00 00 00 00"},
        {NPUQ_FLOAT8_E5M2, 0, {INFINITY, 1, -1, 0}, 0x7F800000, "00 00 80 00 00 00 00 00"},
        {NPUQ_HIFLOAT8, 0, {INFINITY, 1, -1, 0}, 0x7F800000, "00 00 00 00 00 00 00 00"},
        {NPUQ_HIFLOAT8, 0, {NAN, 1, -1, 0}, 0x7FC00000, "00 00 00 00 00 00 00 00"},
        {NPUQ_HIFLOAT8, 15, {.5f, -1.25f, 3, 0, 2.75f, -.375f, 1.5f, -2}, 0x3E4CCCCE, "12 A4 2F 00 2E 8F 27 AA"},
    };

    (void)unused;
    FOR_EACH_BACKEND()
    {
        for (size_t i = 0; i < COUNT(rows); i++) {
            uint8_t codes[8];
            float scale;
            const npuq_tensor x = npuq_matrix(rows[i].x, NPUQ_FLOAT32, 1, 8, 0);
            const npuq_tensor y = npuq_matrix(codes, rows[i].y, 1, 8, 0);
            const npuq_tensor scales = npuq_vector(&scale, NPUQ_FLOAT32, 1);

            assert_int_equal(
                npuq_dynamic_quant_float8(&x, NULL, NULL, NPUQ_PER_TOKEN, rows[i].dst_type_max, &y, &scales, NULL),
                NPUQ_OK);
            assert_bytes(codes, rows[i].codes);
            assert_int_equal(npuq_ref_to_bits(scale), rows[i].scale);
        }
    }
}

/* The same of blocks, in both forms that the library has: a row, and two rows of half the columns. */
static void test_small_blocks(void **unused)
{
    static const struct {
        npuq_dtype y;
        float min_scale;
        float dst_type_max;
        float x[8];
        uint32_t scale;
        const char *codes;
    } blocks[] = {
        {NPUQ_FLOAT8_E4M3FN, 0, 0, {.5f, -1.25f, 3, 0, 2.75f, -.375f, 1.5f, -2}, 0x3BDB6DB7, "69 F4 7E 00 7D E6 76 F9"},
        {NPUQ_HIFLOAT8, 0, 15, {.5f, -1.25f, 3, 0, 2.75f, -.375f, 1.5f, -2}, 0x3E4CCCCD, "12 A5 2F 00 2E 8F 27 AA"},
        {NPUQ_FLOAT8_E4M3FN,
         200,
         0,
         {.5f, -1.25f, 3, 0, 2.75f, -.375f, 1.5f, -2},
         0x3BA3D70A,
         "6C F8 7E 00 7E E9 79 FC"},
        {NPUQ_FLOAT8_E4M3FN, 0x1p127f, 0, {1, -1, 0}, 0, "7E FE 00 00 00 00 00 00"},
        {NPUQ_FLOAT8_E4M3FN, 200, 0, {INFINITY, 1, -1, 0}, 0x7F800000, "00 00 80 00 00 00 00 00"},
        {NPUQ_FLOAT8_E4M3FN, 0, 0, {0x1p-118f, -0x1p-118f, 0x1p-126f, 0}, 0, "7E FE 7E 00 00 00 00 00"},
        {NPUQ_FLOAT8_E4M3FN, 0, 0, {0x1p-117f, -0x1p-118f, 0x1p-127f}, 0x00924925, "7E F6 00 00 00 00 00 00"},
        {NPUQ_FLOAT8_E4M3FN,
         0,
         0,
         {0x1.6p0f, 0x1.bcp-1f, 0x1.acp-2f, 0x1.04p-1f, -0x1.1ap-1f, 0x1.08p-2f, -0x1.4ap0f, 0x1.e6p-1f},
         0x3B492492,
         "7E 79 71 72 F3 6A FD 7A"},
        {NPUQ_FLOAT8_E5M2, 1, 0, {NAN, 1, -1, 0}, 0x7FC00000, "00 00 00 00 00 00 00 00"},
    };

    (void)unused;
    FOR_EACH_BACKEND()
    {
        for (size_t i = 0; i < 2 * COUNT(blocks); i++) {
            const int64_t rows = 1 + (int64_t)(i % 2);
            uint8_t codes[8];
            float scale;
            const npuq_tensor x = npuq_matrix(blocks[i / 2].x, NPUQ_FLOAT32, rows, 8 / rows, 0);
            const npuq_tensor y = npuq_matrix(codes, blocks[i / 2].y, rows, 8 / rows, 0);
            const npuq_tensor scales = npuq_matrix(&scale, NPUQ_FLOAT32, 1, 1, 0);

            assert_int_equal(npuq_dynamic_block_quant_float8(&x, 128, 128, blocks[i / 2].min_scale,
                                                             blocks[i / 2].dst_type_max, &y, &scales, NULL),
                             NPUQ_OK);
            assert_bytes(codes, blocks[i / 2].codes);
            assert_int_equal(npuq_ref_to_bits(scale), blocks[i / 2].scale);
        }
    }
}

/* Groups of the examples of microscaling whose scale is given: the product with 2^(127 - scale), rounded to bfloat16
 * unless x is wider, becomes codes, and codes of 4 bits pairs. */
static void test_small_groups(void **unused)
{
#define A .5f, -1.25f, 3, 0, 2.75f, -.375f, 1.5f, -2
#define B                                                                                                              \
    3.75f, -1.25f, 3, -0.0f, 2.75f, -.375f, 1.5f, -2, .0625f, -.03125f, .1171875f, .4375f, 1.0625f, -3.5f, 1.125f,     \
        .3125f
#define T                                                                                                              \
    6, .25f, .75f, 1.25f, 1.75f, 2.5f, 3.5f, 5, -.25f, -.75f, -1.25f, -1.75f, -2.5f, -3.5f, -5, -6, .125f, -.125f,     \
        .375f, -.375f, 0, -0.0f, 4, -4, 7, -7, 7.5f, 1, 2, 3, .5f, 1.5f
#define M4     1.75f, .125f, .375f, .625f, .875f, -.125f, -.375f, -.625f, -.875f, 1, -1, 1.5f, -1.5f, .0625f, -.0625f, 0
#define M5     0x1.FEp127f, -1, 1e30f, -1e30f
#define LIMITS 0x1.FEp127f, -0x1p-8f, -1, -0x1p-133f
    static const struct {
        npuq_ref_dtype dtype;
        npuq_ref_rounding rounding;
        bool is_wide;
        int scale;
        float x[32];
        const char *codes;
    } groups[] = {
        {NPUQ_REF_FLOAT8_E4M3FN, NPUQ_REF_RINT, false, 0x78, {A}, "68 F2 7C 00 7B E4 74 F8"},
        {NPUQ_REF_FLOAT8_E5M2, NPUQ_REF_RINT, false, 0x71, {A}, "70 F5 7A 00 7A EE 76 F8"},
        {NPUQ_REF_FLOAT8_E4M3FN, NPUQ_REF_RINT, false, 0x78, {B}, "7E F2 7C 80 7B E4 74 F8 50 C8 57 66 70 FE 71 62"},
        {NPUQ_REF_FLOAT8_E4M3FN, NPUQ_REF_RINT, false, 0x79, {B}, "77 EA 74 80 73 DC 6C F0 48 C0 4F 5E 68 F6 69 5A"},
        {NPUQ_REF_FLOAT4_E2M1, NPUQ_REF_RINT, false, 0x7F, {T}, "07 22 44 66 A8 CA EC FE 80 91 80 E6 F7 27 54 31"},
        {NPUQ_REF_FLOAT4_E2M1, NPUQ_REF_ROUND, false, 0x7F, {T}, "17 32 54 76 A9 CB ED FF 80 91 80 E6 F7 27 54 31"},
        {NPUQ_REF_FLOAT4_E2M1, NPUQ_REF_FLOOR, false, 0x7F, {T}, "07 21 43 65 A9 CB ED FF 90 90 80 E6 F7 27 54 31"},
        {NPUQ_REF_FLOAT4_E2M1, NPUQ_REF_RINT, false, 0x80, {T}, "05 11 22 44 98 A9 CA DC 80 80 80 C4 E6 16 32 20"},
        {NPUQ_REF_FLOAT4_E1M2, NPUQ_REF_RINT, false, 0x7F, {M4}, "07 22 84 AA 4C 6C 0E 08"},
        {NPUQ_REF_FLOAT4_E1M2, NPUQ_REF_ROUND, false, 0x7F, {M4}, "17 32 94 BA 4C 6C 0E 08"},
        {NPUQ_REF_FLOAT4_E1M2, NPUQ_REF_FLOOR, false, 0x7F, {M4}, "07 21 93 BA 4C 6C 0E 09"},
        {NPUQ_REF_FLOAT8_E4M3FN, NPUQ_REF_RINT, false, 0x01, {0x1p-118f, -0x1p-119f, 0x1p-126f}, "78 F0 38"},
        {NPUQ_REF_FLOAT8_E4M3FN, NPUQ_REF_RINT, false, 0xF6, {M5}, "7E 80 00 80"},
        {NPUQ_REF_FLOAT8_E4M3FN, NPUQ_REF_RINT, false, 0xF7, {M5}, "78 80 00 80"},
        {NPUQ_REF_FLOAT4_E2M1, NPUQ_REF_RINT, false, 0x06, {0x1p-119f, -0x1p-119f, 0x1p-126f}, "E6"},
        {NPUQ_REF_FLOAT4_E2M1, NPUQ_REF_RINT, false, 0x07, {0x1p-118f, -0x1p-119f, 0x1p-126f}, "C6"},
        {NPUQ_REF_FLOAT4_E2M1, NPUQ_REF_RINT, false, 0xFC, {M5}, "87 80"},
        {NPUQ_REF_FLOAT4_E1M2, NPUQ_REF_FLOOR, false, 0xFE, {LIMITS}, "87 89"},
        {NPUQ_REF_FLOAT4_E1M2, NPUQ_REF_FLOOR, true, 0xFE, {LIMITS}, "97 89"},
    };
#undef A
#undef B
#undef T
#undef M4
#undef M5
#undef LIMITS

    (void)unused;
    for (size_t g = 0; g < COUNT(groups); g++) {
        const bool is_nibbles = groups[g].dtype == NPUQ_REF_FLOAT4_E2M1 || groups[g].dtype == NPUQ_REF_FLOAT4_E1M2;
        uint8_t stored[32]; /* as quantisers store */
        uint8_t codes[32];

        memset(codes, 0xA5, sizeof codes);
        for (size_t i = 0; i < 32; i++) {
            const float product = npuq_ref_mul(groups[g].x[i], (float)ldexp(1.0, 127 - groups[g].scale));
            const float t = groups[g].is_wide ? product : npuq_ref_bfloat16(npuq_ref_to_bfloat16(product));
            const uint8_t code = npuq_ref_to_small_float(groups[g].dtype, t, groups[g].rounding);

            if (is_nibbles) {
                npuq_ref_store_nibble(codes, i, code);
                assert_int_equal(npuq_ref_nibble(codes, i), code);
            } else {
                codes[i] = code;
            }
            assert_same_bits(npuq_ref_load(codes, groups[g].dtype, i), npuq_ref_small_float(groups[g].dtype, code));
            npuq_ref_store(stored, groups[g].dtype, i, t);
        }
        assert_bytes(codes, groups[g].codes);
        if (groups[g].rounding == NPUQ_REF_RINT) {
            assert_memory_equal(stored, codes, is_nibbles ? 16 : 32);
        }
    }
}

/* The reference's quantize of all bfloat16 to 8-bit floats, with steps in double that are rounded to float. */
/* As the Ascend 950 divides: what is subnormal in binary32 is zero. */
static double flushed_if(bool flushes, double value)
{
    return flushes && fabs(value) < 0x1p-126 ? copysign(0, value) : value;
}

static void test_small_quantize(void **unused)
{
    enum { COLUMNS = 256, ELEMENTS = 1 << 16 };
    static const size_t shape[] = {ELEMENTS / COLUMNS, COLUMNS};
    static const float special[] = {0.0f, -0.0f, INFINITY, NAN, 1.0f, -1.0f, 0x1p-149f, 0x1p127f};
    static uint16_t x[ELEMENTS];
    static uint8_t y[ELEMENTS];
    float scales[COLUMNS];
    float zero_points[COLUMNS];

    (void)unused;
    for (size_t i = 0; i < ELEMENTS; i++) {
        x[i] = (uint16_t)(i / 256 | i % 256 << 8); /* each column has all exponents */
    }
    for (size_t c = 0; c < COLUMNS; c++) {
        scales[c] = c < COUNT(special) ? special[c] : ldexpf((float)test_below(1 << 24), -24 + (int)(c % 32) - 16);
        zero_points[c] = c % 3 == 0 ? special[c / 3 % COUNT(special)] : (float)test_below(4096) / 16 - 128;
    }
    for (size_t way = 0; way < SMALL_TYPES * 4; way++) {
        const small_type *type = &small_types[way / 4];
        const bool divide = way % 2 != 0;
        const bool has_zero_points = way / 2 % 2 != 0;

        if (type->sign != 0x80) {
            continue; /* no operator makes 4 bits in this way */
        }
        npuq_ref_quantize(x, NPUQ_REF_BFLOAT16, shape, 2, scales, NPUQ_REF_FLOAT32, COLUMNS,
                          has_zero_points ? zero_points : NULL, NPUQ_REF_FLOAT32, -1, divide, y, type->dtype);
        for (size_t i = 0; i < ELEMENTS; i++) {
            const double v = flushed_if(divide, npuq_ref_bfloat16(x[i]));
            const double s = flushed_if(divide, scales[i % COLUMNS]);
            const float scaled = (float)(divide ? flushed_if(true, v / s) : v * s);
            const float t = has_zero_points ? (float)((double)scaled + (double)zero_points[i % COLUMNS]) : scaled;
            const unsigned expected =
                nearest_code(type, t, type->dtype == NPUQ_REF_HIFLOAT8 ? NPUQ_REF_ROUND : NPUQ_REF_RINT);

            if (y[i] != expected) {
                fail_msg("%s of %a, %s by %a, %s: %02X, not %02X", type->name, v, divide ? "divided" : "multiplied", s,
                         has_zero_points ? "with a zero point" : "without", y[i], expected);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float16),      cmocka_unit_test(test_bfloat16),
        cmocka_unit_test(test_saturate),     cmocka_unit_test(test_quotients),
        cmocka_unit_test(test_halves),       cmocka_unit_test(test_words),
        cmocka_unit_test(test_ranges),       cmocka_unit_test(test_small_values),
        cmocka_unit_test(test_small_codes),  cmocka_unit_test(test_small_examples),
        cmocka_unit_test(test_small_rows),   cmocka_unit_test(test_small_blocks),
        cmocka_unit_test(test_small_groups), cmocka_unit_test(test_small_quantize),
    };
    test_seed();
    return cmocka_run_group_tests_name("convert", tests, list_values, NULL);
}
