/* SPDX-License-Identifier: BSD-3-Clause */
#include "dynamic_call.h"

#include "../view/groups.h"
#include "../view/view.h"
#include "../walk/fp_state.h"

#include <inttypes.h>
#include <string.h>

/* ---- checks ------------------------------------------------------------------------------------------------------ */

enum { MAX_GROUPS = 1024 };

static npuq_status check_smooth(const char *op, const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                const npuq_tensor *group_index, npuq_quant_mode quant_mode)
{
    const int64_t H = x->shape[x->ndim - 1];

    if (group_index && quant_mode == NPUQ_PER_TENSOR) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "group_index", "is given per tensor; expected null");
    }
    if (group_index && !smooth_scales) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "group_index",
                         "is given without smooth_scales; expected null, or 2-D smooth_scales [E, H] as well");
    }
    if (!smooth_scales) {
        return NPUQ_OK;
    }
    if (group_index && smooth_scales->ndim != 2) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "group_index",
                         "is given with 1-D smooth_scales; expected 2-D smooth_scales [E, H], or null");
    }
    if (!group_index && smooth_scales->ndim != 1) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "smooth_scales",
                         "has 2 dimensions and group_index is null; expected 1 dimension [H], or a group_index");
    }
    if (group_index) {
        const int64_t E = smooth_scales->shape[0];
        npuq_status status;

        if (E < 1 || E > MAX_GROUPS) {
            return npuq_fail(NPUQ_ERROR_SHAPE, op, "smooth_scales", "dimension 0 is %" PRId64 "; expected 1 to %d", E,
                             MAX_GROUPS);
        }
        status = npuq_check_shape(op, "group_index", group_index, 1, &E, "[E]");
        if (status != NPUQ_OK) {
            return status;
        }
    }
    if (smooth_scales->shape[smooth_scales->ndim - 1] != H) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, "smooth_scales",
                         "dimension %d is %" PRId64 "; expected %" PRId64 ", the last dimension of x",
                         (int)smooth_scales->ndim - 1, smooth_scales->shape[smooth_scales->ndim - 1], H);
    }
    return NPUQ_OK;
}

static npuq_status check_parameter_shape(const char *op, const char *name, const npuq_tensor *tensor,
                                         const npuq_tensor *x, npuq_quant_mode quant_mode)
{
    const int64_t one = 1;

    if (quant_mode == NPUQ_PER_TENSOR) {
        return npuq_check_shape(op, name, tensor, 1, &one, "one element per tensor");
    }
    return npuq_check_shape(op, name, tensor, x->ndim - 1, x->shape, "the shape of x without its last dimension");
}

static npuq_status check_mode(const char *op, npuq_quant_mode quant_mode)
{
    if (quant_mode != NPUQ_PER_TOKEN && quant_mode != NPUQ_PER_TENSOR) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "quant_mode", "is %d; expected 0 (per token) or 1 (per tensor)",
                         (int)quant_mode);
    }
    return NPUQ_OK;
}

/* Elements where a range wants them: per tensor any, per token in each row. */
static npuq_status check_emptiness(const char *op, const npuq_tensor *x, npuq_quant_mode quant_mode)
{
    for (int d = 0; d < x->ndim; d++) {
        const bool last = d == x->ndim - 1;

        if (x->shape[d] == 0 && quant_mode == NPUQ_PER_TENSOR) {
            return npuq_fail(NPUQ_ERROR_SHAPE, op, "x", "dimension %d is 0; expected 1 or more per tensor", d);
        }
        if (x->shape[d] == 0 && last) {
            return npuq_fail(NPUQ_ERROR_SHAPE, op, "x", "last dimension is 0; expected 1 or more");
        }
        if (x->shape[d] == 0) {
            return NPUQ_OK; /* no rows, whatever their length */
        }
    }
    return NPUQ_OK;
}

static int64_t row_count(const npuq_tensor *x)
{
    npuq_tensor rows = *x;

    rows.ndim--;
    return npuq_element_count(&rows);
}

