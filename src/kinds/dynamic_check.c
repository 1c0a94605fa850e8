/* SPDX-License-Identifier: BSD-3-Clause */
#include "dynamic.h"

#include "../element.h"

enum { MAX_GROUPS = 1024 };

static npuq_status check_smooth(const npuq_arguments *arguments, npuq_quant_mode quant_mode)
{
    const char *op = arguments->signature->op;
    const npuq_tensor *x = arguments->tensors[NPUQ_DYNAMIC_X];
    const npuq_tensor *smooth_scales = arguments->tensors[NPUQ_DYNAMIC_SMOOTH];
    const npuq_tensor *group_index = arguments->tensors[NPUQ_DYNAMIC_GROUPS];
    const int64_t H = x->shape[x->ndim - 1];

    if (group_index && quant_mode == NPUQ_PER_TENSOR) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "group_index",
                         "is given; expected null, as quant_mode is 1 (per tensor)");
    }
    if (group_index && !smooth_scales) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "group_index",
                         "is given without smooth_scales; expected null, or smooth_scales with a row for each group");
    }
    if (!smooth_scales) {
        return NPUQ_OK;
    }
    if (group_index && smooth_scales->ndim != 2) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "group_index",
                         "is given with 1-D smooth_scales; expected null, or smooth_scales with a row for each group");
    }
    if (!group_index && smooth_scales->ndim != 1) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "smooth_scales",
                         "has 2 dimensions; expected 1, as group_index is null");
    }
    if (group_index) {
        const int64_t E = smooth_scales->shape[0];
        const npuq_shape_facts facts = {.ndim = x->ndim, .shape = x->shape, .groups = E};
        npuq_status status;

        if (E < 1 || E > MAX_GROUPS) {
            return npuq_fail(NPUQ_ERROR_SHAPE, op, "smooth_scales",
                             "dimension 0 is %lld; expected 1 to %d, a row for each group, as group_index is given",
                             (long long)E, MAX_GROUPS);
        }
        status = npuq_check_shape_by(arguments, NPUQ_DYNAMIC_GROUPS, NPUQ_SHAPE_OF_GROUPS, &facts,
                                     "dimension 0 of smooth_scales");
        if (status != NPUQ_OK) {
            return status;
        }
    }
    if (smooth_scales->shape[smooth_scales->ndim - 1] != H) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, "smooth_scales",
                         "dimension %d is %lld; expected %lld, the last dimension of x", (int)smooth_scales->ndim - 1,
                         (long long)smooth_scales->shape[smooth_scales->ndim - 1], (long long)H);
    }
    return NPUQ_OK;
}

static npuq_status check_parameter_shapes(const npuq_arguments *arguments, const npuq_dynamic_options *o)
{
    const npuq_tensor *first = arguments->tensors[NPUQ_DYNAMIC_SCALE];
    const bool are_ranges = o->step == NPUQ_FIND_RANGES || (o->step == NPUQ_APPLY && o->form != NPUQ_ASYMMETRIC);
    static const char *const row_rules[] = {"the shape of x without its last dimension, as quant_mode is 0, per token",
                                            "the shape of x with a last dimension of 1, as quant_mode is 0, per token"};
    const npuq_tensor *x = arguments->tensors[NPUQ_DYNAMIC_X];
    const npuq_shape_facts facts = {.ndim = x->ndim, .shape = x->shape, .per_tensor = true};
    const npuq_status status = o->quant_mode == NPUQ_PER_TENSOR
                                   ? npuq_check_shape_by(arguments, NPUQ_DYNAMIC_SCALE, NPUQ_SHAPE_OF_ROWS, &facts,
                                                         "as quant_mode is 1, per tensor")
                                   : npuq_check_row_shape(arguments, NPUQ_DYNAMIC_SCALE, row_rules);

    return status != NPUQ_OK ? status
                             : npuq_check_shape(arguments, NPUQ_DYNAMIC_OFFSET, first->ndim, first->shape,
                                                are_ranges ? "the shape of min" : "the shape of scale");
}

