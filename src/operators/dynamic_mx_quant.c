/* SPDX-License-Identifier: BSD-3-Clause */
#include "../element.h"
#include "../kinds/affine.h"
#include "../kinds/blocks.h"
#include "../kinds/mx_groups.h"

#include <string.h>

#define NPUQ_PLACE(ROLE) NPUQ_DYNAMIC_##ROLE
enum { X = NPUQ_DYNAMIC_X, Y = NPUQ_DYNAMIC_Y, SCALE = NPUQ_DYNAMIC_SCALE };

static npuq_status check(const npuq_arguments *arguments, const void *options)
{
    const npuq_mx_options *o = options;
    npuq_status status;

    if ((status = npuq_check_mx_groups(arguments, o, X, SCALE)) != NPUQ_OK ||
        (o->given && (status = npuq_check_mx_rule(arguments, o->given)) != NPUQ_OK)) {
        return status;
    }
    return npuq_check_output_shape(arguments, X, Y);
}

/* ---- what is written besides ------------------------------------------------------------------------------------- */

static bool is_negative_nan(const char *x, npuq_type type)
{
    if (type == NPUQ_TYPE_FLOAT32) {
        return *(const uint32_t *)(const void *)x > 0xFF800000;
    }
    return *(const uint16_t *)(const void *)x > (type == NPUQ_TYPE_FLOAT16 ? 0xFC00 : 0xFF80);
}

/* Of 8 bits. */
static void write_nan(const npuq_plan *plan, const npuq_tile *tile, size_t row, size_t col)
{
    const npuq_place *x = &tile->places[X];
    const npuq_place *y = &tile->places[Y];
    const char *from = x->data + (ptrdiff_t)row * x->row_stride + (ptrdiff_t)col * x->col_stride;

    y->data[(ptrdiff_t)row * y->row_stride + (ptrdiff_t)col * y->col_stride] =
        (char)(is_negative_nan(from, plan->setup.types[X]) ? 0xFF : 0x7F);
}

/* ---- the last axis ----------------------------------------------------------------------------------------------- */

static void quantise_along_rows(const npuq_plan *plan, const npuq_tile *tile)
{
    const npuq_place *scale = &tile->places[SCALE];
    const size_t groups = npuq_divide_up(tile->cols, plan->block);      /* dense ones are rows by themselves */
    const bool has_gap = groups % 2 != 0 && plan->way == NPUQ_IN_SPACE; /* no group completes the pair */
    const bool bad_is_nan = npuq_get_dynamic(plan)->mx.bad_is_nan;

    npuq_quantise_blocks(plan, tile);
    for (size_t row = 0; (has_gap || bad_is_nan) && row < tile->rows; row++) {
        for (size_t col = 0; bad_is_nan && col < tile->cols; col++) {
            if ((uint8_t)*npuq_find_mx_code(plan, scale, row, col / plan->block) == NPUQ_MX_BAD) {
                write_nan(plan, tile, row, col);
            }
        }
        if (has_gap) {
            *npuq_find_mx_code(plan, scale, row, groups) = 0;
        }
    }
}

/* ---- another axis ------------------------------------------------------------------------------------------------ */

/* What sets the parameters of both kernels, for the columns from `col` on. */
typedef struct column_job {
    float *factors;
    npuq_column_params magnitudes;
    npuq_quant_params quant;
    const uint16_t *shifts;
} column_job;

static void set_columns(void *argument, size_t col, size_t cols)
{
    column_job *job = argument;

    (void)cols;
    job->magnitudes.largest = job->factors + col;
    job->quant.scale = job->factors + col;
    job->quant.smooth = job->shifts ? job->shifts + col : NULL;
    job->quant.has_shifts = job->shifts != NULL;
}

