/* SPDX-License-Identifier: BSD-3-Clause */
#include "affine_dense.h"

#include <inttypes.h>

static const char op[] = "quantize";

/* Elements of a unit of work; where parameters are converted by column, more and few columns, so that many rows share
 * them. */
enum { UNIT = 32768, CONVERTING_UNIT = 65536, UNIT_COLUMNS = 4096 };

enum { X, SCALES, ZERO_POINTS, Y };

/* clang-format off */
#define SIGNATURE(NDIM, ZERO_POINTS_DTYPES, Y_DTYPES)                                                                  \
    {                                                                                                                  \
        op, 4,                                                                                                         \
        {                                                                                                              \
            [X] = {"x", NPUQ_TAKES_FLOATS, 1, NPUQ_MAX_NDIM, NPUQ_X, NPUQ_OPERAND_X},                                  \
            [SCALES] = {"scales", NPUQ_TAKES_FLOATS, 1, NDIM, NPUQ_INPUT, NPUQ_OPERAND_SCALE},                         \
            [ZERO_POINTS] = {"zero_points", ZERO_POINTS_DTYPES, 1, NDIM, NPUQ_OPTIONAL_INPUT, NPUQ_OPERAND_OFFSET},    \
            [Y] = {"y", Y_DTYPES, 1, NPUQ_MAX_NDIM, NPUQ_OUTPUT, NPUQ_OPERAND_Y},                                      \
        }                                                                                                              \
    }
/* clang-format on */
static const npuq_signature signature_of_product =
    SIGNATURE(NPUQ_MAX_NDIM, NPUQ_TAKES_FLOATS, NPUQ_TAKES(INT8) | NPUQ_TAKES(QUINT4X2));
static const npuq_signature signature_of_division =
    SIGNATURE(1, NPUQ_TAKES_FLOATS | NPUQ_TAKES(INT8) | NPUQ_TAKES(UINT8) | NPUQ_TAKES(INT32),
              NPUQ_TAKES(INT8) | NPUQ_TAKES(UINT8) | NPUQ_TAKES(INT32));

/* The dimension that scales go along. */
static npuq_status find_axis(const npuq_tensor *x, const npuq_tensor *scales, int32_t axis, bool div_mode, int *found)
{
    if (!div_mode) { /* beyond ndim, too, every other axis means the last dimension */
        if (axis < -2) {
            return npuq_fail(NPUQ_ERROR_AXIS, op, "axis", "is %" PRId32 "; expected -2 or more", axis);
        }
        if (axis == -2 && x->ndim < 2) {
            return npuq_fail(NPUQ_ERROR_AXIS, op, "axis", "is -2 and x has 1 dimension; expected x to have 2 or more");
        }
        *found = axis == -2 ? x->ndim - 2 : x->ndim - 1;
        return NPUQ_OK;
    }
    if (scales->shape[0] == 1) {
        *found = x->ndim - 1;
        return NPUQ_OK;
    }
    if (axis < -x->ndim || axis >= x->ndim) {
        return npuq_fail(NPUQ_ERROR_AXIS, op, "axis", "is %" PRId32 "; expected %" PRId32 " to %" PRId32, axis,
                         -x->ndim, x->ndim - 1);
    }
    *found = axis < 0 ? axis + x->ndim : axis;
    return NPUQ_OK;
}

static npuq_status check_scales(const npuq_tensor *x, const npuq_tensor *scales, int axis)
{
    /* A 1-D x has 1-D scales in either form. Dividing, there is no other form. */
    const bool broadcast = scales->ndim == x->ndim && x->ndim > 1;

    if (scales->ndim != 1 && !broadcast) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, "scales", "has %" PRId32 " dimensions; expected 1, or as many as x",
                         scales->ndim);
    }
    for (int d = 0; d < scales->ndim; d++) {
        const bool along = !broadcast || d == axis;
        if (scales->shape[d] != 1 && !(along && scales->shape[d] == x->shape[axis])) {
            if (!along) {
                return npuq_fail(NPUQ_ERROR_SHAPE, op, "scales",
                                 "dimension %d is %" PRId64 "; expected 1, as the axis is %d", d, scales->shape[d],
                                 axis);
            }
            return npuq_fail(NPUQ_ERROR_SHAPE, op, "scales",
                             "dimension %d is %" PRId64 "; expected %s%" PRId64 ", dimension %d of x", d,
                             scales->shape[d], x->shape[axis] == 1 ? "" : "1 or ", x->shape[axis], axis);
        }
    }
    return NPUQ_OK;
}

