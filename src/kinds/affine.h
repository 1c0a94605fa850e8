/* SPDX-License-Identifier: BSD-3-Clause */
/* y = sat(round(x * scale + offset)), or x / scale + offset, of a tile. */
#ifndef NPUQ_AFFINE_H
#define NPUQ_AFFINE_H

#include "../plan/plan.h"

/* The places of arguments, by their roles. */
enum {
    NPUQ_AFFINE_X = NPUQ_AT_X,
    NPUQ_AFFINE_Y = NPUQ_AT_Y,
    NPUQ_AFFINE_SCALE = NPUQ_AT_GROUPED,
    NPUQ_AFFINE_OFFSET,
    NPUQ_AFFINE_GROUPS
};

static inline NPUQ_INLINED npuq_rows_fn *npuq_find_quantiser(const npuq_kernel_setup *setup)
{
    return npuq_quantise_kernel(setup->kernels, setup->op, setup->types[NPUQ_AT_Y], setup->types[NPUQ_AT_X]);
}

/* Of tiles that are not one block. */
void npuq_quantise_strided_rows(const npuq_kernel_setup *setup, const npuq_tile *tile, const npuq_quant_params *params);

npuq_tile_fn npuq_quantise_by_row;
npuq_tile_fn npuq_quantise_by_column;

#endif
