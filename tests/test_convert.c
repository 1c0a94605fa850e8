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
static void list_values(void)
{
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

/* ---- microscaling ----------------------------------------------------------------------------------------------- */

#define F32  NPUQ_REF_FLOAT32
#define F16  NPUQ_REF_FLOAT16
#define BF16 NPUQ_REF_BFLOAT16
#define E4M3 NPUQ_REF_FLOAT8_E4M3FN
#define E5M2 NPUQ_REF_FLOAT8_E5M2
#define E2M1 NPUQ_REF_FLOAT4_E2M1
#define E1M2 NPUQ_REF_FLOAT4_E1M2

enum { LAST = 1, OTHER = 2, ANY = 3 }; /* axes */

#define OPTIONS(how, number, rule, most, bound)                                                                        \
    {                                                                                                                  \
        .rounding = NPUQ_REF_##how, .scale_algorithm = (number), .small_groups = NPUQ_REF_RULE_##rule,                 \
        .dst_type_max = (most), .max_low_bound = (bound)                                                               \
    }
static const struct {
    const char *name;
    int axes;
    npuq_ref_dtype x_dtype;
    npuq_ref_dtype y_dtype;
    npuq_ref_mx options;
    const char *x;
    const char *scales;
    const char *codes;
} mx_examples[] = {
#include "mx_examples.def"
};

static bool is_nibble(npuq_ref_dtype dtype)
{
    return dtype == E2M1 || dtype == E1M2;
}

/* The patterns or codes, one an element, and their number without the zeros left out. */
static size_t read_elements(const char *text, npuq_ref_dtype dtype, uint32_t *elements)
{
    size_t n = 0;

    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        const bool is_pattern = *text == '#' || !(dtype == F32 || dtype == F16 || dtype == BF16);
        char *end = NULL;

        if (*text == '|') {
            n = (n / 32 + 1) * 32;
            text++;
            continue;
        }
        if (is_pattern) {
            elements[n] = (uint32_t)strtoul(text + (*text == '#'), &end, 16);
        } else {
            const float value = strtof(text, &end);
            elements[n] = dtype == F32   ? npuq_ref_to_bits(value)
                          : dtype == F16 ? npuq_ref_to_float16(value)
                                         : npuq_ref_to_bfloat16(value);
        }
        text = end;
        n++;
        if (is_nibble(dtype)) {
            elements[n] = elements[n - 1] >> 4;
            elements[n - 1] &= 0xF;
            n++;
        }
    }
    return n;
}

static void put_pattern(void *x, npuq_ref_dtype dtype, size_t i, uint32_t pattern)
{
    if (dtype == F32) {
        ((uint32_t *)x)[i] = pattern;
    } else {
        ((uint16_t *)x)[i] = (uint16_t)pattern;
    }
}

static unsigned code_at(const uint8_t *y, npuq_ref_dtype dtype, size_t i)
{
    return is_nibble(dtype) ? npuq_ref_nibble(y, i) : y[i];
}

