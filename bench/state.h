/* SPDX-License-Identifier: BSD-3-Clause */
/* What a small call takes by the floating-point state of its caller, which it puts aside and puts back; and what that
 * alone takes. */
#ifndef NPUQ_BENCH_STATE_H
#define NPUQ_BENCH_STATE_H

#include "timing.h"

struct state_cost {
    double usual_ns;    /* 1 x 128 float32 to int8, the caller has the state that a program starts with */
    double flushing_ns; /* the caller flushes subnormals (FTZ and DAZ, or FZ), as inference engines do; 0: not known */
    double call_ns;     /* a call that puts the usual state aside and back, and does nothing */
};

/* On the calling thread, whose state is the usual one afterwards. */
struct state_cost state_cost(const struct timing *timing);

#endif