/* What is the same for all that takes x: the last of the checks. */
static npuq_status check_executor_and_memory(const char *op, const npuq_argument *arguments, size_t count,
                                             const npuq_tensor *x, const npuq_tensor *group_index,
                                             const npuq_executor *executor)
{
    npuq_status status;

    if ((status = npuq_check_executor(op, executor)) != NPUQ_OK ||
        (status = npuq_check_layouts(op, arguments, count)) != NPUQ_OK ||
        (group_index && (status = npuq_check_group_index(op, group_index, row_count(x))) != NPUQ_OK)) {
        return status;
    }
    return NPUQ_OK;
}

/* Whether a call is sure to pass all checks, see walk/dense.h; each of its rows then has one range. */
static bool passes_dense(const npuq_tensor *x, const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                         npuq_quant_mode quant_mode, const npuq_tensor *y, const npuq_tensor *scale,
                         const npuq_tensor *offset, bool has_offset, const npuq_executor *executor, npuq_dense *dense)
{
    static const int64_t one = 1;
    const bool per_tensor = quant_mode == NPUQ_PER_TENSOR;

    if ((!per_tensor && quant_mode != NPUQ_PER_TOKEN) ||
        !npuq_dense_rows(dense, x, NPUQ_TAKES_FLOATS, y, NPUQ_TAKES_INT8 | NPUQ_TAKES_QUINT4X2, executor) ||
        x->ndim < 2) {
        return false;
    }
    const int ndim = per_tensor ? 1 : x->ndim - 1;
    const int64_t *ranges = per_tensor ? &one : x->shape;

    if (!npuq_dense_operand(dense, scale, NPUQ_TAKES_FLOAT32, ndim, ranges, true) ||
        (has_offset && !npuq_dense_operand(dense, offset, NPUQ_TAKES_FLOAT32, ndim, ranges, true))) {
        return false;
    }
    if (!smooth_scales) {
        if (per_tensor) {
            dense->cols *= dense->rows;
            dense->rows = 1;
        }
        return !group_index;
    }
    if (per_tensor && (group_index || dense->rows > 1)) {
        return false;
    }
    const int64_t shape[] = {smooth_scales->shape[0], x->shape[x->ndim - 1]};

    return group_index ? shape[0] <= MAX_GROUPS &&
                             npuq_dense_operand(dense, smooth_scales, NPUQ_TAKES_FLOATS, 2, shape, false) &&
                             npuq_dense_operand(dense, group_index, NPUQ_TAKES_INDICES, 1, shape, false)
                       : npuq_dense_operand(dense, smooth_scales, NPUQ_TAKES_FLOATS, 1, shape + 1, false);
}

/* ---- the operator ------------------------------------------------------------------------------------------------ */