/* The library makes the same bytes on every backend, at once and prepared. */
static void check_mx_by_library(const void *x, npuq_ref_dtype x_dtype, const size_t *shape, int ndim, int axis,
                                const npuq_ref_mx *o, const uint8_t *y, npuq_ref_dtype y_dtype, const uint8_t *mxscale)
{
    const npuq_mx options = {.block = (int32_t)o->block,
                             .rounding = (int32_t)o->rounding,
                             .scale_algorithm = o->scale_algorithm,
                             .small_groups = (int32_t)o->small_groups,
                             .dst_type_max = o->dst_type_max,
                             .max_low_bound = o->max_low_bound,
                             .bad_groups = o->bad_is_nan};
    const int elements = is_nibble(y_dtype) ? 2 : 1;
    int64_t extents[NPUQ_MAX_NDIM];
    uint8_t made[2][1024];
    npuq_call prepared;

    for (int d = 0; d < ndim; d++) {
        extents[d] = (int64_t)shape[d];
    }
    const npuq_tensor tx = npuq_tensor_contiguous(x, (npuq_dtype)x_dtype, ndim, extents);
    extents[ndim - 1] /= elements;
    const npuq_tensor ty = npuq_tensor_contiguous(made[0], (npuq_dtype)y_dtype, ndim, extents);
    assert_int_equal(npuq_mx_scale_shape(&tx, axis, &options, extents), NPUQ_OK);
    const npuq_tensor ts = npuq_tensor_contiguous(made[1], NPUQ_FLOAT8_E8M0, ndim + 1, extents);
    const size_t bytes[2] = {test_count(ndim, ty.shape), test_count(ndim + 1, extents)};

    assert_true(bytes[0] < sizeof made[0] && bytes[1] < sizeof made[1]);
    FOR_EACH_BACKEND()
    {
        for (int way = 0; way < 2; way++) {
            memset(made, 0xA5, sizeof made);
            if (way == 0) {
                assert_int_equal(npuq_dynamic_mx_quant(&tx, axis, &options, &ty, &ts, NULL), NPUQ_OK);
            } else {
                assert_int_equal(npuq_prepare_dynamic_mx_quant(&prepared, &tx, axis, &options, &ty, &ts), NPUQ_OK);
                npuq_call_run(&prepared, 0, SIZE_MAX);
            }
            test_same(made[0], y, bytes[0], "y");
            test_same(made[1], mxscale, bytes[1], "mxscale");
            assert_true(made[0][bytes[0]] == 0xA5 && made[1][bytes[1]] == 0xA5);
        }
    }
}

/* Each group is in each of the columns, and all are there twice, one after the other. */
static void check_mx_example(size_t e, size_t columns, bool is_short, bool counts_from_end, bool is_wide)
{
    enum { MOST = 6 * 32 };
    const npuq_ref_dtype x_dtype = mx_examples[e].x_dtype;
    const npuq_ref_dtype y_dtype = mx_examples[e].y_dtype;
    uint32_t patterns[MOST] = {0};
    uint32_t codes[MOST] = {0};
    uint32_t scales[MOST] = {0};
    uint32_t x[2 * MOST * 2];
    uint8_t y[2 * MOST * 2 + 1];
    uint8_t mxscale[2 * 3 * 2 * 2 + 1];
    float back[2 * MOST * 2];
    const size_t last = read_elements(mx_examples[e].x, x_dtype, patterns);
    const size_t groups = read_elements(mx_examples[e].scales, NPUQ_REF_FLOAT8_E8M0, scales);
    const size_t block = groups == 1 && is_wide ? 64 : 32;
    const size_t pairs = (groups + 1) / 2;
    const size_t n = is_short ? (last + 1) / 2 * 2 : block * groups;
    const size_t shape[] = {2, n, columns};
    const int ndim = columns == 1 ? 2 : 3;
    const int axis = counts_from_end ? 1 - ndim : 1;
    npuq_ref_mx options = mx_examples[e].options;

    options.block = block == 32 ? 0 : block;
    (void)read_elements(mx_examples[e].codes, y_dtype, codes);
    for (size_t i = 0; i < 2 * n * columns; i++) {
        put_pattern(x, x_dtype, i, patterns[i / columns % n]);
    }
    memset(y, 0xA5, sizeof y);
    memset(mxscale, 0xA5, sizeof mxscale);
    npuq_ref_dynamic_mx_quant(x, x_dtype, shape, ndim, axis, &options, y, y_dtype, mxscale);
    check_mx_by_library(x, x_dtype, shape, ndim, axis, &options, y, y_dtype, mxscale);
    npuq_ref_anti_mx_quant(y, y_dtype, shape, ndim, mxscale, axis, &options, back, F32);
    for (size_t i = 0; i < 2 * pairs * columns * 2; i++) {
        const uint32_t expected = scales[i / 2 / columns % pairs * 2 + i % 2];

        if (mxscale[i] != expected) {
            fail_msg("%s, row %zu: scale %zu is %02X, not %02X", mx_examples[e].name, e, i, mxscale[i], expected);
        }
    }
    for (size_t i = 0; i < 2 * n * columns; i++) {
        const size_t c = i / columns % n;
        const uint32_t scale = scales[c / block];
        const double value = ldexp((double)npuq_ref_small_float(y_dtype, (uint8_t)codes[c]), (int)scale - 127);
        const unsigned got = code_at(y, y_dtype, i);

        if (got != codes[c]) {
            fail_msg("%s, row %zu: code %zu is %02X, not %02X", mx_examples[e].name, e, i, got, codes[c]);
        }
        assert_same_bits(back[i], scale == 0xFF ? npuq_ref_from_bits(0x7FC00000u) : (float)value);
    }
    assert_int_equal(y[2 * n * columns / (is_nibble(y_dtype) ? 2 : 1)], 0xA5);
    assert_int_equal(mxscale[2 * pairs * columns * 2], 0xA5);
}

