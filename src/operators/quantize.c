/* SPDX-License-Identifier: BSD-3-Clause */
#include "../kinds/affine.h"

static const char op[] = "quantize";

#define NPUQ_PLACE(ROLE) NPUQ_AFFINE_##ROLE
enum { X = NPUQ_AFFINE_X, Y = NPUQ_AFFINE_Y, SCALES = NPUQ_AFFINE_SCALE, ZERO_POINTS = NPUQ_AFFINE_OFFSET };

typedef struct options {
    int32_t axis;
    bool div_mode;
} options;

static inline NPUQ_INLINED npuq_status check_axis(const npuq_tensor *x, const npuq_tensor *scales, const options *o)
{
    const int32_t axis = o->axis;

    if (!o->div_mode && axis < -2) {
        return npuq_fail(NPUQ_ERROR_AXIS, op, "axis", "is %d; expected -2 or more, as div_mode is false", (int)axis);
    }
    if (!o->div_mode && axis == -2 && x->ndim < 2) {
        return npuq_fail(NPUQ_ERROR_AXIS, op, "axis",
                         "is -2; expected -1 or more, as x has 1 dimension and div_mode is false");
    }
    if (o->div_mode && scales->shape[0] != 1 && (axis < -x->ndim || axis >= x->ndim)) {
        return npuq_fail(
            NPUQ_ERROR_AXIS, op, "axis",
            "is %d; expected %d to %d, as div_mode is true, x has %d dimension%s and scales has %lld elements",
            (int)axis, -(int)x->ndim, (int)x->ndim - 1, (int)x->ndim, npuq_plural(x->ndim),
            (long long)scales->shape[0]);
    }
    return NPUQ_OK;
}

static int find_axis(const npuq_tensor *x, const npuq_tensor *scales, const options *o)
{
    if (!o->div_mode) { /* beyond ndim, too, every other axis means the last dimension */
        return o->axis == -2 ? x->ndim - 2 : x->ndim - 1;
    }
    return scales->shape[0] == 1 ? x->ndim - 1 : o->axis < 0 ? o->axis + x->ndim : o->axis;
}

static inline NPUQ_INLINED npuq_status check_scales(const npuq_tensor *x, const npuq_tensor *scales, const options *o,
                                                    int axis)
{
    /* A 1-D x has 1-D scales. Division takes only these. */
    const bool broadcast = scales->ndim == x->ndim && x->ndim > 1;

    if (scales->ndim != 1 && !broadcast) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, "scales",
                         "has %d dimensions; expected 1, or as many as x, which has %d, as div_mode is false",
                         (int)scales->ndim, (int)x->ndim);
    }
    for (int d = 0; d < scales->ndim; d++) {
        const bool along = !broadcast || d == axis;
        if (scales->shape[d] != 1 && !(along && scales->shape[d] == x->shape[axis])) {
            if (!along) {
                return npuq_fail(NPUQ_ERROR_SHAPE, op, "scales",
                                 "dimension %d is %lld; expected 1: they go along dimension %d of x, as axis is %d and "
                                 "div_mode is false",
                                 d, (long long)scales->shape[d], axis, (int)o->axis);
            }
            return npuq_fail(
                NPUQ_ERROR_SHAPE, op, "scales",
                "dimension %d is %lld; expected %s%lld, dimension %d of x, as axis is %d and div_mode is %s", d,
                (long long)scales->shape[d], x->shape[axis] == 1 ? "" : "1 or ", (long long)x->shape[axis], axis,
                (int)o->axis, o->div_mode ? "true" : "false");
        }
    }
    return NPUQ_OK;
}

static inline NPUQ_INLINED npuq_status check(const npuq_arguments *arguments, const void *of_call)
{
    const options *o = of_call;
    const npuq_tensor *x = arguments->tensors[X];
    const npuq_tensor *scales = arguments->tensors[SCALES];
    npuq_status status;

    if ((status = check_axis(x, scales, o)) != NPUQ_OK ||
        (status = check_scales(x, scales, o, find_axis(x, scales, o))) != NPUQ_OK ||
        (!o->div_mode && (status = npuq_check_same_dtype(arguments, ZERO_POINTS, SCALES)) != NPUQ_OK) ||
        (status = npuq_check_shape(arguments, ZERO_POINTS, scales->ndim, scales->shape, "the shape of scales")) !=
            NPUQ_OK) {
        return status;
    }
    return npuq_check_output_shape(arguments, X, Y);
}

/* Scales move along the axis; one scale for all does not move. */
static void add_along(npuq_plan *plan, const npuq_arguments *arguments, int i, int axis)
{
    const npuq_tensor *tensor = arguments->tensors[i];

    if (tensor) {
        const int d = tensor->ndim == 1 ? 0 : axis;

        plan->setup.types[i] = (uint8_t)arguments->infos[i]->type;
        npuq_add_operand_along(&plan->area.space, i, tensor, tensor->shape[d] > 1 ? axis : -1, tensor->strides[d]);
    }
}