static void quantise_group(const npuq_plan *plan, const npuq_tile *tile)
{
    _Alignas(64) float factors[NPUQ_MX_COLUMNS + NPUQ_LANES];
    _Alignas(64) uint16_t shifts[NPUQ_MX_COLUMNS];
    uint8_t codes[NPUQ_MX_COLUMNS];
    const npuq_place *scale = &tile->places[SCALE];
    const npuq_mx_rule *rule = &npuq_get_dynamic(plan)->mx;
    const npuq_kernel_setup *setup = &plan->setup;
    column_job job = {
        factors, {factors}, {factors, NULL, NULL, NULL, NPUQ_SCALE_BY_COLUMN, 0, false, setup->rounding, false}, NULL};
    npuq_pass pass = {npuq_column_kernel(setup->kernels, setup->types[X]),
                      &job.magnitudes,
                      false,
                      1,
                      set_columns,
                      NULL,
                      &job,
                      SIZE_MAX};

    memset(codes, 0, tile->cols); /* if no group completes the pair */
    memset(factors, 0, tile->cols * sizeof *factors);
    if (tile->rows > 0) {
        npuq_run_pass(setup, tile, &pass);
        job.shifts = npuq_find_mx_scales(rule, factors, tile->cols, codes, shifts);
    }
    npuq_copy_row(scale->data, scale->col_stride, (const char *)codes, sizeof *codes, sizeof *codes, tile->cols);
    if (tile->rows == 0) {
        return;
    }
    pass.kernel = npuq_find_quantiser(setup);
    pass.params = &job.quant;
    pass.writes_y = true;
    npuq_run_pass(setup, tile, &pass);
    for (size_t col = 0; rule->bad_is_nan && col < tile->cols; col++) {
        for (size_t row = 0; codes[col] == NPUQ_MX_BAD && row < tile->rows; row++) {
            write_nan(plan, tile, row, col);
        }
    }
}

static void quantise_along_columns(const npuq_plan *plan, const npuq_tile *tile)
{
    npuq_visit_mx_groups(plan, tile, npuq_get_dynamic(plan)->mx.rows, quantise_group);
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static void plan_rows(npuq_plan *plan, const npuq_arguments *arguments)
{
    plan->compute = quantise_along_rows;
    npuq_finish_blocks(plan, arguments);
    if (plan->way == NPUQ_IN_SPACE && arguments->tensors[SCALE]->shape[arguments->tensors[SCALE]->ndim - 1] == 1) {
        plan->area.space.strides[plan->area.space.ndim - 1][SCALE] = 0; /* one pair: a row of groups is one group */
    }
}

static npuq_status make_plan(npuq_plan *plan, const npuq_arguments *arguments, const void *options)
{
    const npuq_mx_options *o = options;
    const npuq_tensor *x = arguments->tensors[X];
    const int64_t block = npuq_find_mx_block(o->given);
    npuq_dynamic_own *own = npuq_set_own(plan);
    npuq_mx_views views;

    npuq_view_mx_groups(&views, arguments, o, SCALE);
    if (!npuq_start_blocks(plan, &views.arguments, block,
                           views.is_last_axis && x->shape[x->ndim - 1] % (2 * block) == 0)) {
        return NPUQ_OK;
    }
    plan->pair_stride = views.pair_stride;
    plan->setup.rounding = (uint8_t)(o->given ? o->given->rounding : 0);
    own->form = NPUQ_SYMMETRIC_GROUP;
    own->mx = npuq_make_mx_rule(o->given, plan->setup.types[X], plan->setup.types[Y], views.is_last_axis);
    if (views.is_last_axis) {
        plan_rows(plan, &views.arguments);
    } else {
        plan->compute = quantise_along_columns;
        own->mx.rows = (uint16_t)block;
        npuq_finish_mx_columns(plan, &views.arguments, (size_t)block);
    }
    return NPUQ_OK;
}

static const npuq_operator to_mx = {NPUQ_SIGNATURE(dynamic_mx_quant), check, make_plan, NULL, NULL};

npuq_status npuq_dynamic_mx_quant(const npuq_tensor *x, int32_t axis, const npuq_mx *options, const npuq_tensor *y,
                                  const npuq_tensor *mxscale, const npuq_executor *executor)
{
    return npuq_call_inlined(&to_mx, to_mx.check, to_mx.plan, NPUQ_TENSORS(dynamic_mx_quant),
                             &(npuq_mx_options){axis, options}, executor);
}

npuq_status npuq_prepare_dynamic_mx_quant(npuq_call *call, const npuq_tensor *x, int32_t axis, const npuq_mx *options,
                                          const npuq_tensor *y, const npuq_tensor *mxscale)
{
    return npuq_prepare_operator(call, &to_mx, NPUQ_TENSORS(dynamic_mx_quant), &(npuq_mx_options){axis, options});
}