static void test_mx_examples(void **unused)
{
    (void)unused;
    for (size_t e = 0; e < COUNT(mx_examples); e++) {
        for (size_t way = 0; way < 16; way++) {
            if (mx_examples[e].axes & (way % 2 == 0 ? LAST : OTHER)) {
                check_mx_example(e, 1 + way % 2, way / 2 % 2, way / 4 % 2, way / 8);
            }
        }
    }
}

/* Columns with groups of their own, the second of a single row. */
static void test_mx_layout(void **unused)
{
    static const size_t shape[] = {33, 4};
    static const float first[] = {1, -2, 3, -.5f};
    static const float last[] = {8, .25f, -1, 0};
    const npuq_ref_mx options = {0};
    uint16_t x[33 * 4];
    uint8_t y[33 * 2];
    uint8_t mxscale[8];

    (void)unused;
    for (size_t i = 0; i < COUNT(x); i++) {
        x[i] = npuq_ref_to_float16(i / 4 < 32 ? first[i % 4] : last[i % 4]);
    }
    npuq_ref_dynamic_mx_quant(x, F16, shape, 2, 0, &options, y, E2M1, mxscale);
    check_mx_by_library(x, F16, shape, 2, 0, &options, y, E2M1, mxscale);
    assert_bytes(mxscale, "7D 80 7E 7B 7E 7D 7C 00");
    for (size_t row = 0; row < 32; row++) {
        assert_bytes(y + row * 2, "E6 E7");
    }
    assert_bytes(y + 64, "66 0E");
}

/* Every element becomes NaN, with a sign where it is a NaN that has one. The next group is finite. */
static void test_mx_bad_groups(void **unused)
{
    enum { ROWS = 2, N = 64 };
    static const struct {
        npuq_ref_dtype dtype;
        uint32_t infinity, sign, one;
    } types[] = {
        {F32, 0x7F800000u, 0x80000000u, 0x3F800000u}, {F16, 0x7C00, 0x8000, 0x3C00}, {BF16, 0x7F80, 0x8000, 0x3F80}};
    static const uint8_t firsts[] = {0x7F, 0x7F, 0x7F, 0xFF, 0x7F};
    const npuq_ref_mx options = {.bad_is_nan = true};
    uint32_t x[ROWS * N];
    uint8_t y[ROWS * N];
    uint8_t mxscale[ROWS * 2];

    (void)unused;
    for (size_t way = 0; way < 2 * COUNT(types); way++) {
        const uint32_t infinity = types[way / 2].infinity;
        const uint32_t sign = types[way / 2].sign;
        const uint32_t specials[] = {infinity, infinity | sign, infinity + 1, (infinity + 1) | sign};
        const size_t shape[] = {way % 2 ? N : ROWS, way % 2 ? ROWS : N};
        const size_t step = way % 2 ? ROWS : 1;

        for (size_t i = 0; i < COUNT(x); i++) {
            const size_t at = i / step % N;
            put_pattern(x, types[way / 2].dtype, i, at < COUNT(specials) ? specials[at] : types[way / 2].one);
        }
        npuq_ref_dynamic_mx_quant(x, types[way / 2].dtype, shape, 2, way % 2 ? 0 : 1, &options, y, E4M3, mxscale);
        check_mx_by_library(x, types[way / 2].dtype, shape, 2, way % 2 ? 0 : 1, &options, y, E4M3, mxscale);
        assert_bytes(mxscale, "FF 77 FF 77");
        for (size_t i = 0; i < COUNT(y); i++) {
            const size_t at = i / step % N;
            assert_int_equal(y[i], at >= N / 2 ? 0x78 : firsts[at < 4 ? at : 4]);
        }
    }
}

