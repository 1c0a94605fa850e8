/* SPDX-License-Identifier: BSD-3-Clause */
#include "from_integers.h"

static const char op[] = "dequant";

enum { X, WEIGHT_SCALE, ACTIVATION_SCALE, BIAS, Y };

static const npuq_signature signature = {
    op,
    5,
    {
        [X] = {"x", NPUQ_TAKES(INT32), 1, NPUQ_MAX_NDIM, NPUQ_X, NPUQ_OPERAND_X},
        [WEIGHT_SCALE] = {"weight_scale", NPUQ_TAKES_FLOATS, 1, 1, NPUQ_INPUT, NPUQ_OPERAND_SCALE},
        [ACTIVATION_SCALE] = {"activation_scale", NPUQ_TAKES(FLOAT32), 0, NPUQ_MAX_NDIM - 1, NPUQ_OPTIONAL_INPUT,
                              NPUQ_OPERAND_ROW_SCALE},
        [BIAS] = {"bias", NPUQ_TAKES_FLOATS | NPUQ_TAKES(INT32), 1, 1, NPUQ_OPTIONAL_INPUT, NPUQ_OPERAND_BIAS},
        [Y] = {"y", NPUQ_TAKES_FLOATS, 1, NPUQ_MAX_NDIM, NPUQ_OUTPUT, NPUQ_OPERAND_Y},
    },
};

static npuq_status check_shapes(const npuq_arguments *arguments, void *options)
{
    const npuq_tensor *x = arguments->tensors[X];
    const int last = x->ndim - 1;
    npuq_status status;

    (void)options;
    if ((status = npuq_check_columns(arguments, WEIGHT_SCALE, x->shape[last])) != NPUQ_OK ||
        (status = npuq_check_shape(arguments, ACTIVATION_SCALE, last, x->shape,
                                   "the shape of x without its last dimension")) != NPUQ_OK ||
        (status = npuq_check_shape(arguments, BIAS, 1, &x->shape[last], "the last dimension of x")) != NPUQ_OK) {
        return status;
    }
    return npuq_check_output_shape(arguments, X, Y);
}

static inline NPUQ_INLINED npuq_status call_dequant(npuq_call *call, const npuq_tensor *const *tensors,
                                                    const npuq_executor *executor)
{
    static const npuq_from_integers roles = {
        .x = X, .y = Y, .scale = WEIGHT_SCALE, .addend = BIAS, .row_scale = ACTIVATION_SCALE};
    npuq_filling filling;
    const npuq_status status = npuq_check_call(&filling, call, &signature, tensors, check_shapes, NULL, executor);

    if (status == NPUQ_OK) {
        npuq_take_from_integers(&filling, &roles, executor);
    }
    return status;
}

npuq_status npuq_dequant(const npuq_tensor *x, const npuq_tensor *weight_scale, const npuq_tensor *activation_scale,
                         const npuq_tensor *bias, const npuq_tensor *y, const npuq_executor *executor)
{
    return call_dequant(NULL, (const npuq_tensor *const[]){x, weight_scale, activation_scale, bias, y}, executor);
}

npuq_status npuq_prepare_dequant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *weight_scale,
                                 const npuq_tensor *activation_scale, const npuq_tensor *bias, const npuq_tensor *y)
{
    return call ? call_dequant(call, (const npuq_tensor *const[]){x, weight_scale, activation_scale, bias, y}, NULL)
                : npuq_fail_call(op);
}