typedef struct options {
    int32_t axis;
    bool div_mode;
    int along; /* found: the dimension that scales go along */
} options;

static npuq_status check_shapes(const npuq_arguments *arguments, void *of_call)
{
    options *o = of_call;
    const npuq_tensor *x = arguments->tensors[X];
    const npuq_tensor *scales = arguments->tensors[SCALES];
    npuq_status status;

    if ((status = find_axis(x, scales, o->axis, o->div_mode, &o->along)) != NPUQ_OK ||
        (status = check_scales(x, scales, o->along)) != NPUQ_OK ||
        (!o->div_mode && (status = npuq_check_same_dtype(arguments, ZERO_POINTS, SCALES)) != NPUQ_OK) ||
        (status = npuq_check_shape(arguments, ZERO_POINTS, scales->ndim, scales->shape, "the shape of scales")) !=
            NPUQ_OK) {
        return status;
    }
    return npuq_check_output_shape(arguments, X, Y);
}

typedef struct quantize_walk {
    npuq_walk walk;
    bool by_column; /* parameters move along the columns, and along nothing else */
    npuq_type scales_type;
    npuq_type zero_points_type;
} quantize_walk;

enum { LOOP_SCALES = 2, LOOP_ZERO_POINTS = 3 };

static npuq_params list_tile_params(const quantize_walk *t, const npuq_tile *tile, int operand, npuq_type type)
{
    return (npuq_params){.data = tile->places[operand].data,
                         .step = t->by_column ? tile->places[operand].col_stride : tile->places[operand].row_stride,
                         .type = type,
                         .repeat = t->walk.space.shared_columns,
                         .used = (uint8_t)tile->used};
}

static void quantise_tile(const npuq_walk *walk, const npuq_tile *tile)
{
    const quantize_walk *t = (const quantize_walk *)walk;
    const npuq_params scale = list_tile_params(t, tile, LOOP_SCALES, t->scales_type);
    const npuq_params zero_point = list_tile_params(t, tile, LOOP_ZERO_POINTS, t->zero_points_type);

    if (t->by_column) {
        npuq_quantise_by_column(&walk->choice, tile, &scale, &zero_point);
    } else {
        npuq_quantise_by_row(&walk->choice, tile, &scale, &zero_point);
    }
}

/* Scales move along the axis; one scale for all does not move. */
static void add_parameter(npuq_space *space, int operand, const npuq_tensor *tensor, int axis)
{
    const int d = tensor->ndim == 1 ? 0 : axis;
    npuq_add_operand_along(space, operand, tensor, tensor->shape[d] > 1 ? axis : -1, tensor->strides[d]);
}

/* Parameters go by column if they move along the columns, or if runs of columns with one parameter each are so short
 * that kernel calls for them would cost more than to spread the parameters out. */
static bool go_by_column(npuq_space *space)
{
    const ptrdiff_t *along_cols = space->strides[space->ndim - 1];
    const ptrdiff_t *along_rows = space->ndim > 1 ? space->strides[space->ndim - 2] : along_cols;

    if (along_cols[LOOP_SCALES] != 0 || along_cols[LOOP_ZERO_POINTS] != 0) {
        return true;
    }
    return (along_rows[LOOP_SCALES] != 0 || along_rows[LOOP_ZERO_POINTS] != 0) &&
           npuq_share_columns(space, NPUQ_MAX_REPEAT);
}