/* Of a double, the nearest value, or that towards zero, with so many significant bits, in units of at least 2^least. */
static double rounded(double v, double (*to_integer)(double v), int bits, int least)
{
    int exponent;

    (void)frexp(v, &exponent);
    const int unit = exponent - bits > least ? exponent - bits : least;
    const double value = ldexp(to_integer(ldexp(v, -unit)), unit);
    return fabs(value) < 0x1p128 ? value : copysign(INFINITY, v);
}

static double rounded_to(double v, npuq_ref_dtype dtype)
{
    if (!isfinite(v)) {
        return v;
    }
    const double value = rounded(v, nearbyint,
                                 dtype == F32   ? 24
                                 : dtype == F16 ? 11
                                                : 8,
                                 dtype == F32   ? -149
                                 : dtype == F16 ? -24
                                                : -133);
    return dtype == F16 && fabs(value) >= 0x1p16 ? copysign(INFINITY, v) : value;
}

/* The least scale with which a fits below a limit, which belongs to what fits or does not. */
static int least_scale(double a, double limit, bool inclusive)
{
    double most = limit * 0x1p-127;
    int S = 0;

    for (; a > most || (!inclusive && a == most); most *= 2) {
        S++;
    }
    return S;
}

/* S, and R in double, of a group whose largest magnitude is a. */
static int expected_group(double a, npuq_ref_dtype x_dtype, bool is_last_axis, const small_type *type,
                          const npuq_ref_mx *options, double *R)
{
    const double largest = type->values[type->count - 1];
    const double dmax = (double)options->dst_type_max;
    const bool by_half = options->scale_algorithm == 2 && (dmax == 0 || dmax == 6 || dmax == 7);
    double seen = a;
    int S;

    if (by_half && isfinite(a)) {
        seen = x_dtype == F32 && is_last_axis ? rounded(a, trunc, 8, -133) : rounded_to(a, BF16);
    }
    if (!isfinite(seen)) {
        return 0xFF;
    }
    if (options->scale_algorithm == 0) {
        S = least_scale(a, exp2(floor(log2(largest)) + 1), false);
    } else if (by_half) {
        S = least_scale(seen, dmax == 7 ? 7 : 6, true);
    } else {
        const bool is_first = options->scale_algorithm == 1;
        const double above_0 = is_first ? fmax(a, (double)options->max_low_bound) : a;
        const double t = rounded_to(a == 0 ? 0 : above_0 * rounded_to(1 / (is_first ? largest : dmax), F32), F32);

        S = !is_first && t < 0x1p-126 ? 0 : least_scale(t, 1, true);
    }
    const bool by_field = options->scale_algorithm == 0 || by_half;
    const bool is_small = options->small_groups == NPUQ_REF_RULE_N   ? false
                          : !by_field                                ? a == 0
                          : options->small_groups == NPUQ_REF_RULE_E ? seen < 0x1p-126
                                                                     : S == 0;
    *R = is_small ? 0 : ldexp(1, 127 - S);
    return S;
}

