/* SPDX-License-Identifier: BSD-3-Clause */
#include "from_integers.h"

enum { X = NPUQ_INTEGERS_X, Y = NPUQ_INTEGERS_Y, SCALE = NPUQ_INTEGERS_SCALE, OFFSET = NPUQ_INTEGERS_ADDEND };

static inline NPUQ_INLINED npuq_status check(const npuq_arguments *arguments, const void *options)
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

static const npuq_operator anti_quant = {
    {"anti_quant",
     5,
     false,
     {
         [X] = {"x", NPUQ_TAKES(INT8) | NPUQ_TAKES(QUINT4X2), 0, NPUQ_MAX_NDIM, NPUQ_X, NPUQ_OPERAND_X},
         [Y] = {"y", NPUQ_TAKES_FLOATS, 0, NPUQ_MAX_NDIM, NPUQ_OUTPUT, NPUQ_OPERAND_Y},
         [SCALE] = {"scale", NPUQ_TAKES_FLOATS, 1, 1, NPUQ_INPUT, NPUQ_OPERAND_SCALE},
         [OFFSET] = {"offset", NPUQ_TAKES_FLOATS, 1, 1, NPUQ_OPTIONAL_INPUT, NPUQ_OPERAND_OFFSET},
         [NPUQ_INTEGERS_ROW_SCALE] = {.role = NPUQ_OPTIONAL_INPUT},
     }},
    check,
    npuq_plan_from_integers,
    npuq_dequantise_tile,
    NULL};

npuq_status npuq_anti_quant(const npuq_tensor *x, const npuq_tensor *scale, const npuq_tensor *offset,
                            const npuq_tensor *y, const npuq_executor *executor)
{
    return npuq_call_operator(&anti_quant, (const npuq_tensor *const[]){x, y, scale, offset, NULL}, NULL, executor);
}

npuq_status npuq_prepare_anti_quant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *scale,
                                    const npuq_tensor *offset, const npuq_tensor *y)
{
    return npuq_prepare_operator(call, &anti_quant, (const npuq_tensor *const[]){x, y, scale, offset, NULL}, NULL);
}