static bool converts(const npuq_space *space, int operand, npuq_type type)
{
    const npuq_params params = {.data = space->data[operand],
                                .step = space->strides[space->ndim - 1][operand],
                                .type = type,
                                .repeat = space->shared_columns};
    return params.step != 0 && npuq_is_unready(&params);
}

static void take_walk(npuq_filling *filling, int along, npuq_affine_op operation, const npuq_executor *executor)
{
    const npuq_tensor *const *tensors = filling->arguments.tensors;
    quantize_walk t;
    npuq_space *space = &t.walk.space;

    _Static_assert(sizeof t <= NPUQ_TASK_BYTES, "a task fits a prepared call");
    if (npuq_start_walk(&t.walk, filling, X, Y, X, 4, operation, quantise_tile)) {
        t.scales_type = filling->arguments.infos[SCALES]->type;
        t.zero_points_type = NPUQ_TYPE_FLOAT32;
        add_parameter(space, LOOP_SCALES, tensors[SCALES], along);
        filling->pointers[SCALES] = (void *)&space->data[LOOP_SCALES];
        if (tensors[ZERO_POINTS]) {
            t.zero_points_type = filling->arguments.infos[ZERO_POINTS]->type;
            add_parameter(space, LOOP_ZERO_POINTS, tensors[ZERO_POINTS], along);
            filling->pointers[ZERO_POINTS] = (void *)&space->data[LOOP_ZERO_POINTS];
        }
        npuq_normalise_space(space, NPUQ_ANY_ORDER);
        t.by_column = go_by_column(space);

        const bool narrow = t.by_column && (converts(space, LOOP_SCALES, t.scales_type) ||
                                            converts(space, LOOP_ZERO_POINTS, t.zero_points_type));
        npuq_cut_walk(&t.walk, filling, narrow ? CONVERTING_UNIT : UNIT, narrow ? UNIT_COLUMNS : UNIT);
    }
    npuq_finish_filling(filling, &t.walk.task, sizeof t, executor);
}

static inline NPUQ_INLINED npuq_status call_quantize(npuq_call *call, const npuq_tensor *const *tensors, int32_t axis,
                                                     bool div_mode, const npuq_executor *executor)
{
    static const npuq_affine_roles roles = {
        .x = X, .scale = SCALES, .group_index = NPUQ_ABSENT, .offset = ZERO_POINTS, .y = Y};
    const npuq_affine_op operation = div_mode ? NPUQ_DIV : NPUQ_MUL;
    options o = {axis, div_mode, 0};
    npuq_filling filling;
    const npuq_status status =
        div_mode ? npuq_check_call(&filling, call, &signature_of_division, tensors, check_shapes, &o, executor)
                 : npuq_check_call(&filling, call, &signature_of_product, tensors, check_shapes, &o, executor);

    if (status != NPUQ_OK) {
        return status;
    }
    if (npuq_are_small(&filling.arguments, X, executor) &&
        (filling.arguments.counts[SCALES] == 1 ||
         (o.along == tensors[X]->ndim - 1 && npuq_suits_affine_dense(&filling.arguments, &roles)))) {
        npuq_take_affine_dense(&filling, &roles, operation);
    } else {
        take_walk(&filling, o.along, operation, executor);
    }
    return NPUQ_OK;
}

npuq_status npuq_quantize(const npuq_tensor *x, const npuq_tensor *scales, const npuq_tensor *zero_points, int32_t axis,
                          bool div_mode, const npuq_tensor *y, const npuq_executor *executor)
{
    return call_quantize(NULL, (const npuq_tensor *const[]){x, scales, zero_points, y}, axis, div_mode, executor);
}

npuq_status npuq_prepare_quantize(npuq_call *call, const npuq_tensor *x, const npuq_tensor *scales,
                                  const npuq_tensor *zero_points, int32_t axis, bool div_mode, const npuq_tensor *y)
{
    return call ? call_quantize(call, (const npuq_tensor *const[]){x, scales, zero_points, y}, axis, div_mode, NULL)
                : npuq_fail_call(op);
}
