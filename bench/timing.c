/* SPDX-License-Identifier: BSD-3-Clause */
#include "timing.h"

#include "machine.h"
#include "splitmix64.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- statistics ------------------------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of sorted samples, interpolated between neighbours. */
static double quantile(const double *sorted, int count, double at)
{
    const double place = at * (count - 1);
    const int below = (int)place;
    const int above = below + 1 < count ? below + 1 : below;

    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

struct statistics statistics_of(const double *samples, int count)
{
    double sorted[TIMING_MAX_ROUNDS];

    memcpy(sorted, samples, sizeof *samples * (size_t)count);
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    return (struct statistics){
        .median = quantile(sorted, count, 0.5),
        .q1 = quantile(sorted, count, 0.25),
        .q3 = quantile(sorted, count, 0.75),
        .lowest = sorted[0],
    };
}

double statistics_spread(const struct statistics *s)
{
    return s->median > 0 ? (s->q3 - s->q1) / s->median : 0;
}

double median_ratio(const double *a, const double *b, int count)
{
    double ratios[TIMING_MAX_ROUNDS];

    for (int i = 0; i < count; i++) {
        ratios[i] = b[i] > 0 ? a[i] / b[i] : 0;
    }
    return statistics_of(ratios, count).median;
}
