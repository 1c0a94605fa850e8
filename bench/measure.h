/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures a case: checks the results with the reference, then times the call in turns with the limits, the baseline
 * and the peers. */
#ifndef NPUQ_BENCH_MEASURE_H
#define NPUQ_BENCH_MEASURE_H

#include "cases.h"
#include "timing.h"

enum { MEASURE_MAX_BACKENDS = 5 };

struct plan {
    npuq_backend backends[MEASURE_MAX_BACKENDS]; /* the fastest first */
    int backend_count;
    int threads;
    bool with_peers;
    size_t prefetch; /* distance of the fastest stream in bytes; 0: the fastest of several distances */
    size_t second_cache;
    struct timing timing;
};

/* Prints the case's line. False if the outputs are wrong or the case cannot run. */
bool measure(const struct bench_case *c, const struct plan *plan);

/* Prints the times of a call that only puts the caller's floating-point state aside and back. */
void measure_call(const struct timing *timing);

#endif
