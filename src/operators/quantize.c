/* SPDX-License-Identifier: BSD-3-Clause */
#include "../view/view.h"
#include "../walk/dense.h"
#include "../walk/fp_state.h"
#include "../walk/tile.h"

#include <inttypes.h>

static const char op[] = "quantize";

/* Elements of a unit of work; where parameters are converted by column, more and few columns, so that many rows share
 * them. */
enum { UNIT = 32768, CONVERTING_UNIT = 65536, UNIT_COLUMNS = 4096 };

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

static npuq_status check_zero_points(const npuq_tensor *scales, const npuq_tensor *zero_points, bool div_mode)
{
    if (!div_mode && zero_points->dtype != scales->dtype) {
        return npuq_fail(NPUQ_ERROR_DTYPE, op, "zero_points", "dtype is %s; expected %s, the dtype of scales",
                         npuq_dtype_name(zero_points->dtype), npuq_dtype_name(scales->dtype));
    }
    return npuq_check_shape(op, "zero_points", zero_points, scales->ndim, scales->shape, "the shape of scales");
}

typedef struct quantize_task {
    npuq_kernel_choice choice;
    npuq_loop loop;
    npuq_units units;
    bool by_column; /* parameters move along the columns, and along nothing else */
    npuq_dtype scales_dtype;
    npuq_dtype zero_points_dtype;
} quantize_task;

enum { SCALES = 2, ZERO_POINTS = 3 };

static npuq_params parameters(const quantize_task *t, const npuq_rect *rect, int operand, npuq_dtype dtype)
{
    return (npuq_params){.data = rect->data[operand],
                         .dtype = dtype,
                         .step = t->by_column ? rect->col_step[operand] : rect->row_step[operand],
                         .repeat = t->loop.pack[operand],
                         .used = rect->used};
}

static void quantize_units(void *argument, size_t begin, size_t end)
{
    const quantize_task *t = argument;
    const npuq_fp_state caller = npuq_fp_enter();

    for (size_t i = begin; i < end; i++) {
        const npuq_unit unit = npuq_unit_at(&t->units, i);
        npuq_rect rect;

        for (size_t done = 0; done < unit.rows; done += rect.rows) {
            npuq_loop_rect(&t->loop, unit.row + done, unit.rows - done, unit.col, unit.cols, &rect);
            const npuq_params scale = parameters(t, &rect, SCALES, t->scales_dtype);
            const npuq_params zero_point = parameters(t, &rect, ZERO_POINTS, t->zero_points_dtype);

            if (t->by_column) {
                npuq_tile_affine_by_column(&t->choice, &rect, &scale, &zero_point);
            } else {
                npuq_tile_affine_by_row(&t->choice, &rect, &scale, &zero_point);
            }
        }
    }
    npuq_tile_end(&t->choice);
    npuq_fp_leave(&caller);
}

/* Scales move along the axis; one scale for all does not move. */
static void add_parameter(npuq_loop *loop, int operand, const npuq_tensor *tensor, int axis)
{
    const int d = tensor->ndim == 1 ? 0 : axis;
    npuq_loop_along(loop, operand, tensor, tensor->shape[d] > 1 ? axis : -1, tensor->strides[d]);
}

/* Parameters go by column if they move along the columns, or if runs of columns with one parameter each are so short
 * that kernel calls for them would cost more than to spread the parameters out. */
static void choose_direction(quantize_task *t)
{
    const ptrdiff_t *along_cols = t->loop.strides[t->loop.ndim - 1];
    const ptrdiff_t *along_rows = t->loop.ndim > 1 ? t->loop.strides[t->loop.ndim - 2] : along_cols;

    t->by_column = along_cols[SCALES] != 0 || along_cols[ZERO_POINTS] != 0;
    if (!t->by_column && (along_rows[SCALES] != 0 || along_rows[ZERO_POINTS] != 0)) {
        t->by_column = npuq_loop_share_columns(&t->loop, NPUQ_MAX_REPEAT);
    }
}

static bool converts(const quantize_task *t, int operand, npuq_dtype dtype)
{
    const npuq_params params = {.data = t->loop.data[operand],
                                .dtype = dtype,
                                .step = t->loop.strides[t->loop.ndim - 1][operand],
                                .repeat = t->loop.pack[operand]};
    return params.data && params.step != 0 && !npuq_params_ready(&params);
}

