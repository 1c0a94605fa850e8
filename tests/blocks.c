/* SPDX-License-Identifier: BSD-3-Clause */
#include "blocks.h"

#include "support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2 };

kernel_backend backends[MOST_BACKENDS];
size_t backend_count;

typedef struct part {
    const block_work *work;
    size_t first_block;
    size_t blocks;
    size_t stride;
    block_difference difference;
} part;

size_t blocks_wanted(void)
{
    const char *given = getenv("NPUQ_TEST_BLOCKS");
    const size_t blocks = given ? strtoull(given, NULL, 0) : BLOCKS;

    assert_true(blocks >= 1 && blocks <= BLOCKS);
    backend_count = kernel_backends(backends);
    if (backend_count == 0) {
        print_message("no backend but ref here\n");
        skip();
    }
    print_message("# %zu of %d blocks\n", blocks, BLOCKS);
    return blocks;
}

static void *run_part(void *argument)
{
    part *p = argument;
    void *buffers = calloc(1, p->work->buffers_size);

    if (!buffers) {
        (void)snprintf(p->difference.text, sizeof p->difference.text, "out of memory");
        return NULL;
    }
    p->work->prepare(p->work->pass, buffers);
    for (size_t i = 0; i < p->blocks && !p->difference.text[0]; i++) {
        p->work->check(p->work->pass, (uint32_t)((p->first_block + i) * p->stride), buffers, &p->difference);
    }
    free(buffers);
    return NULL;
}

void blocks_each(size_t blocks, const block_work *work)
{
    pthread_t threads[THREADS];
    part parts[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        parts[i] = (part){.work = work,
                          .first_block = blocks * i / THREADS,
                          .blocks = blocks * (i + 1) / THREADS - blocks * i / THREADS,
                          .stride = BLOCKS / blocks};
        assert_int_equal(pthread_create(&threads[i], NULL, run_part, &parts[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        if (parts[i].difference.text[0]) {
            fail_msg("differs: %s", parts[i].difference.text);
        }
    }
}