npuq_status npuq_call_dynamic(const char *op, npuq_dynamic_form form, const npuq_tensor *x,
                              const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                              npuq_quant_mode quant_mode, const npuq_tensor *y, const npuq_tensor *scale,
                              const npuq_tensor *offset, const npuq_executor *executor)
{
    const npuq_argument arguments[] = {
        {"x", x, NPUQ_TAKES_FLOATS, 2, NPUQ_MAX_NDIM, NPUQ_X},
        {"smooth_scales", smooth_scales, NPUQ_TAKES_FLOATS, 1, 2, NPUQ_OPTIONAL_INPUT},
        {"group_index", group_index, NPUQ_TAKES_INDICES, 1, 1, NPUQ_OPTIONAL_INPUT},
        {"y", y, NPUQ_TAKES_INT8 | NPUQ_TAKES_QUINT4X2, 2, NPUQ_MAX_NDIM, NPUQ_OUTPUT},
        {"scale", scale, NPUQ_TAKES_FLOAT32, 1, NPUQ_MAX_NDIM - 1, NPUQ_OUTPUT},
        {"offset", offset, NPUQ_TAKES_FLOAT32, 1, NPUQ_MAX_NDIM - 1, NPUQ_OUTPUT},
    };
    const bool has_offset = form == NPUQ_ASYMMETRIC;
    const size_t count = sizeof arguments / sizeof arguments[0] - (has_offset ? 0 : 1);
    npuq_dense dense;
    const bool is_dense =
        passes_dense(x, smooth_scales, group_index, quant_mode, y, scale, offset, has_offset, executor, &dense);
    npuq_dynamic d;
    npuq_status status;

    if (is_dense) {
        if (group_index && (status = npuq_check_group_index(op, group_index, row_count(x))) != NPUQ_OK) {
            return status;
        }
    } else if ((status = npuq_check_arguments(op, arguments, count)) != NPUQ_OK ||
               (status = check_mode(op, quant_mode)) != NPUQ_OK ||
               (status = check_emptiness(op, x, quant_mode)) != NPUQ_OK ||
               (status = check_smooth(op, x, smooth_scales, group_index, quant_mode)) != NPUQ_OK ||
               (status = npuq_check_output_shape(op, x, y)) != NPUQ_OK ||
               (status = check_parameter_shape(op, "scale", scale, x, quant_mode)) != NPUQ_OK ||
               (has_offset && (status = check_parameter_shape(op, "offset", offset, x, quant_mode)) != NPUQ_OK) ||
               (status = check_executor_and_memory(op, arguments, count, x, group_index, executor)) != NPUQ_OK) {
        return status;
    }
    if (is_dense && npuq_dynamic_suits_dense(&dense, smooth_scales)) {
        npuq_dynamic_quantise_dense(form, &dense, x, smooth_scales, group_index, y, scale, offset);
        return NPUQ_OK;
    }
    if (npuq_element_count(x) == 0) {
        return NPUQ_OK;
    }
    npuq_dynamic_over(&d, form, x, smooth_scales, group_index, quant_mode, y);
    npuq_dynamic_operand(&d, NPUQ_DYNAMIC_SCALE, scale);
    if (has_offset) {
        npuq_dynamic_operand(&d, NPUQ_DYNAMIC_OFFSET, offset);
    }
    npuq_dynamic_quantise(&d, executor);
    return NPUQ_OK;
}

/* ---- its steps --------------------------------------------------------------------------------------------------- */

/* Every element of a tensor of binary32, which may be strided in any way. */
static void fill(const npuq_tensor *tensor, float value)
{
    npuq_loop loop;
    npuq_rect rect;

    npuq_loop_over(&loop, tensor, tensor->dtype, tensor->dtype);
    npuq_loop_operand(&loop, NPUQ_LOOP_Y, tensor);
    npuq_loop_normalise(&loop, NPUQ_LOOP_ANY_ORDER);
    for (size_t row = 0; row < npuq_loop_rows(&loop); row++) {
        npuq_loop_rect(&loop, row, 1, 0, npuq_loop_cols(&loop), &rect);
        for (size_t i = 0; i < rect.cols; i++) {
            memcpy(rect.data[NPUQ_LOOP_Y] + (ptrdiff_t)i * rect.col_step[NPUQ_LOOP_Y], &value, sizeof value);
        }
    }
}

