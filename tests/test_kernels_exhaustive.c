/* SPDX-License-Identifier: BSD-3-Clause */
/* All 2^32 float32 inputs through every f32 row kernel of every backend here, against the reference, with a set of
 * scales and offsets. NPUQ_TEST_BLOCKS=N takes N of the 65,536 blocks of 65,536 values, evenly spread: for emulators.
 */
#include "kernels.h"
#include "support.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, BLOCK = 65536, BLOCKS = 65536 };

/* Chosen so that products and quotients fall on and beside ties, overflow, vanish, and pass through NaN. */
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

typedef struct part {
    kernel_id id;
    size_t first_block;
    size_t blocks;
    size_t stride;
    char difference[192]; /* "" if there is none */
} part;

static kernel_backend backends[4];
static size_t backend_count;

/* Runs a backend's kernel and sets its result against b->expected and this range. */
static void compare(part *p, const kernel_backend *backend, kernel_id id, size_t which, buffers *b, kernel_arguments a,
                    float expected_hi, float expected_lo)
{
    float hi = -INFINITY;
    float lo = INFINITY;

    a.block.y = b->got;
    a.hi = &hi;
    a.lo = &lo;
    kernel_run(backend->kernels, id, &a);
    if (memcmp(b->got, b->expected, kernel_y_bytes(id, BLOCK)) != 0 || memcmp(&hi, &expected_hi, sizeof hi) != 0 ||
        memcmp(&lo, &expected_lo, sizeof lo) != 0) {
        (void)snprintf(p->difference, sizeof p->difference, "%s, %s, x in %08x..%08x, scale %g, offset %g",
                       backend->name, kernel_name(id), b->x[0], b->x[BLOCK - 1], (double)parameters[which].scale,
                       (double)parameters[which].offset);
    }
}

static void check_block(part *p, size_t block, size_t which, buffers *b)
{
    float hi = -INFINITY;
    float lo = INFINITY;

    for (uint32_t i = 0; i < BLOCK; i++) {
        b->x[i] = (uint32_t)block << 16 | i;
    }
    kernel_arguments a = {{b->x, b->expected, 0, 0, 1, BLOCK, 0}, b->scale, b->offset, 0, b->scale, &hi, &lo};
    kernel_run(&npuq_rows_ref, p->id, &a);
    for (size_t k = 0; k < backend_count; k++) {
        kernel_id id = p->id;

        compare(p, &backends[k], id, which, b, a, hi, lo);
        if (id.kind == UNIFORM) { /* with equal parameters all along, the other kernel gives the same */
            id.kind = VECTOR;
            compare(p, &backends[k], id, which, b, a, hi, lo);
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
    for (size_t which = 0; which < PARAMETERS; which++) {
        for (size_t i = 0; i < BLOCK; i++) {
            b->scale[i] = parameters[which].scale;
            b->offset[i] = parameters[which].offset;
        }
        for (size_t i = 0; i < p->blocks && !p->difference[0]; i++) {
            check_block(p, (p->first_block + i) * p->stride, which, b);
        }
    }
    free(b);
    return NULL;
}

static void check_kernel(void *context, kernel_id id)
{
    const size_t blocks = *(const size_t *)context;
    pthread_t threads[THREADS];
    part parts[THREADS];

    if (id.x != NPUQ_X_F32 || id.kind == VECTOR) { /* VECTOR goes with UNIFORM */
        return;
    }
    for (size_t i = 0; i < THREADS; i++) {
        parts[i] = (part){.id = id,
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
    print_message("%s\n", kernel_name(id));
}

static void test_all_floats(void **unused)
{
    const char *given = getenv("NPUQ_TEST_BLOCKS");
    size_t blocks = given ? strtoull(given, NULL, 0) : BLOCKS;

    (void)unused;
    backend_count = kernel_backends(backends);
    if (backend_count == 0) {
        print_message("no backend but ref here\n");
        skip();
    }
    assert_true(blocks >= 1 && blocks <= BLOCKS);
    print_message("# %zu of %d blocks\n", blocks, BLOCKS);
    kernel_each(check_kernel, &blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_floats),
    };
    return cmocka_run_group_tests_name("kernels_exhaustive", tests, NULL, NULL);
}