static void find_units(quantize_task *t)
{
    const bool narrow =
        t->by_column && (converts(t, SCALES, t->scales_dtype) || converts(t, ZERO_POINTS, t->zero_points_dtype));
    npuq_units_of(&t->units, npuq_loop_rows(&t->loop), npuq_loop_cols(&t->loop), narrow ? CONVERTING_UNIT : UNIT,
                  npuq_loop_unit_columns(&t->loop, narrow ? UNIT_COLUMNS : UNIT));
}

static unsigned y_dtypes(bool div_mode)
{
    return div_mode ? NPUQ_TAKES_INT8 | NPUQ_TAKES_UINT8 | NPUQ_TAKES_INT32 : NPUQ_TAKES_INT8 | NPUQ_TAKES_QUINT4X2;
}

static unsigned zero_points_dtypes(bool div_mode)
{
    return NPUQ_TAKES_FLOATS | (div_mode ? NPUQ_TAKES_INT8 | NPUQ_TAKES_UINT8 | NPUQ_TAKES_INT32 : 0u);
}

/* All checks, and the dimension that scales go along. */
static npuq_status check(const npuq_tensor *x, const npuq_tensor *scales, const npuq_tensor *zero_points, int32_t axis,
                         bool div_mode, const npuq_tensor *y, const npuq_executor *executor, int *along)
{
    const npuq_argument arguments[] = {
        {"x", x, NPUQ_TAKES_FLOATS, 1, NPUQ_MAX_NDIM, NPUQ_X},
        {"scales", scales, NPUQ_TAKES_FLOATS, 1, div_mode ? 1 : NPUQ_MAX_NDIM, NPUQ_INPUT},
        {"zero_points", zero_points, zero_points_dtypes(div_mode), 1, div_mode ? 1 : NPUQ_MAX_NDIM,
         NPUQ_OPTIONAL_INPUT},
        {"y", y, y_dtypes(div_mode), 1, NPUQ_MAX_NDIM, NPUQ_OUTPUT},
    };
    const size_t count = sizeof arguments / sizeof arguments[0];
    npuq_status status;

    if ((status = npuq_check_arguments(op, arguments, count)) != NPUQ_OK ||
        (status = find_axis(x, scales, axis, div_mode, along)) != NPUQ_OK ||
        (status = check_scales(x, scales, *along)) != NPUQ_OK ||
        (zero_points && (status = check_zero_points(scales, zero_points, div_mode)) != NPUQ_OK) ||
        (status = npuq_check_output_shape(op, x, y)) != NPUQ_OK ||
        (status = npuq_check_executor(op, executor)) != NPUQ_OK ||
        (status = npuq_check_layouts(op, arguments, count)) != NPUQ_OK) {
        return status;
    }
    return NPUQ_OK;
}

/* Whether a call is sure to pass all checks, see walk/dense.h; then scales go along the last dimension. */
static bool passes_dense(const npuq_tensor *x, const npuq_tensor *scales, const npuq_tensor *zero_points, int32_t axis,
                         bool div_mode, const npuq_tensor *y, const npuq_executor *executor, npuq_dense *dense)
{
    return npuq_dense_rows(dense, x, NPUQ_TAKES_FLOATS, y, y_dtypes(div_mode), executor) &&
           (axis == -1 || axis == x->ndim - 1) && npuq_dense_columns(dense, scales, NPUQ_TAKES_FLOATS) &&
           (!zero_points ||
            ((div_mode || zero_points->dtype == scales->dtype) &&
             npuq_dense_operand(dense, zero_points, zero_points_dtypes(div_mode), 1, scales->shape, false)));
}

static bool is_ready(const npuq_tensor *parameter)
{
    return !parameter || parameter->dtype == NPUQ_FLOAT32;
}

/* Whether such a call can go straight to the kernel: rows are long enough, and there is room to convert parameters. */
static bool suits_dense(const npuq_dense *dense, const npuq_tensor *scales, const npuq_tensor *zero_points)
{
    return scales->shape[0] == 1 || ((dense->rows == 1 || dense->cols >= NPUQ_SHORT_BY_COLUMN) &&
                                     (dense->cols <= NPUQ_DENSE_PARAMS || (is_ready(scales) && is_ready(zero_points))));
}

