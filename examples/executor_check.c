/* SPDX-License-Identifier: BSD-3-Clause */
#include "executor_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same elements as 750 rows, or as three that are long enough to be shared out one by one. */
enum { ROWS = 750, COLUMNS = 4096, ELEMENTS = ROWS * COLUMNS, LONG_ROWS = 3, GROUPS = 4 };

/* ---- each index once -------------------------------------------------------------------------------------------- */

enum { MOST_INDICES = 5000 };

static void count_indices(void *argument, size_t begin, size_t end)
{
    unsigned char *times = argument;

    for (size_t i = begin; i < end; i++) {
        times[i]++;
    }
}

/* Bits alone would not tell: a unit that is done twice is written twice alike. */
static bool covers_once(const npuq_executor *executor)
{
    static const size_t counts[] = {2, 3, 7, 64, 1000, MOST_INDICES};
    unsigned char times[MOST_INDICES + 1];

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        memset(times, 0, sizeof times);
        executor->parallel_for(executor->context, counts[i], count_indices, times);
        for (size_t index = 0; index <= counts[i]; index++) {
            if (times[index] != (index < counts[i])) {
                printf("  index %zu of %zu: %u times\n", index, counts[i], times[index]);
                return false;
            }
        }
    }
    return true;
}

/* ---- the operators ---------------------------------------------------------------------------------------------- */

typedef struct inputs {
    float x[ELEMENTS];
    float scales[GROUPS * COLUMNS];
    int32_t zero_points[COLUMNS];
} inputs;

typedef struct outputs {
    int8_t y[ELEMENTS];
    float scale[ROWS];
    float offset[ROWS];
} outputs;

static void fill(inputs *in)
{
    for (size_t i = 0; i < ELEMENTS; i++) {
        in->x[i] = (float)(i * 7919 % 65521) / 256.0f - 128.0f;
    }
    for (size_t i = 0; i < GROUPS * COLUMNS; i++) {
        in->scales[i] = 0.5f + (float)(i % 1021) / 1024.0f;
    }
    for (size_t i = 0; i < COLUMNS; i++) {
        in->zero_points[i] = (int32_t)(i % 21) - 10;
    }
}

static npuq_status quantize(inputs *in, outputs *out, const npuq_executor *executor)
{
    const npuq_tensor x = npuq_matrix(in->x, NPUQ_FLOAT32, ROWS, COLUMNS, 0);
    const npuq_tensor scales = npuq_vector(in->scales, NPUQ_FLOAT32, COLUMNS);
    const npuq_tensor zero_points = npuq_vector(in->zero_points, NPUQ_INT32, COLUMNS);
    const npuq_tensor y = npuq_matrix(out->y, NPUQ_INT8, ROWS, COLUMNS, 0);

    return npuq_quantize(&x, &scales, &zero_points, -1, true, &y, executor);
}

static npuq_status group_quant(inputs *in, outputs *out, const npuq_executor *executor)
{
    int64_t ends[GROUPS] = {10, 10, 500, ROWS};
    const npuq_tensor x = npuq_matrix(in->x, NPUQ_FLOAT32, ROWS, COLUMNS, 0);
    const npuq_tensor scale = npuq_matrix(in->scales, NPUQ_FLOAT32, GROUPS, COLUMNS, 0);
    const npuq_tensor group_index = npuq_vector(ends, NPUQ_INT64, GROUPS);
    const npuq_tensor y = npuq_matrix(out->y, NPUQ_INT8, ROWS, COLUMNS, 0);

    return npuq_group_quant(&x, &scale, &group_index, NULL, &y, executor);
}

static npuq_status dynamic(inputs *in, outputs *out, int64_t rows, npuq_quant_mode mode, const npuq_executor *executor)
{
    const int64_t ranges = mode == NPUQ_PER_TOKEN ? rows : 1;
    const npuq_tensor x = npuq_matrix(in->x, NPUQ_FLOAT32, rows, ELEMENTS / rows, 0);
    const npuq_tensor y = npuq_matrix(out->y, NPUQ_INT8, rows, ELEMENTS / rows, 0);
    const npuq_tensor scale = npuq_vector(out->scale, NPUQ_FLOAT32, ranges);
    const npuq_tensor offset = npuq_vector(out->offset, NPUQ_FLOAT32, ranges);

    return npuq_dynamic_quant_asymmetric(&x, NULL, NULL, mode, &y, &scale, &offset, executor);
}

static npuq_status per_token(inputs *in, outputs *out, const npuq_executor *executor)
{
    return dynamic(in, out, ROWS, NPUQ_PER_TOKEN, executor);
}

static npuq_status long_rows(inputs *in, outputs *out, const npuq_executor *executor)
{
    return dynamic(in, out, LONG_ROWS, NPUQ_PER_TOKEN, executor);
}

static npuq_status per_tensor(inputs *in, outputs *out, const npuq_executor *executor)
{
    return dynamic(in, out, ROWS, NPUQ_PER_TENSOR, executor);
}

/* ---- with the executor, and without ------------------------------------------------------------------------------ */

/* An executor that passes everything on and counts. */
typedef struct counter {
    const npuq_executor *executor;
    size_t calls;
    size_t units;
} counter;

static void count_and_run(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                          void *argument)
{
    counter *c = context;

    c->calls++;
    c->units += count;
    c->executor->parallel_for(c->executor->context, count, task, argument);
}

static bool same_results(inputs *in, outputs *expected, outputs *got, const npuq_executor *executor)
{
    static const struct {
        const char *name;
        npuq_status (*run)(inputs *in, outputs *out, const npuq_executor *executor);
    } cases[] = {
        {"quantize", quantize},
        {"group_quant", group_quant},
        {"dynamic_quant_asymmetric, per token", per_token},
        {"dynamic_quant_asymmetric, per token, 3 long rows", long_rows},
        {"dynamic_quant_asymmetric, per tensor", per_tensor},
    };
    bool all = true;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        counter c = {executor, 0, 0};
        const npuq_executor counting = {count_and_run, &c};

        memset(expected, 0, sizeof *expected);
        memset(got, 0, sizeof *got);
        if (cases[i].run(in, expected, NULL) != NPUQ_OK || cases[i].run(in, got, &counting) != NPUQ_OK) {
            printf("  %s\n", npuq_last_error());
            return false;
        }
        const bool same = c.calls > 0 && memcmp(expected, got, sizeof *got) == 0;
        printf("  %s: %zu units in %zu calls: %s\n", cases[i].name, c.units, c.calls,
               same ? "equal bit for bit" : "DIFFERENT");
        all = all && same;
    }
    return all;
}

int executor_check(const char *name, const npuq_executor *executor)
{
    inputs *in = malloc(sizeof *in);
    outputs *expected = malloc(sizeof *expected);
    outputs *got = malloc(sizeof *got);
    bool good = in && expected && got;

    printf("%s\n", good ? name : "out of memory");
    if (good) {
        fill(in);
        good = covers_once(executor) && same_results(in, expected, got, executor);
    }
    free(in);
    free(expected);
    free(got);
    return good ? 0 : 1;
}
