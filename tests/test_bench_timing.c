/* SPDX-License-Identifier: BSD-3-Clause */
/* The turns of npuquant-bench: each contestant once a round, each round in another order, and a call to warm up before
 * every sample. The test looks at no time. */
#include "../bench/timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTESTANTS = 5, ROUNDS = 8 };

static struct contestant contestants[CONTESTANTS];
static int prepared[CONTESTANTS];
static bool sampling; /* the last prepare() was for a sample */
static int calls;     /* calls after that prepare() */
static char orders[ROUNDS][CONTESTANTS + 1];

static void expect(bool condition, const char *what)
{
    if (!condition) {
        (void)fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static void run(const void *context)
{
    (void)context;
    calls++;
}

/* A sample that was disturbed is taken again, at the same place in the order. */
static void prepare(const void *context)
{
    const int who = *(const int *)context;
    int round = 0;

    while (round < ROUNDS && contestants[who].samples[round] >= 0) {
        round++;
    }
    expect(round < ROUNDS, "more than the rounds");
    if (prepared[who]++ > 0) { /* after calibration */
        char *order = orders[round];
        const char name[] = {(char)('0' + who), '\0'};
        expect(!sampling || calls == 2, "not a call to warm up and one that counts");
        sampling = true;
        if (!strstr(order, name)) {
            (void)strcat(order, name);
        }
    }
    calls = 0;
}

int main(void)
{
    static const int names[CONTESTANTS] = {0, 1, 2, 3, 4};
    const struct timing timing = {.sample_ns = 0, .budget_ns = 0, .min_rounds = ROUNDS, .max_rounds = ROUNDS};
    int different = 0;

    for (int i = 0; i < CONTESTANTS; i++) {
        contestants[i] = (struct contestant){.prepare = prepare, .run = run, .context = &names[i]};
        for (int r = 0; r < ROUNDS; r++) {
            contestants[i].samples[r] = -1;
        }
    }
    expect(timing_run(&timing, contestants, CONTESTANTS) == ROUNDS, "not as many rounds as wanted");
    for (int r = 0; r < ROUNDS; r++) {
        expect(strlen(orders[r]) == CONTESTANTS, "not everyone in each round");
        different += r > 0 && strcmp(orders[r], orders[r - 1]) != 0;
    }
    expect(different >= ROUNDS - 2, "the same order again");
    return 0;
}