static const float *dense_params(const npuq_row_kernels *kernels, const npuq_tensor *parameter, float *buffer)
{
    if (is_ready(parameter)) { /* npuq_params_f32() finds that out too, but two calls of it take 10 ns */
        return parameter->data;
    }
    const npuq_params params = {.data = parameter->data,
                                .dtype = parameter->dtype,
                                .step = (ptrdiff_t)npuq_dtype_size(parameter->dtype),
                                .repeat = 1};
    return npuq_params_f32(kernels, &params, (size_t)parameter->shape[0], buffer);
}

/* Not inlined: the general way, which runs the caller's executor, would hold these buffers beside its own. */
static __attribute__((noinline)) void quantise_dense(const npuq_kernel_choice *choice, const npuq_dense *dense,
                                                     const npuq_tensor *x, const npuq_tensor *scales,
                                                     const npuq_tensor *zero_points, const npuq_tensor *y)
{
    static const float zero = 0.0f;
    _Alignas(64) float converted_scales[NPUQ_DENSE_PARAMS + NPUQ_MAX_REPEAT];
    _Alignas(64) float converted_offsets[NPUQ_DENSE_PARAMS + NPUQ_MAX_REPEAT];
    const bool uniform = scales->shape[0] == 1;
    const npuq_block block = {
        .x = x->data,
        .y = y->data,
        .x_step = (ptrdiff_t)x->shape[x->ndim - 1] * (ptrdiff_t)npuq_dtype_size(x->dtype),
        .y_step = (ptrdiff_t)y->shape[y->ndim - 1] * (ptrdiff_t)npuq_dtype_size(y->dtype),
        .rows = uniform ? 1 : dense->rows,
        .n = uniform ? dense->rows * dense->cols : dense->cols,
    };
    const npuq_fp_state caller = npuq_fp_enter();
    const float *scale = dense_params(choice->kernels, scales, converted_scales);
    const float *offset = zero_points ? dense_params(choice->kernels, zero_points, converted_offsets) : &zero;

    if (uniform) {
        choice->kernels->affine_uniform[choice->op][choice->y][choice->x](&block, scale, offset, 0);
    } else {
        choice->kernels->affine_vector[choice->op][choice->y][choice->x](&block, scale, offset, zero_points != NULL);
    }
    npuq_fp_leave(&caller);
}

npuq_status npuq_quantize(const npuq_tensor *x, const npuq_tensor *scales, const npuq_tensor *zero_points, int32_t axis,
                          bool div_mode, const npuq_tensor *y, const npuq_executor *executor)
{
    npuq_dense dense;
    quantize_task t;
    const bool is_dense = passes_dense(x, scales, zero_points, axis, div_mode, y, executor, &dense);
    int along = 0;
    npuq_status status;

    if (is_dense) {
        along = x->ndim - 1;
    } else if ((status = check(x, scales, zero_points, axis, div_mode, y, executor, &along)) != NPUQ_OK ||
               npuq_element_count(x) == 0) {
        return status;
    }
    npuq_choose_kernels(&t.choice, x->dtype, y->dtype, div_mode ? NPUQ_DIV : NPUQ_MUL);
    if (is_dense && suits_dense(&dense, scales, zero_points)) {
        quantise_dense(&t.choice, &dense, x, scales, zero_points, y);
        return NPUQ_OK;
    }
    t.scales_dtype = scales->dtype;
    t.zero_points_dtype = zero_points ? zero_points->dtype : NPUQ_FLOAT32;
    npuq_loop_over(&t.loop, x, x->dtype, y->dtype);
    npuq_loop_operand(&t.loop, NPUQ_LOOP_X, x);
    npuq_loop_operand(&t.loop, NPUQ_LOOP_Y, y);
    add_parameter(&t.loop, SCALES, scales, along);
    if (zero_points) {
        add_parameter(&t.loop, ZERO_POINTS, zero_points, along);
    }
    npuq_loop_normalise(&t.loop, NPUQ_LOOP_ANY_ORDER);
    choose_direction(&t);
    if (npuq_exceeds_caches(&t.choice, (size_t)npuq_element_count(x))) {
        t.choice.ahead = NPUQ_AHEAD;
    }
    find_units(&t);
    npuq_run(executor, t.units.count, quantize_units, &t);
    return NPUQ_OK;
}
