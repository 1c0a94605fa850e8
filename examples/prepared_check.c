/* SPDX-License-Identifier: BSD-3-Clause */
#include "prepared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 67, COLUMNS = 4096, ELEMENTS = ROWS * COLUMNS };

/* Inputs, and outputs of a run. */
typedef struct memory {
    float x[ELEMENTS];
    int32_t sums[ELEMENTS];
    float scales[COLUMNS];
    int8_t y[ELEMENTS];
    uint16_t half[ELEMENTS];
    float row_scale[ROWS];
} memory;

static void fill(memory *m, uint32_t token)
{
    for (size_t i = 0; i < ELEMENTS; i++) {
        const int32_t value = (int32_t)((i * 7919 + token) % 65521) - 32760;

        m->x[i] = (float)value / 256.0f;
        m->sums[i] = value * 256;
    }
    for (size_t i = 0; i < COLUMNS; i++) {
        m->scales[i] = 0.5f + (float)(i % 1021) / 1024.0f;
    }
}

/* Prepares the operator, or with a null call runs it. */
static npuq_status quantize(memory *m, npuq_call *call)
{
    const npuq_tensor x = npuq_matrix(m->x, NPUQ_FLOAT32, ROWS, COLUMNS, 0);
    const npuq_tensor scales = npuq_vector(m->scales, NPUQ_FLOAT32, COLUMNS);
    const npuq_tensor y = npuq_matrix(m->y, NPUQ_INT8, ROWS, COLUMNS, 0);

    return call ? npuq_prepare_quantize(call, &x, &scales, NULL, -1, false, &y)
                : npuq_quantize(&x, &scales, NULL, -1, false, &y, NULL);
}

static npuq_status per_token(memory *m, npuq_call *call)
{
    const npuq_tensor x = npuq_matrix(m->x, NPUQ_FLOAT32, ROWS, COLUMNS, 0);
    const npuq_tensor y = npuq_matrix(m->y, NPUQ_INT8, ROWS, COLUMNS, 0);
    const npuq_tensor scale = npuq_vector(m->row_scale, NPUQ_FLOAT32, ROWS);

    return call ? npuq_prepare_dynamic_quant(call, &x, NULL, NULL, NPUQ_PER_TOKEN, NPUQ_SCALE_PRODUCT, &y, &scale)
                : npuq_dynamic_quant(&x, NULL, NULL, NPUQ_PER_TOKEN, NPUQ_SCALE_PRODUCT, &y, &scale, NULL);
}

static npuq_status dequant(memory *m, npuq_call *call)
{
    const npuq_tensor x = npuq_matrix(m->sums, NPUQ_INT32, ROWS, COLUMNS, 0);
    const npuq_tensor scales = npuq_vector(m->scales, NPUQ_FLOAT32, COLUMNS);
    const npuq_tensor y = npuq_matrix(m->half, NPUQ_BFLOAT16, ROWS, COLUMNS, 0);

    return call ? npuq_prepare_dequant(call, &x, &scales, NULL, NULL, &y)
                : npuq_dequant(&x, &scales, NULL, NULL, &y, NULL);
}

static bool same_results(memory *expected, memory *got, void (*run_all)(const npuq_call *call))
{
    static const struct {
        const char *name;
        npuq_status (*run)(memory *m, npuq_call *call);
    } cases[] = {{"quantize", quantize}, {"dynamic_quant, per token", per_token}, {"dequant", dequant}};
    bool all = true;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool same = true;
        npuq_call call;

        for (uint32_t token = 0; token < 2; token++) { /* prepared once, run for both */
            memset(expected, 0, sizeof *expected);
            fill(expected, token);
            *got = *expected;
            if (cases[i].run(expected, NULL) != NPUQ_OK || (token == 0 && cases[i].run(got, &call) != NPUQ_OK)) {
                printf("  %s\n", npuq_last_error());
                return false;
            }
            run_all(&call);
            same = same && memcmp(expected, got, sizeof *got) == 0;
        }
        printf("  %s: %zu units: %s\n", cases[i].name, npuq_call_units(&call),
               same ? "equal bit for bit" : "DIFFERENT");
        all = all && same;
    }
    return all;
}

int prepared_check(const char *name, void (*run_all)(const npuq_call *call))
{
    memory *expected = malloc(sizeof *expected);
    memory *got = malloc(sizeof *got);
    const bool allocated = expected && got;

    printf("%s\n", allocated ? name : "out of memory");
    const bool good = allocated && same_results(expected, got, run_all);
    free(expected);
    free(got);
    return good ? 0 : 1;
}
