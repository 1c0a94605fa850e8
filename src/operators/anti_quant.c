/* SPDX-License-Identifier: BSD-3-Clause */
#include "from_integers.h"

static const char op[] = "anti_quant";

enum { X, SCALE, OFFSET, Y };

static const npuq_signature signature = {
    op,
    4,
    {
        [X] = {"x", NPUQ_TAKES(INT8) | NPUQ_TAKES(QUINT4X2), 0, NPUQ_MAX_NDIM, NPUQ_X, NPUQ_OPERAND_X},
        [SCALE] = {"scale", NPUQ_TAKES_FLOATS, 1, 1, NPUQ_INPUT, NPUQ_OPERAND_SCALE},
        [OFFSET] = {"offset", NPUQ_TAKES_FLOATS, 1, 1, NPUQ_OPTIONAL_INPUT, NPUQ_OPERAND_OFFSET},
        [Y] = {"y", NPUQ_TAKES_FLOATS, 0, NPUQ_MAX_NDIM, NPUQ_OUTPUT, NPUQ_OPERAND_Y},
    },
};

static npuq_status check_shapes(const npuq_arguments *arguments, void *options)
{
    const npuq_tensor *y = arguments->tensors[Y];
    npuq_status status;

    (void)options;
    if ((status = npuq_check_same_dtype(arguments, OFFSET, SCALE)) != NPUQ_OK ||
        (status = npuq_check_unpacked_shape(arguments, X, Y)) != NPUQ_OK ||
        (status = npuq_check_columns(arguments, SCALE, y->ndim > 0 ? y->shape[y->ndim - 1] : 1)) != NPUQ_OK) {
        return status;
    }
    return npuq_check_shape(arguments, OFFSET, 1, arguments->tensors[SCALE]->shape, "the shape of scale");
}

static inline NPUQ_INLINED npuq_status call_anti_quant(npuq_call *call, const npuq_tensor *const *tensors,
                                                       const npuq_executor *executor)
{
    static const npuq_from_integers roles = {
        .x = X, .y = Y, .scale = SCALE, .addend = OFFSET, .row_scale = NPUQ_ABSENT};
    npuq_filling filling;
    const npuq_status status = npuq_check_call(&filling, call, &signature, tensors, check_shapes, NULL, executor);

    if (status == NPUQ_OK) {
        npuq_take_from_integers(&filling, &roles, executor);
    }
    return status;
}

npuq_status npuq_anti_quant(const npuq_tensor *x, const npuq_tensor *scale, const npuq_tensor *offset,
                            const npuq_tensor *y, const npuq_executor *executor)
{
    return call_anti_quant(NULL, (const npuq_tensor *const[]){x, scale, offset, y}, executor);
}

npuq_status npuq_prepare_anti_quant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *scale,
                                    const npuq_tensor *offset, const npuq_tensor *y)
{
    return call ? call_anti_quant(call, (const npuq_tensor *const[]){x, scale, offset, y}, NULL) : npuq_fail_call(op);
}
