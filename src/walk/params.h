/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters (scales, zero points, smooth scales) of any dtype and stride, as the binary32 runs that kernels take. */
#ifndef NPUQ_PARAMS_H
#define NPUQ_PARAMS_H

#include "../backend/row.h"

/* A run of parameters, each of which may serve several columns; data null means that they are absent, and 0. */
typedef struct npuq_params {
    const char *data;
    npuq_dtype dtype;
    ptrdiff_t step; /* bytes from one to the next */
    size_t repeat;  /* columns that each serves, 1..NPUQ_MAX_REPEAT */
    size_t used;    /* columns that the first has served already */
} npuq_params;

enum { NPUQ_MAX_REPEAT = 64 };

/* The parameters from i columns further on. */
npuq_params npuq_params_from(const npuq_params *params, size_t i);

/* Whether the run can be read where it lies. */
bool npuq_params_ready(const npuq_params *params);

/* Those of the first n columns as contiguous binary32: where they lie, or converted into buffer, which has room for
 * n + NPUQ_MAX_REPEAT. */
const float *npuq_params_f32(const npuq_row_kernels *kernels, const npuq_params *params, size_t n, float *buffer);

#endif
