/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters (scales, zero points, smooth scales) of any dtype and stride, as the binary32 runs that kernels take. */
#ifndef NPUQ_PARAMS_H
#define NPUQ_PARAMS_H

#include "../check/view.h"
#include "../kernels/row.h"

/* A run of parameters, each of which may serve several columns; data null means that they are absent, and 0. */
typedef struct npuq_params {
    const char *data;
    ptrdiff_t step; /* bytes from one to the next */
    npuq_type type;
    uint8_t repeat; /* columns that each serves, 1..NPUQ_MAX_REPEAT */
    uint8_t used;   /* columns that the first has served already */
} npuq_params;

enum { NPUQ_MAX_REPEAT = 64 };
_Static_assert(NPUQ_MAX_REPEAT <= UINT8_MAX, "repeat and used hold it");

/* Argument i has one parameter for each column in its last dimension, or one for all: step is 0 then. Absent if the
 * argument is. */
static inline npuq_params npuq_list_params(const npuq_arguments *arguments, int i)
{
    const npuq_tensor *tensor = i == NPUQ_ABSENT ? NULL : arguments->tensors[i];
    npuq_params params = {.repeat = 1};

    if (tensor) {
        const int last = tensor->ndim - 1;

        params.data = tensor->data;
        params.type = arguments->infos[i]->type;
        if (last >= 0 && tensor->shape[last] > 1) {
            params.step = (ptrdiff_t)tensor->strides[last] * arguments->infos[i]->word.size;
        }
    }
    return params;
}

/* The same of a dense argument, where a single parameter is one for the single column. */
static inline npuq_params npuq_list_dense_params(const npuq_arguments *arguments, int i)
{
    npuq_params params = {.repeat = 1};

    if (i != NPUQ_ABSENT && arguments->tensors[i]) {
        params.data = arguments->tensors[i]->data;
        params.type = arguments->infos[i]->type;
        params.step = arguments->infos[i]->word.size;
    }
    return params;
}

/* The parameters from i columns further on. */
static inline npuq_params npuq_skip_params(const npuq_params *params, size_t i)
{
    npuq_params from = *params;

    if (from.data && i > 0) {
        const size_t columns = from.used + i;

        from.data += (ptrdiff_t)(columns / from.repeat) * from.step;
        from.used = (uint8_t)(columns % from.repeat);
    }
    return from;
}

/* Parameters by column, a run for each group. */
typedef struct npuq_group_params {
    npuq_params first; /* of group 0 */
    ptrdiff_t step;    /* bytes from a group's to those of the next */
} npuq_group_params;

/* Argument i is [H], or [E, H]; absent if the argument is. */
static inline npuq_group_params npuq_list_group_params(const npuq_arguments *arguments, int i)
{
    const npuq_tensor *tensor = arguments->tensors[i];
    npuq_group_params params = {npuq_list_params(arguments, i), 0};

    if (tensor) {
        const ptrdiff_t size = arguments->infos[i]->word.size;

        if (tensor->ndim == 2 && tensor->shape[0] > 1 && tensor->shape[1] > 0) {
            params.step = (ptrdiff_t)tensor->strides[0] * size;
        }
        if (tensor->shape[tensor->ndim - 1] == 1) { /* one column, not one parameter for all */
            params.first.step = size;
        }
    }
    return params;
}

/* Those of a group, from column col on. */
static inline npuq_params npuq_select_params(const npuq_group_params *params, size_t group, size_t col)
{
    npuq_params from = npuq_skip_params(&params->first, col);

    if (group > 0) {
        from.data += (ptrdiff_t)group * params->step;
    }
    return from;
}

/* Whether the run can be read where it lies. */
static inline bool npuq_params_are_ready(const npuq_params *params)
{
    return params->data && params->type == NPUQ_TYPE_FLOAT32 && params->step == (ptrdiff_t)sizeof(float) &&
           params->repeat == 1;
}

/* Whether there is one that has to be converted. */
static inline bool npuq_is_unready(const npuq_params *params)
{
    return params->data && !npuq_params_are_ready(params);
}

const float *npuq_convert_unready(const npuq_row_kernels *kernels, const npuq_params *params, size_t n, float *buffer);

/* Those of the first n columns as contiguous binary32: where they lie, or converted into buffer, which has room for
 * n + NPUQ_MAX_REPEAT. */
static inline const float *npuq_convert_params(const npuq_row_kernels *kernels, const npuq_params *params, size_t n,
                                               float *buffer)
{
    return npuq_params_are_ready(params) ? (const float *)(const void *)params->data
                                         : npuq_convert_unready(kernels, params, n, buffer);
}

#endif
