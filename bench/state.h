/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of the caller's floating-point state in a small call, which saves, sets and restores the state. */
#ifndef NPUQ_BENCH_STATE_H
#define NPUQ_BENCH_STATE_H

#include "timing.h"

struct state_cost {
    double usual_ns;    /* 1 x 128 float32 to int8, with the state that a program starts with */
    double flushing_ns; /* the caller flushes subnormals (FTZ and DAZ, or FZ), as inference engines do; 0: not known */
    double call_ns;     /* an empty call that saves and restores the usual state */
};

/* Leaves the calling thread with the usual state. */
struct state_cost state_cost(const struct timing *timing);

#endif
