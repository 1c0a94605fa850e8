/* SPDX-License-Identifier: BSD-3-Clause */
/* What anti_quant, dequant and requant have in common: rows of integers, with parameters for each column or one. */
#ifndef NPUQ_FROM_INTEGERS_H
#define NPUQ_FROM_INTEGERS_H

#include "../plan/plan.h"

/* Which argument of the operator is what, or NPUQ_ABSENT; see npuq_dequant_columns. */
typedef struct npuq_from_integers {
    int x;
    int y;
    int scale;
    int addend;
    int row_scale;
    bool words_have_offsets;
} npuq_from_integers;

/* The last dimension of argument i has one element, or as many as there are columns. */
npuq_status npuq_check_columns(const npuq_arguments *arguments, int i, int64_t columns);

/* y from x, after all checks: at once, or kept as a prepared call. */
void npuq_take_from_integers(npuq_filling *filling, const npuq_from_integers *roles, const npuq_executor *executor);

#endif
