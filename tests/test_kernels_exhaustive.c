/* SPDX-License-Identifier: BSD-3-Clause */
/* All 2^32 float32 inputs through every f32 row kernel of every backend here, against the reference, with some scales
 * and offsets. Then all 2^23 significands of x divided by many scales: int32 shows every bit of the quotient.
 * NPUQ_TEST_BLOCKS=N takes N of the 65,536 blocks of 65,536 values, evenly spread, and fewer scales: for emulators. */
#include "blocks.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Products and quotients fall on and near ties, overflow, vanish, and pass through NaN. */
static const struct {
    float scale;
    float offset;
} parameters[] = {{1.0f, 0.0f}, {0.0999755859375f, -1.1658f}, {-3.0f, 0.5f}, {1.17549435e-38f, 100.0f}};

enum { PARAMETERS = sizeof parameters / sizeof parameters[0] };

typedef struct buffers {
    uint32_t x[BLOCK];
    uint32_t expected[BLOCK];
    uint32_t got[BLOCK];
    float scale[BLOCK];
    float offset[BLOCK];
} buffers;

typedef struct pass {
    kernel_id id;
    size_t which;
} pass;

/* Runs a backend's kernel and compares the result with b->expected and this range. */
static void compare(const kernel_backend *backend, kernel_id id, size_t which, buffers *b, kernel_arguments a,
                    float expected_hi, float expected_lo, block_difference *difference)
{
    float hi = -INFINITY;
    float lo = INFINITY;

    a.block.y = b->got;
    a.hi = &hi;
    a.lo = &lo;
    kernel_run(backend->kernels, id, &a);
    if (memcmp(b->got, b->expected, kernel_y_bytes(id, BLOCK)) != 0 || memcmp(&hi, &expected_hi, sizeof hi) != 0 ||
        memcmp(&lo, &expected_lo, sizeof lo) != 0) {
        (void)snprintf(difference->text, sizeof difference->text, "%s, %s, x in %08x..%08x, scale %g, offset %g",
                       backend->name, kernel_name(id), b->x[0], b->x[BLOCK - 1], (double)parameters[which].scale,
                       (double)parameters[which].offset);
    }
}

static void prepare(const void *argument, void *memory)
{
    const pass *p = argument;
    buffers *b = memory;

    for (size_t i = 0; i < BLOCK; i++) {
        b->scale[i] = parameters[p->which].scale;
        b->offset[i] = parameters[p->which].offset;
    }
}

/* The slow backend generic has one kernel for all types and operations. The first parameters take all floats by row
 * through each of its paths. For other parameters, every fourth block is enough. */
static bool is_due(const kernel_backend *backend, kernel_id id, size_t which, uint32_t block)
{
    const bool first = which == 0 && id.kind != VECTOR && id.op == NPUQ_MUL;
    return first || block % 4 == 0 || strcmp(backend->name, "generic") != 0;
}

static void check_block(const void *argument, uint32_t block, void *memory, block_difference *difference)
{
    const pass *p = argument;
    buffers *b = memory;
    float hi = -INFINITY;
    float lo = INFINITY;

    for (uint32_t i = 0; i < BLOCK; i++) {
        b->x[i] = block << 16 | i;
    }
    kernel_arguments a = {
        {b->x, b->expected, 0, 0, 1, BLOCK, {.prefetch_bytes = 0}, 0}, b->scale, b->offset, 0, b->scale, &hi, &lo};
    kernel_run(&npuq_rows_ref, p->id, &a);
    for (size_t k = 0; k < backend_count; k++) {
        kernel_id id = p->id;

        if (is_due(&backends[k], id, p->which, block)) {
            compare(&backends[k], id, p->which, b, a, hi, lo, difference);
        }
        if (id.kind == UNIFORM) { /* all parameters are equal: the other kernel gives the same result */
            id.kind = VECTOR;
            if (is_due(&backends[k], id, p->which, block)) {
                compare(&backends[k], id, p->which, b, a, hi, lo, difference);
            }
        }
    }
}

/* The number of parameters to try. int8 and int32, one for each operation, and ranges with smooth scales try all: these
 * show the arithmetic. The other integer types differ only after the arithmetic, where the first parameters show every
 * float. Products that become integers leave out the last: nearly all vanish against the offset, and half are
 * subnormal, which takes a CPU up to a hundred cycles each. */
