/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference's arithmetic of single elements against other ways to compute each result, and against the library's.
 * All inputs where there are few. */
#include "support.h"

#include "element.h"

#include "ref/npuq_ref_element.h"

#include <math.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float16),   cmocka_unit_test(test_bfloat16), cmocka_unit_test(test_saturate),
        cmocka_unit_test(test_quotients), cmocka_unit_test(test_halves),   cmocka_unit_test(test_words),
        cmocka_unit_test(test_ranges),
    };
    test_seed();
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
