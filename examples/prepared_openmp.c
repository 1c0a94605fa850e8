/* SPDX-License-Identifier: BSD-3-Clause */
/* Prepared calls on OpenMP's threads: by themselves, in a parallel region of the caller's, and per tensor. */
#include "prepared.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

static void run_in_region(const npuq_call *call)
{
    const int n = omp_get_num_threads();

#pragma omp for schedule(static)
    for (int i = 0; i < n; i++) {
        run_share(call, (size_t)i, (size_t)n);
    }
}

static void run_with_openmp(const npuq_call *call)
{
#pragma omp parallel
    run_in_region(call);
}

struct per_tensor {
    npuq_tensor x;       /* float32, rows one after the other */
    float (*ranges)[2];  /* minimum and maximum of each thread's rows */
    float range[2];      /* of all rows */
    float scale, offset; /* results */
    npuq_call apply;     /* reads scale and offset */
};

static void find_range(const npuq_tensor *x, int64_t first, int64_t end, float range[2])
{
    const npuq_tensor min = npuq_vector(&range[0], NPUQ_FLOAT32, 1);
    const npuq_tensor max = npuq_vector(&range[1], NPUQ_FLOAT32, 1);
    npuq_tensor rows = *x;

    rows.data = (float *)x->data + first * x->strides[0];
    rows.shape[0] = end - first;
    if (npuq_dynamic_quant_min_max(&rows, NULL, NULL, NPUQ_PER_TENSOR, &min, &max, NULL) != NPUQ_OK) {
        range[0] = range[1] = NAN;
    }
}

static void find_parameters(struct per_tensor *t, int n)
{
    const npuq_tensor min = npuq_vector(&t->range[0], NPUQ_FLOAT32, 1);
    const npuq_tensor max = npuq_vector(&t->range[1], NPUQ_FLOAT32, 1);
    const npuq_tensor scale = npuq_vector(&t->scale, NPUQ_FLOAT32, 1);
    const npuq_tensor offset = npuq_vector(&t->offset, NPUQ_FLOAT32, 1);
    float low = INFINITY;
    float high = -INFINITY;

    for (int i = 0; i < n; i++) { /* a NaN stays */
        low = isnan(low) || low <= t->ranges[i][0] ? low : t->ranges[i][0];
        high = isnan(high) || high >= t->ranges[i][1] ? high : t->ranges[i][1];
    }
    t->range[0] = low;
    t->range[1] = high;
    (void)npuq_dynamic_quant_params(&min, &max, NPUQ_INT8, &scale, &offset);
}

static void quantize_tensor(struct per_tensor *t)
{
    const int i = omp_get_thread_num();
    const int n = omp_get_num_threads();

    find_range(&t->x, t->x.shape[0] * i / n, t->x.shape[0] * (i + 1) / n, t->ranges[i]);
#pragma omp barrier
#pragma omp single
    find_parameters(t, n);
    run_share(&t->apply, (size_t)i, (size_t)n);
}

/* ---- per tensor, compared with the operator ---------------------------------------------------------------------- */

enum { ROWS = 67, COLUMNS = 1000, MOST_THREADS = 64 };

static bool check_per_tensor(float *values)
{
    static int8_t expected[ROWS * COLUMNS];
    static int8_t got[ROWS * COLUMNS];
    static float ranges[MOST_THREADS][2];
    struct per_tensor t = {.x = npuq_matrix(values, NPUQ_FLOAT32, ROWS, COLUMNS, 0), .ranges = ranges};
    const npuq_tensor scale = npuq_vector(&t.scale, NPUQ_FLOAT32, 1);
    const npuq_tensor offset = npuq_vector(&t.offset, NPUQ_FLOAT32, 1);
    const npuq_tensor expected_y = npuq_matrix(expected, NPUQ_INT8, ROWS, COLUMNS, 0);
    const npuq_tensor y = npuq_matrix(got, NPUQ_INT8, ROWS, COLUMNS, 0);

    if (npuq_dynamic_quant_asymmetric(&t.x, NULL, NULL, NPUQ_PER_TENSOR, &expected_y, &scale, &offset, NULL) !=
            NPUQ_OK ||
        npuq_prepare_dynamic_quant_apply(&t.apply, &t.x, NULL, NULL, NPUQ_PER_TENSOR, &scale, &offset, &y) != NPUQ_OK) {
        printf("  %s\n", npuq_last_error());
        return false;
    }
    const float expected_scale = t.scale;
    const float expected_offset = t.offset;
    t.scale = t.offset = 0;
#pragma omp parallel num_threads(omp_get_max_threads() < MOST_THREADS ? omp_get_max_threads() : MOST_THREADS)
    quantize_tensor(&t);
    const bool same = memcmp(expected, got, sizeof got) == 0 &&
                      memcmp(&expected_scale, &t.scale, sizeof t.scale) == 0 &&
                      memcmp(&expected_offset, &t.offset, sizeof t.offset) == 0;
    printf("  dynamic_quant_asymmetric, per tensor: %s\n", same ? "equal bit for bit" : "DIFFERENT");
    return same;
}

int main(void)
{
    static float values[ROWS * COLUMNS];
    bool good = prepared_check("OpenMP", run_with_openmp) == 0;

    for (int i = 0; i < ROWS * COLUMNS; i++) {
        values[i] = (float)(i % 1021 * 7919 % 10007) / 100.0f - 31.0f;
    }
    good = check_per_tensor(values) && good;
    values[ROWS / 2 * COLUMNS] = NAN;
    good = check_per_tensor(values) && good;
    return good ? 0 : 1;
}
