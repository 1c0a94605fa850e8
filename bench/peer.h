/* SPDX-License-Identifier: BSD-3-Clause */
/* Other code for the work of a case: plain loops, and libraries that the build found. */
#ifndef NPUQ_BENCH_PEER_H
#define NPUQ_BENCH_PEER_H

#include "operands.h"

struct peer {
    const char *name;
    /* Prepares a case: reads o->x, writes to o->y. False if the library cannot do this work. */
    bool (*prepare)(const struct operands *o);
    void (*run)(void);
    void (*finish)(void); /* after a prepare() that was true */
    /* Counts results that differ from npuquant's; null if they cannot be compared. */
    size_t (*differing)(const struct operands *o);
};

extern const struct peer peer_naive;
extern const struct peer peer_naive_clang;
extern const struct peer peer_dnnl;
extern const struct peer peer_xnnpack;

/* All peers of the build; their number goes to *count. */
const struct peer *const *peers(int *count);

#endif
