/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine's own limit: streams that read and write as many bytes as an operator does and compute nothing. */
#ifndef NPUQ_BENCH_LIMIT_H
#define NPUQ_BENCH_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

enum bench_stores { BENCH_PLAIN_STORES, BENCH_NON_TEMPORAL_STORES };

/* Reads in_size bytes and writes out_size bytes; the sizes are as 8:1, 4:1, 2:1, 1:1, 1:2, 1:4 or 1:8, and the
 * addresses are aligned to 64 bytes. The last step of the loop is done whole: both buffers have BENCH_STREAM_ROOM bytes
 * more. */
enum { BENCH_STREAM_ROOM = 4096 };
void bench_stream(const void *in, size_t in_size, void *out, size_t out_size, enum bench_stores stores);

/* Reads size bytes, and has the same room. */
void bench_read(const void *in, size_t size);

/* Chooses the widest vectors that run here, and how many bytes ahead to prefetch (0: leave it to the hardware). Must
 * come first. Returns the name of the vectors. */
const char *bench_limit_choose(size_t prefetch);

/* Whether non-temporal stores are anything else than plain ones here. */
bool bench_has_non_temporal(void);

#endif
