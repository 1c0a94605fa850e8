/* SPDX-License-Identifier: BSD-3-Clause */
/* Small dense calls of quantize and group_quant: kernels are called directly, without an index space. */
#ifndef NPUQ_AFFINE_DENSE_H
#define NPUQ_AFFINE_DENSE_H

#include "../plan/plan.h"

/* Which argument of the operator is what, or NPUQ_ABSENT. */
typedef struct npuq_affine_roles {
    int x;
    int scale;
    int group_index;
    int offset;
    int y;
} npuq_affine_roles;

/* Whether dense parameters by column suit direct calls: rows are long enough, and there is room to convert them. */
bool npuq_suits_affine_dense(const npuq_arguments *arguments, const npuq_affine_roles *roles);

/* By column, or with a scale of one element, after all checks: at once, or kept as a prepared call. */
void npuq_take_affine_dense(npuq_filling *filling, const npuq_affine_roles *roles, npuq_affine_op op);

#endif
