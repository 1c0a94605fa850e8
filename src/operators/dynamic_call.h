/* SPDX-License-Identifier: BSD-3-Clause */
/* dynamic_quant and dynamic_quant_asymmetric as calls, and their steps: one set of checks for both forms. */
#ifndef NPUQ_DYNAMIC_CALL_H
#define NPUQ_DYNAMIC_CALL_H

#include "dynamic.h"

/* FIRST and SECOND are names of what there is one of for each row, or for the tensor; ROLE is that of both. */
#define NPUQ_DYNAMIC_SIGNATURE(OP, COUNT, Y_ROLE, FIRST, SECOND, ROLE)                                                 \
    {                                                                                                                  \
        OP, COUNT,                                                                                                     \
        {                                                                                                              \
            [NPUQ_DYNAMIC_X] = {"x", NPUQ_TAKES_FLOATS, 2, NPUQ_MAX_NDIM, NPUQ_X, NPUQ_OPERAND_X},                     \
            [NPUQ_DYNAMIC_SMOOTH] = {"smooth_scales",     NPUQ_TAKES_FLOATS,  1, 2,                                    \
                                     NPUQ_OPTIONAL_INPUT, NPUQ_OPERAND_SMOOTH},                                        \
            [NPUQ_DYNAMIC_GROUP_INDEX] = {"group_index", NPUQ_TAKES_INDICES, 1, 1, NPUQ_OPTIONAL_INPUT, NPUQ_FIXED},   \
            [NPUQ_DYNAMIC_Y] =                                                                                         \
                {"y", NPUQ_TAKES(INT8) | NPUQ_TAKES(QUINT4X2), 2, NPUQ_MAX_NDIM, Y_ROLE, NPUQ_OPERAND_Y},              \
            [NPUQ_DYNAMIC_FIRST] = {FIRST, NPUQ_TAKES(FLOAT32), 1, NPUQ_MAX_NDIM - 1, ROLE, NPUQ_OPERAND_SCALE},       \
            [NPUQ_DYNAMIC_SECOND] = {SECOND, NPUQ_TAKES(FLOAT32), 1, NPUQ_MAX_NDIM - 1, ROLE, NPUQ_OPERAND_OFFSET},    \
        }                                                                                                              \
    }

/* One of the operators, or of their steps. */
typedef struct npuq_dynamic_operator {
    npuq_signature signature;
    npuq_dynamic_step step;
} npuq_dynamic_operator;

typedef struct npuq_dynamic_options {
    npuq_dynamic_step step;
    npuq_quant_mode quant_mode;
    bool prepares;
} npuq_dynamic_options;

npuq_check_shapes_fn npuq_check_dynamic_shapes; /* takes npuq_dynamic_options */
npuq_status npuq_check_dynamic_values(const npuq_arguments *arguments);

/* tensors are in the order of the signature. Prepares call, or runs at once where call is null. */
static inline NPUQ_INLINED npuq_status npuq_call_dynamic(npuq_call *call, const npuq_dynamic_operator *which,
                                                         npuq_dynamic_form form, const npuq_tensor *const *tensors,
                                                         npuq_quant_mode quant_mode, const npuq_executor *executor)
{
    npuq_dynamic_options options = {which->step, quant_mode, call != NULL};
    npuq_filling filling;
    npuq_status status;

    if ((status = npuq_check_call(&filling, call, &which->signature, tensors, npuq_check_dynamic_shapes, &options,
                                  executor)) != NPUQ_OK ||
        (status = npuq_check_dynamic_values(&filling.arguments)) != NPUQ_OK) {
        return status;
    }
    npuq_take_dynamic_step(&filling, which->step, form, quant_mode, executor);
    return NPUQ_OK;
}

static inline NPUQ_INLINED npuq_status npuq_prepare_dynamic(npuq_call *call, const npuq_dynamic_operator *which,
                                                            npuq_dynamic_form form, const npuq_tensor *const *tensors,
                                                            npuq_quant_mode quant_mode)
{
    return call ? npuq_call_dynamic(call, which, form, tensors, quant_mode, NULL) : npuq_fail_call(which->signature.op);
}

/* min, max, scale and offset, which is null in the symmetric form. */
npuq_status npuq_call_dynamic_params(npuq_dynamic_form form, const npuq_tensor *const *tensors, npuq_dtype y_dtype);

#endif
