/* SPDX-License-Identifier: BSD-3-Clause */
/* What it costs a task to have the floating-point state that the arithmetic needs, and to put the caller's back. */
#ifndef NPUQ_BENCH_STATE_H
#define NPUQ_BENCH_STATE_H

#include "timing.h"

struct state_cost {
    double usual_ns;    /* the caller has the state that a program starts with */
    double flushing_ns; /* the caller flushes subnormals (FTZ and DAZ, or FZ), as inference engines do; 0: not known */
};

/* On the calling thread, whose state is the usual one afterwards. */
struct state_cost state_cost(const struct timing *timing);

#endif
