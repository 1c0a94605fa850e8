/* SPDX-License-Identifier: BSD-3-Clause */
/* Element arithmetic of the oracle against other ways to compute it, over all inputs where there are few. */
#include "support.h"

#include "ref/npuq_ref_element.h"

#include <math.h>

/* All 65,536 patterns against the definition of the format. */
static void test_float16(void **unused)
{
    (void)unused;
    for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
        const double sign = bits & 0x8000u ? -1.0 : 1.0;
        const int exponent = (int)(bits >> 10 & 0x1F);
        const double fraction = (double)(bits & 0x3FF) / 1024.0;
        const float got = npuq_ref_float16((uint16_t)bits);

        if (exponent == 31 && fraction != 0.0) {
            assert_true(isnan(got));
        } else if (exponent == 31) {
            assert_true(isinf(got) && (double)got * sign > 0);
        } else {
            const double expected =
                sign * (exponent == 0 ? ldexp(fraction, -14) : ldexp(1.0 + fraction, exponent - 15));
            assert_true((double)got == expected);
            assert_true(copysign(1.0, (double)got) == copysign(1.0, expected));
        }
    }
}

static void test_bfloat16(void **unused)
{
    (void)unused;
    for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
        const double sign = bits & 0x8000u ? -1.0 : 1.0;
        const int exponent = (int)(bits >> 7 & 0xFF);
        const double fraction = (double)(bits & 0x7F) / 128.0;
        const float got = npuq_ref_bfloat16((uint16_t)bits);

        if (exponent == 255 && fraction != 0.0) {
            assert_true(isnan(got));
        } else if (exponent == 255) {
            assert_true(isinf(got) && (double)got * sign > 0);
        } else {
            const double expected =
                sign * (exponent == 0 ? ldexp(fraction, -126) : ldexp(1.0 + fraction, exponent - 127));
            assert_true((double)got == expected);
            assert_true(copysign(1.0, (double)got) == copysign(1.0, expected));
        }
    }
}

/* sat(round(t)) by way of the C library's double arithmetic. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float16),
        cmocka_unit_test(test_bfloat16),
        cmocka_unit_test(test_saturate),
        cmocka_unit_test(test_quotients),
    };
    test_seed();
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