static size_t parameters_for(kernel_id id)
{
    switch (id.kind) {
    case RANGE: return 1;
    case SMOOTH_RANGE: return PARAMETERS;
    case SMOOTH_AFFINE: return id.y == NPUQ_TYPE_INT8 ? PARAMETERS - 1 : 2; /* has no int32 */
    case UNIFORM:
    case VECTOR: break;
    }
    return id.op == NPUQ_DIV ? (id.y == NPUQ_TYPE_INT32 ? PARAMETERS : 2) : id.y == NPUQ_TYPE_INT8 ? PARAMETERS - 1 : 2;
}

static void check_kernel(void *context, kernel_id id)
{
    const size_t blocks = *(const size_t *)context;

    if (id.x != NPUQ_TYPE_FLOAT32 || id.kind == VECTOR) { /* VECTOR goes with UNIFORM */
        return;
    }
    for (size_t which = 0; which < parameters_for(id); which++) {
        const pass p = {id, which};
        const block_work work = {&p, sizeof(buffers), prepare, check_block};

        blocks_each(blocks, &work);
    }
    print_message("%s\n", kernel_name(id));
}

static void test_all_floats(void **unused)
{
    size_t blocks = blocks_wanted();

    (void)unused;
    kernel_each(check_kernel, &blocks);
}

/* ---- quotients ---- */

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Significands of 1, 2^k / 3 and others next to powers of 2 and to each other; then random ones. */
static uint32_t pick_significand(size_t i)
{
    static const uint32_t chosen[] = {0x000000, 0x000001, 0x000002, 0x7FFFFF, 0x7FFFFE, 0x2AAAAA, 0x2AAAAB, 0x555555,
                                      0x3504F3, 0x3504F4, 0x400000, 0x400001, 0x3FFFFF, 0x4CCCCD, 0x199999, 0x7FF800};
    const size_t count = sizeof chosen / sizeof chosen[0];

    return i < count ? chosen[i] : (uint32_t)test_below(1u << 23);
}

/* x / scale lies in (2^23, 2^25), where each float32 is an integer: int32 shows every bit. */
static void check_quotients(buffers *b, float scale, uint32_t exponent_of_x, bool by_column)
{
    enum { ROWS = 4, COLUMNS = BLOCK / ROWS };
    const kernel_id id = {by_column ? VECTOR : UNIFORM, NPUQ_TYPE_FLOAT32, NPUQ_TYPE_INT32, NPUQ_DIV};
    kernel_arguments a = {{b->x, b->expected, COLUMNS * 4, COLUMNS * 4, ROWS, COLUMNS, {.prefetch_bytes = 0}, 0},
                          b->scale,
                          b->offset,
                          0,
                          NULL,
                          NULL,
                          NULL};

    for (size_t i = 0; i < BLOCK; i++) {
        b->scale[i] = scale;
    }
    for (uint32_t first = 0; first < 1u << 23; first += BLOCK) {
        for (uint32_t i = 0; i < BLOCK; i++) {
            b->x[i] = exponent_of_x << 23 | (first + i);
        }
        a.block.y = b->expected;
        kernel_run(&npuq_rows_ref, id, &a);
        for (size_t k = 0; k < backend_count; k++) {
            a.block.y = b->got;
            kernel_run(backends[k].kernels, id, &a);
            test_same(b->got, b->expected, sizeof b->got, "%s, %s, x from %08x, scale %a", backends[k].name,
                      kernel_name(id), b->x[0], (double)scale);
        }
    }
}

static void test_all_quotients(void **unused)
{
    enum { SCALES = 128 };
    /* The first and the last exponents of scales with an inverse, some others, and the middle. */
    static const uint32_t exponents[] = {63, 127, 190, 100, 62, 191, 150, 20};
    const size_t blocks = blocks_wanted();
    const size_t scales = blocks < BLOCKS / SCALES ? 1 : blocks / (BLOCKS / SCALES);
    buffers *b = calloc(1, sizeof *b);

    (void)unused;
    assert_non_null(b);
    for (size_t i = 0; i < scales; i++) {
        const uint32_t exponent = exponents[i % (sizeof exponents / sizeof exponents[0])];
        const float scale = float_of((test_one_in(2) ? 0x80000000u : 0) | exponent << 23 | pick_significand(i));

        check_quotients(b, scale, exponent + 24, i % 2 == 1);
        check_quotients(b, scale, exponent + 24, i % 2 == 0);
    }
    print_message("%zu scales\n", scales);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_floats),
        cmocka_unit_test(test_all_quotients),
    };
    test_seed();
    return cmocka_run_group_tests_name("kernels_exhaustive", tests, NULL, NULL);
}