npuq_status npuq_dynamic_quant_min_max(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                       const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                       const npuq_tensor *min, const npuq_tensor *max, const npuq_executor *executor)
{
    static const char op[] = "dynamic_quant_min_max";
    const npuq_argument arguments[] = {
        {"x", x, NPUQ_TAKES_FLOATS, 2, NPUQ_MAX_NDIM, NPUQ_X},
        {"smooth_scales", smooth_scales, NPUQ_TAKES_FLOATS, 1, 2, NPUQ_OPTIONAL_INPUT},
        {"group_index", group_index, NPUQ_TAKES_INDICES, 1, 1, NPUQ_OPTIONAL_INPUT},
        {"min", min, NPUQ_TAKES_FLOAT32, 1, NPUQ_MAX_NDIM - 1, NPUQ_OUTPUT},
        {"max", max, NPUQ_TAKES_FLOAT32, 1, NPUQ_MAX_NDIM - 1, NPUQ_OUTPUT},
    };
    const size_t count = sizeof arguments / sizeof arguments[0];
    npuq_dynamic d;
    npuq_status status;

    if ((status = npuq_check_arguments(op, arguments, count)) != NPUQ_OK ||
        (status = check_mode(op, quant_mode)) != NPUQ_OK ||
        (status = check_smooth(op, x, smooth_scales, group_index, quant_mode)) != NPUQ_OK ||
        (status = check_parameter_shape(op, "min", min, x, quant_mode)) != NPUQ_OK ||
        (status = check_parameter_shape(op, "max", max, x, quant_mode)) != NPUQ_OK ||
        (status = check_executor_and_memory(op, arguments, count, x, group_index, executor)) != NPUQ_OK) {
        return status;
    }
    /* No output is as large as x, which may be one element in memory: nothing else keeps it countable. */
    if (npuq_element_count(x) > PTRDIFF_MAX) {
        return npuq_fail(NPUQ_ERROR_LAYOUT, op, "x", "has %" PRId64 " elements; expected at most %" PRId64,
                         npuq_element_count(x), (int64_t)PTRDIFF_MAX);
    }
    if (npuq_element_count(min) == 0) {
        return NPUQ_OK;
    }
    if (npuq_element_count(x) == 0) {
        const npuq_ref_range nothing = npuq_ref_range_empty();

        fill(min, nothing.lo);
        fill(max, nothing.hi);
        return NPUQ_OK;
    }
    npuq_dynamic_over(&d, NPUQ_ASYMMETRIC, x, smooth_scales, group_index, quant_mode, NULL);
    npuq_dynamic_operand(&d, NPUQ_DYNAMIC_MIN, min);
    npuq_dynamic_operand(&d, NPUQ_DYNAMIC_MAX, max);
    npuq_dynamic_ranges(&d, executor);
    return NPUQ_OK;
}

npuq_status npuq_call_dynamic_params(const char *op, npuq_dynamic_form form, const npuq_tensor *min,
                                     const npuq_tensor *max, npuq_dtype y_dtype, const npuq_tensor *scale,
                                     const npuq_tensor *offset)
{
    enum { MIN = NPUQ_LOOP_X, SCALE = NPUQ_LOOP_Y, MAX = 2, OFFSET = 3 };
    const npuq_argument arguments[] = {
        {"min", min, NPUQ_TAKES_FLOAT32, 0, NPUQ_MAX_NDIM, NPUQ_INPUT},
        {"max", max, NPUQ_TAKES_FLOAT32, 0, NPUQ_MAX_NDIM, NPUQ_INPUT},
        {"scale", scale, NPUQ_TAKES_FLOAT32, 0, NPUQ_MAX_NDIM, NPUQ_OUTPUT},
        {"offset", offset, NPUQ_TAKES_FLOAT32, 0, NPUQ_MAX_NDIM, NPUQ_OUTPUT},
    };
    const bool has_offset = form == NPUQ_ASYMMETRIC;
    const size_t count = sizeof arguments / sizeof arguments[0] - (has_offset ? 0 : 1);
    const char *rule = "the shape of min";
    npuq_loop loop;
    npuq_rect rect;
    npuq_status status;

    if ((status = npuq_check_arguments(op, arguments, count)) != NPUQ_OK) {
        return status;
    }
    if (y_dtype != NPUQ_INT8 && y_dtype != NPUQ_QUINT4X2) {
        return npuq_fail(NPUQ_ERROR_DTYPE, op, "y_dtype", "is %s (%d); expected INT8 or QUINT4X2",
                         npuq_dtype_name(y_dtype), (int)y_dtype);
    }
    if ((status = npuq_check_shape(op, "max", max, min->ndim, min->shape, rule)) != NPUQ_OK ||
        (status = npuq_check_shape(op, "scale", scale, min->ndim, min->shape, rule)) != NPUQ_OK ||
        (has_offset && (status = npuq_check_shape(op, "offset", offset, min->ndim, min->shape, rule)) != NPUQ_OK) ||
        (status = npuq_check_layouts(op, arguments, count)) != NPUQ_OK) {
        return status;
    }
    if (npuq_element_count(min) == 0) {
        return NPUQ_OK;
    }
    npuq_loop_over(&loop, min, NPUQ_FLOAT32, NPUQ_FLOAT32);
    npuq_loop_operand(&loop, MIN, min);
    npuq_loop_operand(&loop, MAX, max);
    npuq_loop_operand(&loop, SCALE, scale);
    if (has_offset) {
        npuq_loop_operand(&loop, OFFSET, offset);
    }
    npuq_loop_normalise(&loop, NPUQ_LOOP_ANY_ORDER);

    const npuq_ref_dtype type = y_dtype == NPUQ_QUINT4X2 ? NPUQ_REF_QUINT4X2 : NPUQ_REF_INT8;
    const npuq_fp_state caller = npuq_fp_enter();
    for (size_t row = 0; row < npuq_loop_rows(&loop); row++) {
        npuq_loop_rect(&loop, row, 1, 0, npuq_loop_cols(&loop), &rect);
        for (size_t i = 0; i < rect.cols; i++) {
            npuq_ref_range range;
            memcpy(&range.hi, rect.data[MAX] + (ptrdiff_t)i * rect.col_step[MAX], sizeof range.hi);
            memcpy(&range.lo, rect.data[MIN] + (ptrdiff_t)i * rect.col_step[MIN], sizeof range.lo);

            const npuq_ref_parameters p = npuq_dynamic_parameters(form, range, type);
            memcpy(rect.data[SCALE] + (ptrdiff_t)i * rect.col_step[SCALE], &p.scale, sizeof p.scale);
            if (has_offset) {
                memcpy(rect.data[OFFSET] + (ptrdiff_t)i * rect.col_step[OFFSET], &p.offset, sizeof p.offset);
            }
        }
    }
    npuq_fp_leave(&caller);
    return NPUQ_OK;
}

