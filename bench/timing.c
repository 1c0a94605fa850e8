/* SPDX-License-Identifier: BSD-3-Clause */
#include "timing.h"

#include "machine.h"
#include "splitmix64.h"

#include <stdio.h>

static double run_once(const struct contestant *c)
{
    const double start = machine_nanoseconds();

    for (size_t i = 0; i < c->repeats; i++) {
        c->run(c->context);
    }
    return machine_nanoseconds() - start;
}

static void calibrate(struct contestant *c, double sample_ns)
{
    c->repeats = 1;
    c->prepare(c->context);
    double spent = run_once(c); /* cold: only counts if the time is far beyond */
    if (spent < 8 * sample_ns) {
        spent = run_once(c);
    }
    while (spent < sample_ns && c->repeats < (size_t)1 << 30) {
        const double wanted = spent > 0 ? 1.1 * sample_ns / spent : 2;
        c->repeats = wanted < 16 ? (size_t)((double)c->repeats * wanted) + 1 : 16 * c->repeats;
        spent = run_once(c);
    }
}

/* How often to repeat a sample during which the system ran something else. */
enum { ATTEMPTS = 6 };

/* First calls once outside of the clock: the other contestants left their data in the caches and their pages in the
 * tables. */
static double sample(const struct contestant *c)
{
    double lowest = 0;

    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        c->prepare(c->context);
        c->run(c->context);
        const long before = machine_preemptions();
        const double spent = run_once(c) / (double)c->repeats;
        if (machine_preemptions() == before) {
            return spent;
        }
        lowest = attempt == 0 || spent < lowest ? spent : lowest;
    }
    return lowest;
}

/* Another order each round: a fixed predecessor would always leave the same data behind. */
static void shuffle(int *order, int count, uint64_t *state)
{
    for (int i = count - 1; i > 0; i--) {
        const int k = (int)(splitmix64(state) % (uint64_t)(i + 1));
        const int moved = order[i];
        order[i] = order[k];
        order[k] = moved;
    }
}

int timing_run(const struct timing *timing, struct contestant *contestants, int count)
{
    int order[TIMING_MAX_CONTESTANTS];
    uint64_t state = 0;
    int round = 0;

    for (int i = 0; i < count; i++) {
        calibrate(&contestants[i], timing->sample_ns);
        order[i] = i;
    }
    const double start = machine_nanoseconds();
    while (round < timing->max_rounds && round < TIMING_MAX_ROUNDS &&
           (round < timing->min_rounds || machine_nanoseconds() - start < timing->budget_ns)) {
        shuffle(order, count, &state);
        for (int i = 0; i < count; i++) {
            struct contestant *c = &contestants[order[i]];
            c->samples[round] = sample(c);
        }
        round++;
    }
    return round;
}

double timing_lowest(const double *samples, int rounds)
{
    double lowest = samples[0];

    for (int i = 1; i < rounds; i++) {
        lowest = samples[i] < lowest ? samples[i] : lowest;
    }
    return lowest;
}

void timing_write(const double *samples, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        (void)printf("%s%.2f", i > 0 ? ", " : "[", samples[i]);
    }
    (void)putchar(']');
}
