/* SPDX-License-Identifier: BSD-3-Clause */
/* What anti_quant, dequant and requant have in common: rows of integers, with parameters for each column or one. */
#ifndef NPUQ_FROM_INTEGERS_H
#define NPUQ_FROM_INTEGERS_H

#include "../plan/plan.h"

/* The places of arguments, by their roles. Not every operator has all. */
enum {
    NPUQ_INTEGERS_X = NPUQ_AT_X,
    NPUQ_INTEGERS_Y = NPUQ_AT_Y,
    NPUQ_INTEGERS_SCALE,  /* or words of trans_quant_param, which have an offset each */
    NPUQ_INTEGERS_ADDEND, /* to int8 and int4 the offset, before the product; to int32 the bias: one of int32 is added
                             first, others after the product */
    NPUQ_INTEGERS_OFFSET = NPUQ_INTEGERS_ADDEND,
    NPUQ_INTEGERS_BIAS = NPUQ_INTEGERS_ADDEND,
    NPUQ_INTEGERS_ROW_SCALE /* one for each row */
};

/* The state of these operators in a plan. */
typedef struct npuq_integers_own {
    bool words_have_offsets; /* one of them is not 0 */
} npuq_integers_own;
NPUQ_FITS_OWN(npuq_integers_own);

/* The last dimension of argument i has one element, or as many as there are columns. */
npuq_status npuq_check_columns(const npuq_arguments *arguments, int i, int64_t columns);

npuq_plan_fn npuq_plan_from_integers; /* without options; no word has an offset */
NPUQ_NOT_INLINED npuq_tile_fn npuq_dequantise_tile;

#endif
