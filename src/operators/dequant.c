/* SPDX-License-Identifier: BSD-3-Clause */
#include "../kinds/from_integers.h"

#define NPUQ_PLACE(ROLE) NPUQ_INTEGERS_##ROLE
enum {
    X = NPUQ_INTEGERS_X,
    Y = NPUQ_INTEGERS_Y,
    WEIGHT_SCALE = NPUQ_INTEGERS_SCALE,
    BIAS = NPUQ_INTEGERS_ADDEND,
    ACTIVATION_SCALE = NPUQ_INTEGERS_ROW_SCALE
};

static inline NPUQ_INLINED npuq_status check(const npuq_arguments *arguments, const void *options)
{
    const npuq_tensor *x = arguments->tensors[X];
    const npuq_shape_facts facts = {.ndim = x->ndim, .shape = x->shape};
    static const char *const row_rules[] = {"the shape of x without its last dimension",
                                            "the shape of x with a last dimension of 1"};
    npuq_status status;

    (void)options;
    if ((status = npuq_check_columns(arguments, WEIGHT_SCALE, x->shape[x->ndim - 1])) != NPUQ_OK ||
        (status = npuq_check_row_shape(arguments, ACTIVATION_SCALE, row_rules)) != NPUQ_OK ||
        (status = npuq_check_shape_by(arguments, BIAS, NPUQ_SHAPE_OF_COLUMNS, &facts, "the last dimension of x")) !=
            NPUQ_OK) {
        return status;
    }
    return npuq_check_output_shape(arguments, X, Y);
}

static const npuq_operator dequant = {NPUQ_SIGNATURE(dequant), check, npuq_plan_from_integers, npuq_dequantise_tile,
                                      NULL};

npuq_status npuq_dequant(const npuq_tensor *x, const npuq_tensor *weight_scale, const npuq_tensor *activation_scale,
                         const npuq_tensor *bias, const npuq_tensor *y, const npuq_executor *executor)
{
    return npuq_call_inlined(&dequant, check, npuq_plan_from_integers, NPUQ_TENSORS(dequant), NULL, executor);
}

npuq_status npuq_prepare_dequant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *weight_scale,
                                 const npuq_tensor *activation_scale, const npuq_tensor *bias, const npuq_tensor *y)
{
    return npuq_prepare_operator(call, &dequant, NPUQ_TENSORS(dequant), NULL);
}
