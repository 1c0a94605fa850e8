/* SPDX-License-Identifier: BSD-3-Clause */
/* What anti_quant, dequant and requant have in common: rows of integers, with parameters for each column or one. */
#ifndef NPUQ_FROM_INTEGERS_H
#define NPUQ_FROM_INTEGERS_H

#include "../status.h"
#include "../walk/dense.h"
#include "../walk/tile.h"

/* Validated arguments. x and y as they are; what is absent is null, or has no data. */
typedef struct npuq_from_integers {
    const npuq_tensor *x;
    const npuq_tensor *y;
    const npuq_tensor *row_scale;
    npuq_dequant_columns columns;
    const npuq_dense *dense; /* x and y as rows, if the call passed as dense */
} npuq_from_integers;

/* A tensor that has one element, or one for each column in its last dimension; null is absent. */
npuq_params npuq_column_params(const npuq_tensor *tensor);

/* The last dimension of a parameter has one element, or as many as x's. */
npuq_status npuq_check_columns(const char *op, const char *name, const npuq_tensor *tensor, int64_t columns);

/* y from x, which is not empty. */
void npuq_run_from_integers(const npuq_from_integers *arguments, const npuq_executor *executor);

#endif
