/* SPDX-License-Identifier: BSD-3-Clause */
#include "../kinds/affine.h"

#define NPUQ_PLACE(ROLE) NPUQ_AFFINE_##ROLE
enum {
    X = NPUQ_AFFINE_X,
    Y = NPUQ_AFFINE_Y,
    SCALE = NPUQ_AFFINE_SCALE,
    OFFSET = NPUQ_AFFINE_OFFSET,
    GROUP_INDEX = NPUQ_AFFINE_GROUPS
};

static npuq_status check(const npuq_arguments *arguments, const void *options)
{
    const npuq_tensor *scale = arguments->tensors[SCALE];
    const npuq_tensor *offset = arguments->tensors[OFFSET];
    const npuq_shape_facts facts = {.ndim = 2, .shape = arguments->tensors[X]->shape, .groups = scale->shape[0]};
    const int64_t one = 1;
    npuq_status status;

    (void)options;
    if (scale->shape[0] < 1) {
        return npuq_fail(NPUQ_ERROR_SHAPE, arguments->signature->op, "scale",
                         "dimension 0 is 0; expected 1 or more, a row for each group");
    }
    if ((status = npuq_check_same_dtype(arguments, OFFSET, SCALE)) != NPUQ_OK ||
        (status = npuq_check_shape_by(arguments, SCALE, NPUQ_SHAPE_OF_GROUPS_AND_COLUMNS, &facts,
                                      "the last dimension of x")) != NPUQ_OK ||
        (status = npuq_check_shape_by(arguments, GROUP_INDEX, NPUQ_SHAPE_OF_GROUPS, &facts, "dimension 0 of scale")) !=
            NPUQ_OK ||
        (status = npuq_check_shape(arguments, OFFSET, offset ? offset->ndim : 0, &one, "one element")) != NPUQ_OK) {
        return status;
    }
    return npuq_check_output_shape(arguments, X, Y);
}

static npuq_status make_plan(npuq_plan *plan, const npuq_arguments *arguments, const void *options)
{
    const npuq_tensor *group_index = arguments->tensors[GROUP_INDEX];
    const npuq_status status =
        npuq_check_groups(arguments->signature->op, group_index, arguments->tensors[X]->shape[0]);

    (void)options;
    if (status != NPUQ_OK || !npuq_start_plan(plan, arguments, GROUP_INDEX, NPUQ_MUL, NPUQ_SCALE_BY_COLUMN)) {
        return status;
    }
    npuq_add_groups(plan, arguments, group_index);
    npuq_add_by_column(plan, arguments, SCALE);
    npuq_add_by_column(plan, arguments, OFFSET);
    if (plan->way == NPUQ_ONE_TILE) {
        npuq_cut_small(plan);
        return NPUQ_OK;
    }
    npuq_finish_operands(plan, NPUQ_KEEP_COLUMNS);

    const npuq_params scale = npuq_find_column_params(plan, SCALE);
    npuq_cut_plan(plan, arguments, NPUQ_UNIT, npuq_params_are_ready(&scale) ? NPUQ_UNIT : NPUQ_UNIT_COLUMNS);
    return NPUQ_OK;
}

static const npuq_operator group_quant = {NPUQ_SIGNATURE(group_quant), check, make_plan, npuq_quantise_by_column, NULL};

npuq_status npuq_group_quant(const npuq_tensor *x, const npuq_tensor *scale, const npuq_tensor *group_index,
                             const npuq_tensor *offset, const npuq_tensor *y, const npuq_executor *executor)
{
    return npuq_call_inlined(&group_quant, check, make_plan, NPUQ_TENSORS(group_quant), NULL, executor);
}

npuq_status npuq_prepare_group_quant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *scale,
                                     const npuq_tensor *group_index, const npuq_tensor *offset, const npuq_tensor *y)
{
    return npuq_prepare_operator(call, &group_quant, NPUQ_TENSORS(group_quant), NULL);
}
