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

/* Of tiles that are not one block, or parameters that kernels cannot read where they are. */
void npuq_quantise_strided_rows(const npuq_kernel_setup *setup, const npuq_tile *tile, const npuq_quant_params *params);
NPUQ_NOT_INLINED void npuq_quantise_different_rows(const npuq_kernel_setup *setup, const npuq_tile *tile,
                                                   npuq_params scale, npuq_params offset);
NPUQ_NOT_INLINED void npuq_quantise_columns(const npuq_kernel_setup *setup, const npuq_tile *tile);

/* steps are NPUQ_ONE or NPUQ_BY_ROW; offset may be null. */
static inline NPUQ_INLINED void npuq_quantise_rows(const npuq_kernel_setup *setup, const npuq_tile *tile,
                                                   const float *scale, const float *offset, npuq_steps steps)
{
    const npuq_quant_params params = {scale, offset, NULL, NULL, steps, 0, false};

    if (npuq_is_block(setup, tile)) {
        const npuq_block block = npuq_make_block(setup, tile, true);

        npuq_find_quantiser(setup)(&block, &params);
    } else {
        npuq_quantise_strided_rows(setup, tile, &params);
    }
}

static inline NPUQ_INLINED void npuq_quantise_by_row(const npuq_plan *plan, const npuq_tile *tile)
{
    const npuq_kernel_setup *setup = &plan->setup;
    const npuq_params scale = npuq_make_row_params(setup, tile, NPUQ_AFFINE_SCALE);
    const npuq_params offset = npuq_make_row_params(setup, tile, NPUQ_AFFINE_OFFSET);
    float converted[2];

    if (tile->rows == 1 || (scale.stride == 0 && (offset.stride == 0 || !offset.data))) {
        npuq_quantise_rows(setup, tile, npuq_convert_params(setup->kernels, &scale, 1, &converted[0]),
                           npuq_convert_params(setup->kernels, &offset, 1, &converted[1]), NPUQ_ONE);
    } else {
        npuq_quantise_different_rows(setup, tile, scale, offset);
    }
}

static inline NPUQ_INLINED void npuq_quantise_by_column(const npuq_plan *plan, const npuq_tile *tile)
{
    const npuq_kernel_setup *setup = &plan->setup;
    const npuq_params scale = npuq_make_params(setup, tile, NPUQ_AFFINE_SCALE);
    const npuq_params offset = npuq_make_params(setup, tile, NPUQ_AFFINE_OFFSET);
    const bool is_one = !offset.data || offset.stride == 0;
    float converted;

    const bool bf16 = setup->op == NPUQ_MUL && npuq_are_half_columns(setup, &scale);

    if (npuq_is_block(setup, tile) && (bf16 || npuq_params_are_ready(&scale)) &&
        (is_one || npuq_params_are_ready(&offset))) {
        const npuq_quant_params params = {scale.data,
                                          is_one ? npuq_convert_params(setup->kernels, &offset, 1, &converted)
                                                 : (const float *)(const void *)offset.data,
                                          NULL,
                                          NULL,
                                          is_one ? NPUQ_SCALE_BY_COLUMN : NPUQ_BY_COLUMN,
                                          0,
                                          bf16};
        const npuq_block block = npuq_make_block(setup, tile, true);

        npuq_find_quantiser(setup)(&block, &params);
    } else {
        npuq_quantise_columns(setup, tile);
    }
}

#endif
