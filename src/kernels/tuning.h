/* SPDX-License-Identifier: BSD-3-Clause */
/* What is fast on one CPU and slow on another, though both run the same kernels. No bit of a result depends on it. */
#ifndef NPUQ_TUNING_H
#define NPUQ_TUNING_H

#include "cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct npuq_tuning {
    const char *name;        /* of the CPU */
    npuq_cpu cpu;            /* which it fits; what is 0 there fits any */
    uint16_t prefetch_bytes; /* from what is read from memory to what is prefetched */
    uint8_t read_streams;    /* of a row from memory that are read at once */
    bool rows_to_l2;         /* rows from memory that are read twice are prefetched into the second-level cache only */
    size_t cached_bytes;     /* where x and y together are larger, x comes from memory */
    size_t near_bytes;       /* where they are larger than this, and not from memory, float32 is prefetched, too */
    uint16_t near_prefetch_bytes; /* the distance in that case; 0: nothing is prefetched there */
} npuq_tuning;

/* The row of the table that fits this CPU. */
const npuq_tuning *npuq_find_tuning(void);

#endif
