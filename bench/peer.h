/* SPDX-License-Identifier: BSD-3-Clause */
/* Others that do the work of a case: plain loops, and libraries where they were found when this was built. */
#ifndef NPUQ_BENCH_PEER_H
#define NPUQ_BENCH_PEER_H

#include "operands.h"

struct peer {
    const char *name;
    /* Makes ready for a case: reads o->x, writes to o->y. False if the library does not do this work. */
    bool (*prepare)(const struct operands *o);
    void (*run)(void);
    void (*finish)(void); /* after a prepare() that was true */
    /* How many of its results are unlike npuquant's; null if they cannot be compared. */
    size_t (*differing)(const struct operands *o);
    bool is_product; /* multiplies matrices, whose sums are what the case begins with */
};

extern const struct peer peer_naive;
extern const struct peer peer_naive_clang;
extern const struct peer peer_dnnl;
extern const struct peer peer_dnnl_product;
extern const struct peer peer_dnnl_fused;
extern const struct peer peer_xnnpack;

/* All that are built in; their number goes to *count. */
const struct peer *const *peers(int *count);

#endif
