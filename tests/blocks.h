/* SPDX-License-Identifier: BSD-3-Clause */
/* All 2^32 patterns of 32 bits, in blocks of 65,536, on two threads: for the exhaustive tests of kernels. */
#ifndef NPUQ_TESTS_BLOCKS_H
#define NPUQ_TESTS_BLOCKS_H

#include "kernels.h"

#include <stddef.h>

enum { BLOCK = 65536, BLOCKS = 65536 };

/* The backends other than ref that run here. */
extern kernel_backend backends[MOST_BACKENDS];
extern size_t backend_count;

/* Returns and prints the number of blocks: NPUQ_TEST_BLOCKS, or all. Skips the test if no backend runs here. */
size_t blocks_wanted(void);

/* A difference that was found, in words; "" if there is none. */
typedef struct block_difference {
    char text[192];
} block_difference;

/* The work on all patterns. pass is the caller's; each thread has its own buffers. */
typedef struct block_work {
    const void *pass;
    size_t buffers_size;
    void (*prepare)(const void *pass, void *buffers); /* once for each thread, with buffers of zeros */
    /* with every block: the patterns block << 16 and the 65,535 that follow */
    void (*check)(const void *pass, uint32_t block, void *buffers, block_difference *difference);
} block_work;

/* Takes `blocks` of all blocks, evenly spread. Fails with the first difference of a thread. */
void blocks_each(size_t blocks, const block_work *work);

#endif
