/* SPDX-License-Identifier: BSD-3-Clause */
#include "distances.h"

#include "operands.h"
#include "plan/memory_plan.h"

#include <stdio.h>
#include <string.h>

/* 0: neither prefetching nor non-temporal stores. */
static const size_t distances[] = {0, 768, 1536, 3072, 4096, 8192, 12288, 16384};
enum { COUNT = sizeof distances / sizeof distances[0] };

/* More than the last cache of most machines. */
static const double most_elements = 1 << 26;

/* Columns of a row: the largest unit of work of quantize with one scale, and a usual number. */
enum { LONG_ROW = 32768, USUAL_ROW = 4096 };

static const struct bench_case works[] = {
    {.name = "uniform", .op = BENCH_QUANTIZE, .parameters = BENCH_UNIFORM, .shape = {0, LONG_ROW}},
    {.name = "column", .op = BENCH_QUANTIZE, .parameters = BENCH_CHANNEL, .shape = {0, USUAL_ROW}},
    {.name = "column", .op = BENCH_QUANTIZE, .parameters = BENCH_CHANNEL, .shape = {0, LONG_ROW}},
    {.name = "token",
     .op = BENCH_DYNAMIC_QUANT_ASYMMETRIC,
     .mode = BENCH_TOKEN,
     .parameters = BENCH_PLAIN,
     .shape = {0, USUAL_ROW}},
};
static const npuq_dtype types[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};

struct distance {
    const struct operands *operands;
    size_t ahead;
};

static void prepare(const void *argument)
{
    (void)argument;
}

static void run(const void *argument)
{
    const struct distance *d = argument;

    operands_row_kernel(d->operands, d->ahead);
}

static bool fail(const char *name, const char *message)
{
    (void)fprintf(stderr, "npuquant-bench: --distances: %s: %s\n", name, message);
    return false;
}

static bool check(const struct operands *o, size_t ahead)
{
    memset(o->y.data, 0x55, o->y_bytes);
    operands_row_kernel(o, ahead);
    return operands_differing(o) == 0;
}

static bool measure(const char *name, struct operands *o, const struct timing *timing)
{
    static struct contestant contestants[COUNT];
    struct distance contexts[COUNT];
    size_t best = 0;
    size_t own = 0;

    if (!operands_expect(o)) {
        return fail(name, "the reference failed");
    }
    for (size_t i = 0; i < COUNT; i++) {
        contexts[i] = (struct distance){o, distances[i]};
        contestants[i] = (struct contestant){.prepare = prepare, .run = run, .context = &contexts[i]};
        if (!check(o, distances[i])) {
            return fail(name, "differs from the reference");
        }
    }
    const int rounds = timing_run(timing, contestants, COUNT);
    double ns[COUNT];
    (void)printf("%-18s", name);
    for (size_t i = 0; i < COUNT; i++) {
        ns[i] = statistics_of(contestants[i].samples, rounds).median;
        best = ns[i] < ns[best] ? i : best;
        own = distances[i] == npuq_find_tuning()->prefetch_bytes ? i : own;
        (void)printf(" %6.2f", (double)(o->x_bytes + o->y_bytes) / ns[i]);
    }
    (void)printf(" %6zu %6.2f\n", distances[best], ns[own] / ns[best]);
    (void)fflush(stdout);
    return true;
}

bool distances_report(const struct machine *machine, const struct timing *timing, double max_elements)
{
    (void)printf(
        "Row kernels of %s from memory, by how many bytes of x they prefetch ahead: GB of x and y in a second.\n"
        "0 neither prefetches nor writes around the caches. npuquant takes %d; a kernel that is `gain` times as\n"
        "fast with the best distance as with that one shows whether another would be worth it here.\n"
        "\n%-18s",
        npuq_backend_name(npuq_active_backend()), npuq_find_tuning()->prefetch_bytes, "kernel");
    for (size_t i = 0; i < COUNT; i++) {
        (void)printf(" %6zu", distances[i]);
    }
    (void)puts("   best   gain");
    for (size_t i = 0; i < sizeof works / sizeof works[0] * (sizeof types / sizeof types[0]); i++) {
        struct bench_case c = works[i / (sizeof types / sizeof types[0])];
        struct operands operands;

        c.x_dtype = types[i % (sizeof types / sizeof types[0])];
        c.y_dtype = NPUQ_INT8;
        c.ndim = 2;
        const int64_t rows = (int64_t)(max_elements < most_elements ? max_elements : most_elements) / c.shape[1];
        c.shape[0] = rows > 0 ? rows : 1;
        const size_t end = strlen(c.name);
        (void)snprintf(c.name + end, sizeof c.name - end, " %s/%d", bench_dtype_name(c.x_dtype), (int)c.shape[1]);
        if ((machine->memory > 0 && (double)bench_memory(&c) > machine->memory) || !operands_make(&operands, &c)) {
            return fail(c.name, "takes too much memory; --max-elements lowers it");
        }
        const bool right = measure(c.name, &operands, timing);
        operands_free(&operands);
        if (!right) {
            return false;
        }
    }
    return true;
}
