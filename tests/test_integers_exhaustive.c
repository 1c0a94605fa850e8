/* SPDX-License-Identifier: BSD-3-Clause */
/* All 2^32 patterns through every backend here, against the reference: as float32 through the stores to floating point,
 * and as int32 through dequant and requant with some scales, biases and offsets. NPUQ_TEST_BLOCKS=N takes N of the
 * 65,536 blocks of 65,536 patterns, evenly spread: for emulators. */
#include "blocks.h"
#include "support.h"

#include <stdio.h>
#include <string.h>

/* A pass over all patterns: each is an int32 x, or the float32 scale of an x that is 1. */
typedef struct pass {
    const char *name;
    npuq_type y;
    bool patterns_are_scales;
    float scale;
    float row_scale;  /* 0: none */
    float bias;       /* 0: none */
    int32_t x_bias;   /* 0: none */
    int32_t y_offset; /* 0: none */
} pass;

/* The products fall on and near ties, round twice, overflow, vanish, and are subnormal. */
static const pass passes[] = {
    {"every float32, stored as float32", NPUQ_TYPE_FLOAT32, true, 0, 0, 0, 0, 0},
    {"every float32, stored as float16", NPUQ_TYPE_FLOAT16, true, 0, 0, 0, 0, 0},
    {"every float32, stored as bfloat16", NPUQ_TYPE_BFLOAT16, true, 0, 0, 0, 0, 0},
    {"every int32, dequantised by 1", NPUQ_TYPE_BFLOAT16, false, 1.0f, 0, 0, 0, 0},
    {"every int32, dequantised by .1, -.003, + 7.7", NPUQ_TYPE_FLOAT32, false, 0.1f, -0.003f, 7.7f, 0, 0},
    {"every int32 + 123456789, dequantised by 1e-5, 3", NPUQ_TYPE_FLOAT16, false, 1e-5f, 3.0f, 0, 123456789, 0},
    {"every int32, requantised by 2^-8, - 3", NPUQ_TYPE_INT8, false, 0.00390625f, 0, 0, 0, -3},
    {"every int32 - 1000000007, requantised by 6e-8, + 200", NPUQ_TYPE_INT8, false, 6e-8f, 0, 0, -1000000007, 200},
    {"every int32, requantised by -1, - 256", NPUQ_TYPE_INT8, false, -1.0f, 0, 0, 0, -256},
    {"every int32, requantised by 1e-4", NPUQ_TYPE_INT8, false, 1e-4f, 0, 0, 0, 0},
};

typedef struct buffers {
    uint32_t patterns[BLOCK];
    int32_t ones[BLOCK];
    float bias[BLOCK];
    int32_t x_bias[BLOCK];
    uint32_t expected[BLOCK];
    uint32_t got[BLOCK];
} buffers;

static size_t y_bytes(npuq_type y)
{
    return BLOCK * (y == NPUQ_TYPE_FLOAT32 ? sizeof(float) : y == NPUQ_TYPE_INT8 ? 1 : 2);
}

static void prepare(const void *argument, void *memory)
{
    const pass *s = argument;
    buffers *b = memory;

    for (size_t i = 0; i < BLOCK; i++) {
        b->ones[i] = 1;
        b->bias[i] = s->bias;
        b->x_bias[i] = s->x_bias;
    }
}

static void check_block(const void *argument, uint32_t number, void *memory, block_difference *difference)
{
    const pass *s = argument;
    buffers *b = memory;
    float row_scale = s->row_scale;
    npuq_dequant_params params = {.scale = &s->scale};
    npuq_block block = {.x = b->patterns, .y = b->expected, .rows = 1, .n = BLOCK};

    for (uint32_t i = 0; i < BLOCK; i++) {
        b->patterns[i] = number << 16 | i;
    }
    if (s->patterns_are_scales) {
        block.x = b->ones;
        params.scale = (const float *)(const void *)b->patterns;
        params.increment = 1;
    } else if (s->y_offset != 0) {
        params.y_offset = &s->y_offset;
    }
    params.row_scale = s->row_scale != 0 ? &row_scale : NULL;
    params.bias = s->bias != 0 ? b->bias : NULL;
    params.x_bias = s->x_bias != 0 ? b->x_bias : NULL;
    npuq_rows_ref.dequant[s->y][NPUQ_TYPE_INT32](&block, &params);
    for (size_t k = 0; k < backend_count; k++) {
        block.y = b->got;
        backends[k].kernels->dequant[s->y][NPUQ_TYPE_INT32](&block, &params);
        if (memcmp(b->got, b->expected, y_bytes(s->y)) != 0) {
            (void)snprintf(difference->text, sizeof difference->text, "%s, %s, patterns %08x..%08x", backends[k].name,
                           s->name, b->patterns[0], b->patterns[BLOCK - 1]);
        }
    }
}

static void test_all_patterns(void **unused)
{
    const size_t blocks = blocks_wanted();

    (void)unused;
    for (size_t s = 0; s < sizeof passes / sizeof passes[0]; s++) {
        const block_work work = {&passes[s], sizeof(buffers), prepare, check_block};

        blocks_each(blocks, &work);
        print_message("%s\n", passes[s].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_patterns)};

    return cmocka_run_group_tests_name("integers_exhaustive", tests, NULL, NULL);
}
