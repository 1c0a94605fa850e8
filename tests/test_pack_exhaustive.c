/* SPDX-License-Identifier: BSD-3-Clause */
/* trans_quant_param over all 2^32 scales in both modes, and over all 2^32 offsets, against integer rules of the test's
 * own. */
#include "support.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { BLOCK = 1 << 16, THREADS = 2 };

static uint32_t expected_scale(uint32_t bits, npuq_round_mode mode)
{
    const uint32_t sign = bits & 0x80000000u;
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    const uint32_t rest = magnitude % 8192;
    uint32_t steps = magnitude / 8192; /* what 19 bits can say */

    if (mode == NPUQ_ROUND_NEAREST && magnitude < 0x00800000u) {
        return sign;
    }
    if (mode == NPUQ_ROUND_NEAREST && magnitude < 0x7F800000u && (rest > 4096 || (rest == 4096 && steps % 2 == 1))) {
        steps++;
    }
    return sign + steps * 8192;
}

static uint64_t expected_offset(float offset)
{
    const double rounded = nearbyint((double)offset);
    const int64_t integer = isnan(offset) ? 0 : (int64_t)(rounded < -256 ? -256 : rounded > 255 ? 255 : rounded);
    return (uint64_t)(integer < 0 ? integer + 512 : integer);
}

typedef enum sweep { TRUNCATE, NEAREST, OFFSETS } sweep;

typedef struct part {
    sweep what;
    uint32_t first_block;
    uint32_t last_block;
    uint32_t wrong; /* how many blocks differ */
    uint32_t first_wrong;
} part;

static void *run_part(void *argument)
{
    static _Thread_local uint32_t in[BLOCK];
    static _Thread_local uint64_t out[BLOCK];
    part *p = argument;
    const int64_t n = BLOCK;
    const int64_t one = 1;
    const npuq_round_mode mode = p->what == NEAREST ? NPUQ_ROUND_NEAREST : NPUQ_ROUND_TRUNCATE;
    float scale_of_one = 1.0f;
    const npuq_tensor swept = npuq_tensor_contiguous(in, NPUQ_FLOAT32, 1, &n);
    const npuq_tensor fixed = npuq_tensor_contiguous(&scale_of_one, NPUQ_FLOAT32, 1, &one);
    const npuq_tensor y = npuq_tensor_contiguous(out, NPUQ_UINT64, 1, &n);

    for (uint32_t block = p->first_block; block <= p->last_block; block++) {
        npuq_status status;
        bool same = true;

        for (uint32_t i = 0; i < BLOCK; i++) {
            in[i] = block << 16 | i;
        }
        status = p->what == OFFSETS ? npuq_trans_quant_param(&fixed, &swept, mode, &y)
                                    : npuq_trans_quant_param(&swept, NULL, mode, &y);
        for (uint32_t i = 0; i < BLOCK; i++) {
            uint64_t expected = (uint64_t)1 << 46;
            if (p->what == OFFSETS) {
                float offset;
                memcpy(&offset, &in[i], sizeof offset);
                expected |= expected_offset(offset) << 37 | 0x3F800000u;
            } else {
                expected |= expected_scale(in[i], mode);
            }
            same = same && out[i] == expected;
        }
        if (status != NPUQ_OK || !same) {
            p->first_wrong = p->wrong++ ? p->first_wrong : block;
        }
    }
    return NULL;
}

static void run_sweep(sweep what)
{
    part parts[THREADS];
    pthread_t threads[THREADS];

    FOR_EACH_BACKEND()
    {
        for (uint32_t i = 0; i < THREADS; i++) {
            parts[i] = (part){what, i * (65536 / THREADS), (i + 1) * (65536 / THREADS) - 1, 0, 0};
            assert_int_equal(pthread_create(&threads[i], NULL, run_part, &parts[i]), 0);
        }
        for (uint32_t i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
        for (uint32_t i = 0; i < THREADS; i++) {
            if (parts[i].wrong) {
                fail_msg("backend %s: %u blocks of 65,536 differ, the first from %08x on",
                         npuq_backend_name(npuq_active_backend()), parts[i].wrong, parts[i].first_wrong << 16);
            }
        }
    }
}

static void test_all_scales_truncated(void **unused)
{
    (void)unused;
    run_sweep(TRUNCATE);
}

static void test_all_scales_rounded(void **unused)
{
    (void)unused;
    run_sweep(NEAREST);
}

static void test_all_offsets(void **unused)
{
    (void)unused;
    run_sweep(OFFSETS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_scales_truncated),
        cmocka_unit_test(test_all_scales_rounded),
        cmocka_unit_test(test_all_offsets),
    };
    test_seed(); /* finds the backends */
    return cmocka_run_group_tests_name("pack_exhaustive", tests, NULL, NULL);
}
