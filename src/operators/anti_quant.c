/* SPDX-License-Identifier: BSD-3-Clause */
#include "../kinds/from_integers.h"

#define NPUQ_PLACE(ROLE) NPUQ_INTEGERS_##ROLE
enum { X = NPUQ_INTEGERS_X, Y = NPUQ_INTEGERS_Y, SCALE = NPUQ_INTEGERS_SCALE, OFFSET = NPUQ_INTEGERS_ADDEND };

/* Scales by groups of rows: x has two dimensions, and groups of the same number of rows. */
static npuq_status check_groups(const npuq_arguments *arguments)
{
    const char *op = arguments->signature->op;
    const npuq_tensor *y = arguments->tensors[Y];
    const int64_t *shape = arguments->tensors[SCALE]->shape;

    if (y->ndim != 2) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, "scale", "has 2 dimensions; expected 1, as x has %d dimension%s",
                         (int)y->ndim, npuq_plural(y->ndim));
    }
    if (shape[1] != y->shape[1]) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, "scale",
                         "dimension 1 is %lld; expected %lld, the elements of x's last dimension", (long long)shape[1],
                         (long long)y->shape[1]);
    }
    if (shape[0] < 1 || y->shape[0] % shape[0] != 0) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, "scale",
                         "dimension 0 is %lld; expected groups that divide the %lld row%s of x", (long long)shape[0],
                         (long long)y->shape[0], npuq_plural(y->shape[0]));
    }
    return NPUQ_OK;
}

static inline NPUQ_INLINED npuq_status check(const npuq_arguments *arguments, const void *options)
{
    const npuq_tensor *y = arguments->tensors[Y];
    const npuq_tensor *scale = arguments->tensors[SCALE];
    npuq_status status;

    (void)options;
    if ((status = npuq_check_same_dtype(arguments, OFFSET, SCALE)) != NPUQ_OK ||
        (status = npuq_check_unpacked_shape(arguments, X, Y)) != NPUQ_OK ||
        (status = scale->ndim == 2
                      ? check_groups(arguments)
                      : npuq_check_columns(arguments, SCALE, y->ndim > 0 ? y->shape[y->ndim - 1] : 1)) != NPUQ_OK) {
        return status;
    }
    return npuq_check_shape(arguments, OFFSET, scale->ndim, scale->shape, "the shape of scale");
}

/* Groups of rows are a dimension of x and y, along which the parameters move. */
static npuq_status plan_groups(npuq_plan *plan, const npuq_arguments *arguments, const void *options)
{
    const int64_t groups = arguments->tensors[SCALE]->shape[0];
    npuq_arguments of_groups = *arguments;
    const npuq_tensor *tensors[] = {NULL, NULL, NULL, NULL, NULL};
    npuq_tensor views[OFFSET + 1];

    for (int i = X; i <= OFFSET; i++) {
        const npuq_tensor *from = arguments->tensors[i];

        if (from) {
            const bool of_rows = i == X || i == Y;
            const int64_t rows = arguments->tensors[Y]->shape[0] / groups;

            views[i] = (npuq_tensor){
                from->data,
                from->dtype,
                3,
                {groups, rows, from->shape[1]},
                {from->strides[0] * (of_rows ? rows : 1), of_rows ? from->strides[0] : 0, from->strides[1]}};
            tensors[i] = &views[i];
        }
    }
    of_groups.tensors = tensors;
    of_groups.dense = 0;
    return npuq_plan_from_integers(plan, &of_groups, options);
}

static npuq_status plan_anti_quant(npuq_plan *plan, const npuq_arguments *arguments, const void *options)
{
    const npuq_tensor *scale = arguments->tensors[SCALE];
    const bool by_group = scale->ndim == 2 && scale->shape[0] > 1 && npuq_count_elements(arguments->tensors[Y]) > 0;

    return by_group ? plan_groups(plan, arguments, options) : npuq_plan_from_integers(plan, arguments, options);
}

static const npuq_operator anti_quant = {NPUQ_SIGNATURE(anti_quant), check, plan_anti_quant, npuq_dequantise_tile,
                                         NULL};

npuq_status npuq_anti_quant(const npuq_tensor *x, const npuq_tensor *scale, const npuq_tensor *offset,
                            const npuq_tensor *y, const npuq_executor *executor)
{
    return npuq_call_inlined(&anti_quant, check, plan_anti_quant, NPUQ_TENSORS(anti_quant), NULL, executor);
}

npuq_status npuq_prepare_anti_quant(npuq_call *call, const npuq_tensor *x, const npuq_tensor *scale,
                                    const npuq_tensor *offset, const npuq_tensor *y)
{
    return npuq_prepare_operator(call, &anti_quant, NPUQ_TENSORS(anti_quant), NULL);
}
