/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine's own limit: streams that read and write the bytes of an operator and compute nothing. */
#ifndef NPUQ_BENCH_LIMIT_H
#define NPUQ_BENCH_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

struct bench_way {
    bool non_temporal; /* non-temporal stores */
    bool four_rows;    /* four rows of 4096 bytes of the output at a time, instead of all bytes in order */
    size_t prefetch;   /* bytes ahead; 0: the processor decides */
};

/* Reads in_size bytes and writes out_size bytes, from addresses aligned to 64 bytes. The ratio of the sizes is 8:1,
 * 4:1, 2:1, 1:1, 1:2, 1:4 or 1:8. The last step may pass the end: both buffers have BENCH_STREAM_ROOM bytes more. */
enum { BENCH_STREAM_ROOM = 4096 };
void bench_stream(const void *in, size_t in_size, void *out, size_t out_size, const struct bench_way *way);

/* Reads size bytes; the buffer has the same room. */
void bench_read(const void *in, size_t size);

/* Chooses the widest vectors that run here, and returns their name. Call this first. */
const char *bench_limit_choose(void);

/* Whether non-temporal stores differ from plain stores here. */
bool bench_has_non_temporal(void);

#endif
