/* SPDX-License-Identifier: BSD-3-Clause */
/* The passes of dynamic quantisation over checked arguments: ranges of rows or of a tensor, parameters from ranges,
 * quantising with them; each by itself, or all together while rows are in the cache. */
#ifndef NPUQ_DYNAMIC_H
#define NPUQ_DYNAMIC_H

#include "../plan/plan.h"

/* The order of arguments in all signatures. For ranges alone y is absent, in the symmetric operator the second. */
enum {
    NPUQ_DYNAMIC_X,
    NPUQ_DYNAMIC_SMOOTH,
    NPUQ_DYNAMIC_GROUP_INDEX,
    NPUQ_DYNAMIC_Y,
    NPUQ_DYNAMIC_FIRST, /* scale or min: one for each row, or for the tensor */
    NPUQ_DYNAMIC_SECOND /* offset or max */
};

typedef enum npuq_dynamic_step {
    NPUQ_FIND_RANGES,  /* gives min and max */
    NPUQ_QUANTISE_ALL, /* gives y, scale and offset */
    NPUQ_APPLY         /* gives y, from scale and offset, or in the symmetric form from min and max */
} npuq_dynamic_step;

/* Does a step, or keeps it as a prepared call, which is never one of QUANTISE_ALL or FIND_RANGES per tensor. */
void npuq_take_dynamic_step(npuq_filling *filling, npuq_dynamic_step step, npuq_dynamic_form form,
                            npuq_quant_mode quant_mode, const npuq_executor *executor);

/* Operands of a loop over ranges and what is made of them; it need not have the last. */
enum { NPUQ_PARAMS_MIN = NPUQ_AT_X, NPUQ_PARAMS_SCALE = NPUQ_AT_Y, NPUQ_PARAMS_MAX, NPUQ_PARAMS_OFFSET };

void npuq_find_params_of_ranges(npuq_dynamic_form form, npuq_type y, const npuq_space *space);

#endif
