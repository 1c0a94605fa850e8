/* SPDX-License-Identifier: BSD-3-Clause */
#include "../view/view.h"
#include "from_integers.h"

static const char op[] = "dequant";

static npuq_status check(const npuq_tensor *x, const npuq_tensor *weight_scale, const npuq_tensor *activation_scale,
                         const npuq_tensor *bias, const npuq_tensor *y, const npuq_executor *executor)
{
    const npuq_argument arguments[] = {
        {"x", x, NPUQ_TAKES_INT32, 1, NPUQ_MAX_NDIM, NPUQ_X},
        {"weight_scale", weight_scale, NPUQ_TAKES_FLOATS, 1, 1, NPUQ_INPUT},
        {"activation_scale", activation_scale, NPUQ_TAKES_FLOAT32, 0, NPUQ_MAX_NDIM - 1, NPUQ_OPTIONAL_INPUT},
        {"bias", bias, NPUQ_TAKES_FLOATS | NPUQ_TAKES_INT32, 1, 1, NPUQ_OPTIONAL_INPUT},
        {"y", y, NPUQ_TAKES_FLOATS, 1, NPUQ_MAX_NDIM, NPUQ_OUTPUT},
    };
    const size_t count = sizeof arguments / sizeof arguments[0];
    npuq_status status;

    if ((status = npuq_check_arguments(op, arguments, count)) != NPUQ_OK) {
        return status;
    }
    const int last = x->ndim - 1;
    if ((status = npuq_check_columns(op, "weight_scale", weight_scale, x->shape[last])) != NPUQ_OK ||
        (activation_scale && (status = npuq_check_shape(op, "activation_scale", activation_scale, last, x->shape,
                                                        "the shape of x without its last dimension")) != NPUQ_OK) ||
        (bias &&
         (status = npuq_check_shape(op, "bias", bias, 1, &x->shape[last], "the last dimension of x")) != NPUQ_OK) ||
        (status = npuq_check_output_shape(op, x, y)) != NPUQ_OK ||
        (status = npuq_check_executor(op, executor)) != NPUQ_OK) {
        return status;
    }
    return npuq_check_layouts(op, arguments, count);
}

/* Whether a call is sure to pass all checks, see walk/dense.h. */
static bool passes_dense(const npuq_tensor *x, const npuq_tensor *weight_scale, const npuq_tensor *activation_scale,
                         const npuq_tensor *bias, const npuq_tensor *y, const npuq_executor *executor,
                         npuq_dense *dense)
{
    return npuq_dense_rows(dense, x, NPUQ_TAKES_INT32, y, NPUQ_TAKES_FLOATS, executor) &&
           npuq_dense_columns(dense, weight_scale, NPUQ_TAKES_FLOATS) &&
           (!activation_scale ||
            npuq_dense_operand(dense, activation_scale, NPUQ_TAKES_FLOAT32, x->ndim - 1, x->shape, false)) &&
           (!bias ||
            npuq_dense_operand(dense, bias, NPUQ_TAKES_FLOATS | NPUQ_TAKES_INT32, 1, &x->shape[x->ndim - 1], false));
}

npuq_status npuq_dequant(const npuq_tensor *x, const npuq_tensor *weight_scale, const npuq_tensor *activation_scale,
                         const npuq_tensor *bias, const npuq_tensor *y, const npuq_executor *executor)
{
    npuq_dense dense;
    const bool is_dense = passes_dense(x, weight_scale, activation_scale, bias, y, executor, &dense);
    npuq_status status;

    if (!is_dense && (status = check(x, weight_scale, activation_scale, bias, y, executor)) != NPUQ_OK) {
        return status;
    }
    if (npuq_element_count(x) > 0) {
        const bool to_sums = bias && bias->dtype == NPUQ_INT32;
        const npuq_from_integers task = {.x = x,
                                         .y = y,
                                         .row_scale = activation_scale,
                                         .columns = {.scale = npuq_column_params(weight_scale),
                                                     .x_bias = npuq_column_params(to_sums ? bias : NULL),
                                                     .bias = npuq_column_params(to_sums ? NULL : bias)},
                                         .dense = is_dense ? &dense : NULL};
        npuq_run_from_integers(&task, executor);
    }
    return NPUQ_OK;
}
