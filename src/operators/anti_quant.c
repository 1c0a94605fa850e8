/* SPDX-License-Identifier: BSD-3-Clause */
#include "../view/view.h"
#include "from_integers.h"

static const char op[] = "anti_quant";

static npuq_status check_shapes(const npuq_tensor *x, const npuq_tensor *scale, const npuq_tensor *offset,
                                const npuq_tensor *y)
{
    npuq_status status;

    if (offset && offset->dtype != scale->dtype) {
        return npuq_fail(NPUQ_ERROR_DTYPE, op, "offset", "dtype is %s; expected %s, the dtype of scale",
                         npuq_dtype_name(offset->dtype), npuq_dtype_name(scale->dtype));
    }
    if ((status = npuq_check_unpacked_shape(op, x, y)) != NPUQ_OK ||
        (status = npuq_check_columns(op, "scale", scale, y->ndim > 0 ? y->shape[y->ndim - 1] : 1)) != NPUQ_OK) {
        return status;
    }
    return offset ? npuq_check_shape(op, "offset", offset, 1, scale->shape, "the shape of scale") : NPUQ_OK;
}

/* Whether a call is sure to pass all checks, see walk/dense.h. */
static bool passes_dense(const npuq_tensor *x, const npuq_tensor *scale, const npuq_tensor *offset,
                         const npuq_tensor *y, const npuq_executor *executor, npuq_dense *dense)
{
    return npuq_dense_rows(dense, x, NPUQ_TAKES_INT8 | NPUQ_TAKES_QUINT4X2, y, NPUQ_TAKES_FLOATS, executor) &&
           npuq_dense_columns(dense, scale, NPUQ_TAKES_FLOATS) &&
           (!offset || (offset->dtype == scale->dtype &&
                        npuq_dense_operand(dense, offset, NPUQ_TAKES_FLOATS, 1, scale->shape, false)));
}

npuq_status npuq_anti_quant(const npuq_tensor *x, const npuq_tensor *scale, const npuq_tensor *offset,
                            const npuq_tensor *y, const npuq_executor *executor)
{
    const npuq_argument arguments[] = {
        {"x", x, NPUQ_TAKES_INT8 | NPUQ_TAKES_QUINT4X2, x && x->dtype == NPUQ_QUINT4X2, NPUQ_MAX_NDIM, NPUQ_X},
        {"scale", scale, NPUQ_TAKES_FLOATS, 1, 1, NPUQ_INPUT},
        {"offset", offset, NPUQ_TAKES_FLOATS, 1, 1, NPUQ_OPTIONAL_INPUT},
        {"y", y, NPUQ_TAKES_FLOATS, 0, NPUQ_MAX_NDIM, NPUQ_OUTPUT},
    };
    const size_t count = sizeof arguments / sizeof arguments[0];
    npuq_dense dense;
    const bool is_dense = passes_dense(x, scale, offset, y, executor, &dense);
    npuq_status status;

    if (!is_dense && ((status = npuq_check_arguments(op, arguments, count)) != NPUQ_OK ||
                      (status = check_shapes(x, scale, offset, y)) != NPUQ_OK ||
                      (status = npuq_check_executor(op, executor)) != NPUQ_OK ||
                      (status = npuq_check_layouts(op, arguments, count)) != NPUQ_OK)) {
        return status;
    }
    if (npuq_element_count(x) > 0) {
        const npuq_from_integers task = {
            .x = x,
            .y = y,
            .columns = {.scale = npuq_column_params(scale), .offset = npuq_column_params(offset)},
            .dense = is_dense ? &dense : NULL};
        npuq_run_from_integers(&task, executor);
    }
    return NPUQ_OK;
}
