/* SPDX-License-Identifier: BSD-3-Clause */
/* Times several ways to do the same work, in turns. */
#ifndef NPUQ_BENCH_TIMING_H
#define NPUQ_BENCH_TIMING_H

#include <stdbool.h>
#include <stddef.h>

enum { TIMING_MAX_ROUNDS = 64, TIMING_MAX_CONTESTANTS = 24 };

/* A timed function: run(context) does the work once, prepare(context) comes before a sample. */
struct contestant {
    void (*prepare)(const void *context);
    void (*run)(const void *context);
    const void *context;
    size_t repeats;                    /* calls for a sample */
    double samples[TIMING_MAX_ROUNDS]; /* nanoseconds for one call, by round */
};

struct timing {
    double sample_ns; /* the least duration of a sample */
    double budget_ns; /* rounds repeat until this time is spent, */
    int min_rounds;   /* but at least so often, */
    int max_rounds;   /* and at most so often; up to TIMING_MAX_ROUNDS */
};

/* Warms up, then takes a sample of each contestant in each round. Each round has another order, equal in each run. At
 * most TIMING_MAX_CONTESTANTS. Returns the number of rounds. */
int timing_run(const struct timing *timing, struct contestant *contestants, int count);

double timing_lowest(const double *samples, int rounds);

/* Prints the samples as JSON. */
void timing_write(const double *samples, int rounds);

#endif
