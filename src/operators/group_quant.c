/* SPDX-License-Identifier: BSD-3-Clause */
#include "affine_dense.h"

static const char op[] = "group_quant";

/* Elements of a unit of work; where scales are converted, few columns, so that many rows share them. */
enum { UNIT = 32768, UNIT_COLUMNS = 4096 };

enum { X, SCALE, GROUP_INDEX, OFFSET, Y };

static const npuq_signature signature = {
    op,
    5,
    {
        [X] = {"x", NPUQ_TAKES_FLOATS, 2, 2, NPUQ_X, NPUQ_OPERAND_X},
        [SCALE] = {"scale", NPUQ_TAKES_FLOATS, 2, 2, NPUQ_INPUT, NPUQ_OPERAND_SCALE},
        [GROUP_INDEX] = {"group_index", NPUQ_TAKES_INDICES, 1, 1, NPUQ_INPUT, NPUQ_FIXED},
        [OFFSET] = {"offset", NPUQ_TAKES_FLOATS, 0, 1, NPUQ_OPTIONAL_INPUT, NPUQ_OPERAND_OFFSET},
        [Y] = {"y", NPUQ_TAKES(INT8) | NPUQ_TAKES(QUINT4X2), 2, 2, NPUQ_OUTPUT, NPUQ_OPERAND_Y},
    },
};

typedef struct group_quant_walk {
    npuq_walk walk;
    npuq_group_params scale;
    npuq_params offset;
} group_quant_walk;

static void quantise_tile(const npuq_walk *walk, const npuq_tile *tile)
{
    const group_quant_walk *t = (const group_quant_walk *)walk;
    const npuq_params scale = npuq_select_params(&t->scale, tile->group, tile->col);

    npuq_quantise_by_column(&walk->choice, tile, &scale, &t->offset);
}

static npuq_status check_shapes(const npuq_arguments *arguments, void *options)
{
    const npuq_tensor *scale = arguments->tensors[SCALE];
    const npuq_tensor *offset = arguments->tensors[OFFSET];
    const int64_t scale_shape[] = {scale->shape[0], arguments->tensors[X]->shape[1]};
    const int64_t one = 1;
    npuq_status status;

    (void)options;
    if (scale->shape[0] < 1) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, "scale", "dimension 0 is 0; expected one group or more");
    }
    if ((status = npuq_check_same_dtype(arguments, OFFSET, SCALE)) != NPUQ_OK ||
        (status = npuq_check_shape(arguments, SCALE, 2, scale_shape, "[E, H]")) != NPUQ_OK ||
        (status = npuq_check_shape(arguments, GROUP_INDEX, 1, scale_shape, "[E]")) != NPUQ_OK ||
        (status = npuq_check_shape(arguments, OFFSET, offset ? offset->ndim : 0, &one, "one element")) != NPUQ_OK) {
        return status;
    }
    return npuq_check_output_shape(arguments, X, Y);
}

static void take_walk(npuq_filling *filling, const npuq_executor *executor)
{
    group_quant_walk t;

    _Static_assert(sizeof t <= NPUQ_TASK_BYTES, "a task fits a prepared call");
    if (npuq_start_walk(&t.walk, filling, X, Y, X, 2, NPUQ_MUL, quantise_tile)) {
        t.walk.groups = npuq_list_groups(filling->arguments.tensors[GROUP_INDEX]);
        t.scale = npuq_list_group_params(&filling->arguments, SCALE);
        t.offset = npuq_list_params(&filling->arguments, OFFSET);
        filling->pointers[SCALE] = (void *)&t.scale.first.data;
        filling->pointers[OFFSET] = (void *)&t.offset.data;
        npuq_normalise_space(&t.walk.space, NPUQ_KEEP_COLUMNS);
        npuq_cut_walk(&t.walk, filling, UNIT, npuq_params_are_ready(&t.scale.first) ? UNIT : UNIT_COLUMNS);
    }
    npuq_finish_filling(filling, &t.walk.task, sizeof t, executor);
}

static inline NPUQ_INLINED npuq_status call_group_quant(npuq_call *call, const npuq_tensor *const *tensors,
                                                        const npuq_executor *executor)
{
    static const npuq_affine_roles roles = {
        .x = X, .scale = SCALE, .group_index = GROUP_INDEX, .offset = OFFSET, .y = Y};
    npuq_filling filling;
    npuq_status status;

    if ((status = npuq_check_call(&filling, call, &signature, tensors, check_shapes, NULL, executor)) != NPUQ_OK ||
        (status = npuq_check_groups(op, tensors[GROUP_INDEX], tensors[X]->shape[0])) != NPUQ_OK) {
        return status;
    }
    if (npuq_are_small(&filling.arguments, X, executor) && npuq_suits_affine_dense(&filling.arguments, &roles)) {
        npuq_take_affine_dense(&filling, &roles, NPUQ_MUL);
    } else {
        take_walk(&filling, executor);
    }
    return NPUQ_OK;
}

npuq_status npuq_group_quant(const npuq_tensor *x, const npuq_tensor *scale, const npuq_tensor *group_index,
                             const npuq_tensor *offset, const npuq_tensor *y, const npuq_executor *executor)
{
    return call_group_quant(NULL, (const npuq_tensor *const[]){x, scale, group_index, offset, y}, executor);
}

npuq_status npuq_prepare_group_quant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *scale,
                                     const npuq_tensor *group_index, const npuq_tensor *offset, const npuq_tensor *y)
{
    return call ? call_group_quant(call, (const npuq_tensor *const[]){x, scale, group_index, offset, y}, NULL)
                : npuq_fail_call(op);
}
