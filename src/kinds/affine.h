/* SPDX-License-Identifier: BSD-3-Clause */
/* y = sat(round(x * scale + offset)), or x / scale + offset, of a tile. */
#ifndef NPUQ_AFFINE_H
#define NPUQ_AFFINE_H

#include "../plan/plan.h"

/* Of quantize and group_quant; group_quant has a group_index, too. */
enum { NPUQ_AFFINE_SCALE = NPUQ_AT_GROUPED, NPUQ_AFFINE_OFFSET, NPUQ_AFFINE_GROUP_INDEX };

/* Of tiles that are not one block, or parameters that kernels cannot read where they are. */
void npuq_quantise_strided_rows(const npuq_kernel_setup *setup, const npuq_tile *tile, const float *scale,
                                const float *offset, size_t increment);
NPUQ_NOT_INLINED void npuq_quantise_different_rows(const npuq_kernel_setup *setup, const npuq_tile *tile,
                                                   npuq_params scale, npuq_params offset);
NPUQ_NOT_INLINED void npuq_quantise_runs(const npuq_kernel_setup *setup, const npuq_tile *tile, npuq_params scale,
                                         npuq_params offset);

/* Row r takes elements r * increment. */
static inline NPUQ_INLINED void npuq_quantise_rows(const npuq_kernel_setup *setup, const npuq_tile *tile,
                                                   const float *scale, const float *offset, size_t increment)
{
    if (npuq_is_block(setup, tile)) {
        const npuq_block block = npuq_make_block(setup, tile, true);

        setup->kernels->affine_uniform[setup->op][setup->types[NPUQ_AT_Y]][setup->types[NPUQ_AT_X]](&block, scale,
                                                                                                    offset, increment);
    } else {
        npuq_quantise_strided_rows(setup, tile, scale, offset, increment);
    }
}

static inline NPUQ_INLINED void npuq_quantise_by_row(const npuq_plan *plan, const npuq_tile *tile)
{
    const npuq_kernel_setup *setup = &plan->setup;
    const npuq_params scale = npuq_make_row_params(plan, tile, NPUQ_AFFINE_SCALE);
    const npuq_params offset = npuq_make_row_params(plan, tile, NPUQ_AFFINE_OFFSET);
    float converted[2];

    if (tile->rows == 1 || (scale.stride == 0 && (offset.stride == 0 || !offset.data))) {
        npuq_quantise_rows(setup, tile, npuq_convert_param(setup->kernels, &scale, &converted[0]),
                           npuq_convert_param(setup->kernels, &offset, &converted[1]), 0);
    } else {
        npuq_quantise_different_rows(setup, tile, scale, offset);
    }
}

static inline NPUQ_INLINED void npuq_quantise_by_column(const npuq_plan *plan, const npuq_tile *tile)
{
    const npuq_kernel_setup *setup = &plan->setup;
    const npuq_params scale = npuq_make_params(plan, tile, NPUQ_AFFINE_SCALE);
    const npuq_params offset = npuq_make_params(plan, tile, NPUQ_AFFINE_OFFSET);
    const bool is_one = !offset.data || offset.stride == 0;
    float converted;

    if (npuq_is_block(setup, tile) && npuq_params_are_ready(&scale) && (is_one || npuq_params_are_ready(&offset))) {
        const npuq_block block = npuq_make_block(setup, tile, true);

        setup->kernels->affine_vector[setup->op][setup->types[NPUQ_AT_Y]][setup->types[NPUQ_AT_X]](
            &block, (const float *)(const void *)scale.data,
            is_one ? npuq_convert_param(setup->kernels, &offset, &converted) : (const float *)(const void *)offset.data,
            !is_one);
    } else {
        npuq_quantise_runs(setup, tile, scale, offset);
    }
}

#endif