/* The largest magnitude of a group is each bfloat16 and each float16, and as float32 what is beside a bfloat16. */
static void check_mx_maxima(npuq_ref_dtype x_dtype, bool is_last_axis, const small_type *type,
                            const npuq_ref_mx *options)
{
    enum { GROUPS = 0x8000 };
    static const uint32_t lows[] = {0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
    static uint32_t x[2 * GROUPS];
    static uint8_t y[2 * GROUPS];
    static uint8_t mxscale[2 * GROUPS];
    const size_t step = is_last_axis ? 1 : GROUPS;
    const size_t shape[] = {is_last_axis ? GROUPS : 2, is_last_axis ? 2 : GROUPS};

    for (uint32_t k = 0; k < GROUPS; k++) {
        const size_t first = is_last_axis ? 2 * k : k;
        const uint32_t sign = x_dtype == F32 ? 0x80000000u : 0x8000u;
        const uint32_t most = x_dtype == F32 ? k << 16 | lows[test_below(COUNT(lows))] : k;
        const uint32_t reach = test_one_in(2) ? most : most >> 4; /* also values not much below the largest */
        const uint32_t less = most - (uint32_t)test_below(reach + 1ull);

        put_pattern(x, x_dtype, first + k % 2 * step, most | (test_one_in(2) ? sign : 0));
        put_pattern(x, x_dtype, first + (k + 1) % 2 * step, less | (test_one_in(2) ? sign : 0));
    }
    npuq_ref_dynamic_mx_quant(x, x_dtype, shape, 2, is_last_axis ? 1 : 0, options, y, type->dtype, mxscale);
    for (size_t k = 0; k < GROUPS; k++) {
        const size_t first = is_last_axis ? 2 * k : k;
        double R = 0;
        const double a = fabs((double)npuq_ref_load(x, x_dtype, first + k % 2 * step));
        const int S = expected_group(a, x_dtype, is_last_axis, type, options, &R);

        assert_int_equal(mxscale[2 * k], S);
        assert_int_equal(mxscale[2 * k + 1], 0);
        for (size_t i = first; i <= first + step; i += step) {
            const float v = npuq_ref_load(x, x_dtype, i);
            unsigned expected = !options->bad_is_nan ? 0 : isnan(v) && signbit(v) ? 0xFF : 0x7F;

            if (S != 0xFF) {
                const double p = rounded_to((double)v * R, F32);
                expected = nearest_code(type, (float)(x_dtype == BF16 ? rounded_to(p, BF16) : p), options->rounding);
            }
            if (code_at(y, type->dtype, i) != expected) {
                fail_msg("%s, algorithm %d, rule %d, dst_type_max %g: %a, with %a, is %02X, not %02X", type->name,
                         options->scale_algorithm, (int)options->small_groups, (double)options->dst_type_max, (double)v,
                         a, code_at(y, type->dtype, i), expected);
            }
        }
    }
}

static void test_mx_maxima(void **unused)
{
    static const npuq_ref_dtype x_dtypes[] = {F32, F16, BF16};
    static const struct {
        size_t type;
        npuq_ref_mx options;
    } kinds[] = {
        {0, OPTIONS(RINT, 0, S, 0, 0)},          {1, OPTIONS(RINT, 0, S, 0, 0)},  {2, OPTIONS(RINT, 0, S, 0, 0)},
        {3, OPTIONS(RINT, 0, S, 0, 0)},          {0, OPTIONS(RINT, 1, S, 0, 0)},  {1, OPTIONS(RINT, 1, S, 0, 0)},
        {1, OPTIONS(RINT, 1, S, 0, 0x1.8p-20f)}, {2, OPTIONS(RINT, 2, S, 0, 0)},  {2, OPTIONS(RINT, 2, S, 7, 0)},
        {2, OPTIONS(RINT, 2, S, 7.25f, 0)},      {2, OPTIONS(RINT, 2, S, 12, 0)},
    };

    (void)unused;
    for (size_t way = 0; way < COUNT(kinds) * COUNT(x_dtypes) * 3; way++) {
        const size_t kind = way / 9;
        npuq_ref_mx options = kinds[kind].options;

        options.small_groups = (npuq_ref_small_groups)(way % 3);
        options.bad_is_nan = small_types[kinds[kind].type].sign == 0x80 && way % 3 == NPUQ_REF_RULE_N;
        options.rounding = small_types[kinds[kind].type].sign == 8 ? (npuq_ref_rounding)(way % 3) : NPUQ_REF_RINT;
        check_mx_maxima(x_dtypes[way / 3 % 3], way % 3 != NPUQ_REF_RULE_E, &small_types[kinds[kind].type], &options);
    }
}

static void check_back_by_library(const uint8_t *x, npuq_ref_dtype x_dtype, int64_t codes, const uint8_t *mxscale,
                                  const void *y, npuq_dtype y_dtype)
{
    static uint32_t made[256 * 256];
    const npuq_mx options = {.block = 1024};
    const int64_t extents[] = {256, codes};
    const int64_t words[] = {256, is_nibble(x_dtype) ? codes / 2 : codes};
    const int64_t pairs[] = {256, 1, 2};
    const npuq_tensor tx = npuq_tensor_contiguous(x, (npuq_dtype)x_dtype, 2, words);
    const npuq_tensor ty = npuq_tensor_contiguous(made, y_dtype, 2, extents);
    const npuq_tensor ts = npuq_tensor_contiguous(mxscale, NPUQ_FLOAT8_E8M0, 3, pairs);

    FOR_EACH_BACKEND()
    {
        memset(made, 0xA5, sizeof made);
        assert_int_equal(npuq_anti_mx_quant(&tx, &ts, -1, &options, &ty, NULL), NPUQ_OK);
        test_same(made, y, test_count(2, extents) * npuq_dtype_size(y_dtype), "y");
    }
}

/* Every code with every scale, to each type, by the reference, and the library makes the same bytes. */
static void test_anti_mx(void **unused)
{
    static const npuq_ref_dtype y_dtypes[] = {F32, F16, BF16};
    const npuq_ref_mx options = {.block = 1024};

    (void)unused;
    for (size_t way = 0; way < HIFLOAT8 * COUNT(y_dtypes); way++) {
        const small_type *type = &small_types[way / COUNT(y_dtypes)];
        const npuq_ref_dtype y_dtype = y_dtypes[way % COUNT(y_dtypes)];
        const size_t codes = 2 * type->sign;
        const size_t shape[] = {256, codes};
        static uint8_t x[256 * 256];
        static uint32_t y[256 * 256];
        uint8_t mxscale[256 * 2];

        for (size_t i = 0; i < 256 * codes; i++) {
            npuq_ref_store_code(x, type->dtype, i, (uint8_t)(i % codes));
            mxscale[i / codes * 2] = (uint8_t)(i / codes);
        }
        npuq_ref_anti_mx_quant(x, type->dtype, shape, 2, mxscale, -1, &options, y, y_dtype);
        check_back_by_library(x, type->dtype, (int64_t)codes, mxscale, y, (npuq_dtype)y_dtype);
        for (size_t i = 0; i < 256 * codes; i++) {
            const double code = (double)decode_small(type, (unsigned)(i % codes));
            const double product = rounded_to(ldexp(code, (int)(i / codes) - 127), F32);
            const float got = npuq_ref_load(y, y_dtype, i);

            if (isnan(code) || i / codes == 0xFF) {
                assert_int_equal(y_dtype == F32   ? npuq_ref_to_bits(got)
                                 : y_dtype == F16 ? ((uint16_t *)y)[i]
                                                  : (uint32_t)((uint16_t *)y)[i],
                                 y_dtype == F32   ? 0x7FC00000u
                                 : y_dtype == F16 ? 0x7E00u
                                                  : 0x7FC0u);
            } else {
                assert_true((double)got == rounded_to(product, y_dtype) && !signbit(got) == !signbit(product));
            }
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
        cmocka_unit_test(test_float16),       cmocka_unit_test(test_bfloat16),
        cmocka_unit_test(test_saturate),      cmocka_unit_test(test_quotients),
        cmocka_unit_test(test_halves),        cmocka_unit_test(test_words),
        cmocka_unit_test(test_ranges),        cmocka_unit_test(test_small_values),
        cmocka_unit_test(test_small_codes),   cmocka_unit_test(test_small_examples),
        cmocka_unit_test(test_small_rows),    cmocka_unit_test(test_small_blocks),
        cmocka_unit_test(test_mx_examples),   cmocka_unit_test(test_mx_layout),
        cmocka_unit_test(test_mx_bad_groups), cmocka_unit_test(test_mx_maxima),
        cmocka_unit_test(test_anti_mx),       cmocka_unit_test(test_small_quantize),
    };
    test_seed();
    list_values();
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
