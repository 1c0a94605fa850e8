/* SPDX-License-Identifier: BSD-3-Clause */
/* All 2^32 patterns through every backend here, against the reference: as float32 through the stores to floating point,
 * and as int32 through the arithmetic of dequant and requant with a set of scales, biases and offsets.
 * NPUQ_TEST_BLOCKS=N takes N of the 65,536 blocks of 65,536 patterns, evenly spread: for emulators. */
#include "kernels.h"
#include "support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, BLOCK = 65536, BLOCKS = 65536 };

/* A pass over all patterns: each is an int32 x, or the float32 scale of an x that is 1. */
typedef struct pass {
    const char *name;
    npuq_y_type y;
    bool patterns_are_scales;
    float scale;
    float row_scale;  /* 0: none */
    float bias;       /* 0: none */
    int32_t x_bias;   /* 0: none */
    int32_t y_offset; /* 0: none */
} pass;

/* Scales so that products fall on and beside ties, round twice, overflow, vanish, and are subnormal. */
static const pass passes[] = {
    {"every float32, stored as float32", NPUQ_Y_F32, true, 0, 0, 0, 0, 0},
    {"every float32, stored as float16", NPUQ_Y_F16, true, 0, 0, 0, 0, 0},
    {"every float32, stored as bfloat16", NPUQ_Y_BF16, true, 0, 0, 0, 0, 0},
    {"every int32, dequantised by 1", NPUQ_Y_BF16, false, 1.0f, 0, 0, 0, 0},
    {"every int32, dequantised by .1, -.003, + 7.7", NPUQ_Y_F32, false, 0.1f, -0.003f, 7.7f, 0, 0},
    {"every int32 + 123456789, dequantised by 1e-5, 3", NPUQ_Y_F16, false, 1e-5f, 3.0f, 0, 123456789, 0},
    {"every int32, requantised by 2^-8, - 3", NPUQ_Y_I8, false, 0.00390625f, 0, 0, 0, -3},
    {"every int32 - 1000000007, requantised by 6e-8, + 200", NPUQ_Y_I8, false, 6e-8f, 0, 0, -1000000007, 200},
    {"every int32, requantised by -1, - 256", NPUQ_Y_I8, false, -1.0f, 0, 0, 0, -256},
    {"every int32, requantised by 1e-4", NPUQ_Y_I8, false, 1e-4f, 0, 0, 0, 0},
};

typedef struct buffers {
    uint32_t patterns[BLOCK];
    int32_t ones[BLOCK];
    float bias[BLOCK];
    int32_t x_bias[BLOCK];
    uint32_t expected[BLOCK];
    uint32_t got[BLOCK];
} buffers;

typedef struct part {
    const pass *pass;
    size_t first_block;
    size_t blocks;
    size_t stride;
    char difference[192]; /* "" if there is none */
} part;

static kernel_backend backends[MOST_BACKENDS];
static size_t backend_count;

static size_t y_bytes(npuq_y_type y)
{
    return BLOCK * (y == NPUQ_Y_F32 ? sizeof(float) : y == NPUQ_Y_I8 ? 1 : 2);
}

static void check_block(part *p, size_t number, buffers *b)
{
    const pass *s = p->pass;
    float row_scale = s->row_scale;
    npuq_dequant_params params = {.scale = &s->scale};
    npuq_block block = {.x = b->patterns, .y = b->expected, .rows = 1, .n = BLOCK};

    for (uint32_t i = 0; i < BLOCK; i++) {
        b->patterns[i] = (uint32_t)number << 16 | i;
    }
    if (s->patterns_are_scales) {
        block.x = b->ones;
        params.scale = (const float *)(const void *)b->patterns;
        params.step = 1;
    } else if (s->y_offset != 0) {
        params.y_offset = &s->y_offset;
    }
    params.row_scale = s->row_scale != 0 ? &row_scale : NULL;
    params.bias = s->bias != 0 ? b->bias : NULL;
    params.x_bias = s->x_bias != 0 ? b->x_bias : NULL;
    npuq_rows_ref.dequant[s->y][NPUQ_X_I32](&block, &params);
    for (size_t k = 0; k < backend_count; k++) {
        block.y = b->got;
        backends[k].kernels->dequant[s->y][NPUQ_X_I32](&block, &params);
        if (memcmp(b->got, b->expected, y_bytes(s->y)) != 0) {
            (void)snprintf(p->difference, sizeof p->difference, "%s, %s, patterns %08x..%08x", backends[k].name,
                           s->name, b->patterns[0], b->patterns[BLOCK - 1]);
        }
    }
}

static void *run_part(void *argument)
{
    part *p = argument;
    buffers *b = malloc(sizeof *b);

    if (!b) {
        (void)snprintf(p->difference, sizeof p->difference, "out of memory");
        return NULL;
    }
    memset(b, 0, sizeof *b);
    for (size_t i = 0; i < BLOCK; i++) {
        b->ones[i] = 1;
        b->bias[i] = p->pass->bias;
        b->x_bias[i] = p->pass->x_bias;
    }
    for (size_t i = 0; i < p->blocks && !p->difference[0]; i++) {
        check_block(p, (p->first_block + i) * p->stride, b);
    }
    free(b);
    return NULL;
}

static void test_all_patterns(void **unused)
{
    const char *given = getenv("NPUQ_TEST_BLOCKS");
    const size_t blocks = given ? strtoull(given, NULL, 0) : BLOCKS;

    (void)unused;
    assert_true(blocks >= 1 && blocks <= BLOCKS);
    backend_count = kernel_backends(backends);
    if (backend_count == 0) {
        print_message("no backend but ref here\n");
        skip();
    }
    print_message("# %zu of %d blocks\n", blocks, BLOCKS);
    for (size_t s = 0; s < sizeof passes / sizeof passes[0]; s++) {
        pthread_t threads[THREADS];
        part parts[THREADS];

        for (size_t i = 0; i < THREADS; i++) {
            parts[i] = (part){.pass = &passes[s],
                              .first_block = blocks * i / THREADS,
                              .blocks = blocks * (i + 1) / THREADS - blocks * i / THREADS,
                              .stride = BLOCKS / blocks};
            assert_int_equal(pthread_create(&threads[i], NULL, run_part, &parts[i]), 0);
        }
        for (size_t i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
        for (size_t i = 0; i < THREADS; i++) {
            if (parts[i].difference[0]) {
                fail_msg("differs: %s", parts[i].difference);
            }
        }
        print_message("%s\n", passes[s].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_patterns)};

    return cmocka_run_group_tests_name("integers_exhaustive", tests, NULL, NULL);
}