static bool has_stride(const ptrdiff_t *strides)
{
    return strides[SCALES] != 0 || strides[ZERO_POINTS] != 0;
}

/* Runs of columns with one parameter each may be so short that to spread the parameters by column costs less than a
 * kernel call for each run. */
static void spread_short_runs(npuq_space *space)
{
    if (space->ndim > 1 && !has_stride(space->strides[space->ndim - 1]) &&
        has_stride(space->strides[space->ndim - 2])) {
        npuq_merge_short_runs(space, NPUQ_MAX_REPEAT);
    }
}

static inline NPUQ_INLINED npuq_status make_plan(npuq_plan *plan, const npuq_arguments *arguments, const void *of_call)
{
    const options *o = of_call;
    const npuq_tensor *x = arguments->tensors[X];
    const npuq_tensor *scales = arguments->tensors[SCALES];
    const int axis = find_axis(x, scales, o);
    const npuq_steps by_column = arguments->tensors[ZERO_POINTS] ? NPUQ_BY_COLUMN : NPUQ_SCALE_BY_COLUMN;
    npuq_steps steps = scales->shape[scales->ndim == 1 ? 0 : axis] == 1 ? NPUQ_ONE
                       : axis == x->ndim - 1                            ? by_column
                                                                        : NPUQ_BY_OTHERS;

    if (!npuq_start_plan(plan, arguments, ZERO_POINTS + 1, o->div_mode ? NPUQ_DIV : NPUQ_MUL, steps)) {
        return NPUQ_OK;
    }
    if (plan->way != NPUQ_IN_SPACE) {
        npuq_add_by_column(plan, arguments, SCALES);
        npuq_add_by_column(plan, arguments, ZERO_POINTS);
    } else {
        npuq_space *space = &plan->area.space;

        add_along(plan, arguments, SCALES, axis);
        add_along(plan, arguments, ZERO_POINTS, axis);
        npuq_normalise_space(space, NPUQ_ANY_ORDER);
        spread_short_runs(space);
        steps = space->run_columns > 1 || has_stride(space->strides[space->ndim - 1]) ? by_column
                : space->ndim > 1 && has_stride(space->strides[space->ndim - 2])      ? NPUQ_BY_ROW
                                                                                      : NPUQ_ONE;
        plan->setup.steps = (uint8_t)steps;
    }
    plan->compute = steps > NPUQ_BY_ROW ? npuq_quantise_by_column : npuq_quantise_by_row;
    if (plan->way == NPUQ_ONE_TILE) {
        return NPUQ_OK;
    }

    const npuq_params scale = npuq_find_column_params(plan, SCALES);
    const npuq_params zero_point = npuq_find_column_params(plan, ZERO_POINTS);
    const bool converts = steps > NPUQ_BY_ROW && ((scale.stride != 0 && npuq_needs_conversion(&scale)) ||
                                                  (zero_point.stride != 0 && npuq_needs_conversion(&zero_point)));
    npuq_cut_plan(plan, arguments, converts ? NPUQ_CONVERTING_UNIT : NPUQ_UNIT,
                  converts ? NPUQ_UNIT_COLUMNS : NPUQ_UNIT);
    return NPUQ_OK;
}

/* div_mode decides the dimensions of the scales and of the zero points, their types, and those of y. */
static const npuq_operator by_mode[] = {
    [false] = {NPUQ_SIGNATURE_OF(op, quantize_product, &by_mode[true].signature, ", as div_mode is false"), check,
               make_plan, NULL, NULL},
    [true] = {NPUQ_SIGNATURE_OF(op, quantize_quotient, &by_mode[false].signature, ", as div_mode is true"), check,
              make_plan, NULL, NULL}};

npuq_status npuq_quantize(const npuq_tensor *x, const npuq_tensor *scales, const npuq_tensor *zero_points, int32_t axis,
                          bool div_mode, const npuq_tensor *y, const npuq_executor *executor)
{
    const npuq_tensor *const *tensors = NPUQ_TENSORS(quantize);
    const options o = {axis, div_mode};

    return div_mode ? npuq_call_inlined(&by_mode[true], check, make_plan, tensors, &o, executor)
                    : npuq_call_inlined(&by_mode[false], check, make_plan, tensors, &o, executor);
}

npuq_status npuq_prepare_quantize(npuq_call *call, const npuq_tensor *x, const npuq_tensor *scales,
                                  const npuq_tensor *zero_points, int32_t axis, bool div_mode, const npuq_tensor *y)
{
    return npuq_prepare_operator(call, &by_mode[div_mode], NPUQ_TENSORS(quantize), &(options){axis, div_mode});
}