npuq_status npuq_call_dynamic_apply(const char *op, npuq_dynamic_form form, const npuq_tensor *x,
                                    const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                                    npuq_quant_mode quant_mode, const npuq_tensor *first, const npuq_tensor *second,
                                    const npuq_tensor *y, const npuq_executor *executor)
{
    const char *first_name = form == NPUQ_ASYMMETRIC ? "scale" : "min";
    const char *second_name = form == NPUQ_ASYMMETRIC ? "offset" : "max";
    const npuq_argument arguments[] = {
        {"x", x, NPUQ_TAKES_FLOATS, 2, NPUQ_MAX_NDIM, NPUQ_X},
        {"smooth_scales", smooth_scales, NPUQ_TAKES_FLOATS, 1, 2, NPUQ_OPTIONAL_INPUT},
        {"group_index", group_index, NPUQ_TAKES_INDICES, 1, 1, NPUQ_OPTIONAL_INPUT},
        {first_name, first, NPUQ_TAKES_FLOAT32, 1, NPUQ_MAX_NDIM - 1, NPUQ_INPUT},
        {second_name, second, NPUQ_TAKES_FLOAT32, 1, NPUQ_MAX_NDIM - 1, NPUQ_INPUT},
        {"y", y, NPUQ_TAKES_INT8 | NPUQ_TAKES_QUINT4X2, 2, NPUQ_MAX_NDIM, NPUQ_OUTPUT},
    };
    const size_t count = sizeof arguments / sizeof arguments[0];
    npuq_dynamic d;
    npuq_status status;

    if ((status = npuq_check_arguments(op, arguments, count)) != NPUQ_OK ||
        (status = check_mode(op, quant_mode)) != NPUQ_OK ||
        (status = check_smooth(op, x, smooth_scales, group_index, quant_mode)) != NPUQ_OK ||
        (status = check_parameter_shape(op, first_name, first, x, quant_mode)) != NPUQ_OK ||
        (status = check_parameter_shape(op, second_name, second, x, quant_mode)) != NPUQ_OK ||
        (status = npuq_check_output_shape(op, x, y)) != NPUQ_OK ||
        (status = check_executor_and_memory(op, arguments, count, x, group_index, executor)) != NPUQ_OK) {
        return status;
    }
    if (npuq_element_count(x) == 0) {
        return NPUQ_OK;
    }
    npuq_dynamic_over(&d, form, x, smooth_scales, group_index, quant_mode, y);
    npuq_dynamic_operand(&d, NPUQ_DYNAMIC_SCALE, first); /* the slots of MIN and MAX, too */
    npuq_dynamic_operand(&d, NPUQ_DYNAMIC_OFFSET, second);
    npuq_dynamic_requantise(&d, executor);
    return NPUQ_OK;
}
