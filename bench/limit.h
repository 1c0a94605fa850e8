/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine's own limit: streams that read and write as many bytes as an operator does and compute nothing. */
#ifndef NPUQ_BENCH_LIMIT_H
#define NPUQ_BENCH_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

/* How a stream goes through its bytes. */
struct bench_way {
    bool non_temporal; /* stores that go around the caches */
    bool four_rows;    /* four rows of 4096 bytes of the output at a time, instead of all bytes in their order */
    size_t prefetch;   /* so many bytes ahead; 0: left to the processor */
};

/* Reads in_size bytes and writes out_size bytes; the sizes are as 8:1, 4:1, 2:1, 1:1, 1:2, 1:4 or 1:8, and the
 * addresses are aligned to 64 bytes. The last step of the loop is done whole: both buffers have BENCH_STREAM_ROOM bytes
 * more. */
enum { BENCH_STREAM_ROOM = 4096 };
void bench_stream(const void *in, size_t in_size, void *out, size_t out_size, const struct bench_way *way);

/* Reads size bytes, and has the same room. */
void bench_read(const void *in, size_t size);

/* Chooses the widest vectors that run here. Must come first. Returns their name. */
const char *bench_limit_choose(void);

/* Whether non-temporal stores are anything else than plain ones here. */
bool bench_has_non_temporal(void);

#endif