static npuq_status check_mode(const char *op, npuq_quant_mode quant_mode, bool only_per_token)
{
    if (quant_mode != NPUQ_PER_TOKEN && quant_mode != NPUQ_PER_TENSOR) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "quant_mode", "is %d; expected 0 (per token) or 1 (per tensor)",
                         (int)quant_mode);
    }
    if (only_per_token && quant_mode == NPUQ_PER_TENSOR) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "quant_mode",
                         "is 1 (per tensor); expected 0 (per token) in a prepared call: prepare min_max for each "
                         "thread's rows, combine the ranges, then prepare apply");
    }
    return NPUQ_OK;
}

npuq_status npuq_check_positive(const char *op, const char *name, uint32_t bits)
{
    if ((bits & 0x7FFFFFFFu) >= 0x7F800000u || bits > 0x80000000u) {
        const npuq_fp_state caller = npuq_fp_enter();
        const volatile uint32_t read = bits; /* after entering, and so converted after it */
        const npuq_status status =
            npuq_fail(NPUQ_ERROR_ARGUMENT, op, name, "is %g; expected a finite number, 0 or more",
                      (double)npuq_float_of_bits(read));

        npuq_fp_leave(&caller);
        return status;
    }
    return NPUQ_OK;
}

npuq_status npuq_check_scale_form(const char *op, npuq_scale_form scale_form)
{
    if (scale_form != NPUQ_SCALE_PRODUCT && scale_form != NPUQ_SCALE_INVERSE) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "scale_form", "is %d; expected 0 (product) or 1 (inverse)",
                         (int)scale_form);
    }
    return NPUQ_OK;
}

/* Elements where a range wants them: per tensor any, per token in each row. */
static npuq_status check_emptiness(const char *op, const npuq_tensor *x, npuq_quant_mode quant_mode)
{
    for (int d = 0; d < x->ndim; d++) {
        const bool last = d == x->ndim - 1;

        if (x->shape[d] == 0 && quant_mode == NPUQ_PER_TENSOR) {
            return npuq_fail(NPUQ_ERROR_SHAPE, op, "x",
                             "dimension %d is 0; expected 1 or more, as quant_mode is 1 (per tensor)", d);
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

npuq_status npuq_check_dynamic(const npuq_arguments *arguments, const void *options)
{
    const npuq_dynamic_options *o = options;
    const char *op = arguments->signature->op;
    npuq_status status;

    if ((status = npuq_check_scale_form(op, o->scale_form)) != NPUQ_OK ||
        (status = check_mode(op, o->quant_mode, arguments->small == 0 && o->step != NPUQ_APPLY)) != NPUQ_OK ||
        (o->step == NPUQ_QUANTISE_ALL &&
         (status = check_emptiness(op, arguments->tensors[NPUQ_DYNAMIC_X], o->quant_mode)) != NPUQ_OK) ||
        (status = check_smooth(arguments, o->quant_mode)) != NPUQ_OK ||
        (o->step != NPUQ_FIND_RANGES &&
         (status = npuq_check_output_shape(arguments, NPUQ_DYNAMIC_X, NPUQ_DYNAMIC_Y)) != NPUQ_OK)) {
        return status;
    }
    return check_parameter_shapes(arguments, o);
}

npuq_status npuq_check_dynamic_values(const npuq_arguments *arguments)
{
    const char *op = arguments->signature->op;
    const npuq_tensor *x = arguments->tensors[NPUQ_DYNAMIC_X];
    const npuq_tensor *group_index = arguments->tensors[NPUQ_DYNAMIC_GROUPS];
    const npuq_tensor *of_rows = arguments->tensors[NPUQ_DYNAMIC_SCALE]; /* per token, as all calls with groups are */
    npuq_status status;

    if (group_index && (status = npuq_check_groups(op, group_index, npuq_count_elements(of_rows))) != NPUQ_OK) {
        return status;
    }
    /* For ranges no output is as large as x, which may be one element in memory: nothing else keeps it countable. */
    if (npuq_count_elements(x) > PTRDIFF_MAX) {
        return npuq_fail(NPUQ_ERROR_LAYOUT, op, "x", "has %lld elements; expected at most %lld",
                         (long long)npuq_count_elements(x), (long long)PTRDIFF_MAX);
    }
    return NPUQ_OK;
}
