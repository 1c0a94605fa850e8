/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters (scales, zero points, smooth scales) of any dtype and stride, as the binary32 runs that kernels take. */
#ifndef NPUQ_PARAMS_H
#define NPUQ_PARAMS_H

#include <npuquant/npuquant.h>

/* A run of parameters; data null means that they are absent, and 0. */
typedef struct npuq_params {
    const char *data;
    npuq_dtype dtype;
    ptrdiff_t step; /* bytes from one to the next */
} npuq_params;

/* The parameter i further on. */
npuq_params npuq_params_from(npuq_params params, size_t i);

/* Whether the run can be read where it lies. */
bool npuq_params_ready(const npuq_params *params);

/* The first n as contiguous binary32: where they lie, or converted into buffer. */
const float *npuq_params_f32(const npuq_params *params, size_t n, float *buffer);

#endif
